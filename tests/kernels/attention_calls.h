/* Calls of attention and of its gradient, and every kernel that may run them. */
#ifndef TESTS_KERNELS_ATTENTION_CALLS_H
#define TESTS_KERNELS_ATTENTION_CALLS_H

#include "anneal/experimental.h"
#include "base/float16.h"
#include "base/memory.h"
#include "ir/graph.h"
#include "kernels/attention/attention.h"
#include "support/ops.h"
#include "support/support.h"

/* ---- calls ---- */

/* A call of attention and then of its gradient. q, k and v are views into one buffer, as a model's are, where there are
 * as many keys as queries; dst and gradients lie as (batch, tokens, heads, size). */
typedef struct {
    an_dtype dtype;
    int64_t batch, heads, kv_heads, queries, keys, size, offset;
    an_attention_attributes attributes;
    uint64_t first_sample;
    bool nan_after; /* keys that no query sees are NaN */
} problem;

enum { Q, K, V, DIFF_DST, DST, DIFF_Q, DIFF_K, DIFF_V, LOG_SUM, TENSORS };

typedef struct {
    problem p;
    an_tensor t[TENSORS], offset, samples, seed, step;
    int64_t offset_value, sample_values[64], seed_value, step_value;
    void *memory[TENSORS];
    size_t bytes[TENSORS];
} operands;

static inline double get(const an_tensor *t, int64_t element) {
    switch (t->dtype) {
    case AN_DTYPE_F64: return ((const double *)t->data)[element];
    case AN_DTYPE_F32: return (double)((const float *)t->data)[element];
    default: return (double)an_bf16_to_f32(((const uint16_t *)t->data)[element]);
    }
}

static inline void set(const an_tensor *t, int64_t element, double value) {
    switch (t->dtype) {
    case AN_DTYPE_F64: ((double *)t->data)[element] = value; break;
    case AN_DTYPE_F32: ((float *)t->data)[element] = (float)value; break;
    default: ((uint16_t *)t->data)[element] = an_f32_to_bf16((float)value); break;
    }
}

static inline int64_t offset_of(const an_tensor *t, int64_t batch, int64_t head, int64_t token, int64_t d) {
    return batch * t->strides[0] + head * t->strides[1] + token * t->strides[2] + d * t->strides[3];
}

/* The same numbers for the same sample, head, token and element, whatever the sizes; representable in every dtype. */
static inline double value_of(const problem *p, int tensor, int64_t batch, int64_t head, int64_t token, int64_t d) {
    const uint64_t sample = p->first_sample + (uint64_t)batch, tokens = 4096, heads = 64, size = AN_ATTENTION_HEAD;
    const uint64_t index =
        (((sample * TENSORS + (uint64_t)tensor) * heads + (uint64_t)head) * tokens + (uint64_t)token);
    const double normal = noise(index * size + (uint64_t)d) + noise(~(index * size + (uint64_t)d));
    return (double)an_bf16_to_f32(an_f32_to_bf16((float)(1.5 * normal)));
}

static inline void make_tensor(operands *o, int i, int64_t heads, int64_t tokens) {
    const problem *p = &o->p;
    an_tensor *t = &o->t[i];
    *t = (an_tensor){.dtype = p->dtype, .ndims = 4, .dims = {p->batch, heads, tokens, p->size}};
    const int64_t width = heads * p->size;
    t->strides[0] = tokens * width;
    t->strides[1] = p->size;
    t->strides[2] = width;
    t->strides[3] = 1;
    o->bytes[i] = (size_t)(p->batch * tokens * width) * an_dtype_size(t->dtype);
    if (i == LOG_SUM) {
        t->dtype = p->dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
        t->ndims = 3;
        t->strides[0] = heads * tokens;
        t->strides[1] = tokens;
        t->strides[2] = 1;
        o->bytes[i] = (size_t)(p->batch * heads * tokens) * an_dtype_size(t->dtype);
    }
    o->memory[i] = calloc(1, o->bytes[i]);
    assert_non_null(o->memory[i]);
    t->data = o->memory[i];
}

static inline void fill(operands *o, int i, int64_t last_seen) {
    const an_tensor *t = &o->t[i];
    for (int64_t b = 0; b < t->dims[0]; b++)
        for (int64_t h = 0; h < t->dims[1]; h++)
            for (int64_t n = 0; n < t->dims[2]; n++)
                for (int64_t d = 0; d < t->dims[3]; d++) {
                    const int64_t token = i == Q || i == DIFF_DST ? o->p.offset + n : n; /* by position */
                    const double x = n > last_seen ? NAN : value_of(&o->p, i, b, h, token, d);
                    set(t, offset_of(t, b, h, n, d), x);
                }
}

/* q, k and v in one buffer: (batch, tokens, 3, heads, size). */
static inline void make_views(operands *o) {
    const int64_t width = o->p.heads * o->p.size;
    for (int i = Q; i <= V; i++) {
        an_tensor *t = &o->t[i];
        t->strides[0] *= 3;
        t->strides[2] *= 3;
        t->data = (char *)o->memory[Q] + (size_t)(i * width) * an_dtype_size(t->dtype);
    }
}

static inline operands *make_empty(const problem *p) {
    operands *o = calloc(1, sizeof *o);
    assert_non_null(o);
    o->p = *p;
    for (int i = 0; i < TENSORS; i++) {
        const bool is_key = i == K || i == V || i == DIFF_K || i == DIFF_V;
        make_tensor(o, i, is_key ? p->kv_heads : p->heads, is_key ? p->keys : p->queries);
    }
    if (p->queries == p->keys && p->heads == p->kv_heads) {
        free(o->memory[Q]);
        o->memory[Q] = calloc(3, o->bytes[Q]);
        assert_non_null(o->memory[Q]);
        make_views(o);
    }
    for (int64_t b = 0; b < p->batch; b++) o->sample_values[b] = (int64_t)p->first_sample + b;
    o->offset_value = p->offset;
    o->seed_value = 11;
    o->step_value = 5;
    o->offset = (an_tensor){.data = &o->offset_value, .dtype = AN_DTYPE_I64};
    o->samples = (an_tensor){.data = o->sample_values, .dtype = AN_DTYPE_I64, .ndims = 1};
    o->samples.dims[0] = p->batch;
    o->samples.strides[0] = 1;
    o->seed = (an_tensor){.data = &o->seed_value, .dtype = AN_DTYPE_I64};
    o->step = (an_tensor){.data = &o->step_value, .dtype = AN_DTYPE_I64};
    return o;
}

static inline operands *make(const problem *p) {
    operands *o = make_empty(p);
    const int64_t last_seen = p->nan_after ? p->offset + p->queries - 1 : INT64_MAX;
    for (int i = Q; i <= DIFF_DST; i++) fill(o, i, i == K || i == V ? last_seen : INT64_MAX);
    return o;
}

static inline void destroy(operands **o) {
    for (int i = 0; i < TENSORS; i++) free((*o)->memory[i]);
    free(*o);
    *o = NULL;
}

enum { MOST_SOURCES = AN_ATTENTION_DIFF_INPUTS };

/* The inputs of attention, or of its gradient. */
static inline int sources(const operands *o, bool is_diff, an_tensor *src) {
    int n = 0;
    if (is_diff) src[n++] = o->t[DIFF_DST];
    for (int i = Q; i <= V; i++) src[n++] = o->t[i];
    if (is_diff) src[n++] = o->t[DST];
    if (is_diff) src[n++] = o->t[LOG_SUM];
    const an_tensor optional[] = {o->offset, {0}, {0}, o->samples, o->seed, o->step};
    memcpy(src + n, optional, sizeof optional);
    return n + (int)(sizeof optional / sizeof optional[0]);
}

static inline an_call call_of(const operands *o, an_context *ctx, bool is_diff, an_tensor *src, an_tensor *dst) {
    an_call call = {.ctx = ctx, .attributes = &o->p.attributes, .src = src, .dst = dst};
    call.src_count = sources(o, is_diff, src);
    call.dst_count = is_diff ? 3 : 2;
    for (int i = 0; i < call.dst_count; i++) dst[i] = o->t[is_diff ? DIFF_Q + i : i == 0 ? DST : LOG_SUM];
    return call;
}

/* ---- kernels ---- */

static inline an_context *context_of(an_isa isa, int threads) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = threads;
    options.isa = isa;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    return ctx;
}

static inline const an_kernel *kernels_of(bool is_diff, an_isa isa) {
    const char *name = is_diff ? "attention_diff" : "attention";
    return an_op_kernels(find_builtin(name), isa);
}

/* Runs a kernel on scratch that is full of NaN and has nothing after it that could be read. */
static inline void run_one(operands *o, an_context *ctx, bool is_diff, int number) {
    an_tensor src[MOST_SOURCES], dst[3];
    an_call call = call_of(o, ctx, is_diff, src, dst);
    const an_kernel *kernel = &kernels_of(is_diff, an_context_isa(ctx))[number];
    const size_t bytes = an_round_up(kernel->scratch(&call), AN_ALIGNMENT);
    call.scratch = aligned_alloc(AN_ALIGNMENT, bytes);
    assert_non_null(call.scratch);
    memset(call.scratch, 0xff, bytes);
    OK(ctx, kernel->run(&call));
    free(call.scratch);
}

static inline void run(operands *o, an_context *ctx, int number) {
    run_one(o, ctx, false, number);
    run_one(o, ctx, true, number);
}

static inline bool applies(const operands *o, an_context *ctx, int number) {
    an_tensor src[MOST_SOURCES], dst[3];
    const an_call call = call_of(o, ctx, false, src, dst);
    const an_kernel *kernel = &kernels_of(false, an_context_isa(ctx))[number];
    return !kernel->applies || kernel->applies(&call);
}

typedef void kernel_test(an_context *ctx, int number, const char *name, an_dtype dtype);

/* Calls a test with every kernel that is not the portable one, at every level of the machine. */
static inline void for_each_kernel(kernel_test *test) {
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16};
    an_context *machine = context_of(AN_ISA_AUTO, 1);
    const an_isa maximum = an_context_isa(machine);
    int tested = 0;
    an_context_destroy(&machine);
    for (an_isa isa = AN_ISA_BASE; isa <= maximum; isa++) {
        an_context *ctx = context_of(isa, 2);
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            const problem p = {dtypes[d], 1, 1, 1, 1, 1, 32, 0, {.scale = 1}, 0, false};
            operands *o = make(&p);
            for (int i = 0; kernels_of(false, isa)[i + 1].name; i++) {
                const char *name = kernels_of(false, isa)[i].name;
                assert_string_equal(kernels_of(true, isa)[i].name, name);
                if (isa == AN_ISA_AMX && strcmp(name, "amx") != 0) continue; /* the list is that of avx512 */
                if (!applies(o, ctx, i)) continue;
                test(ctx, i, name, dtypes[d]);
                tested++;
            }
            destroy(&o);
        }
        an_context_destroy(&ctx);
    }
    if (!tested) print_message("no fast kernel of attention on this machine: nothing tested\n");
}

static inline int portable_of(an_isa isa) {
    int last = 0;
    while (kernels_of(false, isa)[last + 1].name) last++;
    assert_string_equal(kernels_of(false, isa)[last].name, "portable");
    return last;
}

#endif

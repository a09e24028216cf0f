#include "checkops/nodes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float16.h"
#include "base/text/text.h"
#include "exec/plan.h"

enum { ALIGNMENT = 64, GARBAGE = 0xff };

/* ---- memory and numbers ---- */

/* Of SplitMix64 (Steele, Lea, Flood 2014), as in check_random.c. */
static uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
static const uint64_t mix_step = 0x9e3779b97f4a7c15;

static bool is_dense(const an_tensor *t) {
    int64_t stride = 1;
    for (int i = t->ndims - 1; i >= 0; i--) {
        if (t->dims[i] > 1 && t->strides[i] != stride) return false;
        stride *= t->dims[i];
    }
    return true;
}

static void set_element(an_dtype dtype, void *element, uint64_t bits) {
    const double number = (double)(int64_t)bits * 0x1p-63; /* in [-1, 1) */
    switch (dtype) {
    case AN_DTYPE_F32: *(float *)element = (float)number; break;
    case AN_DTYPE_F64: *(double *)element = number; break;
    case AN_DTYPE_BF16: *(uint16_t *)element = an_f32_to_bf16((float)number); break;
    case AN_DTYPE_F16: *(uint16_t *)element = an_f32_to_f16((float)number); break;
    case AN_DTYPE_I32: *(int32_t *)element = (int32_t)(bits >> 63); break;
    case AN_DTYPE_I64: *(int64_t *)element = (int64_t)(bits >> 63); break;
    case AN_DTYPE_U8: *(uint8_t *)element = (uint8_t)(bits >> 63); break;
    case AN_DTYPE_Q8_0: /* has no element of its own */
    case AN_DTYPE_NONE:
    case AN_DTYPE_LIMIT: break;
    }
}

/* Whether element i in C order repeats an earlier one, of a dimension with stride 0. */
static bool is_repeated(const an_tensor *t, int64_t i) {
    for (int d = t->ndims - 1; d >= 0; d--) {
        if (t->strides[d] == 0 && i % t->dims[d] > 0) return true;
        i /= t->dims[d];
    }
    return false;
}

static void fill(const an_tensor *t, uint64_t seed) {
    const size_t size = an_dtype_size(t->dtype);
    const bool dense =
        is_dense(t); /* the general way is slow, and some tensors have hundreds of millions of elements */
    int64_t count = 1;
    for (int i = 0; i < t->ndims; i++) count *= t->dims[i];
    for (int64_t i = 0; i < count; i++)
        if (dense || !is_repeated(t, i))
            set_element(t->dtype, dense ? (char *)t->data + (size_t)i * size : check_element(t, i),
                        mix(seed + (uint64_t)i * mix_step));
}

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (memory) return memory;
    fprintf(stderr, "checkops: out of memory\n");
    exit(EXIT_FAILURE);
}

void node_call_fill(node_call *call, uint64_t seed) {
    const int src_count = call->at.call.src_count;
    for (int i = 0; i < src_count + call->at.call.dst_count; i++) {
        an_tensor *t = i < src_count ? &call->at.src[i] : &call->at.dst[i - src_count];
        size_t span = 1;
        if (t->dtype == AN_DTYPE_NONE) continue;
        for (int d = 0; d < t->ndims; d++) span += (size_t)((t->dims[d] - 1) * t->strides[d]);
        call->bytes[i] = span * an_dtype_size(t->dtype);
        call->memory[i] = t->data = allocate(call->bytes[i]);
        if (i < src_count) fill(t, mix(seed + (uint64_t)i + 1));
    }
}

void node_call_release(node_call *call) {
    for (int i = 0; i < NODE_OPERANDS; i++) free(call->memory[i]);
}

/* ---- nodes ---- */

static uint64_t hash_numbers(uint64_t hash, int count, const int64_t *numbers) {
    return an_hash(numbers, (size_t)count * sizeof *numbers, hash);
}

static uint64_t hash_attribute(uint64_t hash, const an_attribute *a, const void *value) {
    switch (a->type) {
    case AN_ATTRIBUTE_BOOL: return hash_numbers(hash, 1, &(int64_t){*(const bool *)value});
    case AN_ATTRIBUTE_DTYPE: return hash_numbers(hash, 1, &(int64_t){*(const an_dtype *)value});
    case AN_ATTRIBUTE_INT:
    case AN_ATTRIBUTE_DIM: return hash_numbers(hash, 1, value);
    case AN_ATTRIBUTE_FLOAT: return an_hash(value, sizeof(double), hash);
    case AN_ATTRIBUTE_DIMS:
        return hash_numbers(hash, ((const an_dim_list *)value)->count, ((const an_dim_list *)value)->values);
    case AN_ATTRIBUTE_INTS:
        return hash_numbers(hash, ((const an_int_list *)value)->count, ((const an_int_list *)value)->values);
    case AN_ATTRIBUTE_STRING: {
        const char *text = *(const char *const *)value;
        return text ? an_hash(text, strlen(text), hash) : hash;
    }
    }
    return hash;
}

/* Nodes of one hash are one case. What registration or a pass noted of a node says nothing about its numbers. */
static uint64_t hash_of(const an_node *node, const an_node_call *at) {
    uint64_t hash = an_hash(node->op->name, strlen(node->op->name), 0);
    for (const an_attribute *a = node->op->attributes; a && a->name; a++)
        if (!a->noted) hash = hash_attribute(hash, a, at->attributes + a->offset);
    for (int i = 0; i < at->call.src_count + at->call.dst_count; i++) {
        const an_tensor *t = i < at->call.src_count ? &at->src[i] : &at->dst[i - at->call.src_count];
        hash = hash_numbers(hash, 1, &(int64_t){t->dtype});
        hash = hash_numbers(hash_numbers(hash, t->ndims, t->dims), t->ndims, t->strides);
    }
    return hash;
}

/* True the first time that a case comes. */
static bool is_new(uint64_t hash) {
    enum { MOST = 1 << 14 };
    static uint64_t seen[MOST];
    static int count;
    for (int i = 0; i < count; i++)
        if (seen[i] == hash) return false;
    if (count < MOST) seen[count++] = hash;
    return true;
}

/* A byte of traffic counts as what a machine computes while it moves one. */
static double gigaflops(const node_case *c) {
    const double flops_of_byte = 10;
    const an_cost cost = an_node_cost(c->graph, c->node);
    return (cost.flops + flops_of_byte * cost.bytes) / 1e9;
}

static void visit_node(node_case *c, node_function *function) {
    if (gigaflops(c) > c->options->work) return;
    memset(&c->whole, 0, sizeof c->whole);
    if (an_node_call_make(c->graph, c->node, &c->whole.at) != AN_OK) {
        check_fail_plain("%s of %s: %s", c->node->op->name, c->model->name, an_last_error(c->graph->ctx));
        return;
    }
    if (!is_new(hash_of(c->node, &c->whole.at))) return;
    node_call_fill(&c->whole, c->options->seed);
    function(c);
    node_call_release(&c->whole);
}

/* Plans are made when the first op asks for them, and kept for the others. */
enum { MOST_MODELS = 32, DTYPES = 3, FUSED_OR_NOT = 2 };
static const an_dtype dtypes[DTYPES] = {AN_DTYPE_F32, AN_DTYPE_BF16, AN_DTYPE_F64};
static struct {
    an_plan *plan;
    bool failed;
} slots[MOST_MODELS][DTYPES][FUSED_OR_NOT];
static an_context *plans_context;

static const an_plan *plan_of(const check_options *options, const real_model *model, int dtype, int unfused) {
    const ptrdiff_t number = model - real_models;
    an_context_options context;
    an_context_options_init(&context, sizeof context);
    context.isa = options->isa;
    if (slots[number][dtype][unfused].failed) return NULL;
    if (!plans_context && an_context_create(&plans_context, &context) != AN_OK)
        check_fail_plain("no context: %s", an_last_error(NULL));
    an_plan **plan = &slots[number][dtype][unfused].plan;
    if (!*plan && real_model_plan(plan, plans_context, model, dtypes[dtype], unfused) != AN_OK)
        check_fail_plain("%s %s: %s", model->name, an_dtype_name(dtypes[dtype]), an_last_error(plans_context));
    slots[number][dtype][unfused].failed = !*plan;
    return *plan;
}

void nodes_release(void) {
    for (int i = 0; i < MOST_MODELS; i++)
        for (int d = 0; d < DTYPES; d++)
            for (int f = 0; f < FUSED_OR_NOT; f++) an_plan_destroy(&slots[i][d][f].plan);
    an_context_destroy(&plans_context);
}

void nodes_visit(const check_options *options, const an_op *op, bool for_rows, node_function *function) {
    node_case *c = check_allocate(1, sizeof *c);
    c->options = options;
    for (int i = 0; real_models[i].name; i++) {
        c->model = &real_models[i];
        if (options->model && strcmp(options->model, c->model->name) != 0) continue;
        if (for_rows && !c->model->for_rows && !options->model) continue;
        for (int j = 0; j < DTYPES * FUSED_OR_NOT; j++) {
            c->dtype = dtypes[j / FUSED_OR_NOT];
            if (c->dtype == AN_DTYPE_F64 && !c->model->in_f64) continue;
            if (options->dtypes && !(options->dtypes >> c->dtype & 1)) continue;
            const an_plan *plan = plan_of(options, c->model, j / FUSED_OR_NOT, j % FUSED_OR_NOT);
            if (!plan) continue;
            c->graph = plan->forms[plan->forms[AN_FORM_TRAIN_FIRST] ? AN_FORM_TRAIN_FIRST : AN_FORM_PREDICT];
            for (c->node = c->graph->first; c->node; c->node = c->node->next)
                if (c->node->op == op && !c->node->elided) visit_node(c, function);
        }
    }
    free(c);
}

/* ---- calls ---- */

static const an_call *without_data(const node_call *call, an_context *ctx, an_node_call *at) {
    *at = call->at;
    at->call.ctx = ctx;
    at->call.src = at->src;
    at->call.dst = at->dst;
    at->call.attributes = at->attributes;
    for (int i = 0; i < at->call.src_count; i++) at->src[i].data = NULL;
    for (int i = 0; i < at->call.dst_count; i++) at->dst[i].data = NULL;
    return &at->call;
}

bool node_call_applies(const node_call *call, const an_kernel *kernel, an_context *ctx) {
    an_node_call at;
    return !kernel->applies || kernel->applies(without_data(call, ctx, &at));
}

static size_t scratch_of(const node_call *call, const an_kernel *kernel, an_context *ctx) {
    an_node_call at;
    return kernel->scratch ? kernel->scratch(without_data(call, ctx, &at)) : 0;
}

const char *node_run(const node_case *c, node_call *call, const an_kernel *kernel, an_context *ctx,
                     const node_call *largest) {
    /* asked at the sizes of the run last, as a program does: what the kernel keeps is then for them */
    const size_t scratch = scratch_of(largest, kernel, ctx), own = scratch_of(call, kernel, ctx);
    if (scratch == AN_SCRATCH_FAILED || own == AN_SCRATCH_FAILED) return an_last_error(ctx);
    if (own > scratch) return "it needs more scratch than at the largest sizes, which is all that a program has";
    const bool adds = c->node->op->flags & AN_OP_ACCUMULATES; /* to zeros, then */
    const int src_count = call->at.call.src_count;
    for (int i = src_count; i < src_count + call->at.call.dst_count; i++)
        memset(call->memory[i], adds ? 0 : GARBAGE, call->bytes[i]);
    call->at.call.ctx = ctx;
    call->at.call.scratch = scratch ? allocate(scratch) : NULL;
    if (scratch) memset(call->at.call.scratch, GARBAGE, scratch);
    an_status status = kernel->run(&call->at.call);
    free(call->at.call.scratch);
    check_count();
    return status == AN_OK ? NULL : an_last_error(ctx);
}

static size_t describe(const an_tensor *t, char *text, size_t capacity) {
    size_t length = (size_t)snprintf(text, capacity, "%s[", an_dtype_name(t->dtype));
    for (int i = 0; i < t->ndims && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    return length < capacity ? length + (size_t)snprintf(text + length, capacity - length, "]") : length;
}

void node_fail(const node_case *c, const an_kernel *kernel, const char *format, ...) {
    const an_call *call = &c->whole.at.call;
    char shapes[1024] = "", what[4096];
    size_t length = 0;
    va_list arguments;
    for (int i = 0; i < call->src_count + call->dst_count && length < sizeof shapes; i++) {
        const bool is_src = i < call->src_count;
        if (i)
            length += (size_t)snprintf(shapes + length, sizeof shapes - length, i == call->src_count ? " -> " : ", ");
        if (length < sizeof shapes)
            length += describe(is_src ? &call->src[i] : &call->dst[i - call->src_count], shapes + length,
                               sizeof shapes - length);
    }
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    check_fail_plain("%s %s of '%s' in %s (%s): %s\n"
                     "    again: checkops --mode=%s --model=%s --op=%s --kernel=%s --dtype=%s --isa=%s --work=%g",
                     c->node->op->name, kernel->name, c->node->path, c->model->name, shapes, what, c->options->mode,
                     c->model->name, c->node->op->name, kernel->name, an_dtype_name(c->dtype),
                     an_isa_name(c->options->isa), c->options->work);
}

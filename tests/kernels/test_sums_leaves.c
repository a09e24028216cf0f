/* Kernels that add over samples, by leaves: at every level of instructions, with any threads, cut, layout and
 * type, they have the bits of support/leaf_calls.h. */
#include "base/float16.h"
#include "base/integer.h"
#include "base/isa.h"
#include "kernels/copy/copy.h"
#include "kernels/loss/loss.h"
#include "kernels/norm/norm.h"
#include "kernels/reduce/reduce.h"
#include "support/leaf_calls.h"

enum {
    MOST_THREADS = 3,
    MOST_LEAVES = 64,
    CASES = 160,             /* of each kernel */
    MOST_ELEMENTS = 1 << 16, /* of an input */
    MOST_CLASSES = 9,
    IGNORED = -1
};

static const an_isa isas[] = {AN_ISA_BASE, AN_ISA_AVX2, AN_ISA_AVX512};
static an_context *contexts[AN_LEVELS][MOST_THREADS];

/* ---- random cases ---- */

static uint64_t seed;

static int64_t drawn(int64_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

/* Mostly small, at times up to `most`. */
static int64_t drawn_size(int64_t maximum) {
    const int64_t bounds[] = {4, 40, maximum};
    const int64_t bound = bounds[drawn(3)];
    return 1 + drawn(bound < maximum ? bound : maximum);
}

static void store(const an_tensor *t, int64_t at, double value) {
    switch (t->dtype) {
    case AN_DTYPE_BF16: ((uint16_t *)t->data)[at] = an_f32_to_bf16((float)value); break;
    case AN_DTYPE_F16: ((uint16_t *)t->data)[at] = an_f32_to_f16((float)value); break;
    case AN_DTYPE_F64: ((double *)t->data)[at] = value; break;
    case AN_DTYPE_I64: ((int64_t *)t->data)[at] = (int64_t)value; break;
    default: ((float *)t->data)[at] = (float)value;
    }
}

/* Memory for a tensor: dense, or with gaps, or with its axes in another order, filled with numbers of different
 * sizes. */
static an_tensor make(an_dtype dtype, int ndims, const int64_t *dims) {
    an_tensor t = {.dtype = dtype, .ndims = ndims};
    const int64_t layout = drawn(4);
    const int turn = layout == 3 && ndims > 0 ? (int)drawn(ndims) : 0; /* axes are laid out from this one on */
    int64_t stride = layout == 2 ? 2 : 1;
    for (int k = ndims - 1; k >= 0; k--) {
        const int i = (k + turn) % ndims;
        t.dims[i] = dims[i];
        t.strides[i] = stride;
        stride = stride * dims[i] + (layout == 1 || layout == 2 ? drawn(3) : 0);
    }
    t.data = malloc((size_t)stride * an_dtype_size(dtype));
    assert_non_null(t.data);
    for (int64_t i = 0; i < stride; i++) {
        const double value = dtype == AN_DTYPE_I64 ? (double)(drawn(MOST_CLASSES + 1) - 1) : noise(seed + (uint64_t)i);
        store(&t, i, dtype == AN_DTYPE_I64 ? value : value * (double)(1 << i % 7));
    }
    return t;
}

static int64_t place(const an_tensor *t, int64_t element) {
    int64_t at = 0;
    for (int i = t->ndims - 1; i >= 0; i--) {
        at += element % t->dims[i] * t->strides[i];
        element /= t->dims[i];
    }
    return at;
}

/* A call; the kernel of each level; along which axis of each input its samples lie. */
typedef struct {
    const char *name;
    int64_t number;
    const an_kernel *kernels[AN_LEVELS];
    an_tensor src[LEAF_CALL_SRC], dst[LEAF_CALL_DST];
    int axes[LEAF_CALL_SRC];
    int src_count, dst_count;
    const void *attributes;
    int64_t samples;
    int64_t leaves; /* 0: any number */
} sum_case;

static void add_src(sum_case *c, an_tensor t, int axis) {
    c->axes[c->src_count] = axis;
    c->src[c->src_count++] = t;
}

static an_dtype drawn_dtype(void) {
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16, AN_DTYPE_F16};
    return dtypes[drawn(5)];
}

static an_dtype compute_dtype(an_dtype dtype) {
    return dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
}

/* What sums in one dtype may be stored in. */
static an_dtype stored_dtype(an_dtype dtype) {
    if (drawn(3) > 0) return compute_dtype(dtype);
    return dtype == AN_DTYPE_F64 ? AN_DTYPE_F32 : AN_DTYPE_BF16;
}

/* ---- the check ---- */

static void check_output(const sum_case *c, const an_leaf_cut *cut, int output, const void *sums, an_isa isa) {
    const an_tensor *dst = &c->dst[output];
    const bool is_f64 = compute_dtype(c->src[0].dtype) == AN_DTYPE_F64;
    const size_t size = an_dtype_size(dst->dtype);
    for (int64_t i = 0; i < leaf_call_elements(dst); i++) {
        unsigned char want[sizeof(double)];
        const an_tensor one = {.data = want, .dtype = dst->dtype};
        const char *got = (const char *)dst->data + (size_t)place(dst, i) * size;
        store(&one, 0, is_f64 ? ((const double *)sums)[i] : (double)((const float *)sums)[i]);
        if (memcmp(got, want, size) != 0)
            fail_msg("%s, case %lld, %s: %lld samples in %lld leaves: element %lld of output %d differs", c->name,
                     (long long)c->number, an_isa_name(isa), (long long)cut->samples, (long long)cut->count,
                     (long long)i, output);
    }
}

static void check_with(const sum_case *c, const an_leaf_cut *cut, int level, int threads) {
    an_tensor dense[LEAF_CALL_DST];
    void *sums[LEAF_CALL_DST];
    an_call call = {.ctx = contexts[level][threads - 1],
                    .attributes = c->attributes,
                    .src_count = c->src_count,
                    .dst_count = c->dst_count,
                    .src = c->src,
                    .dst = dense};
    const leaf_calls l = {c->kernels[level], &call, c->axes, cut};
    assert_true(l.kernel->by_leaves);
    for (int i = 0; i < c->dst_count; i++) {
        dense[i] = c->dst[i];
        dense[i].dtype = compute_dtype(c->src[0].dtype);
        sums[i] = malloc((size_t)leaf_call_elements(&c->dst[i]) * sizeof(double));
    }
    leaf_calls_run(&l, sums);
    call.dst = c->dst;
    leaf_calls_run_whole(&l);
    for (int i = 0; i < c->dst_count; i++) {
        check_output(c, cut, i, sums[i], isas[level]);
        free(sums[i]);
    }
}

/* With a cut as the library makes it, and with uneven ones. */
static void check(sum_case *c) {
    for (int way = 0; way < 3; way++) {
        an_leaf_cut cut = leaf_cut_make(c->leaves ? c->leaves : 1 + drawn(MOST_LEAVES), c->samples,
                                        way ? (uint64_t)drawn(1 << 30) + 1 : 0);
        for (int level = 0; level < AN_LEVELS; level++)
            if (contexts[level][0]) check_with(c, &cut, level, 1 + (int)((c->number + way) % MOST_THREADS));
        leaf_cut_free(&cut);
    }
    for (int i = 0; i < c->src_count; i++) free(c->src[i].data);
    for (int i = 0; i < c->dst_count; i++) free(c->dst[i].data);
}

#define START(op, case_number) \
    { .name = #op, .kernels = AN_KERNELS(op), .number = (case_number) }

/* ---- the kernels ---- */

static void test_reduce_sum(void **state) {
    static const struct {
        int ndims;
        an_int_list axes;
    } shapes[] = {{2, {1, {0}}},       {2, {2, {0, 1}}}, {3, {2, {0, 1}}},
                  {4, {3, {0, 2, 3}}}, {3, {1, {1}}},    {4, {2, {1, 3}}}};
    (void)state;
    for (int64_t n = 0; n < 2 * CASES; n++) {
        seed = (uint64_t)n;
        sum_case c = START(reduce_sum, n);
        const int64_t shape = drawn(sizeof shapes / sizeof *shapes);
        an_reduce_attributes attributes = {.axes = shapes[shape].axes};
        const int ndims = shapes[shape].ndims, axis = (int)attributes.axes.values[0];
        int64_t dims[AN_MAX_DIMS], kept[AN_MAX_DIMS], room = MOST_ELEMENTS;
        c.samples = drawn_size(4000);
        dims[axis] = c.samples * (1 + drawn(4));
        room = room / dims[axis] + 1;
        for (int i = ndims - 1; i >= 0; i--) {
            if (i == axis) continue;
            dims[i] = drawn_size(room < 200 ? room : 200);
            room = room / dims[i] + 1;
        }
        int kept_count = 0;
        for (int i = 0; i < ndims; i++) {
            bool is_reduced = false;
            for (int k = 0; k < attributes.axes.count; k++) is_reduced = is_reduced || attributes.axes.values[k] == i;
            if (!is_reduced) kept[kept_count++] = dims[i];
        }
        c.attributes = &attributes;
        add_src(&c, make(drawn_dtype(), ndims, dims), axis);
        c.dst[c.dst_count++] = make(stored_dtype(c.src[0].dtype), kept_count, kept);
        check(&c);
    }
}

/* Bias gradients with leaves of every small number of rows: around the lanes, each is a way of its own. */
static void test_short_leaves(void **state) {
    enum { ROWS = 36, LEAVES = 3 };
    static const an_reduce_attributes attributes = {.axes = {1, {0}}};
    (void)state;
    for (int64_t n = 0; n < (int64_t)4 * ROWS; n++) {
        seed = (uint64_t)n;
        sum_case c = START(reduce_sum, n);
        c.samples = (1 + n % ROWS) * LEAVES;
        c.leaves = LEAVES;
        c.attributes = &attributes;
        const int64_t dims[] = {c.samples, 16 + drawn(120)};
        add_src(&c, make(drawn_dtype(), 2, dims), 0);
        c.dst[c.dst_count++] = make(stored_dtype(c.src[0].dtype), 1, &dims[1]);
        check(&c);
    }
}

/* diff_dst, src, mean if `has_mean`, inverse → diff_weight, diff_bias if `has_mean` */
static void check_norm(sum_case c, bool has_mean) {
    const an_dtype dtype = drawn_dtype(), statistic = compute_dtype(dtype);
    const int ndims = 2 + (int)drawn(2);
    int64_t dims[3], rows;
    /* a leaf of more than 16,384 rows has larger chunks */
    c.samples = c.number % 40 == 0 ? 20000 + drawn(20000) : drawn_size(2000);
    dims[0] = rows = c.samples * (1 + drawn(3));
    if (ndims > 2) rows *= dims[1] = 1 + drawn(3);
    dims[ndims - 1] = 1 + drawn(1 + an_larger(1, MOST_ELEMENTS / rows) % 600);
    add_src(&c, make(dtype, ndims, dims), 0);
    add_src(&c, make(dtype, ndims, dims), 0);
    if (has_mean) add_src(&c, make(statistic, ndims - 1, dims), 0);
    add_src(&c, make(statistic, ndims - 1, dims), 0);
    for (int i = 0; i <= has_mean; i++) c.dst[c.dst_count++] = make(stored_dtype(dtype), 1, &dims[ndims - 1]);
    check(&c);
}

static void test_norms(void **state) {
    (void)state;
    for (int64_t n = 0; n < CASES; n++) {
        seed = (uint64_t)n;
        check_norm((sum_case)START(layer_norm_diff_weights, n), true);
        check_norm((sum_case)START(rms_norm_diff_weights, n), false);
    }
}

static void check_error(sum_case c) {
    static const an_huber_error_attributes attributes = {.delta = 1.5};
    const an_dtype dtype = drawn_dtype();
    const int ndims = 1 + (int)drawn(3);
    int64_t dims[3];
    c.samples = drawn_size(6000);
    dims[0] = c.samples;
    for (int i = 1; i < ndims; i++) dims[i] = drawn_size(1 + an_larger(1, 30000 / dims[0]) % (i > 1 ? 20 : 2000));
    c.attributes = &attributes;
    add_src(&c, make(dtype, ndims, dims), 0);
    add_src(&c, make(dtype, ndims, dims), 0);
    if (drawn(2)) add_src(&c, make(compute_dtype(dtype), 1 + (int)drawn(ndims), dims), 0);
    c.dst[c.dst_count++] = make(stored_dtype(dtype), 0, NULL);
    check(&c);
}

static void test_errors(void **state) {
    (void)state;
    for (int64_t n = 0; n < CASES / 2; n++) {
        seed = (uint64_t)n;
        check_error((sum_case)START(squared_error, n));
        check_error((sum_case)START(absolute_error, n));
        check_error((sum_case)START(huber_error, n));
        check_error((sum_case)START(binary_cross_entropy, n));
    }
}

/* The log-sum-exp of each row is no sum over samples, so the kernels that the check sees have the loss alone. */
static double log_sum_exp[MOST_ELEMENTS], log_sum_exp_alone[MOST_ELEMENTS];
static void *log_sum_exp_at;

static an_call with_rows(const an_call *call, an_tensor dst[2]) {
    an_call both = *call;
    dst[0] = call->dst[0];
    dst[1] = call->src[1];
    dst[1].dtype = compute_dtype(call->src[0].dtype);
    dst[1].data = log_sum_exp_at;
    int64_t stride = 1;
    for (int i = dst[1].ndims - 1; i >= 0; i--) {
        dst[1].strides[i] = stride;
        stride *= dst[1].dims[i];
    }
    both.dst = dst;
    both.dst_count = 2;
    return both;
}

static const an_kernel *const entropy_kernels[] = AN_KERNELS(cross_entropy);

static size_t entropy_scratch(const an_call *call) {
    an_tensor dst[2];
    const an_call both = with_rows(call, dst);
    return entropy_kernels[an_level_of(an_context_isa(call->ctx))]->scratch(&both);
}

static an_status entropy_run(const an_call *call) {
    an_tensor dst[2];
    log_sum_exp_at = call->leaves ? log_sum_exp : log_sum_exp_alone;
    const an_call both = with_rows(call, dst);
    return entropy_kernels[an_level_of(an_context_isa(call->ctx))]->run(&both);
}

static void test_cross_entropy(void **state) {
    (void)state;
    for (int64_t n = 0; n < CASES; n++) {
        seed = (uint64_t)n;
        const an_kernel loss = {
            .name = "loss", .scratch = entropy_scratch, .run = entropy_run, .by_leaves = entropy_kernels[0]->by_leaves};
        sum_case c = {.name = "cross_entropy", .number = n};
        const an_cross_entropy_attributes attributes = {
            .ignored = IGNORED, .label_smoothing = n % 3 ? 0 : 0.1, .focal = n % 5 ? 0 : 2};
        const an_dtype dtype = drawn_dtype();
        const int ndims = 1 + (int)drawn(2);
        int64_t dims[3], rows;
        for (int level = 0; level < AN_LEVELS; level++) c.kernels[level] = &loss;
        c.samples = drawn_size(n % 10 == 0 ? 4000 : 500);
        dims[0] = rows = c.samples * (1 + drawn(2));
        if (ndims > 1) rows *= dims[1] = drawn_size(4);
        dims[ndims] = MOST_CLASSES;
        c.attributes = &attributes;
        add_src(&c, make(dtype, ndims + 1, dims), 0);
        add_src(&c, make(AN_DTYPE_I64, ndims, dims), 0);
        if (drawn(2)) add_src(&c, make(compute_dtype(dtype), 1 + (int)drawn(ndims), dims), 0);
        c.dst[c.dst_count++] = make(stored_dtype(dtype), 0, NULL);
        check(&c);
    }
}

/* The log-sum-exp of rows are those of a call without leaves; losses by row, which are no sum, are as they were too. */
static void test_cross_entropy_rows(void **state) {
    enum { ROWS = 300 };
    static float logits[ROWS * MOST_CLASSES], losses[2][ROWS], wholes[2][ROWS];
    static int64_t labels[ROWS];
    const an_cross_entropy_attributes attributes = {.ignored = IGNORED};
    const an_tensor src[] = {
        {.data = logits, .dtype = AN_DTYPE_F32, .ndims = 2, .dims = {ROWS, MOST_CLASSES}, .strides = {MOST_CLASSES, 1}},
        {.data = labels, .dtype = AN_DTYPE_I64, .ndims = 1, .dims = {ROWS}, .strides = {1}}};
    (void)state;
    for (int64_t i = 0; i < ROWS * MOST_CLASSES; i++) logits[i] = (float)noise((uint64_t)i);
    for (int64_t i = 0; i < ROWS; i++) labels[i] = i % MOST_CLASSES;
    an_leaf_cut cut = leaf_cut_make(8, ROWS, 3);
    for (int ndims = 0; ndims < 2; ndims++) {
        for (int way = 0; way < 2; way++) {
            const an_tensor dst[] = {
                {.data = losses[way], .dtype = AN_DTYPE_F32, .ndims = ndims, .dims = {ROWS}, .strides = {1}},
                {.data = wholes[way], .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {ROWS}, .strides = {1}}};
            an_call call = {.ctx = contexts[0][0],
                            .attributes = &attributes,
                            .src_count = 2,
                            .dst_count = 2,
                            .src = src,
                            .dst = dst,
                            .leaves = way ? &cut : NULL};
            call.scratch = leaf_call_scratch(entropy_kernels[0], &call);
            OK(call.ctx, entropy_kernels[0]->run(&call));
            free(call.scratch);
        }
        if (ndims == 1) assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
        assert_memory_equal(wholes[0], wholes[1], sizeof wholes[0]);
    }
    leaf_cut_free(&cut);
}

static void test_gather_diff(void **state) {
    (void)state;
    for (int64_t n = 0; n < CASES; n++) {
        seed = (uint64_t)n;
        sum_case c = START(gather_diff, n);
        const an_dtype dtype = drawn_dtype();
        const an_gather_diff_attributes attributes = {.axis = drawn(2)};
        int64_t dims[2], dst_dims[2];
        c.samples = drawn_size(400);
        dims[attributes.axis] = c.samples * (1 + drawn(3));
        dims[1 - attributes.axis] = drawn_size(30);
        dst_dims[attributes.axis] = MOST_CLASSES;
        dst_dims[1 - attributes.axis] = dims[1 - attributes.axis] + drawn(2);
        c.attributes = &attributes;
        add_src(&c, make(dtype, 2, dims), (int)attributes.axis);
        add_src(&c, make(AN_DTYPE_I64, 2, dims), (int)attributes.axis);
        const an_tensor *indices = &c.src[1];
        for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
            int64_t *index = (int64_t *)indices->data + place(indices, i);
            *index = *index < 0 ? 0 : *index;
        }
        c.dst[c.dst_count++] = make(stored_dtype(dtype), 2, dst_dims);
        check(&c);
    }
}

static int open_contexts(void **state) {
    (void)state;
    for (int level = 0; level < AN_LEVELS && isas[level] <= an_isa_highest(); level++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) {
            an_context_options options;
            an_context_options_init(&options, sizeof options);
            options.threads = threads;
            options.isa = isas[level];
            if (an_context_create(&contexts[level][threads - 1], &options) != AN_OK) return -1;
        }
    return 0;
}

static int close_contexts(void **state) {
    (void)state;
    for (int level = 0; level < AN_LEVELS; level++)
        for (int threads = 1; threads <= MOST_THREADS; threads++) an_context_destroy(&contexts[level][threads - 1]);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reduce_sum),    cmocka_unit_test(test_short_leaves),
                                       cmocka_unit_test(test_norms),         cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_cross_entropy), cmocka_unit_test(test_cross_entropy_rows),
                                       cmocka_unit_test(test_gather_diff)};
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}

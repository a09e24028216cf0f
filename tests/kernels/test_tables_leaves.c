/* embedding_diff by leaves has the bits of its leaves alone, added in the tree; and of a sum in the order of
 * positions where there are none. */
#include "base/float16.h"
#include "base/isa.h"
#include "kernels/embedding/embedding.h"
#include "support/leaf_calls.h"

enum { CASES = 300, MOST_LEAVES = 64, MOST_SAMPLES = 80, MOST_ROWS = 700, MOST_WIDTH = 300 };

static uint64_t state = 1;

static int64_t below(int64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)limit);
}

/* Lists of kernels of the levels that this machine has. */
typedef struct {
    an_isa isa;
    const an_kernel *kernel;
} level;

static int levels_here(level *levels) {
    int count = 0;
    levels[count++] = (level){AN_ISA_BASE, an_kernels_embedding_diff};
#if defined(__x86_64__)
    if (an_isa_highest() >= AN_ISA_AVX2) levels[count++] = (level){AN_ISA_AVX2, an_kernels_embedding_diff_avx2};
    if (an_isa_highest() >= AN_ISA_AVX512) levels[count++] = (level){AN_ISA_AVX512, an_kernels_embedding_diff_avx512};
#endif
    return count;
}

/* Numbers of which some are zeros of either sign, and some cancel each other. */
static float number(void) {
    const int64_t kind = below(8);
    if (kind < 2) return kind ? -0.0f : 0.0f;
    if (kind == 2) return (float)(below(5) - 2);
    return (float)noise((uint64_t)below(1 << 30)) * (kind == 3 ? 1e4f : 1.0f);
}

static void put(an_tensor *t, int64_t place, double value) {
    switch (t->dtype) {
    case AN_DTYPE_F64: ((double *)t->data)[place] = value; break;
    case AN_DTYPE_F32: ((float *)t->data)[place] = (float)value; break;
    case AN_DTYPE_BF16: ((uint16_t *)t->data)[place] = an_f32_to_bf16((float)value); break;
    case AN_DTYPE_F16: ((uint16_t *)t->data)[place] = an_f32_to_f16((float)value); break;
    case AN_DTYPE_I32: ((int32_t *)t->data)[place] = (int32_t)value; break;
    case AN_DTYPE_U8: ((uint8_t *)t->data)[place] = (uint8_t)value; break;
    default: ((int64_t *)t->data)[place] = (int64_t)value; break;
    }
}

/* Strides with gaps, or with the last dimension outside the others. */
static int64_t set_strides(an_tensor *t) {
    int64_t stride = 1;
    const bool is_turned = t->ndims > 1 && below(4) == 0;
    if (is_turned) {
        for (int i = t->ndims - 2; i >= 0; i--) {
            t->strides[i] = stride;
            stride *= t->dims[i];
        }
        t->strides[t->ndims - 1] = stride;
        return stride * t->dims[t->ndims - 1];
    }
    for (int i = t->ndims - 1; i >= 0; i--) {
        t->strides[i] = stride;
        stride *= t->dims[i];
        if (below(4) == 0) stride += below(7);
    }
    return stride;
}

static int64_t set_memory(an_tensor *t) {
    const int64_t elements = set_strides(t);
    t->data = malloc((size_t)elements * an_dtype_size(t->dtype));
    assert_non_null(t->data);
    memset(t->data, 0x5a, (size_t)elements * an_dtype_size(t->dtype));
    return elements;
}

static int64_t place_of(const an_tensor *t, int64_t element) {
    int64_t place = 0;
    for (int i = t->ndims - 1; i >= 0; i--) {
        place += element % t->dims[i] * t->strides[i];
        element /= t->dims[i];
    }
    return place;
}

typedef struct {
    an_tensor src[2], dst;
    int64_t samples, dst_elements; /* in memory, with gaps */
} problem;

static void make_problem(problem *p, int64_t samples) {
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16, AN_DTYPE_F16};
    static const an_dtype index_dtypes[] = {AN_DTYPE_I32, AN_DTYPE_I64, AN_DTYPE_U8};
    an_tensor *diff = &p->src[0], *indices = &p->src[1];
    *p = (problem){.samples = samples};
    indices->dtype = index_dtypes[below(3)];
    diff->dtype = dtypes[below(5)];
    const int64_t rows = 1 + below(indices->dtype == AN_DTYPE_U8 ? 256 : below(4) ? MOST_ROWS : 7);
    indices->ndims = 1 + (int)below(3);
    indices->dims[0] = samples * (indices->ndims == 1 ? 1 + below(9) : 1);
    for (int i = 1; i < indices->ndims; i++) indices->dims[i] = 1 + below(5);
    diff->ndims = indices->ndims + 1;
    for (int i = 0; i < indices->ndims; i++) diff->dims[i] = indices->dims[i];
    diff->dims[indices->ndims] = 1 + below(below(4) ? 40 : MOST_WIDTH);
    set_memory(diff);
    set_memory(indices);
    const int64_t elements = leaf_call_elements(diff), positions = leaf_call_elements(indices);
    for (int64_t i = 0; i < elements; i++) put(diff, place_of(diff, i), (double)number());
    const int64_t often = 1 + below(rows); /* many positions name few rows */
    for (int64_t i = 0; i < positions; i++)
        put(indices, place_of(indices, i), (double)(below(3) ? below(rows) : rows - 1 - below(often) / 8));
    p->dst = (an_tensor){.dtype = diff->dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32,
                         .ndims = 2,
                         .dims = {rows, diff->dims[indices->ndims]}};
    p->dst_elements = set_memory(&p->dst);
}

static void drop_problem(problem *p) {
    free(p->src[0].data);
    free(p->src[1].data);
    free(p->dst.data);
}

/* What dst must look like in memory, gaps and all. */
static void expect(const problem *p, const void *sums, int64_t leaves, int64_t number_of) {
    const size_t element = an_dtype_size(p->dst.dtype), bytes = (size_t)p->dst_elements * element;
    char *want = malloc(bytes);
    assert_non_null(want);
    memset(want, 0x5a, bytes);
    for (int64_t i = 0; i < p->dst.dims[0] * p->dst.dims[1]; i++)
        memcpy(want + (size_t)place_of(&p->dst, i) * element, (const char *)sums + (size_t)i * element, element);
    if (memcmp(want, p->dst.data, bytes) != 0)
        fail_msg("case %lld: %lld samples in %lld leaves, table %lld × %lld: other bits", (long long)number_of,
                 (long long)p->samples, (long long)leaves, (long long)p->dst.dims[0], (long long)p->dst.dims[1]);
    free(want);
}

static void test_leaves(void **unused) {
    (void)unused;
    static const int axes[] = {0, 0};
    level levels[4];
    const int level_count = levels_here(levels);
    for (int64_t number_of = 0; number_of < CASES; number_of++) {
        const level at = levels[number_of % level_count];
        an_context_options options;
        an_context *ctx = NULL;
        an_context_options_init(&options, sizeof options);
        options.isa = at.isa;
        options.threads = 1 + (int)below(3);
        assert_int_equal(an_context_create(&ctx, &options), AN_OK);
        problem p;
        make_problem(&p, 1 + below(MOST_SAMPLES));
        an_leaf_cut cut = leaf_cut_make(1 + below(below(2) ? 6 : MOST_LEAVES), p.samples, below(2) ? state : 0);
        const an_call call = {.ctx = ctx, .src_count = 2, .dst_count = 1, .src = p.src, .dst = &p.dst};
        const leaf_calls l = {at.kernel, &call, axes, &cut};
        void *sums = malloc((size_t)(p.dst.dims[0] * p.dst.dims[1]) * sizeof(double));
        assert_non_null(sums);
        assert_true(at.kernel->by_leaves);
        leaf_calls_run(&l, &sums);
        leaf_calls_run_whole(&l);
        expect(&p, sums, cut.count, number_of);
        free(sums);
        leaf_cut_free(&cut);
        drop_problem(&p);
        an_context_destroy(&ctx);
    }
}

/* Without leaves: rows in the order of their positions, from zero. */
static void test_without_leaves(void **unused) {
    (void)unused;
    level levels[4];
    const int level_count = levels_here(levels);
    for (int64_t number_of = 0; number_of < CASES / 4; number_of++) {
        const level at = levels[number_of % level_count];
        an_context_options options;
        an_context *ctx = NULL;
        an_context_options_init(&options, sizeof options);
        options.isa = at.isa;
        assert_int_equal(an_context_create(&ctx, &options), AN_OK);
        problem p;
        make_problem(&p, 1 + below(MOST_SAMPLES));
        const an_tensor *diff = &p.src[0], *indices = &p.src[1];
        const int64_t width = p.dst.dims[1], positions = leaf_call_elements(indices);
        an_call call = {.ctx = ctx, .src_count = 2, .dst_count = 1, .src = p.src, .dst = &p.dst};
        call.scratch = leaf_call_scratch(at.kernel, &call);
        OK(ctx, at.kernel->run(&call));
        free(call.scratch);
        const bool is_f64 = p.dst.dtype == AN_DTYPE_F64;
        void *sums = calloc((size_t)(p.dst.dims[0] * width), sizeof(double));
        assert_non_null(sums);
        for (int64_t i = 0; i < positions * width; i++) {
            const int64_t at_index = place_of(indices, i / width), from = place_of(diff, i);
            const int64_t row = indices->dtype == AN_DTYPE_I32  ? ((const int32_t *)indices->data)[at_index]
                                : indices->dtype == AN_DTYPE_U8 ? ((const uint8_t *)indices->data)[at_index]
                                                                : ((const int64_t *)indices->data)[at_index];
            const int64_t to = row * width + i % width;
            if (is_f64)
                ((double *)sums)[to] += ((const double *)diff->data)[from];
            else
                ((float *)sums)[to] += diff->dtype == AN_DTYPE_F32 ? ((const float *)diff->data)[from]
                                       : diff->dtype == AN_DTYPE_BF16
                                           ? an_bf16_to_f32(((const uint16_t *)diff->data)[from])
                                           : an_f16_to_f32(((const uint16_t *)diff->data)[from]);
        }
        expect(&p, sums, 1, number_of);
        free(sums);
        drop_problem(&p);
        an_context_destroy(&ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_leaves), cmocka_unit_test(test_without_leaves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Products on tiles that add by leaves: the bits of each leaf alone, added in the tree. And an addition at the end of a
 * product, with and without leaves. */
#include "support/support.h"

#if defined(__x86_64__)
#define AN_LEVEL _avx512 /* tiles lie beside it */
#include "base/float16.h"
#include "kernels/product/amx.h"
#include "kernels/product/product.h"
#include "support/leaf_calls.h"

enum { MOST_THREADS = 3, MOST_BELOW = 24, GUARD = 64, GUARD_BYTE = 0x5a };

typedef struct {
    an_context *contexts[MOST_THREADS];
    uint64_t seed;
    bool few; /* problems: for the model of the instructions, which is slow */
} bench;

static bench shared = {.seed = 1};

/* A product whose k is the rows of samples, `each` of one. */
typedef struct {
    int64_t samples, each, rows, columns, leaves;
    uint64_t cut_seed; /* 0: even leaves */
    bool transpose_a, transpose_b;
    int add_count;
    int threads;
    int64_t more_samples, more_leaves; /* of the largest call, which scratch is asked for */
} problem;

/* From 0 to `below` - 1. */
static int64_t draw(bench *t, int64_t below) {
    t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((t->seed >> 33) % (uint64_t)below);
}

static void *allocate(int64_t count, size_t size) {
    void *memory = aligned_alloc(64, ((size_t)count * size + GUARD) / 64 * 64 + 64);
    assert_non_null(memory);
    return memory;
}

/* Numbers of either sign whose sizes differ, so that the order of additions matters. */
static float number(bench *t) {
    const float x = (float)(draw(t, 1 << 16) - (1 << 15)) * 0x1p-15f;
    return draw(t, 8) ? x : x * 64;
}

static uint16_t *make_bf16(bench *t, int64_t count) {
    uint16_t *to = allocate(count, sizeof *to);
    for (int64_t i = 0; i < count; i++) to[i] = an_f32_to_bf16(number(t));
    return to;
}

/* `lanes` × depth, or depth × lanes. */
static an_tensor matrix(uint16_t *data, int64_t lanes, int64_t depth, bool depth_first) {
    const int64_t outer = depth_first ? depth : lanes, inner = depth_first ? lanes : depth;
    return (an_tensor){data, AN_DTYPE_BF16, 2, {outer, inner}, {inner, 1}};
}

/* In as much scratch as the largest call asks for, filled with NaN. */
static void run_in_scratch_of(const an_kernel *kernel, an_call call, const problem *p, const an_leaf_cut *cut) {
    const int64_t depth = (p->samples + p->more_samples) * p->each;
    const an_tensor src[] = {matrix(NULL, p->rows, depth, p->transpose_a),
                             matrix(NULL, p->columns, depth, !p->transpose_b)};
    const an_leaf_cut maximum = {.count = p->leaves + p->more_leaves, .samples = p->samples + p->more_samples};
    an_call largest = call;
    largest.src = src;
    largest.leaves = &maximum;
    const size_t bytes = kernel->scratch(&largest);
    char *scratch = allocate((int64_t)bytes, 1);
    memset(scratch, 0xff, bytes);
    memset(scratch + bytes, GUARD_BYTE, GUARD);
    call.scratch = scratch;
    call.leaves = cut;
    OK(call.ctx, kernel->run(&call));
    for (int i = 0; i < GUARD; i++) assert_int_equal(scratch[bytes + (size_t)i], GUARD_BYTE);
    free(scratch);
}

/* The buffers below are added once to what the oracle says. dst is the same memory as the lowest of them. */
static void check(bench *t, problem p) {
    const an_kernel *amx = an_kernels_product_avx512;
    const int64_t depth = p.samples * p.each, elements = p.rows * p.columns;
    const size_t bytes = (size_t)elements * sizeof(float);
    uint16_t *a = make_bf16(t, p.rows * depth), *b = make_bf16(t, p.columns * depth);
    float *dst = allocate(elements, sizeof *dst), *below[MOST_BELOW];
    double *want = allocate(elements, sizeof *want);
    float *sums = (float *)(void *)want;
    for (int i = 0; i < p.add_count; i++) {
        below[i] = i ? allocate(elements, sizeof **below) : dst;
        for (int64_t e = 0; e < elements; e++) below[i][e] = number(t);
    }
    an_product_attributes attributes = {.transpose_a = p.transpose_a, .transpose_b = p.transpose_b};
    const an_tensor src[] = {matrix(a, p.rows, depth, p.transpose_a), matrix(b, p.columns, depth, !p.transpose_b)};
    const an_tensor to = {dst, AN_DTYPE_F32, 2, {p.rows, p.columns}, {p.columns, 1}};
    const an_call call = {.ctx = t->contexts[p.threads - 1],
                          .attributes = &attributes,
                          .src_count = 2,
                          .src = src,
                          .dst_count = 1,
                          .dst = &to};
    assert_string_equal(amx->name, "amx");
    assert_true(amx->applies(&call) && amx->by_leaves);
    an_leaf_cut cut = leaf_cut_make(p.leaves, p.samples, p.cut_seed);
    const int axes[] = {p.transpose_a ? 0 : 1, p.transpose_b ? 1 : 0};
    const leaf_calls calls = {.kernel = amx, .call = &call, .axes = axes, .cut = &cut};
    leaf_calls_run(&calls, (void *const *)&want);
    for (int i = p.add_count - 1; i >= 0; i--)
        for (int64_t e = 0; e < elements; e++) sums[e] = below[i][e] + sums[e];
    attributes.add_count = p.add_count;
    attributes.add_to = (const void *const *)below;
    if (!p.add_count) memset(dst, 0xff, bytes);
    memset((char *)dst + bytes, GUARD_BYTE, GUARD);
    run_in_scratch_of(amx, call, &p, &cut);
    if (memcmp(dst, sums, bytes)) {
        int64_t e = 0;
        while (!memcmp((const char *)(dst + e), (const char *)(sums + e), sizeof *dst)) e++;
        fail_msg("%lld × %lld, %lld samples of %lld rows in %lld leaves, cut %llu, transposed %d %d, %d below, %d "
                 "threads: element %lld is %a, not %a",
                 (long long)p.rows, (long long)p.columns, (long long)p.samples, (long long)p.each, (long long)p.leaves,
                 (unsigned long long)p.cut_seed, p.transpose_a, p.transpose_b, p.add_count, p.threads, (long long)e,
                 (double)dst[e], (double)sums[e]);
    }
    for (int i = 0; i < GUARD; i++) assert_int_equal(((char *)dst)[bytes + (size_t)i], GUARD_BYTE);
    leaf_cut_free(&cut);
    for (int i = 1; i < p.add_count; i++) free(below[i]);
    free(a);
    free(b);
    free(dst);
    free(want);
}

/* Small, so that there are many; leaves begin anywhere in a step. */
static void test_random(void **state) {
    bench *t = *state;
    for (int i = 0; i < (t->few ? 40 : 400); i++) {
        problem p = {.samples = 1 + draw(t, 40),
                     .each = 1 + draw(t, draw(t, 3) ? 12 : 70),
                     .rows = 1 + draw(t, 100),
                     .columns = 1 + draw(t, draw(t, 3) ? 100 : 16),
                     .leaves = draw(t, 4) ? 1 + draw(t, 64) : 1,
                     .cut_seed = draw(t, 2) ? 1 + (uint64_t)draw(t, 1000) : 0,
                     .transpose_a = draw(t, 4) > 0,
                     .transpose_b = draw(t, 4) == 0,
                     .add_count = draw(t, 4) ? 0 : (int)draw(t, MOST_BELOW + 1),
                     .threads = 1 + (int)draw(t, MOST_THREADS),
                     .more_samples = draw(t, 2) ? draw(t, 20) : 0,
                     .more_leaves = draw(t, 2) ? draw(t, 20) : 0};
        check(t, p);
    }
}

/* Every number of leaves, with as many steps in each. */
static void test_counts(void **state) {
    bench *t = *state;
    for (int64_t leaves = 1; leaves <= 64; leaves += t->few ? 9 : 1)
        check(t, (problem){.samples = leaves * (1 + leaves % 3),
                           .each = leaves % 2 ? 32 : 20,
                           .rows = 40,
                           .columns = 33,
                           .leaves = leaves,
                           .transpose_a = true,
                           .threads = 2});
}

/* More than one piece of k, and more than one chunk, whose borders lie within leaves and between them. */
static void test_cuts(void **state) {
    bench *t = *state;
    static const problem cases[] = {
        {.samples = 64, .each = 32, .rows = 40, .columns = 70, .leaves = 64},
        {.samples = 64, .each = 32, .rows = 70, .columns = 40, .leaves = 8},
        {.samples = 64, .each = 33, .rows = 300, .columns = 100, .leaves = 13},
        {.samples = 64, .each = 64, .rows = 100, .columns = 130, .leaves = 16},
        {.samples = 80, .each = 64, .rows = 64, .columns = 100, .leaves = 3},
        {.samples = 160, .each = 32, .rows = 64, .columns = 96, .leaves = 64},
        {.samples = 60, .each = 150, .rows = 65, .columns = 40, .leaves = 64},
        {.samples = 100, .each = 100, .rows = 33, .columns = 64, .leaves = 9},
        {.samples = 3, .each = 4000, .rows = 33, .columns = 64, .leaves = 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint64_t seed = t->few ? i % 4 : 0; seed < 4; seed += t->few ? 4 : 1) {
            problem p = cases[i];
            p.cut_seed = seed;
            p.transpose_a = seed != 1;
            p.transpose_b = seed == 1;
            p.threads = 1 + (int)((i + seed) % MOST_THREADS);
            p.add_count = seed == 2 ? 2 : 0;
            check(t, p);
        }
}

/* More than one chunk of rows and columns, and a dst that is stored past the caches. */
static void test_large(void **state) {
    bench *t = *state;
    static const problem cases[] = {
        {.samples = 32, .each = 32, .rows = 768, .columns = 768, .leaves = 8, .transpose_a = true, .threads = 2},
        {.samples = 16, .each = 288, .rows = 640, .columns = 1312, .leaves = 5, .transpose_a = true, .threads = 3},
    };
    for (size_t i = 0; !t->few && i < sizeof cases / sizeof cases[0]; i++) check(t, cases[i]);
}

/* test_kernels_product_amx_leaves [few] */
int main(int count, char **texts) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_random, &shared),
        cmocka_unit_test_prestate(test_counts, &shared),
        cmocka_unit_test_prestate(test_cuts, &shared),
        cmocka_unit_test_prestate(test_large, &shared),
    };
    shared.few = count > 1 && !strcmp(texts[1], "few");
    for (int i = 0; i < MOST_THREADS; i++) {
        an_context_options options;
        an_context_options_init(&options, sizeof options);
        options.threads = i + 1;
        if (an_context_create(&shared.contexts[i], &options) != AN_OK) return 1;
    }
    const bool has_tiles = an_context_isa(shared.contexts[0]) == AN_ISA_AMX;
    const int failed = has_tiles ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
    for (int i = 0; i < MOST_THREADS; i++) an_context_destroy(&shared.contexts[i]);
    return failed;
}
#else
int main(void) {
    return 0;
}
#endif

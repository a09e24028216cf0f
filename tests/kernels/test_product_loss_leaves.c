/* The fused loss by leaves: loss and gradient of the weights have the bits of calls on the leaves alone, added in the
 * tree; the gradient of the rows is that of one call. And the choice of chunks: what it promises of memory. */
#include "base/dtype.h"
#include "base/float16.h"
#include "base/isa.h"
#include "base/q8_0.h"
#include "kernels/product/loss.h"
#include "kernels/product/loss_leaves.h"
#include "support/leaf_calls.h"

static const an_kernel *const lists[] = AN_KERNELS(product_cross_entropy);
/* amx has the list of avx512, and other products in bf16. */
static const an_isa isas[] = {AN_ISA_BASE, AN_ISA_AVX2, AN_ISA_AVX512, AN_ISA_AMX};
enum { LISTS = sizeof lists / sizeof lists[0], LEVELS = sizeof isas / sizeof isas[0] };

typedef struct {
    int level, threads;
    bool f64, has_weights, has_diff_weights, evaluates;
    an_dtype low;                          /* bf16 or f16: of the operands, where the rest is f32; NONE: as the rest */
    bool frozen;                           /* the weights are of q8_0, and get no gradient */
    int64_t samples, each, classes, depth; /* `each`: rows of a sample */
    int64_t leaves;
    uint64_t seed; /* 0: even leaves */
} loss;

static void *numbers(an_dtype dtype, int64_t elements, uint64_t seed) {
    void *data = malloc((size_t)elements * sizeof(double));
    for (int64_t i = 0; i < elements; i++) {
        const double value = noise(seed + (uint64_t)i);
        if (dtype == AN_DTYPE_BF16)
            ((uint16_t *)data)[i] = an_f32_to_bf16((float)value);
        else if (dtype == AN_DTYPE_F16)
            ((uint16_t *)data)[i] = an_f32_to_f16((float)value);
        else if (dtype == AN_DTYPE_F64)
            ((double *)data)[i] = value;
        else
            ((float *)data)[i] = (float)value;
    }
    return data;
}

static void *blocks(int64_t elements, uint64_t seed) {
    void *values = numbers(AN_DTYPE_F32, elements, seed);
    void *data = malloc((size_t)an_dtype_bytes(AN_DTYPE_Q8_0, elements));
    an_q8_0_from_f32(values, elements, data);
    free(values);
    return data;
}

static an_tensor dense(void *data, an_dtype dtype, int ndims, int64_t first, int64_t second) {
    an_tensor t = {.data = data, .dtype = dtype, .ndims = ndims, .dims = {first, second}, .strides = {second, 1}};
    if (ndims == 1) t.strides[0] = 1;
    return t;
}

static void check(loss l) {
    const an_dtype real = l.f64 ? AN_DTYPE_F64 : AN_DTYPE_F32, operand = l.low ? l.low : real;
    const size_t size = an_dtype_size(real), operand_size = an_dtype_size(operand);
    const int64_t rows = l.samples * l.each, elements = rows * l.depth, weights = l.classes * l.depth;
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = l.threads;
    options.isa = isas[l.level];
    OK(NULL, an_context_create(&ctx, &options));
    int32_t *targets = malloc((size_t)rows * sizeof *targets);
    for (int64_t i = 0; i < rows; i++) targets[i] = i % 7 ? (int32_t)(i * 31 % l.classes) : -1;
    const an_tensor src[] = {
        dense(numbers(operand, elements, 1), operand, 2, rows, l.depth),
        l.frozen ? dense(blocks(weights, 2), AN_DTYPE_Q8_0, 2, l.classes, l.depth)
                 : dense(numbers(operand, weights, 2), operand, 2, l.classes, l.depth),
        dense(targets, AN_DTYPE_I32, 1, rows, 1),
        l.evaluates ? (an_tensor){0} : dense(numbers(real, 1, 3), real, 0, 1, 1),
        dense(numbers(real, rows, 4), real, 1, rows, 1),
    };
    void *results[3], *wanted[3], *whole = malloc((size_t)elements * sizeof(double));
    const int64_t counts[] = {1, elements, weights};
    for (int i = 0; i < 3; i++) {
        results[i] = malloc((size_t)counts[i] * sizeof(double));
        wanted[i] = calloc((size_t)counts[i], sizeof(double));
    }
    an_tensor dst[] = {dense(results[0], real, 0, 1, 1), dense(results[1], operand, 2, rows, l.depth),
                       dense(results[2], real, 2, l.classes, l.depth)};
    const an_cross_entropy_attributes attributes = {.ignored = -1, .label_smoothing = 0.1};
    an_leaf_cut cut = leaf_cut_make(l.leaves, l.samples, l.seed);
    an_call call = {.ctx = ctx,
                    .attributes = &attributes,
                    .src_count = l.has_weights ? 5
                                 : l.evaluates ? 3
                                               : 4,
                    .dst_count = l.evaluates          ? 1
                                 : l.has_diff_weights ? 3
                                                      : 2,
                    .src = src,
                    .dst = dst};
    const an_kernel *kernel = lists[l.level < LISTS ? l.level : LISTS - 1];
    assert_true(kernel->by_leaves);
    const leaf_calls calls = {.kernel = kernel, .call = &call, .axes = (const int[]){0, -1, 0, -1, 0}, .cut = &cut};
    leaf_calls_run(&calls, wanted);
    dst[1].data = whole; /* rows are those of one call */
    call.scratch = leaf_call_scratch(kernel, &call);
    OK(ctx, kernel->run(&call));
    free(call.scratch);
    dst[1].data = results[1];
    leaf_calls_run_whole(&calls);
    const bool same = !memcmp(results[0], wanted[0], size) &&
                      (call.dst_count < 2 || !memcmp(results[1], whole, (size_t)elements * operand_size)) &&
                      (call.dst_count < 3 || !memcmp(results[2], wanted[2], (size_t)weights * size));
    if (!same)
        fail_msg("level %d, %d threads, %s: %lld samples of %lld rows, %lld classes, depth %lld, %lld leaves, seed "
                 "%llu: loss %s, rows %s, "
                 "weights %s",
                 l.level, l.threads, l.frozen ? "q8_0" : an_dtype_name(operand), (long long)l.samples,
                 (long long)l.each, (long long)l.classes, (long long)l.depth, (long long)l.leaves,
                 (unsigned long long)l.seed, memcmp(results[0], wanted[0], size) ? "differs" : "agrees",
                 memcmp(results[1], whole, (size_t)elements * operand_size) ? "differ" : "agree",
                 memcmp(results[2], wanted[2], (size_t)weights * size) ? "differ" : "agree");
    for (int i = 0; i < 3; i++) free(results[i]), free(wanted[i]);
    for (size_t i = 0; i < sizeof src / sizeof src[0]; i++) free(src[i].data);
    free(whole);
    leaf_cut_free(&cut);
    an_context_destroy(&ctx);
}

/* Few and many chunks, leaves that are longer than chunks, absent leaves, one that has all samples. */
static void test_leaves(void **state) {
    (void)state;
    static const loss losses[] = {
        {.samples = 60, .each = 1, .classes = 30, .depth = 17, .leaves = 4, .has_diff_weights = true},
        {.samples = 60, .each = 1, .classes = 30, .depth = 17, .leaves = 64, .seed = 1, .has_diff_weights = true},
        {.samples = 8, .each = 128, .classes = 20, .depth = 9, .leaves = 2, .has_diff_weights = true},
        {.samples = 8, .each = 128, .classes = 20, .depth = 9, .leaves = 8, .seed = 2, .has_diff_weights = true},
        {.samples = 50, .each = 70, .classes = 11, .depth = 5, .leaves = 64, .seed = 3, .has_diff_weights = true},
        {.samples = 50, .each = 70, .classes = 11, .depth = 5, .leaves = 50, .has_diff_weights = true},
        {.samples = 5, .each = 1500, .classes = 7, .depth = 4, .leaves = 5, .has_diff_weights = true},
        {.samples = 9, .each = 1100, .classes = 7, .depth = 40, .leaves = 4, .seed = 4, .has_diff_weights = true},
        {.samples = 4000, .each = 3, .classes = 6, .depth = 3, .leaves = 64, .seed = 5, .has_diff_weights = true},
        {.samples = 4, .each = 3000, .classes = 6, .depth = 3, .leaves = 4, .has_diff_weights = true},
        {.samples = 13, .each = 90, .classes = 12, .depth = 6, .leaves = 6, .seed = 6},
        {.samples = 900, .each = 2, .classes = 12, .depth = 6, .leaves = 6, .seed = 6, .evaluates = true},
    };
    for (int level = 0; level < LEVELS && isas[level] <= an_isa_highest(); level++)
        for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
            for (int way = 0; way < 6; way++) {
                static const an_dtype low[] = {[2] = AN_DTYPE_BF16, AN_DTYPE_F16, [5] = AN_DTYPE_BF16};
                loss l = losses[i];
                l.level = level;
                l.threads = 1 + (int)i % 3;
                l.f64 = way == 1;
                l.low = low[way];
                l.frozen = way > 3;
                if (l.frozen) l.depth = AN_Q8_0_ELEMENTS;
                l.has_diff_weights = l.has_diff_weights && !l.frozen;
                l.has_weights = (i + (size_t)way) % 2;
                check(l);
            }
}

/* ---- the walk ---- */

typedef struct {
    const an_leaf_cut *leaves;
    int64_t rows; /* so far */
    int64_t maximum;
} seen;

static an_status see(void *user, const an_loss_chunk *chunk) {
    seen *s = user;
    assert_true(chunk->rows > 0 && chunk->rows <= s->maximum);
    assert_non_null(chunk->sums);
    for (int i = 0; i < chunk->add_count; i++) assert_non_null(chunk->add_to[i]);
    s->rows += chunk->rows;
    return AN_OK;
}

/* Buffers are enough for any cut, and fewer rows, samples or leaves never take more. */
static void test_choice(void **state) {
    (void)state;
    enum { TRIES = 3000, LEAVES = 200, ROW = 100 };
    for (uint64_t i = 0; i < TRIES; i++) {
        int64_t large[4], small[4]; /* leaves, samples, rows of a sample, and of a buffer */
        static const int64_t maximum[] = {LEAVES, 300, 900, 8000};
        for (uint64_t j = 0; j < 4; j++) {
            const double x = noise(8 * i + j) / 2 + 0.5, y = noise(8 * i + 4 + j) / 2 + 0.5;
            large[j] = (int64_t)exp(x * log((double)maximum[j]) + 1e-9);
            small[j] = i % 3 == 0 || j > 1 ? large[j] : 1 + (int64_t)(y * (double)(large[j] - 1));
        }
        const an_leaf_cut known = {.count = large[0], .samples = large[1]};
        an_leaf_cut leaves = leaf_cut_make(small[0], small[1], i / 2 % 3 ? i : 0);
        const size_t buffer = (size_t)large[3] * ROW;
        const int64_t all = large[1] * large[2], rows = small[1] * small[2];
        const an_loss_cut given = an_loss_cut_choose(all, &known, ROW, buffer);
        const an_loss_cut needed = an_loss_cut_choose(rows, &leaves, ROW, buffer);
        const int64_t given_rows = given.rows < all ? given.rows : all;
        const int64_t needed_rows = needed.rows < rows ? needed.rows : rows;
        assert_true((size_t)needed_rows * ROW + (size_t)needed.buffers * buffer <=
                    (size_t)given_rows * ROW + (size_t)given.buffers * buffer);
        int64_t ends[LEAVES];
        char memory[AN_LOSS_MOST_BUFFERS];
        void *sums;
        seen s = {.leaves = &leaves, .maximum = needed.rows};
        an_loss_walk walk = {.leaves = &leaves, .each = small[2], .cut = needed, .ends = ends, .run = see, .user = &s};
        for (int b = 0; b <= needed.buffers; b++)
            walk.buffers[b] = memory + b; /* the others are NULL, which `see` finds */
        assert_int_equal(an_loss_walk_run(&walk, &sums), AN_OK);
        assert_int_equal(s.rows, rows);
        leaf_cut_free(&leaves);
    }
}

/* Scratch for the largest call is enough for all smaller ones, with leaves and without. */
static void test_scratch(void **state) {
    (void)state;
    enum { TRIES = 2000 };
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = 3;
    OK(NULL, an_context_create(&ctx, &options));
    for (uint64_t i = 0; i < TRIES; i++) {
        static const int64_t maximum[] = {64, 200, 300, 3000,
                                          600}; /* leaves, samples, rows of a sample, classes, depth */
        int64_t sizes[2][5];
        size_t bytes[2];
        for (uint64_t j = 0; j < 5; j++) {
            const double x = noise(10 * i + j) / 2 + 0.5, y = noise(10 * i + 5 + j) / 2 + 0.5;
            sizes[0][j] = (int64_t)exp(x * log((double)maximum[j]) + 1e-9);
            sizes[1][j] = j > 1 ? sizes[0][j] : 1 + (int64_t)(y * (double)(sizes[0][j] - 1));
        }
        for (int j = 0; j < 2; j++) {
            const int64_t *n = sizes[j], rows = n[1] * n[2];
            const an_cross_entropy_attributes attributes = {.ignored = -1};
            const an_leaf_cut leaves = {.count = n[0], .samples = n[1]};
            const an_tensor src[] = {dense(NULL, AN_DTYPE_F32, 2, rows, n[4]), dense(NULL, AN_DTYPE_F32, 2, n[3], n[4]),
                                     dense(NULL, AN_DTYPE_I32, 1, rows, 1), dense(NULL, AN_DTYPE_F32, 0, 1, 1)};
            const an_tensor dst[] = {dense(NULL, AN_DTYPE_F32, 0, 1, 1), dense(NULL, AN_DTYPE_F32, 2, rows, n[4]),
                                     dense(NULL, AN_DTYPE_F32, 2, n[3], n[4])};
            const an_call call = {.ctx = ctx,
                                  .attributes = &attributes,
                                  .src_count = 4,
                                  .dst_count = 3,
                                  .src = src,
                                  .dst = dst,
                                  .leaves = j == 1 && i % 4 == 0 ? NULL : &leaves};
            bytes[j] = lists[i % LISTS]->scratch(&call);
        }
        if (bytes[0] < bytes[1])
            fail_msg("%lld leaves of %lld samples need %zu bytes, but %lld of %lld give %zu", (long long)sizes[1][0],
                     (long long)sizes[1][1], bytes[1], (long long)sizes[0][0], (long long)sizes[0][1], bytes[0]);
    }
    an_context_destroy(&ctx);
}

/* GPT-2's head: two chunks, and no buffer besides the gradient, however its rows are cut into leaves. */
static void test_gpt2(void **state) {
    (void)state;
    const an_leaf_cut leaves = {.count = 64, .samples = 1024};
    const an_loss_cut cut = an_loss_cut_choose(1024, &leaves, 4 * 50257, (size_t)4 * 50257 * 768);
    assert_int_equal(cut.rows, 512);
    assert_int_equal(cut.buffers, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_leaves), cmocka_unit_test(test_choice),
                                       cmocka_unit_test(test_scratch), cmocka_unit_test(test_gpt2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

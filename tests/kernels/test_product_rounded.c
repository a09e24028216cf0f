/* Products of rounded rows with weights of q8_0: every kernel of every level has the bits of the definition, written
 * here a second time, with any rows and threads, from f32 and bf16, with gaps and batches. */
#include "base/context.h"
#include "base/isa.h"
#include "base/q8_0.h"
#include "kernels/product/rounded.h"
#include "support/support.h"

#if defined(__x86_64__)
extern const an_kernel an_kernels_product_avx2[], an_kernels_product_avx512[];
#endif

static const struct {
    an_isa isa;
    const an_kernel *kernels;
} levels[] = {
    {AN_ISA_BASE, an_kernels_product},
#if defined(__x86_64__)
    {AN_ISA_AVX2, an_kernels_product_avx2},
    {AN_ISA_AVX512, an_kernels_product_avx512},
    {AN_ISA_AMX, an_kernels_product_avx512},
#endif
};

enum { MOST_ROWS = 70, MOST_SIDE = 1600, GAP = 5 };

static int64_t columns, depth;
static unsigned char blocks[MOST_SIDE * MOST_SIDE / AN_Q8_0_ELEMENTS * AN_Q8_0_BYTES];
static float numbers[MOST_SIDE * MOST_SIDE], a[MOST_ROWS * MOST_SIDE];
static uint16_t low[MOST_ROWS * MOST_SIDE];
static float expected[MOST_ROWS * MOST_SIDE], dst[MOST_ROWS * (MOST_SIDE + GAP)];

static uint32_t seed;
static float drawn(void) {
    seed = seed * 1664525 + 1013904223;
    return (float)((int)(seed >> 9 & 0xffff) - 0x8000) * 0x1p-15F;
}

static void make(int64_t some_columns, int64_t some_depth) {
    columns = some_columns, depth = some_depth, seed = (uint32_t)(columns * 31 + depth);
    for (int64_t i = 0; i < columns * depth; i++) numbers[i] = drawn() * (float)(1 + i / AN_Q8_0_ELEMENTS % 7);
    an_q8_0_from_f32(numbers, columns * depth, blocks);
    for (int64_t i = 0; i < MOST_ROWS * depth; i++) {
        const float x = drawn() * (i % 37 ? 1.0F : 40.0F) * (float)(1 << i / AN_Q8_0_ELEMENTS % 9);
        low[i] = an_f32_to_bf16(x);
        a[i] = i / depth % 2 ? x : an_bf16_to_f32(low[i]);
    }
    for (int64_t k = 0; k < depth && k < AN_Q8_0_ELEMENTS; k++) a[k] = 0, low[k] = 0;
}

/* The definition. */
static float element(const float *row, int64_t column) {
    float sum = 0;
    for (int64_t k = 0; k < depth; k += AN_Q8_0_ELEMENTS) {
        const unsigned char *block = an_q8_0_block(blocks, column * depth + k);
        float maximum = 0;
        long total = 0;
        for (int i = 0; i < AN_Q8_0_ELEMENTS; i++) maximum = fmaxf(maximum, fabsf(row[k + i]));
        const float factor = maximum >= 0x1p-80F ? 16256.0F / maximum : 0;
        for (int i = 0; i < AN_Q8_0_ELEMENTS; i++)
            total += lrintf(row[k + i] * factor) * (int8_t)block[AN_Q8_0_SCALE_BYTES + i];
        sum = fmaf((float)total, an_q8_0_scale(block) * (factor > 0 ? maximum / 16256.0F : 0), sum);
    }
    return sum;
}

static void add_one(void *user, const an_product_block *b, float *values) {
    (void)user;
    for (int64_t i = 0; i < b->rows; i++)
        for (int64_t k = 0; k < b->columns; k++) values[i * b->stride + k] += (float)(b->row + i + 1);
}

typedef struct {
    an_dtype from, to;
    bool has_gaps, has_batch, finishes;
} way;

static const an_kernel *run(an_context *ctx, const an_kernel *k, const way *w, int64_t first, int64_t rows) {
    const an_product_finish finish = {.f32 = add_one};
    const an_product_attributes how = {.transpose_b = true, .rounds_a = true, .finish = w->finishes ? &finish : NULL};
    const int64_t gap = w->has_gaps ? GAP : 0, batch = w->has_batch && rows % 5 == 0 ? 5 : 1;
    const char *from = w->from == AN_DTYPE_F32 ? (const char *)a : (const char *)low;
    const an_tensor src[] = {
        {.data = (char *)(uintptr_t)from + (size_t)(first * depth) * an_dtype_size(w->from),
         .dtype = w->from,
         .ndims = 3,
         .dims = {batch, rows / batch, depth},
         .strides = {rows / batch * depth, depth, 1}},
        {.data = blocks, .dtype = AN_DTYPE_Q8_0, .ndims = 2, .dims = {columns, depth}, .strides = {depth, 1}}};
    an_tensor out[] = {{.data = dst,
                        .dtype = w->to,
                        .ndims = 3,
                        .dims = {batch, rows / batch, columns},
                        .strides = {rows / batch * (columns + gap), columns + gap, 1}}};
    an_call call = {.ctx = ctx, .attributes = &how, .src_count = 2, .dst_count = 1, .src = src, .dst = out};
    while (k->applies && !k->applies(&call)) k++;
    memset(dst, 0xff, sizeof dst);
    const size_t bytes = k->scratch(&call);
    call.scratch = aligned_alloc(64, bytes / 64 * 64 + 64);
    assert_non_null(call.scratch);
    assert_int_equal(k->run(&call), AN_OK);
    free(call.scratch);
    return k;
}

static void check(an_isa isa, const char *kernel, const way *w, int64_t first, int64_t rows) {
    const int64_t gap = w->has_gaps ? GAP : 0;
    const unsigned char *bytes = (const unsigned char *)dst;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns + gap; k++) {
            const int64_t at = i * (columns + gap) + k;
            float want = k < columns ? expected[(first + i) * columns + k] : 0;
            if (w->finishes) want += (float)(i + 1);
            uint16_t rounded = an_f32_to_bf16(want);
            if (k >= columns) memset(&rounded, 0xff, sizeof rounded), memset(&want, 0xff, sizeof want);
            uint32_t bits;
            memcpy(&bits, &want, sizeof bits);
            const bool same = w->to == AN_DTYPE_F32 ? !memcmp(bytes + 4 * at, &bits, sizeof bits)
                                                    : !memcmp(bytes + 2 * at, &rounded, sizeof rounded);
            if (!same)
                fail_msg("%s %s: %lld rows from %lld on, %lld × %lld: row %lld, column %lld is not %a",
                         an_isa_name(isa), kernel, (long long)rows, (long long)first, (long long)columns,
                         (long long)depth, (long long)i, (long long)k, (double)want);
        }
}

static an_context *open_context(an_isa isa, int threads) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = threads;
    options.isa = isa;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    return ctx;
}

static size_t level_count(void) {
    size_t count = 0;
    while (count < sizeof levels / sizeof *levels && levels[count].isa <= an_isa_highest()) count++;
    return count;
}

static void test_bits(void **state) {
    static const int64_t sizes[][2] = {{1, 32}, {15, 96}, {33, 64}, {130, 576}, {1600, 32}, {64, 1600}, {80, 0}};
    static const int64_t rows[] = {1, 2, 5, 16, 17, 40};
    static const way ways[] = {{AN_DTYPE_F32, AN_DTYPE_F32, false, false, false},
                               {AN_DTYPE_F32, AN_DTYPE_BF16, true, true, false},
                               {AN_DTYPE_BF16, AN_DTYPE_F32, true, true, true},
                               {AN_DTYPE_F32, AN_DTYPE_F32, false, true, true}};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int type = 0; type < 2; type++) {
            make(sizes[s][0], sizes[s][1]);
            for (int64_t i = 0; type == 1 && i < MOST_ROWS * depth; i++) a[i] = an_bf16_to_f32(low[i]);
            for (int64_t i = 0; i < MOST_ROWS * columns; i++)
                expected[i] = element(a + i / columns * depth, i % columns);
            for (size_t level = 0; level < level_count(); level++)
                for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                    if ((ways[w].from == AN_DTYPE_BF16) != (type == 1)) continue;
                    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
                        an_context *ctx = open_context(levels[level].isa, 1 + (int)((r + w) % 3));
                        const int64_t first = (int64_t)(7 * r) % (MOST_ROWS - rows[r]);
                        const an_kernel *k = run(ctx, levels[level].kernels, &ways[w], first, rows[r]);
                        assert_string_equal(k->name, levels[level].isa == AN_ISA_AMX ? "amx" : "portable");
                        check(levels[level].isa, k->name, &ways[w], first, rows[r]);
                        an_context_destroy(&ctx);
                    }
                }
        }
}

/* What is not finite in a row stays in that row, and is seen in all of it. What is too small to have a scale is
 * zero. */
static void test_extremes(void **state) {
    static const way plain = {AN_DTYPE_F32, AN_DTYPE_F32, false, false, false};
    static const float values[] = {NAN, INFINITY, -INFINITY, 1e-30F, 3e35F};
    (void)state;
    make(33, 96);
    for (size_t level = 0; level < level_count(); level++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            for (int64_t rows = 1; rows <= 4; rows += 3) {
                an_context *ctx = open_context(levels[level].isa, 1);
                float before[96];
                memcpy(before, a + 5 * depth, sizeof before);
                for (int64_t i = 0; i < 6 * columns; i++) expected[i] = element(a + i / columns * depth, i % columns);
                if (v == 3) memset(a + 5 * depth, 0, 32 * sizeof *a);
                a[5 * depth + 31] = values[v];
                run(ctx, levels[level].kernels, &plain, 6 - rows, rows);
                for (int64_t i = 0; i < columns; i++) {
                    const float got = dst[(rows - 1) * columns + i];
                    if (v < 3) assert_true(got - got != 0);
                    if (v == 3) {
                        a[5 * depth + 31] = 0;
                        const float want = element(a + 5 * depth, i);
                        assert_memory_equal(&got, &want, sizeof want);
                    }
                    if (v == 4) assert_true(got - got == 0 && fabsf(got) > 1e32F);
                }
                if (rows > 1) check(levels[level].isa, "any", &plain, 6 - rows, rows - 1);
                memcpy(a + 5 * depth, before, sizeof before);
                an_context_destroy(&ctx);
            }
}

/* Where there is no instruction for it. In the first cases, a sum that is rounded to f64 lies between two numbers of
 * f32, and the true one does not. */
static void test_multiply_add(void **state) {
    static const float cases[][3] = {{(1 + 0x1p-18F) * 0x1p-24F, 1 - 0x1p-18F, 1 + 0x1p-23F},
                                     {-(1 + 0x1p-18F) * 0x1p-24F, 1 - 0x1p-18F, -1 - 0x1p-23F},
                                     {(1 + 0x1p-18F) * 0x1p-24F, -(1 - 0x1p-18F), 1 + 0x1p-22F},
                                     {(1 + 0x1p-12F) * 0x1p-24F, 1 + 0x1p-23F, 1},
                                     {0, 5, 0},
                                     {3, 5, -15},
                                     {INFINITY, 2, 1},
                                     {3e38F, 3e38F, 1}};
    (void)state;
    seed = 9;
    for (int i = 0; i < 200000; i++) {
        const float x = drawn(), y = drawn() * 0x1p-20F, z = drawn();
        const float *c = i < (int)(sizeof cases / sizeof *cases) ? cases[i] : (const float[]){x + y, z + y, z * x};
        const float got = an_multiply_add(c[0], c[1], c[2]), want = fmaf(c[0], c[1], c[2]);
        if (an_bits_of_f32(got) != an_bits_of_f32(want))
            fail_msg("%a * %a + %a: %a, not %a", (double)c[0], (double)c[1], (double)c[2], (double)got, (double)want);
    }
    assert_true(an_multiply_add(NAN, 1, 1) != an_multiply_add(NAN, 1, 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits), cmocka_unit_test(test_extremes),
                                       cmocka_unit_test(test_multiply_add)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

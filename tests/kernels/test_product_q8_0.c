/* Products with weights of q8_0, at every level: the bits are those of the same kernel with the same weights as
 * numbers, forward and for the gradient of what enters, with any rows and threads. Tiles read the weights rounded to
 * bf16, everything else as they are. */
#include "base/context.h"
#include "base/isa.h"
#include "base/q8_0.h"
#include "kernels/product/product.h"
#include "support/support.h"

#if defined(__x86_64__)
extern const an_kernel an_kernels_product_avx2[], an_kernels_product_avx512[];
#endif

static const struct {
    const char *name;
    an_isa isa;
    const an_kernel *kernels;
} levels[] = {
    {"base", AN_ISA_BASE, an_kernels_product},
#if defined(__x86_64__)
    {"avx2", AN_ISA_AVX2, an_kernels_product_avx2},
    {"avx512", AN_ISA_AVX512, an_kernels_product_avx512},
    {"amx", AN_ISA_AMX, an_kernels_product_avx512},
#endif
};

enum { MOST_ROWS = 70, MOST_SIDE = 608 };

/* A matrix of weights: as blocks, and as numbers of the type that products with `a` read. */
typedef struct {
    int64_t rows, columns;
    unsigned char blocks[MOST_SIDE * MOST_SIDE / AN_Q8_0_ELEMENTS * AN_Q8_0_BYTES];
    float f32[MOST_SIDE * MOST_SIDE];
    uint16_t bf16[MOST_SIDE * MOST_SIDE];
} weights;

static weights w;
static union {
    float f32[MOST_ROWS * MOST_SIDE];
    double f64[MOST_ROWS * MOST_SIDE];
    uint16_t bf16[MOST_ROWS * MOST_SIDE];
} a;
static double dst[3][MOST_ROWS * MOST_SIDE];

static void make(int64_t rows, int64_t columns, an_dtype dtype) {
    uint32_t seed = (uint32_t)(rows * 31 + columns);
    w.rows = rows;
    w.columns = columns;
    for (int64_t i = 0; i < rows * columns; i++) {
        seed = seed * 1664525 + 1013904223;
        w.f32[i] = (float)((int)(seed >> 9 & 0xffff) - 0x8000) * 0x1p-15F * (float)(1 + i / AN_Q8_0_ELEMENTS % 7);
    }
    an_q8_0_from_f32(w.f32, rows * columns, w.blocks);
    an_q8_0_to_f32(w.blocks, rows * columns, w.f32);
    for (int64_t i = 0; i < rows * columns; i++) w.bf16[i] = an_f32_to_bf16(w.f32[i]);
    for (int64_t i = 0; i < MOST_ROWS * MOST_SIDE; i++) {
        seed = seed * 1664525 + 1013904223;
        const float x = (float)((int)(seed >> 9 & 0xffff) - 0x8000) * 0x1p-15F;
        if (dtype == AN_DTYPE_F64)
            a.f64[i] = (double)x;
        else if (dtype == AN_DTYPE_F32)
            a.f32[i] = x;
        else
            a.bf16[i] = an_f32_to_bf16(x);
    }
}

static an_tensor matrix(const void *data, an_dtype dtype, int64_t rows, int64_t columns) {
    return (an_tensor){
        .data = (void *)(uintptr_t)data, .dtype = dtype, .ndims = 2, .dims = {rows, columns}, .strides = {columns, 1}};
}

/* a[first …] · Wᵀ, or · W. */
static void run(an_context *ctx, const an_kernel *kernels, an_dtype dtype, bool transpose, int64_t first, int64_t rows,
                const void *data, an_dtype type, void *to) {
    const an_product_attributes how = {.transpose_b = transpose};
    const int64_t depth = transpose ? w.columns : w.rows, columns = transpose ? w.rows : w.columns;
    const char *from = (const char *)&a + (size_t)(first * depth) * an_dtype_size(dtype);
    const an_tensor src[] = {matrix(from, dtype, rows, depth), matrix(data, type, w.rows, w.columns)};
    an_tensor out[] = {matrix(to, dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32, rows, columns)};
    an_call call = {.ctx = ctx, .attributes = &how, .src_count = 2, .dst_count = 1, .src = src, .dst = out};
    while (kernels->applies && !kernels->applies(&call)) kernels++;
    const size_t bytes = kernels->scratch ? kernels->scratch(&call) : 0;
    call.scratch = aligned_alloc(64, bytes / 64 * 64 + 64);
    assert_non_null(call.scratch);
    assert_int_equal(kernels->run(&call), AN_OK);
    free(call.scratch);
}

static void compare(size_t level, int threads, an_dtype dtype, bool transpose, int64_t rows) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = threads;
    options.isa = levels[level].isa;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    const an_kernel *k = levels[level].kernels;
    const bool tiles = levels[level].isa == AN_ISA_AMX && dtype == AN_DTYPE_BF16;
    const int64_t columns = transpose ? w.rows : w.columns;
    const size_t size = dtype == AN_DTYPE_F64 ? sizeof(double) : sizeof(float), bytes = (size_t)columns * size;
    run(ctx, k, dtype, transpose, 0, rows, w.blocks, AN_DTYPE_Q8_0, dst[0]);
    run(ctx, k, dtype, transpose, 0, rows, tiles ? (const void *)w.bf16 : (const void *)w.f32,
        tiles ? AN_DTYPE_BF16 : AN_DTYPE_F32, dst[1]);
    if (memcmp(dst[0], dst[1], (size_t)rows * bytes) != 0)
        fail_msg("%s, %d threads, %s, %d, %lld rows: other bits than with numbers", levels[level].name, threads,
                 an_dtype_name(dtype), transpose, (long long)rows);
    const int64_t last = rows - 1; /* alone */
    run(ctx, k, dtype, transpose, last, 1, w.blocks, AN_DTYPE_Q8_0, dst[2]);
    if (memcmp((const char *)dst[0] + (size_t)last * bytes, dst[2], bytes) != 0)
        fail_msg("%s, %s, %d: a row has other bits alone", levels[level].name, an_dtype_name(dtype), transpose);
    an_context_destroy(&ctx);
}

static void test_bits(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{1, 32}, {33, 96}, {130, 576}, {608, 64}, {64, 608}};
    static const int64_t rows[] = {1, 5, 16, 17, 70};
    static const an_dtype types[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16};
    for (size_t level = 0; level < sizeof levels / sizeof *levels && levels[level].isa <= an_isa_highest(); level++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t t = 0; t < 3; t++) {
                make(sizes[s][0], sizes[s][1], types[t]);
                for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
                    for (int transpose = 0; transpose < 2; transpose++)
                        compare(level, 1 + (int)(r % 2), types[t], transpose, rows[r]);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

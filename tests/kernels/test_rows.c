/* Sums of several rows at once have the bits of each alone; gelu_tanh keeps its accuracy and its limits. */
#include <math.h>

#include "anneal/experimental.h"
#include "kernels/common/list.h"
#include "kernels/common/reduce_order.h"
#include "support/support.h"

AN_DECLARE_KERNELS(gelu_tanh);

enum { MOST = AN_SUM_CHUNK + 40 };

static void test_row_sums(void **state) {
    (void)state;
    static float f32[AN_SUM_ROWS][MOST];
    static double f64[AN_SUM_ROWS][MOST];
    const float *rows_f32[AN_SUM_ROWS];
    const double *rows_f64[AN_SUM_ROWS];
    for (int r = 0; r < AN_SUM_ROWS; r++) {
        for (int i = 0; i < MOST; i++) {
            f64[r][i] = sin(0.37 * i + r) * exp(sin(1.3 * i) * 9);
            f32[r][i] = (float)f64[r][i];
        }
        rows_f32[r] = f32[r];
        rows_f64[r] = f64[r];
    }
    for (int64_t n = 1; n <= MOST; n += n < 70 ? 1 : 31)
        for (int64_t rows = 1; rows <= AN_SUM_ROWS; rows += 5) {
            float sums_f32[AN_SUM_ROWS];
            double sums_f64[AN_SUM_ROWS];
            an_row_sums_f32(rows, rows_f32, n, sums_f32);
            an_row_sums_f64(rows, rows_f64, n, sums_f64);
            for (int64_t r = 0; r < rows; r++) {
                assert_true(sums_f32[r] == an_row_sum_f32(f32[r], n));
                assert_true(sums_f64[r] == an_row_sum_f64(f64[r], n));
            }
        }
}

static double gelu(double x) {
    return x / (1 + exp(-1.59576912160573071176 * (x + 0.044715 * x * x * x)));
}

static void check_gelu(const an_kernel *kernel) {
    enum { COUNT = 512 };
    float x[COUNT], y[COUNT];
    const float *src[] = {x};
    for (int part = -9; part < 9; part++) { /* below -9 little is left of f32's digits: of x³, and then of the result */
        for (int i = 0; i < COUNT; i++) x[i] = (float)part + (float)i / COUNT;
        kernel->row_f32(COUNT, src, y, NULL);
        for (int i = 0; i < COUNT; i++) assert_true(fabs(y[i] - gelu(x[i])) <= 2e-5 * fabs(gelu(x[i])));
    }
    const float limits[] = {0, -0.0f, 30, -30, 3e38f, -3e38f, INFINITY}, want[] = {0, 0, 30, 0, 3e38f, 0, INFINITY};
    memcpy(x, limits, sizeof limits);
    x[7] = NAN;
    kernel->row_f32(8, src, y, NULL);
    for (int i = 0; i < 7; i++) assert_true(y[i] == want[i]);
    assert_true(isnan(y[7]));
}

static void test_gelu_tanh(void **state) {
    (void)state;
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    check_gelu(an_kernels_gelu_tanh);
#if defined(__x86_64__)
    if (an_context_isa(ctx) >= AN_ISA_AVX2) check_gelu(an_kernels_gelu_tanh_avx2);
    if (an_context_isa(ctx) >= AN_ISA_AVX512) check_gelu(an_kernels_gelu_tanh_avx512);
#endif
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_row_sums), cmocka_unit_test(test_gelu_tanh)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

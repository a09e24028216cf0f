/* Functions of one element: what checkops, whose numbers are finite and whose cases are right, does not ask. */
#include "anneal/experimental.h"
#include "kernels/elementwise/unary.h"
#include "support/support.h"

static void test_clamp_refuses_bounds(void **state) {
    (void)state;
    static const double bounds[][2] = {{1, -1}, {NAN, 1}, {0, NAN}};
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        an_context *ctx = NULL;
        an_graph *g = NULL;
        assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
        OK(ctx, an_graph_create(&g, ctx, "bounds"));
        an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(3));
        assert_int_equal(an_clamp(g, x, bounds[i][0], bounds[i][1]), 0);
        FAILS(ctx, an_graph_verify(g), AN_ERR_ARGUMENT, "low must not be greater than high, and neither may be NaN");
        an_graph_destroy(&g);
        an_context_destroy(&ctx);
    }
}

/* NaN stays NaN and takes no gradient; an infinite bound bounds nothing. */
static void test_clamp_of_what_is_not_finite(void **state) {
    (void)state;
    enum { COUNT = 5 };
    an_context *ctx = NULL;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    float src[COUNT] = {NAN, -INFINITY, INFINITY, -3, 7}, diff_dst[COUNT] = {1, 1, 1, 1, 1};
    float dst[COUNT], diff_src[COUNT];
    an_clamp_attributes bounds = {.low = -INFINITY, .high = 2};
    an_tensor tensors[] = {
        {.data = diff_dst, .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {COUNT}, .strides = {1}},
        {.data = src, .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {COUNT}, .strides = {1}},
        {.data = dst, .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {COUNT}, .strides = {1}},
        {.data = diff_src, .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {COUNT}, .strides = {1}},
    };
    an_call clamp = {
        .ctx = ctx, .attributes = &bounds, .src_count = 1, .src = tensors + 1, .dst_count = 1, .dst = tensors + 2};
    an_call diff = {
        .ctx = ctx, .attributes = &bounds, .src_count = 2, .src = tensors, .dst_count = 1, .dst = tensors + 3};
    OK(ctx, an_kernels_clamp[0].run(&clamp));
    OK(ctx, an_kernels_clamp_diff[0].run(&diff));
    assert_true(isnan(dst[0]));
    assert_true(isinf(dst[1]) && dst[1] < 0);
    assert_true(dst[2] == 2 && dst[3] == -3 && dst[4] == 2);
    assert_true(diff_src[0] == 0 && diff_src[2] == 0 && diff_src[3] == 1 && diff_src[4] == 0);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clamp_refuses_bounds),
        cmocka_unit_test(test_clamp_of_what_is_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

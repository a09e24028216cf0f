/* Mistakes in building: each is refused with a sentence that names the place, the shapes and what to do about it. */
#include "ir/graph.h"
#include "support/support.h"

static an_context *ctx;

static int make_context(void **state) {
    (void)state;
    return an_context_create(&ctx, NULL) != AN_OK;
}

static int drop_context(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return ctx != NULL;
}

static an_graph *graph(void) {
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "g"));
    return g;
}

/* The graph has this mistake, and its message has all of these words. */
static void refused(an_graph *g, an_status status, const char *const *words) {
    an_status got = an_graph_verify(g);
    const char *message = an_last_error(ctx);
    if (got != status) fail_msg("%s, not %s: %s", an_status_name(got), an_status_name(status), message);
    for (; *words; words++)
        if (!strstr(message, *words)) fail_msg("no '%s' in: %s", *words, message);
    an_graph_destroy(&g);
}
#define REFUSED(g, status, ...) refused((g), (status), (const char *const[]){__VA_ARGS__, NULL})

static void test_place_of_the_call(void **state) {
    (void)state;
    an_graph *g = graph();
    char here[32];
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 32));
    an_value w = an_param(g, "w", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.02, AN_DIMS(64, 31));
    snprintf(here, sizeof here, "test_mistakes.c:%d", __LINE__ + 1);
    an_value y = an_matmul(g, x, w, false, true);
    assert_int_equal(y, 0);
    an_value z = an_relu(g, an_add(g, y, x)); /* passes it on */
    assert_int_equal(z, 0);
    REFUSED(g, AN_ERR_SHAPE, here, "matmul", "f32[batch,32]", "f32[64,31]");
}

/* An argument that is a builder call, on other lines, in whatever order the compiler takes them. */
static void test_place_of_nested_calls(void **state) {
    (void)state;
    an_graph *g = graph();
    char here[32];
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4)), y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(5));
    snprintf(here, sizeof here, "test_mistakes.c:%d", __LINE__ + 1);
    an_add(g, an_relu(g, x), an_tanh(g, y));
    REFUSED(g, AN_ERR_SHAPE, here, "add", "f32[4]", "f32[5]", "broadcast");
}

/* A layer of the library reports its caller's line and its own path. */
static void test_place_of_a_layer(void **state) {
    (void)state;
    an_graph *g = graph();
    char here[32];
    an_value x = an_input(g, "x", AN_DTYPE_I32, AN_DIMS(4, 4));
    an_block_begin(g, "h.3", 4);
    snprintf(here, sizeof here, "test_mistakes.c:%d", __LINE__ + 1);
    an_linear(g, x, "mlp.fc", 8);
    an_block_end(g);
    REFUSED(g, AN_ERR_DTYPE, here, "h.3", "i32[4,4]");
}

/* With no place set, as from Fortran: the path and the number of the call. */
static void test_no_place(void **state) {
    (void)state;
    an_graph *g = graph();
    an_value x = (an_input)(g, "x", AN_DTYPE_F32, AN_DIMS(4)), y = (an_input)(g, "y", AN_DTYPE_F32, AN_DIMS(5));
    (an_scope_begin)(g, "h.3.mlp");
    (an_multiply)(g, x, y);
    an_scope_end(g);
    REFUSED(g, AN_ERR_SHAPE, "h.3.mlp", "builder call 3", "f32[4]", "f32[5]");
}

static void test_values_of_another_graph(void **state) {
    (void)state;
    an_graph *a = graph(), *b = graph();
    an_value x = an_input(a, "x", AN_DTYPE_F32, AN_DIMS(4));
    an_relu(b, x);
    REFUSED(b, AN_ERR_ARGUMENT, "not a value of graph", "another graph");
    b = graph();
    an_relu(b, 0);
    REFUSED(b, AN_ERR_ARGUMENT, "failed call");
    an_graph_destroy(&a);
}

static void test_types_that_clash(void **state) {
    (void)state;
    an_graph *g = graph();
    an_relu(g, an_input(g, "x", AN_DTYPE_I64, AN_DIMS(4)));
    REFUSED(g, AN_ERR_DTYPE, "relu", "i64[4]", "an_cast");
    g = graph();
    an_value table = an_param(g, "t", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(10, 4));
    an_embedding(g, an_input(g, "x", AN_DTYPE_F32, AN_DIMS(3)), table);
    REFUSED(g, AN_ERR_DTYPE, "embedding", "i32 or i64");
    g = graph();
    an_param(g, "w", AN_DTYPE_BF16, AN_INITIALIZER_NORMAL, 1, AN_DIMS(4));
    REFUSED(g, AN_ERR_DTYPE, "f32 or f64", "choose lower precision in the plan");
    g = graph(); /* two master types */
    an_param(g, "a", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(4));
    an_param(g, "b", AN_DTYPE_F64, AN_INITIALIZER_NORMAL, 1, AN_DIMS(4));
    OK(ctx, an_graph_verify(g));
    an_params *params = NULL;
    FAILS(ctx, an_params_create(&params, ctx, g, NULL), AN_ERR_DTYPE,
          "all trainable parameters of a model must have the same type");
    an_graph_destroy(&g);
}

static void test_shapes_that_overflow(void **state) {
    (void)state;
    an_graph *g = graph();
    an_dim huge = INT64_MAX / 2;
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(huge, huge));
    assert_int_equal(x, 0);
    REFUSED(g, AN_ERR_OVERFLOW, "64 bits", "check the sizes");

    g = graph(); /* each dimension fits; the plan's maximum makes too many bytes */
    an_dim batch = an_symbol_dim(g, "batch");
    an_value y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 1 << 30));
    an_graph_set_output(g, an_relu(g, y), "out");
    OK(ctx, an_graph_verify(g));
    an_plan *plan = NULL;
    FAILS(ctx, plan_for(&plan, ctx, g, "batch", INT64_MAX / 2, AN_PROGRAM_PREDICTION), AN_ERR_OVERFLOW, "64 bits");
    assert_null(plan);
    FAILS(ctx, plan_for(&plan, ctx, g, "batch", 0, AN_PROGRAM_PREDICTION), AN_ERR_ARGUMENT, "at least 1");
    FAILS(ctx, plan_for(&plan, ctx, g, "bach", 4, AN_PROGRAM_PREDICTION), AN_ERR_UNKNOWN, "no symbol 'bach'");
    FAILS(ctx, an_plan_create(&plan, ctx, g, NULL), AN_ERR_ARGUMENT, "'batch'");
    an_graph_destroy(&g);

    g = graph();
    an_input(g, "z", AN_DTYPE_F32, AN_DIMS(4, 0));
    REFUSED(g, AN_ERR_SHAPE, "sizes are at least 1");
}

static void test_names(void **state) {
    (void)state;
    an_graph *g = graph();
    an_param(g, "w", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(4));
    an_param(g, "w", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(4));
    REFUSED(g, AN_ERR_ARGUMENT, "'w' occurs twice", "tie them");
    g = graph();
    an_block_begin(g, "h.0", 1);
    REFUSED(g, AN_ERR_ORDER, "'h.0' is still open");
    g = graph();
    an_scope_begin(g, "s");
    an_block_end(g);
    REFUSED(g, AN_ERR_ORDER, "an_block_end without an_block_begin");
    g = graph();
    an_symbol_dim(g, "two words");
    REFUSED(g, AN_ERR_ARGUMENT, "letters, digits and _");
}

static void test_views(void **state) {
    (void)state;
    an_graph *g = graph();
    an_dim b = an_symbol_dim(g, "batch"), t = an_symbol_dim(g, "tokens");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(b, t, 12));
    an_value heads = an_transpose(g, an_reshape(g, x, AN_DIMS(b, t, 3, 4)), 1, 2);    /* both views */
    an_value flat = an_reshape(g, heads, AN_DIMS(an_dim_multiply(g, b, t), 12));      /* not one: copied first */
    an_value back = an_reshape(g, an_transpose(g, heads, 1, 2), AN_DIMS(b, AN_REST)); /* again a view of x */
    OK(ctx, an_graph_verify(g));
    assert_ptr_equal(an_graph_result(g, heads)->root, an_graph_result(g, x));
    assert_ptr_not_equal(an_graph_result(g, flat)->root, an_graph_result(g, x));
    assert_ptr_equal(an_graph_result(g, back)->root, an_graph_result(g, x));
    assert_int_equal(an_value_dim(g, back, 1), an_dim_multiply(g, t, 12));
    an_reshape(g, x, AN_DIMS(b, 5));
    REFUSED(g, AN_ERR_SHAPE, "f32[batch,tokens,12]", "the number of elements differs");
    g = graph();
    an_slice(g, an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4)), 0, 2, 6);
    REFUSED(g, AN_ERR_SHAPE, "beyond axis 0 of f32[4]");
    g = graph();
    an_split(g, an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4)), 0, 3);
    REFUSED(g, AN_ERR_SHAPE, "3 equal parts");
    g = graph();
    an_transpose(g, an_input(g, "x", AN_DTYPE_F32, AN_DIMS(4)), 0, 1);
    REFUSED(g, AN_ERR_ARGUMENT, "axis 1 does not exist");
}

/* Equal expressions have equal handles, however they were written. */
static void test_dimensions(void **state) {
    (void)state;
    an_graph *g = graph();
    an_dim a = an_symbol_dim(g, "a"), b = an_symbol_dim(g, "b");
    assert_int_equal(an_symbol_dim(g, "a"), a);
    assert_int_equal(an_dim_multiply(g, a, b), an_dim_multiply(g, b, a));
    assert_int_equal(an_dim_add(g, a, a), an_dim_multiply(g, 2, a));
    an_dim sum = an_dim_add(g, an_dim_multiply(g, a, b), 3);
    assert_int_equal(an_dim_subtract(g, sum, 3), an_dim_multiply(g, a, b));
    assert_int_equal(an_dim_multiply(g, sum, a),
                     an_dim_add(g, an_dim_multiply(g, an_dim_multiply(g, a, a), b), an_dim_multiply(g, a, 3)));
    assert_int_equal(an_dim_window(g, an_dim_add(g, a, 2), 3, 1), a);
    assert_int_equal(an_dim_window(g, 28, 3, 2), 13);
    assert_int_equal(an_dim_window(g, a, 3, 2), an_dim_window(g, a, 3, 2));
    OK(ctx, an_graph_bind(g, "a", 9));
    OK(ctx, an_graph_bind(g, "b", 4));
    int64_t value;
    assert_true(an_dimensions_value(&g->dimensions, sum, &value));
    assert_int_equal(value, 39);
    assert_true(an_dimensions_value(&g->dimensions, an_dim_window(g, a, 3, 2), &value));
    assert_int_equal(value, 4);
    an_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place_of_the_call),
        cmocka_unit_test(test_place_of_nested_calls),
        cmocka_unit_test(test_place_of_a_layer),
        cmocka_unit_test(test_no_place),
        cmocka_unit_test(test_values_of_another_graph),
        cmocka_unit_test(test_types_that_clash),
        cmocka_unit_test(test_shapes_that_overflow),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_dimensions),
    };
    return cmocka_run_group_tests(tests, make_context, drop_context);
}

/* Graphs with ops and kernels of the program: the same bits as built-in ones, and mistakes that are found. */
#include "support/own_ops.h"

static an_context *ctx;
static ledger counted;

static int setup(void **state) {
    (void)state;
    steep_runs = 0;
    return context_with_ledger(&ctx, &counted, 2) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

/* ---- graphs ---- */

typedef struct {
    float gradient[64], output[12];
    double loss;
    int own_runs;
} results;

/* small_mlp with this activation in the middle. */
static an_graph *mlp_with(an_context *with, an_value (*activation)(an_graph *, an_value)) {
    an_graph *g = NULL;
    OK(with, an_graph_create(&g, with, "small"));
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 4)),
             y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 2));
    an_value out = an_linear(g, activation(g, an_linear(g, x, "fc1", 16)), "fc2", 2);
    an_graph_set_output(g, out, "out");
    an_graph_set_loss(g, an_squared_error(g, out, y), y);
    return g;
}

static an_value steep(an_graph *g, an_value x) {
    const steep_attributes a = {.slope = 1};
    return an_own(g, "steep_relu", 1, &x, &a);
}

static an_value relu(an_graph *g, an_value x) {
    return an_relu(g, x);
}

static an_status plan_with(an_plan **plan, an_graph *g, an_dtype precision, const char *kernels) {
    const char *symbol = "batch";
    const int64_t maximum = 8;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.symbol_count = 1;
    options.symbols = &symbol;
    options.maxima = &maximum;
    options.programs = AN_PROGRAM_TRAINING | AN_PROGRAM_PREDICTION;
    options.precision = precision;
    options.kernels = kernels;
    return an_plan_create(plan, ctx, g, &options);
}

static void run_graph(an_graph *g, an_dtype precision, const char *kernels, results *r) {
    an_params *params = NULL;
    an_plan *plan = NULL;
    an_program *program = NULL;
    float x[6 * 4], y[6 * 2];
    memset(r, 0, sizeof *r);
    steep_runs = 0;
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_params_reset(params, 3));
    OK(ctx, plan_with(&plan, g, precision, kernels));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_bind(program, "batch", 6));
    for (int i = 0; i < 24; i++) x[i] = (float)noise((uint64_t)i);
    for (int i = 0; i < 12; i++) y[i] = (float)noise((uint64_t)i + 100);
    const an_array ax = array_of(x, AN_DTYPE_F32, 2, (const int64_t[]){6, 4}),
                   ay = array_of(y, AN_DTYPE_F32, 2, (const int64_t[]){6, 2});
    OK(ctx, an_program_set_input(program, "x", &ax));
    OK(ctx, an_program_set_input(program, "y", &ay));
    OK(ctx, an_program_set_scalar(program, "loss_gradient", 0.125));
    OK(ctx, an_program_run(program, AN_FORM_TRAIN_FIRST));
    OK(ctx, an_program_loss(program, &r->loss));
    an_array gradient = array_of(r->gradient, AN_DTYPE_F32, 2, (const int64_t[]){16, 4});
    OK(ctx, an_params_get(params, "fc1.weight", AN_PART_GRADIENT, &gradient));
    OK(ctx, an_program_run(program, AN_FORM_PREDICT));
    an_array output = array_of(r->output, AN_DTYPE_F32, 2, (const int64_t[]){6, 2});
    OK(ctx, an_program_get_output(program, "out", &output));
    r->own_runs = steep_runs;
    an_program_destroy(&program);
    an_plan_destroy(&plan);
    an_params_destroy(&params);
}

static void assert_same(const results *a, const results *b) {
    assert_memory_equal(a->gradient, b->gradient, sizeof a->gradient);
    assert_memory_equal(a->output, b->output, sizeof a->output);
    assert_true(a->loss == b->loss);
}

static void test_same_bits(void **state) {
    results own, usual;
    an_graph *built = NULL, *read = NULL, *plain = NULL, *other = NULL;
    an_context *stranger = NULL;
    char *text = NULL, *again = NULL;
    (void)state;
    OK(ctx, add_steep(ctx));
    plain = mlp_with(ctx, relu);
    run_graph(plain, AN_DTYPE_NONE, NULL, &usual);
    built = mlp_with(ctx, steep);
    run_graph(built, AN_DTYPE_NONE, NULL, &own);
    assert_int_equal(own.own_runs, 2); /* forward and predict */
    assert_same(&own, &usual);
    /* the text form */
    OK(ctx, an_graph_print(built, &text));
    assert_non_null(strstr(text, "steep_relu(%"));
    assert_non_null(strstr(text, "slope=1"));
    OK(ctx, an_graph_parse(&read, ctx, text, strlen(text)));
    OK(ctx, an_graph_print(read, &again));
    assert_string_equal(text, again);
    run_graph(read, AN_DTYPE_NONE, NULL, &own);
    assert_same(&own, &usual);
    /* a context that does not know the op */
    OK(NULL, an_context_create(&stranger, NULL));
    FAILS(stranger, an_graph_parse(&other, stranger, text, strlen(text)), AN_ERR_PARSE,
          "there is no op 'steep_relu'; an op that a program added (an_context_add_op)");
    an_context_destroy(&stranger);
    an_string_release(ctx, &again);
    an_string_release(ctx, &text);
    an_graph_destroy(&read);
    an_graph_destroy(&built);
    an_graph_destroy(&plain);
}

/* Its kernels are f32's, and the record says so: what comes in bf16 is cast. */
static void test_low_precision(void **state) {
    results own;
    (void)state;
    OK(ctx, add_steep(ctx));
    an_graph *g = mlp_with(ctx, steep);
    run_graph(g, AN_DTYPE_BF16, NULL, &own);
    assert_int_equal(own.own_runs, 2);
    an_graph_destroy(&g);
}

/* ---- mistakes ---- */

static int planted; /* what infer_wrong and grad_wrong do */
enum { NO_TYPE = 1, NO_DIMENSION, ADDS_NODES, ASKS_WRONG, WRONG_SHAPE, NO_VALUE, WRONG_INPUTS };

static const char *infer_wrong(const an_own_node *node, an_own_output *outputs) {
    own_like(node, node->inputs[0], &outputs[0]);
    if (planted == NO_TYPE) outputs[0].dtype = (an_dtype)99;
    if (planted == NO_DIMENSION) outputs[0].dims[0] = INT64_MIN;
    if (planted == ADDS_NODES) (void)an_relu(node->graph, node->inputs[0]);
    if (planted == ASKS_WRONG) (void)an_value_dim(node->graph, node->inputs[0], 7);
    return NULL;
}

static void grad_wrong(const an_own_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const int axis = 0;
    (void)want;
    diff_src[0] = diff_dst[0];
    if (planted == WRONG_SHAPE) diff_src[0] = an_reduce_sum(node->graph, diff_dst[0], 1, &axis, false);
    if (planted == NO_VALUE) diff_src[0] = 12345;
    if (planted == WRONG_INPUTS) diff_src[0] = an_own(node->graph, "steep_relu_diff", 1, diff_dst, node->attributes);
}

static an_value wrong(an_graph *g, an_value x) {
    const steep_attributes a = {.slope = 1};
    return an_own(g, "wrong", 1, &x, &a);
}

static void test_wrong_functions(void **state) {
    static const struct {
        int planted;
        const char *words;
    } cases[] = {
        {NO_TYPE, "its infer gave output 0 the type 99"},
        {NO_DIMENSION, "does not belong to graph"},
        {ADDS_NODES, "its infer added nodes"},
        {ASKS_WRONG, "dimension 7 of f32[batch,16] does not exist"},
        {WRONG_SHAPE, "its gradient of input 0 is f32[16], but the input is f32[batch,16]"},
        {NO_VALUE, "its gradient of input 0 is not a value of the graph"},
        {WRONG_INPUTS, "steep_relu_diff takes 2 to 2 inputs, not 1"},
    };
    (void)state;
    OK(ctx, add_steep(ctx));
    an_own_op op = steep_record();
    op.name = "wrong";
    op.infer = infer_wrong;
    op.gradient = grad_wrong;
    OK(ctx, an_context_add_op(ctx, &op));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_plan *plan = NULL;
        planted = cases[i].planted;
        an_graph *g = mlp_with(ctx, wrong);
        an_status status = an_graph_verify(g);
        if (status == AN_OK) status = plan_with(&plan, g, AN_DTYPE_NONE, NULL);
        assert_true(status != AN_OK);
        if (!strstr(an_last_error(ctx), cases[i].words))
            fail_msg("'%s' is not in: %s", cases[i].words, an_last_error(ctx));
        assert_null(plan);
        an_graph_destroy(&g);
    }
    planted = 0;
}

#define MISTAKE(call, code, words)                         \
    do {                                                   \
        an_graph *g = NULL;                                \
        OK(ctx, an_graph_create(&g, ctx, "m"));            \
        an_value x = an_input(g, "x", AN_DTYPE_F32, 2, d); \
        (void)x;                                           \
        assert_true((call) == 0);                          \
        FAILS(ctx, an_graph_verify(g), code, words);       \
        an_graph_destroy(&g);                              \
    } while (0)

static void test_wrong_calls(void **state) {
    static const an_dim d[] = {3, 4};
    const steep_attributes good = {.slope = 1}, bad = {.slope = -1};
    const an_value none = AN_NONE;
    (void)state;
    OK(ctx, add_steep(ctx));
    MISTAKE(an_own(g, "step_relu", 1, &x, &good), AN_ERR_UNKNOWN, "there is no op 'step_relu'");
    MISTAKE(an_own(g, "relu", 1, &x, NULL), AN_ERR_ARGUMENT, "relu is an op of the library: call its builder, an_relu");
    MISTAKE(an_own(g, "steep_relu", 1, &x, &bad), AN_ERR_SHAPE, "test_own.c");
    MISTAKE(an_own(g, "steep_relu", 1, &x, &bad), AN_ERR_SHAPE, "the slope is not above 0");
    MISTAKE(an_own(g, "steep_relu", 1, &x, NULL), AN_ERR_SHAPE, "the slope is not above 0");
    MISTAKE(an_own(g, "steep_relu", 2, &x, &good), AN_ERR_ARGUMENT, "takes 1 to 1 inputs, not 2");
    MISTAKE(an_own(g, "steep_relu", 1, &none, &good), AN_ERR_ARGUMENT, "input 0 is absent");
}

/* A list in a struct of the program's may say anything. */
static void test_wrong_lists(void **state) {
    static const an_attribute table[] = {{"axes", AN_ATTRIBUTE_INTS, 0, false}, {0}};
    static const an_dim d[] = {3, 4};
    const an_int_list axes = {.count = 1 << 20};
    an_own_op op = steep_record();
    (void)state;
    op.name = "listed";
    op.attributes = table;
    op.attribute_bytes = sizeof(an_int_list);
    OK(ctx, an_context_add_op(ctx, &op));
    MISTAKE(an_own(g, "listed", 1, &x, &axes), AN_ERR_ARGUMENT, "attribute 'axes' of listed has 1048576 numbers");
}

static an_status run_failing(const an_call *call) {
    return an_kernel_fail(call, AN_ERR_KERNEL, "the furnace is out");
}

static void test_failing_kernel(void **state) {
    static const an_kernel failing[] = {{.name = "cold", .run = run_failing}, {0}};
    static const an_dim d[] = {3, 4};
    an_own_op op = steep_record();
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    (void)state;
    op.kernels = failing;
    OK(ctx, an_context_add_op(ctx, &op));
    OK(ctx, an_graph_create(&g, ctx, "f"));
    an_graph_set_output(g, steep(g, an_input(g, "x", AN_DTYPE_F32, 2, d)), "y");
    OK(ctx, an_graph_verify(g));
    options.programs = AN_PROGRAM_PREDICTION;
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    FAILS(ctx, an_program_run(program, AN_FORM_PREDICT), AN_ERR_KERNEL, "(kernel cold): the furnace is out");
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
}

/* ---- added kernels ---- */

static int mine_runs;

static an_status run_mine(const an_call *call) {
    const float *src = call->src[0].data;
    float *dst = call->dst[0].data;
    mine_runs++;
    for (int64_t i = 0; i < own_elements(&call->dst[0]); i++) dst[i] = src[i] < 0 ? 0 : src[i];
    return AN_OK;
}

static bool never(const an_call *call) {
    (void)call;
    return false;
}

static void test_added_kernel(void **state) {
    const an_kernel mine = {.name = "mine", .applies = own_is_f32, .run = run_mine},
                    unable = {.name = "unable", .applies = never, .run = run_failing};
    results usual, own;
    (void)state;
    an_graph *g = mlp_with(ctx, relu);
    run_graph(g, AN_DTYPE_NONE, NULL, &usual);
    OK(ctx, an_context_add_kernel(ctx, "relu", &mine));
    OK(ctx, an_context_add_kernel(ctx, "relu", &unable)); /* asked first, and says no */
    run_graph(g, AN_DTYPE_NONE, NULL, &own);
    assert_int_equal(mine_runs, 2); /* it was not fused away */
    assert_same(&own, &usual);
    mine_runs = 0;
    run_graph(g, AN_DTYPE_NONE, "relu=reference,relu_diff=reference", &own);
    assert_int_equal(mine_runs, 0);
    assert_same(&own, &usual);
    run_graph(g, AN_DTYPE_NONE, "relu=mine,relu_diff=reference", &own);
    assert_int_equal(mine_runs, 2);
    an_plan *plan = NULL;
    FAILS(ctx, plan_with(&plan, g, AN_DTYPE_NONE, "relu=unable,relu_diff=reference"), AN_ERR_UNKNOWN,
          "it has unable, mine, portable");
    an_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_same_bits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_low_precision, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_functions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failing_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_added_kernel, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

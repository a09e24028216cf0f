/* What a hostile graph may do beyond the text form, and the sentence that it gets. Fuzzing found these, or reading for
 * it; their twins in corpus/plan are replayed under a device that lets a kernel touch its operands only. */
#include "support/support.h"

/* Where it ends. */
typedef enum { VERIFY, PLAN, RUN, FINE } stage;

typedef struct hostile {
    const char *text;       /* without its first line; the symbol is n */
    int64_t maximum, value; /* of n; 0: there is none */
    stage end;
    an_status status;
    const char *words;
} hostile;

#define HUGE_NUMBER "288230376151711743" /* 2^58 - 1 */

static const hostile cases[] = {
    /* sizes that are only known when symbols are bound */
    {"%x = input(name=\"x\") : f32[2,4]\n%y = pad(%x, axis=1, before=n-3)\noutput(%y, name=\"y\")\n", 4, 2, RUN,
     AN_ERR_OVERFLOW, "a size is too small"},
    {"%x = input(name=\"x\") : f32[2,n-2]\n%y = slice(%x, axis=1, begin=0, end=1)\n%z = exp(%y)\noutput(%z, "
     "name=\"z\")\n",
     4, 1, RUN, AN_ERR_SHAPE, "sizes are at least 1"},
    {"%x = input(name=\"x\") : f32[4,n]\n%y = slice(%x, axis=1, begin=0, end=2)\n%z = exp(%y)\noutput(%z, "
     "name=\"z\")\n",
     3, 1, RUN, AN_ERR_SHAPE, "goes beyond the end"},
    {"%x = input(name=\"x\") : f32[5,4]\n%y = slice(%x, axis=1, begin=n, end=n+2)\n%z = exp(%y)\noutput(%z, "
     "name=\"z\")\n",
     3, 0, PLAN, AN_ERR_SHAPE, "goes beyond the end"},
    /* a size that is largest at the smallest value: scratch is planned for it */
    {"%d = input(name=\"d\") : f32[2,2]\n%i = input(name=\"i\") : i32[2,2]\n"
     "%y = gather_diff(%d, %i, axis=0, dims=[700-170*n,2])\noutput(%y, name=\"y\")\n",
     4, 1, FINE, AN_OK, ""},
    /* counts that do not fit */
    {"%c = constant(value=1) : f32[]\n%e = expand(%c, dims=[4294967296,4294967296])\n%s = reduce_sum(%e, axes=[0,1])\n"
     "output(%s, name=\"s\")\n",
     0, 0, PLAN, AN_ERR_OVERFLOW, "64 bits"},
    {"%c = constant(value=1) : f64[]\n%e = expand(%c, dims=[" HUGE_NUMBER "])\n%1 = exp(%e)\noutput(%1, name=\"a\")\n",
     0, 0, PLAN, AN_ERR_OVERFLOW, "64 bits"},
    {"%a = input(name=\"a\") : u8[" HUGE_NUMBER "]\n%b = input(name=\"b\") : u8[" HUGE_NUMBER "]\n"
     "%c = input(name=\"c\") : u8[" HUGE_NUMBER "]\noutput(%a, name=\"a\")\n",
     0, 0, PLAN, AN_ERR_OVERFLOW, "64 bits"},
    /* a cost that must not be counted tile by tile */
    {"%c = constant(value=1) : f32[]\n%q = expand(%c, dims=[1,1,4503599627370496,2])\n"
     "%y, _ = attention(%q, %q, %q, causal=true, scale=1)\n%s = slice(%y, axis=2, begin=0, end=1)\noutput(%s, "
     "name=\"y\")\n",
     0, 0, FINE, AN_OK, ""},
    /* what only the library makes, or cannot keep */
    {"%w = param(name=\"w\") : f32[4]\n%x = input(name=\"x\") : f32[4]\n%g = grad(%x, parameter=0)\n", 0, 0, VERIFY,
     AN_ERR_ARGUMENT, "a model cannot contain gradients: its plan adds them"},
    {"%s = run_state(name=\"s\", initial=3) : i64[4]\noutput(%s, name=\"s\")\n", 0, 0, VERIFY, AN_ERR_DTYPE,
     "a run state must be floating-point, not"},
    {"%k = constant(dtype=i64, value=1e300)\noutput(%k, name=\"k\")\n", 0, 0, FINE, AN_OK, ""},
};

/* Asks for everything that would count too long or too far; runs only what is small. */
static an_status go(an_context *ctx, const hostile *h, stage *end) {
    enum { MOST_BYTES = 1 << 20 };
    const char *const symbols[] = {"n"};
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    an_plan_cost cost;
    an_plan_cost_init(&cost, sizeof cost);
    an_graph *graph = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    char text[1024];
    an_status status;
    int length = snprintf(text, sizeof text, "ang 1\n%s%s", h->maximum ? "symbol n\n" : "", h->text);
    options.symbols = symbols;
    options.maxima = &h->maximum;
    options.symbol_count = h->maximum > 0;
    *end = VERIFY;
    if ((status = an_graph_parse(&graph, ctx, text, (size_t)length)) || (status = an_graph_verify(graph))) goto done;
    *end = PLAN;
    if ((status = an_plan_create(&plan, ctx, graph, &options))) goto done;
    if ((status = an_plan_cost_get(plan, AN_FORM_PREDICT, &cost))) goto done;
    *end = RUN;
    an_plan_memory_get(plan, &memory);
    if (memory.peak <= MOST_BYTES) {
        OK(ctx, an_params_create(&params, ctx, graph, NULL));
        OK(ctx, an_program_create(&program, plan, params));
        if (h->value) OK(ctx, an_program_bind(program, "n", h->value));
        if ((status = an_program_run(program, AN_FORM_PREDICT))) goto done;
    }
    *end = FINE;
done:
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&graph);
    return status;
}

static void test_hostile(void **state) {
    static const char *const ends[] = {"verify", "plan", "run", "fine"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ledger l = {0};
        an_context *ctx = NULL;
        stage where;
        assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
        an_status status = go(ctx, &cases[i], &where);
        if (status != cases[i].status || where != cases[i].end ||
            (status && !strstr(an_last_error(ctx), cases[i].words)))
            fail_msg("case %zu: %s after %s: %s", i, an_status_name(status), ends[where], an_last_error(ctx));
        an_context_destroy(&ctx);
        assert_int_equal(l.held, 0);
    }
}

/* A number that is no dimension, and one of another graph. */
static void test_foreign_dimensions(void **state) {
    an_context *ctx = NULL;
    an_graph *a = NULL, *b = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_graph_create(&a, ctx, "a"));
    an_input(a, "x", AN_DTYPE_F32, AN_DIMS(-4));
    FAILS(ctx, an_graph_verify(a), AN_ERR_SHAPE, "does not belong to graph 'a': sizes cannot be negative");
    an_graph_destroy(&a);
    OK(ctx, an_graph_create(&a, ctx, "a"));
    OK(ctx, an_graph_create(&b, ctx, "b"));
    an_dim n = an_symbol_dim(b, "n");
    an_value x = an_input(a, "x", AN_DTYPE_F32, AN_DIMS(1));
    an_slice(a, x, 0, 0, n);
    FAILS(ctx, an_graph_verify(a), AN_ERR_SHAPE, "does not belong to graph 'a': sizes cannot be negative");
    an_graph_destroy(&a);
    OK(ctx, an_graph_create(&a, ctx, "a"));
    an_dim_multiply(a, n, 2);
    FAILS(ctx, an_graph_verify(a), AN_ERR_SHAPE, "does not belong to graph 'a': sizes cannot be negative");
    an_graph_destroy(&a);
    an_graph_destroy(&b);
    an_context_destroy(&ctx);
}

/* Outputs are of the sizes of the run; targets of the type that the loss reads. */
static void test_questions_after_a_run(void **state) {
    static const char text[] = "ang 1\nsymbol n\n%x = input(name=\"x\") : f32[n,3]\n%t = input(name=\"t\") : i64[n]\n"
                               "%u = input(name=\"u\") : u8[n]\noutput(%x, name=\"y\")\n"
                               "%l, _ = cross_entropy(%x, %t)\nloss %l targets %u\n";
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    float y[12];
    uint8_t u[4] = {0};
    int64_t count;
    an_array out = {0}, targets = {0};
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_graph_parse(&g, ctx, text, sizeof text - 1));
    OK(ctx, an_graph_verify(g));
    OK(ctx, plan_for(&plan, ctx, g, "n", 4, AN_PROGRAM_EVALUATION));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_bind(program, "n", 2));
    OK(ctx, an_program_run(program, AN_FORM_EVALUATE));
    out.data = y;
    OK(ctx, an_program_get_output(program, "y", &out));
    OK(ctx, an_program_bind(program, "n", 4));
    FAILS(ctx, an_program_get_output(program, "y", &out), AN_ERR_ORDER, "not run yet at these sizes");
    targets.data = u;
    targets.dtype = AN_DTYPE_U8;
    targets.ndims = 1;
    targets.dims[0] = 4;
    FAILS(ctx, an_program_count_targets(program, &targets, &count), AN_ERR_DTYPE, "cross_entropy reads i64");
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

/* A position from which tokens cannot be counted on in 64 bits; sanitizers look at it. */
static void test_position_at_the_end(void **state) {
    static const char text[] = "ang 1\n%x = input(name=\"x\") : f32[1,1,3,2]\n%p = scalar(name=\"position\") : i64[]\n"
                               "%y = rotary(%x, %p, base=10000, rotated=2)\noutput(%y, name=\"y\")\n";
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    (void)state;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    OK(ctx, an_graph_parse(&g, ctx, text, sizeof text - 1));
    OK(ctx, an_graph_verify(g));
    OK(ctx, an_plan_create(&plan, ctx, g, NULL));
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_set_scalar_i64(program, "position", INT64_MAX));
    OK(ctx, an_program_run(program, AN_FORM_PREDICT));
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_foreign_dimensions),
        cmocka_unit_test(test_questions_after_a_run),
        cmocka_unit_test(test_position_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Memory is known before it is used: what is allocated is what was planned, to the byte, and a step allocates
 * nothing. */
#include "anneal/models.h"
#include "anneal/plan.h"
#include "support/support.h"

/* Makes parameters and a program from a graph, with a ledger under the context, and runs some steps. */
static void check_bytes(an_context *ctx, ledger *l, an_graph *g, an_plan *plan, int steps) {
    an_params *params = NULL;
    an_program *program = NULL;
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    (void)g;
    OK(ctx, an_plan_memory_get(plan, &memory));
    assert_int_equal(memory.peak, memory.weights + memory.gradients + memory.optimizer + memory.activations +
                                      memory.scratch + memory.inputs + memory.tables + memory.checkpoint);
    size_t before = l->held;
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    assert_int_equal(l->held - before, memory.peak);
    OK(ctx, an_params_reset(params, 7));
    assert_int_equal(l->held - before, memory.peak);
    long calls = l->calls;
    for (int i = 0; i < steps; i++) {
        double loss;
        OK(ctx, an_program_run(program, i ? AN_FORM_TRAIN_NEXT : AN_FORM_TRAIN_FIRST));
        OK(ctx, an_program_loss(program, &loss));
        OK(ctx, an_program_run(program, AN_FORM_EVALUATE));
    }
    assert_int_equal(l->calls, calls);
    assert_int_equal(l->held - before, memory.peak);
    an_program_destroy(&program);
    an_params_destroy(&params);
    assert_int_equal(l->held, before);
}

static void check_model(int threads, an_status (*build)(an_graph **, an_context *), int count,
                        const char *const *symbols, const int64_t *maxima) {
    ledger l = {0};
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    assert_int_equal(context_with_ledger(&ctx, &l, threads), AN_OK);
    OK(ctx, build(&g, ctx));
    options.symbol_count = count;
    options.symbols = symbols;
    options.maxima = maxima;
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16};
    static const an_recompute modes[] = {AN_RECOMPUTE_NONE, AN_RECOMPUTE_BLOCK};
    for (int i = 0; i < (build == small_mlp ? 2 : 4); i++) { /* that one has no blocks */
        options.precision = precisions[i % 2];
        options.recompute = modes[i / 2];
        OK(ctx, an_plan_create(&plan, ctx, g, &options));
        check_bytes(ctx, &l, g, plan, 2);
        an_plan_destroy(&plan);
    }
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
    assert_int_equal(l.held, 0);
    assert_false(l.mismatch);
}

static an_status small_gpt2(an_graph **g, an_context *ctx) {
    an_gpt2_options options;
    an_gpt2_options_init(&options, sizeof options);
    options.layers = 2;
    options.heads = 2;
    options.width = 32;
    options.context = 16;
    options.vocabulary = 65;
    an_status status = an_model_gpt2(g, ctx, &options);
    return status ? status : an_graph_verify(*g);
}

static void test_planned_is_allocated(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 64};
    for (int i = 0; i < 3; i++) {
        check_model(threads[i], small_mlp, 1, (const char *const[]){"batch"}, (const int64_t[]){8});
        check_model(threads[i], small_gpt2, 2, (const char *const[]){"batch", "tokens"}, (const int64_t[]){3, 16});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_planned_is_allocated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

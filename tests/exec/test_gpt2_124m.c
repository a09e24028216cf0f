/* GPT-2 124M: what the plan says is what is allocated, to the byte, and what the process takes beyond its start is
 * within 2 % of it. One whole forward and backward. */
#include <sys/resource.h>

#include "anneal/models.h"
#include "anneal/plan.h"
#include "support/support.h"

static double resident_peak(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss * 1024;
}

static void test_process_takes_what_was_planned(void **state) {
    (void)state;
    enum { BATCH = 4, TOKENS = 256, VOCABULARY = 50257 };
    ledger l = {0};
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    static int32_t tokens[BATCH * TOKENS], targets[BATCH * TOKENS];
    double loss, before = resident_peak();

    assert_int_equal(context_with_ledger(&ctx, &l, 2), AN_OK);
    OK(ctx, an_model_preset(&g, ctx, "gpt2-124m", AN_DTYPE_F32));
    OK(ctx, an_graph_verify(g));
    options.symbol_count = 2;
    options.symbols = (const char *const[]){"batch", "tokens"};
    options.maxima = (const int64_t[]){BATCH, TOKENS};
    OK(ctx, an_plan_create(&plan, ctx, g, &options));
    OK(ctx, an_plan_memory_get(plan, &memory));
    size_t held = l.held;
    OK(ctx, an_params_create(&params, ctx, g, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    assert_int_equal(l.held - held, memory.peak);

    OK(ctx, an_params_reset(params, 1));
    for (int i = 0; i < BATCH * TOKENS; i++)
        tokens[i] = (i * 7919) % VOCABULARY, targets[i] = (i * 104729) % VOCABULARY;
    an_array a = array_of(tokens, AN_DTYPE_I32, 2, (const int64_t[]){BATCH, TOKENS});
    OK(ctx, an_program_set_input(program, "tokens", &a));
    a.data = targets;
    OK(ctx, an_program_set_input(program, "targets", &a));
    OK(ctx, an_program_set_scalar(program, "loss_gradient", 1.0 / (BATCH * TOKENS)));
    long calls = l.calls;
    OK(ctx, an_program_run(program, AN_FORM_TRAIN_NEXT)); /* the larger of the two: contributions are not in place */
    OK(ctx, an_program_loss(program, &loss));
    assert_int_equal(l.calls, calls);
    loss /= BATCH * TOKENS;
    double beyond = resident_peak() - before, ratio = beyond / (double)memory.peak;
    print_message("planned and allocated %lld bytes; the process took %.0f beyond its start: %.4f of it; loss %.4f\n",
                  (long long)memory.peak, beyond, ratio, loss);
    assert_true(fabs(loss - log(VOCABULARY)) < 0.5); /* a fresh model knows nothing: ln 50257 = 10.82 */
    if (ratio < 0.98 || ratio > 1.02) fail_msg("the process took %.4f of what was planned", ratio);

    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
    assert_int_equal(l.held, 0);
}

/* What the whole state of training takes in bf16 at 4 × 1024 tokens, AdamW's moments counted. */
static void test_little_memory(void **state) {
    (void)state;
    static const struct {
        an_recompute recompute;
        double maximum;
    } cases[] = {{AN_RECOMPUTE_NONE, 4.0e9}, {AN_RECOMPUTE_BLOCK, 3.0e9}};
    static const int threads[] = {1, 2, 64};
    for (int i = 0; i < 6; i++) {
        ledger l = {0};
        an_context *ctx = NULL;
        an_graph *g = NULL;
        an_plan *plan = NULL;
        an_params *params = NULL;
        an_program *program = NULL;
        an_plan_options options;
        an_plan_options_init(&options, sizeof options);
        an_plan_memory memory;
        an_plan_memory_init(&memory, sizeof memory);
        assert_int_equal(context_with_ledger(&ctx, &l, threads[i / 2]), AN_OK);
        OK(ctx, an_model_preset(&g, ctx, "gpt2-124m", AN_DTYPE_F32));
        options.symbol_count = 2;
        options.symbols = (const char *const[]){"batch", "tokens"};
        options.maxima = (const int64_t[]){4, 1024};
        options.precision = AN_DTYPE_BF16;
        options.recompute = cases[i % 2].recompute;
        OK(ctx, an_plan_create(&plan, ctx, g, &options));
        OK(ctx, an_plan_memory_get(plan, &memory));
        size_t held = l.held;
        OK(ctx, an_params_create(&params, ctx, g, NULL));
        OK(ctx, an_program_create(&program, plan, params));
        assert_int_equal(l.held - held, memory.peak);
        print_message("bf16, recompute %s, %2d threads: planned and allocated %lld bytes\n", i % 2 ? "block" : "none ",
                      threads[i / 2], (long long)memory.peak);
        assert_true((double)memory.peak <= cases[i % 2].maximum);
        an_program_destroy(&program);
        an_params_destroy(&params);
        an_plan_destroy(&plan);
        an_graph_destroy(&g);
        an_context_destroy(&ctx);
        assert_int_equal(l.held, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_process_takes_what_was_planned),
                                       cmocka_unit_test(test_little_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

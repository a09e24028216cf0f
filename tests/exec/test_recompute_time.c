/* Recompute costs the time that the plan predicts: a GPT in f32 and bf16, in the modes and in budgets of 100 %, 60 %
 * and 40 % of the activations, each run in turn with the program that recomputes nothing. */
#include <time.h>

#include "exec/recompute_models.h"

enum { MOST_PAIRS = 9, MODES = 6 };
static int pairs = MOST_PAIRS; /* of runs, whose median is judged; the program's argument */
static const double tolerance = 0.15;

/* What this process used, whatever else the machine does. */
static double processor(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
    an_plan *plan;
    an_params *params;
    an_program *program;
} runner;

static runner set_up(an_context *ctx, const an_graph *g, choice c) {
    runner r = {0};
    OK(ctx, plan_choice(&r.plan, ctx, g, c));
    OK(ctx, an_params_create(&r.params, ctx, g, NULL));
    OK(ctx, an_params_reset(r.params, 1));
    OK(ctx, an_program_create(&r.program, r.plan, r.params));
    feed(ctx, r.program, 1);
    OK(ctx, an_program_run(r.program, AN_FORM_TRAIN_FIRST)); /* touches its memory */
    return r;
}

static void tear_down(runner *r) {
    an_program_destroy(&r->program);
    an_params_destroy(&r->params);
    an_plan_destroy(&r->plan);
}

static double time_run(an_context *ctx, const runner *r) {
    double begin = processor();
    OK(ctx, an_program_run(r->program, AN_FORM_TRAIN_NEXT));
    return processor() - begin;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_time(an_context *ctx, const an_graph *g, const runner *none, const char *name, choice c) {
    double ratios[MOST_PAIRS];
    an_plan_cost cost;
    an_plan_cost_init(&cost, sizeof cost);
    const int64_t arena = arena_of(none->plan);
    runner r = set_up(ctx, g, c);
    OK(ctx, an_plan_cost_get(r.plan, AN_FORM_TRAIN_NEXT, &cost));
    for (int i = 0; i < pairs; i++) {
        double without = time_run(ctx, none);
        ratios[i] = time_run(ctx, &r) / without;
    }
    qsort(ratios, (size_t)pairs, sizeof *ratios, ascending);
    const double measured = ratios[pairs / 2], error = measured / cost.recompute_ratio - 1;
    print_message("%s %-12s arena %5.1f %%  time: measured %.3f (%.3f to %.3f), predicted %.3f, off by %+.1f %%\n",
                  c.precision == AN_DTYPE_BF16 ? "bf16" : "f32 ", name, 100 * (double)arena_of(r.plan) / (double)arena,
                  measured, ratios[0], ratios[pairs - 1], cost.recompute_ratio, 100 * error);
    if (c.mode == AN_RECOMPUTE_BUDGET) assert_true(arena_of(r.plan) <= c.budget);
    if (fabs(error) > tolerance) fail_msg("%s: the prediction is off by more than %g", name, tolerance);
    tear_down(&r);
}

static void check_precision(an_dtype precision) {
    an_context *ctx = NULL;
    an_graph *g = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_gpt2_options gpt;
    an_gpt2_options_init(&gpt, sizeof gpt);
    options.threads = 2;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
    gpt.layers = 6;
    gpt.heads = 4;
    gpt.width = 256;
    gpt.context = 128;
    gpt.vocabulary = 1000;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt));
    choice c = {.precision = precision, .tokens = gpt.context};
    runner none = set_up(ctx, g, c);
    static const struct {
        const char *name;
        an_recompute mode;
        int segments, budget; /* in percent */
    } modes[MODES] = {{"block", AN_RECOMPUTE_BLOCK, 0, 0},         {"full", AN_RECOMPUTE_FULL, 0, 0},
                      {"segments 3", AN_RECOMPUTE_SEGMENTS, 3, 0}, {"budget 100 %", AN_RECOMPUTE_BUDGET, 0, 100},
                      {"budget 60 %", AN_RECOMPUTE_BUDGET, 0, 60}, {"budget 40 %", AN_RECOMPUTE_BUDGET, 0, 40}};
    for (int i = 0; i < MODES; i++) {
        c.mode = modes[i].mode;
        c.segments = modes[i].segments;
        c.budget = arena_of(none.plan) * modes[i].budget / 100;
        check_time(ctx, g, &none, modes[i].name, c);
    }
    tear_down(&none);
    an_graph_destroy(&g);
    an_context_destroy(&ctx);
}

static void test_f32(void **state) {
    (void)state;
    check_precision(AN_DTYPE_NONE);
}

static void test_bf16(void **state) {
    (void)state;
    check_precision(AN_DTYPE_BF16);
}

int main(int count, char **arguments) {
    if (count > 1 && atoi(arguments[1]) < MOST_PAIRS) pairs = atoi(arguments[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_f32), cmocka_unit_test(test_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Fifty steps of a GPT of two layers against PyTorch, with all that a step has: groups, warm-up and cosine,
 * accumulation over micro-batches of ragged sequences, clipping. tests/golden/run.py has the same in PyTorch and
 * makes what is expected here. */
#include "anneal/models.h"
#include "anneal/train.h"
#include "support/support.h"

enum { STEPS = 50, BATCH = 12, MICRO = 4, TOKENS = 16, VOCABULARY = 29, WARMUP = 10, IGNORED = -100 };
static const double rate = 3e-3, beta_2 = 0.99, decay = 0.1, clip = 0.25, min_ratio = 0.1;
/* The norm is that of weights which have gone their own way for some steps: rounding grows with them. */
static const double loss_tolerance = 1e-5, norm_tolerance = 1e-3, rate_tolerance = 1e-15;

static an_context *ctx;

static int setup(void **state) {
    (void)state;
    return an_context_create(&ctx, NULL) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return 0;
}

typedef struct {
    an_graph *graph;
    an_groups *groups;
    an_plan *plan;
    an_params *params;
    an_program *program;
    an_optimizer *optimizer;
    an_schedule *schedule;
    an_stepper *stepper;
} training;

/* ---- the same numbers as run.py's ---- */

static void start_weights(an_params *params) {
    for (int64_t p = 0; p < an_params_count(params); p++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        int64_t seed = 0;
        OK(ctx, an_params_info(params, p, &info));
        for (const char *c = info.name; *c; c++) seed += *c;
        const size_t length = strlen(info.name);
        const bool one = strstr(info.name, "ln_") && !strcmp(info.name + length - strlen("weight"), "weight");
        float *numbers = malloc((size_t)info.elements * sizeof *numbers);
        assert_non_null(numbers);
        for (int64_t i = 0; i < info.elements; i++)
            numbers[i] = (one ? 1 : 0) + (float)((i * 7919 + seed * 104729) % 2003 - 1001) / 8192;
        const an_array array = array_of(numbers, AN_DTYPE_F32, info.ndims, info.dims);
        OK(ctx, an_params_set(params, info.name, AN_PART_WEIGHT, &array));
        free(numbers);
    }
}

static int64_t length_of(int64_t step, int64_t sample) {
    return 1 + (step * BATCH + sample) * 5 % TOKENS;
}

static void set_micro_batch(an_program *program, int64_t step, int64_t first) {
    int32_t tokens[MICRO * TOKENS], targets[MICRO * TOKENS];
    const int64_t dims[] = {MICRO, TOKENS};
    for (int64_t i = 0; i < MICRO; i++)
        for (int64_t k = 0; k < TOKENS; k++) {
            int32_t *token = &tokens[i * TOKENS + k];
            *token = (int32_t)(((step * BATCH + first + i) * 7 + k * k * 3) % VOCABULARY);
            targets[i * TOKENS + k] = k < length_of(step, first + i) ? (*token * 5 + (int32_t)k) % VOCABULARY : IGNORED;
        }
    const an_array token_array = array_of(tokens, AN_DTYPE_I32, 2, dims);
    const an_array target_array = array_of(targets, AN_DTYPE_I32, 2, dims);
    OK(ctx, an_program_set_input(program, "tokens", &token_array));
    OK(ctx, an_program_set_input(program, "targets", &target_array));
}

/* ---- the run ---- */

static void make_model(training *t) {
    const char *symbols[] = {"batch", "tokens"};
    const int64_t maxima[] = {MICRO, TOKENS};
    an_gpt2_options model;
    an_gpt2_options_init(&model, sizeof model);
    an_group_rule rule;
    an_group_rule_init(&rule, sizeof rule);
    an_group_options groups;
    an_group_options_init(&groups, sizeof groups);
    an_plan_options plan;
    an_plan_options_init(&plan, sizeof plan);
    model.layers = 2;
    model.heads = 2;
    model.width = 32;
    model.context = TOKENS;
    model.vocabulary = VOCABULARY;
    rule.match = "^ln_f\\.";
    rule.lr_scale = 0.5;
    groups.weight_decay = decay;
    groups.rules = &rule;
    groups.rule_count = 1;
    plan.programs = AN_PROGRAM_TRAINING;
    plan.symbol_count = 2;
    plan.symbols = symbols;
    plan.maxima = maxima;
    OK(ctx, an_model_gpt2(&t->graph, ctx, &model));
    OK(ctx, an_groups_create(&t->groups, t->graph, &groups));
    OK(ctx, an_graph_verify(t->graph));
    OK(ctx, an_plan_create(&t->plan, ctx, t->graph, &plan));
    OK(ctx, an_params_create(&t->params, ctx, t->graph, NULL));
    start_weights(t->params);
    OK(ctx, an_program_create(&t->program, t->plan, t->params));
}

static void make_step(training *t) {
    an_optimizer_options optimizer;
    an_optimizer_options_init(&optimizer, sizeof optimizer);
    an_schedule_options schedule;
    an_schedule_options_init(&schedule, sizeof schedule);
    an_stepper_options step;
    an_stepper_options_init(&step, sizeof step);
    optimizer.beta_2 = beta_2;
    schedule.type = AN_SCHEDULE_COSINE;
    schedule.steps = STEPS;
    schedule.warmup = WARMUP;
    schedule.min_ratio = min_ratio;
    step.rate = rate;
    step.clip_norm = clip;
    OK(ctx, an_optimizer_create(&t->optimizer, t->params, t->groups, &optimizer));
    OK(ctx, an_schedule_create(&t->schedule, ctx, &schedule));
    OK(ctx, an_stepper_create(&t->stepper, t->program, t->optimizer, t->schedule, &step));
}

static an_step_metrics take_step(const training *t, int64_t step) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    int64_t targets = 0;
    for (int64_t i = 0; i < BATCH; i++) targets += length_of(step, i);
    OK(ctx, an_step_begin(t->stepper, targets));
    for (int64_t first = 0; first < BATCH; first += MICRO) {
        set_micro_batch(t->program, step, first);
        OK(ctx, an_step_micro_batch(t->stepper, 0, MICRO));
    }
    OK(ctx, an_step_reduce(t->stepper));
    OK(ctx, an_step_unscale(t->stepper));
    OK(ctx, an_step_clip(t->stepper));
    OK(ctx, an_step_update(t->stepper));
    OK(ctx, an_step_schedule(t->stepper));
    OK(ctx, an_step_end(t->stepper, &metrics));
    return metrics;
}

static void test_run_agrees_with_pytorch(void **state) {
    training t = {0};
    double worst = 0;
    int step = 0;
    char line[128];
    FILE *file = fopen(ANNEAL_SOURCE_DIR "/tests/golden/data/run-losses.txt", "r");
    (void)state;
    assert_non_null(file);
    make_model(&t);
    make_step(&t);
    while (fgets(line, sizeof line, file)) {
        char *at;
        if (line[0] == '#') continue;
        assert_int_equal(strtol(line, &at, 10), step);
        const double loss = strtod(at, &at), norm = strtod(at, &at), expected_rate = strtod(at, &at);
        const an_step_metrics metrics = take_step(&t, step++);
        if (!(fabs(metrics.loss - loss) <= loss_tolerance))
            fail_msg("step %d: the loss is %.9f, PyTorch's is %.9f", step - 1, metrics.loss, loss);
        if (!(fabs(metrics.norm - norm) <= norm_tolerance * norm))
            fail_msg("step %d: the norm is %.9f, PyTorch's is %.9f", step - 1, metrics.norm, norm);
        assert_true(fabs(metrics.rate - expected_rate) <= rate_tolerance);
        worst = fmax(worst, fabs(metrics.loss - loss));
    }
    assert_int_equal(step, STEPS);
    print_message("losses of %d steps differ from PyTorch's by at most %.2g\n", STEPS, worst);
    fclose(file);
    an_stepper_destroy(&t.stepper);
    an_schedule_destroy(&t.schedule);
    an_optimizer_destroy(&t.optimizer);
    an_program_destroy(&t.program);
    an_params_destroy(&t.params);
    an_plan_destroy(&t.plan);
    an_groups_destroy(&t.groups);
    an_graph_destroy(&t.graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_run_agrees_with_pytorch)};
    return cmocka_run_group_tests(tests, setup, teardown);
}

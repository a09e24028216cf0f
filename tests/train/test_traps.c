/* Mistakes of training loops that docs/traps.md tells of: what a step does with its gradients, targets, limits
 * and rates, by its parts. */
#include "anneal/models.h"
#include "anneal/train.h"
#include "models/small_models.h"

enum { INPUTS = 4, CLASSES = 3, SAMPLES = 24, IGNORED = -100 };

/* ---- a model in training ---- */

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

typedef struct {
    an_dtype precision;
    an_optimizer_options optimizer;
    an_schedule_options schedule;
    an_stepper_options step;
} choices;

static choices usual(void) {
    return (choices){.optimizer = {DEFAULTS(an_optimizer_options)},
                     .schedule = {DEFAULTS(an_schedule_options)},
                     .step = {DEFAULTS(an_stepper_options)}};
}

/* Plain descent with rate 1 and without decay: an update takes off what it was given. */
static choices descent(void) {
    choices c = usual();
    c.optimizer.type = AN_OPTIMIZER_SGD;
    c.step.rate = 1;
    return c;
}

static void training_create(training *t, an_graph *graph, choices c) {
    const char *symbol = "batch";
    const int64_t maximum = SAMPLES;
    const an_group_options groups = {DEFAULTS(an_group_options),
                                     .weight_decay = c.optimizer.type == AN_OPTIMIZER_SGD ? 0 : AN_AUTO};
    const an_params_options store = {DEFAULTS(an_params_options), .moments = an_optimizer_moments(&c.optimizer)};
    an_plan_options plan;
    an_plan_options_init(&plan, sizeof plan);
    *t = (training){.graph = graph};
    plan.symbol_count = 1;
    plan.symbols = &symbol;
    plan.maxima = &maximum;
    plan.programs = AN_PROGRAM_TRAINING;
    plan.precision = c.precision;
    OK(ctx, an_groups_create(&t->groups, graph, &groups));
    OK(ctx, an_graph_verify(graph));
    OK(ctx, an_plan_create(&t->plan, ctx, graph, &plan));
    OK(ctx, an_params_create(&t->params, ctx, graph, &store));
    OK(ctx, an_params_reset(t->params, 7));
    OK(ctx, an_program_create(&t->program, t->plan, t->params));
    OK(ctx, an_optimizer_create(&t->optimizer, t->params, t->groups, &c.optimizer));
    if (c.schedule.steps) OK(ctx, an_schedule_create(&t->schedule, ctx, &c.schedule));
    OK(ctx, an_stepper_create(&t->stepper, t->program, t->optimizer, t->schedule, &c.step));
}

static void training_destroy(training *t) {
    an_stepper_destroy(&t->stepper);
    an_schedule_destroy(&t->schedule);
    an_optimizer_destroy(&t->optimizer);
    an_program_destroy(&t->program);
    an_params_destroy(&t->params);
    an_plan_destroy(&t->plan);
    an_groups_destroy(&t->groups);
    an_graph_destroy(&t->graph);
}

static an_graph *make_mlp(an_loss_kind loss) {
    an_graph *graph = NULL;
    an_mlp_options options = small_mlp_options();
    options.loss = loss;
    OK(ctx, an_model_mlp(&graph, ctx, &options));
    return graph;
}

/* ---- samples ---- */

typedef bool (*masking)(int64_t sample);

static bool mask_none(int64_t sample) {
    (void)sample;
    return false;
}

static bool mask_thirds(int64_t sample) {
    return sample % 3 == 1;
}

static bool mask_middle(int64_t sample) {
    return sample >= 4 && sample < 6;
}

static void set_samples(const training *t, int64_t begin, int64_t count, masking masked) {
    float x[SAMPLES * INPUTS];
    int32_t classes[SAMPLES];
    const int64_t dims[] = {count, INPUTS};
    for (int64_t i = 0; i < count; i++) {
        classes[i] = masked(begin + i) ? IGNORED : (int32_t)((begin + i) * 5 % CLASSES);
        for (int64_t k = 0; k < INPUTS; k++) x[i * INPUTS + k] = (float)noise((uint64_t)((begin + i) * INPUTS + k));
    }
    const an_array inputs = array_of(x, AN_DTYPE_F32, 2, dims), targets = array_of(classes, AN_DTYPE_I32, 1, dims);
    OK(ctx, an_program_bind(t->program, "batch", count));
    OK(ctx, an_program_set_input(t->program, "x", &inputs));
    OK(ctx, an_program_set_input(t->program, "targets", &targets));
}

/* Samples begin to end - 1 in micro-batches of at most `micro`, up to the reduction. */
static void accumulate(const training *t, int64_t begin, int64_t end, int64_t micro, masking masked) {
    int64_t targets = 0;
    for (int64_t i = begin; i < end; i++) targets += !masked(i);
    OK(ctx, an_step_begin(t->stepper, targets));
    for (int64_t at = begin; at < end; at += micro) {
        const int64_t count = end - at < micro ? end - at : micro;
        set_samples(t, at, count, masked);
        OK(ctx, an_step_micro_batch(t->stepper, 0, count));
    }
    OK(ctx, an_step_reduce(t->stepper));
}

static an_step_metrics finish(const training *t) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_step_unscale(t->stepper));
    OK(ctx, an_step_clip(t->stepper));
    OK(ctx, an_step_update(t->stepper));
    OK(ctx, an_step_schedule(t->stepper));
    OK(ctx, an_step_end(t->stepper, &metrics));
    return metrics;
}

/* All of one part of the parameters, one after another. */
enum { MOST = 256 };
typedef struct {
    int64_t count;
    float numbers[MOST];
} part;

static part read_part(const training *t, an_param_part which) {
    part p = {0};
    for (int64_t i = 0; i < an_params_count(t->params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(t->params, i, &info));
        assert_true(p.count + info.elements <= MOST);
        an_array array = array_of(p.numbers + p.count, AN_DTYPE_F32, info.ndims, info.dims);
        OK(ctx, an_params_get(t->params, info.name, which, &array));
        p.count += info.elements;
    }
    assert_true(p.count > 0);
    return p;
}

static double distance(const part *a, const part *b) {
    double sum = 0;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) sum += pow((double)a->numbers[i] - (double)b->numbers[i], 2);
    return sqrt(sum);
}

/* ---- gradients ---- */

/* Nothing of a step's gradients is in those of the next: there is nothing that would have to be set to zero. */
static void test_gradients_of_a_step_are_its_own(void **state) {
    choices c = usual();
    training twice, once;
    (void)state;
    c.step.rate = 0; /* both steps see the same weights */
    training_create(&twice, make_mlp(AN_LOSS_CROSS_ENTROPY), c);
    training_create(&once, make_mlp(AN_LOSS_CROSS_ENTROPY), c);
    accumulate(&twice, 0, 8, 3, mask_none);
    const part first = read_part(&twice, AN_PART_GRADIENT);
    finish(&twice);
    accumulate(&twice, 8, 16, 3, mask_none);
    accumulate(&once, 8, 16, 3, mask_none);
    const part second = read_part(&twice, AN_PART_GRADIENT), alone = read_part(&once, AN_PART_GRADIENT);
    assert_memory_equal(second.numbers, alone.numbers, (size_t)alone.count * sizeof *alone.numbers);
    assert_true(distance(&first, &second) > 1e-3);
    training_destroy(&twice);
    training_destroy(&once);
}

/* Twelve samples at once, by four, by five with a short rest, and one by one: one limit for their sum. */
static void test_clipping_is_once_a_step(void **state) {
    static const int64_t cuts[] = {12, 4, 5, 1};
    const double limit = 0.05;
    part whole = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        choices c = descent();
        training t;
        c.step.clip_norm = limit;
        training_create(&t, make_mlp(AN_LOSS_CROSS_ENTROPY), c);
        const part before = read_part(&t, AN_PART_WEIGHT);
        accumulate(&t, 0, 12, cuts[i], mask_none);
        const an_step_metrics metrics = finish(&t);
        const part after = read_part(&t, AN_PART_WEIGHT);
        if (i == 0) whole = after;
        assert_true(metrics.norm > 2 * limit); /* as it was before clipping */
        assert_true(fabs(distance(&before, &after) - limit) < 1e-3 * limit);
        assert_true(distance(&whole, &after) < 1e-6);
        training_destroy(&t);
    }
}

/* ---- targets ---- */

static void check_cuts(an_graph *(*make)(void), int64_t samples, masking masked) {
    static const int64_t cuts[] = {SAMPLES, 3, 2, 1};
    part whole = {0};
    double loss = 0;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        training t;
        training_create(&t, make(), descent());
        accumulate(&t, 0, samples, cuts[i], masked);
        const part gradients = read_part(&t, AN_PART_GRADIENT);
        const an_step_metrics metrics = finish(&t);
        if (i == 0) whole = gradients, loss = metrics.loss;
        assert_true(isfinite(metrics.loss) && fabs(metrics.loss - loss) < 1e-6);
        assert_true(distance(&whole, &gradients) < 1e-6 && distance(&whole, &(part){.count = whole.count}) > 1e-2);
        training_destroy(&t);
    }
}

static an_graph *make_smoothed(void) {
    an_cross_entropy_options options;
    an_cross_entropy_options_init(&options, sizeof options);
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "smoothed"));
    const an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, INPUTS));
    an_value targets = an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(batch));
    options.label_smoothing = 0.2;
    an_graph_set_loss(g, an_cross_entropy(g, an_linear(g, x, "head", CLASSES), targets, &options), targets);
    return g;
}

/* Smoothing has the step's divisor too, also where micro-batches have different numbers of targets. */
static void test_label_smoothing_agrees_over_cuts(void **state) {
    (void)state;
    check_cuts(make_smoothed, 11, mask_thirds);
}

static an_graph *make_classifier(void) {
    return make_mlp(AN_LOSS_CROSS_ENTROPY);
}

/* By twos, the third micro-batch has no target at all: no division by its zero, no trace of it. */
static void test_masked_micro_batch_adds_nothing(void **state) {
    training with, without;
    (void)state;
    check_cuts(make_classifier, 10, mask_middle);
    training_create(&with, make_classifier(), descent());
    training_create(&without, make_classifier(), descent());
    accumulate(&with, 0, 6, 2, mask_middle);
    accumulate(&without, 0, 4, 2, mask_none);
    const part a = read_part(&with, AN_PART_GRADIENT), b = read_part(&without, AN_PART_GRADIENT);
    assert_true(distance(&a, &b) == 0);
    training_destroy(&with);
    training_destroy(&without);
}

/* ---- rates ---- */

static void plant(const training *t, float value) {
    float weights[6 * INPUTS];
    an_array array = array_of(weights, AN_DTYPE_F32, 2, (const int64_t[]){6, INPUTS});
    OK(ctx, an_params_get(t->params, "hidden.0.weight", AN_PART_WEIGHT, &array));
    weights[3] = value;
    OK(ctx, an_params_set(t->params, "hidden.0.weight", AN_PART_WEIGHT, &array));
}

/* Steps 2 and 3 are skipped: the fourth is made with the rate that the second would have had. */
static void test_skipped_step_keeps_the_rate(void **state) {
    choices c = usual();
    training t;
    (void)state;
    c.schedule.type = AN_SCHEDULE_LINEAR;
    c.schedule.steps = 10;
    c.step.rate = 1e-2;
    c.step.scales = true;
    training_create(&t, make_classifier(), c);
    for (int step = 0; step < 6; step++) {
        const bool bad = step == 1 || step == 2;
        const int made = step < 3 ? (step > 0) : step - 2; /* steps before this one that were not skipped */
        if (step == 1) plant(&t, INFINITY);
        if (step == 3) plant(&t, 0.1F);
        assert_true(fabs(an_stepper_rate(t.stepper) - 1e-2 * (1 - made / 10.0)) < 1e-15);
        accumulate(&t, 0, 8, 8, mask_none);
        const an_step_metrics metrics = finish(&t);
        assert_int_equal(metrics.skipped, bad);
        assert_int_equal(metrics.step, step + 1);
    }
    assert_int_equal(an_optimizer_updates(t.optimizer), 4);
    training_destroy(&t);
}

/* ---- precision ---- */

static void set_numbers(const training *t, int64_t count) {
    float x[SAMPLES * INPUTS], y[SAMPLES * CLASSES];
    for (int64_t i = 0; i < count * INPUTS; i++) x[i] = (float)noise((uint64_t)i);
    for (int64_t i = 0; i < count * CLASSES; i++) y[i] = i % 2 ? 3 : -3;
    const an_array inputs = array_of(x, AN_DTYPE_F32, 2, (const int64_t[]){count, INPUTS}),
                   targets = array_of(y, AN_DTYPE_F32, 2, (const int64_t[]){count, CLASSES});
    OK(ctx, an_program_bind(t->program, "batch", count));
    OK(ctx, an_program_set_input(t->program, "x", &inputs));
    OK(ctx, an_program_set_input(t->program, "targets", &targets));
}

/* Errors of 3 have gradients of 6, times 65,536: too large for f16 as a sum, and well inside it once divided by the
 * targets. */
static void test_f16_starts_without_overflow(void **state) {
    (void)state;
    for (int divided = 0; divided < 2; divided++) {
        choices c = usual();
        training t;
        c.precision = AN_DTYPE_F16;
        c.step.scales = true;
        training_create(&t, make_mlp(AN_LOSS_SQUARED), c);
        OK(ctx, an_step_begin(t.stepper, divided ? SAMPLES * CLASSES : 1));
        set_numbers(&t, SAMPLES);
        OK(ctx, an_step_micro_batch(t.stepper, 0, SAMPLES));
        OK(ctx, an_step_reduce(t.stepper));
        const an_step_metrics metrics = finish(&t);
        assert_true(metrics.scale == 65536);
        assert_int_equal(metrics.skipped, !divided);
        training_destroy(&t);
    }
}

/* Twenty updates of 1e-5 move most weights by less than half of what bf16 can tell apart, and by as much as in f32. */
static void test_small_updates_survive_bf16(void **state) {
    part before = {0}, after[2];
    int64_t moved = 0;
    (void)state;
    for (int low = 0; low < 2; low++) {
        choices c = usual();
        training t;
        c.precision = low ? AN_DTYPE_BF16 : AN_DTYPE_NONE;
        c.step.rate = 1e-5;
        training_create(&t, make_classifier(), c);
        before = read_part(&t, AN_PART_WEIGHT);
        for (int step = 0; step < 20; step++) {
            accumulate(&t, 0, SAMPLES, SAMPLES, mask_none);
            finish(&t);
        }
        after[low] = read_part(&t, AN_PART_WEIGHT);
        training_destroy(&t);
    }
    for (int64_t i = 0; i < before.count; i++) {
        const double weight = (double)before.numbers[i], change = fabs((double)after[1].numbers[i] - weight);
        const double apart = fabs((double)after[1].numbers[i] - (double)after[0].numbers[i]);
        moved += change > 1e-4 && change < fabs(weight) * 0x1p-9 && apart < 1e-5;
    }
    assert_true(moved > before.count / 2);
}

/* ---- parts that belong together ---- */

/* An optimizer that holds other parameters than those that train would update nothing: it is refused. */
static void test_optimizer_of_other_parameters_is_refused(void **state) {
    an_stepper *stepper = NULL;
    training a, b;
    (void)state;
    training_create(&a, make_classifier(), usual());
    training_create(&b, make_classifier(), usual());
    FAILS(ctx, an_stepper_create(&stepper, a.program, b.optimizer, NULL, NULL), AN_ERR_ARGUMENT,
          "the program and the optimizer have different parameters");
    assert_null(stepper);
    training_destroy(&a);
    training_destroy(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_of_a_step_are_its_own),
        cmocka_unit_test(test_clipping_is_once_a_step),
        cmocka_unit_test(test_label_smoothing_agrees_over_cuts),
        cmocka_unit_test(test_masked_micro_batch_adds_nothing),
        cmocka_unit_test(test_skipped_step_keeps_the_rate),
        cmocka_unit_test(test_f16_starts_without_overflow),
        cmocka_unit_test(test_small_updates_survive_bf16),
        cmocka_unit_test(test_optimizer_of_other_parameters_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

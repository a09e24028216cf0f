/* Mixup in training: the loss of a step is that of the blended samples, by its definition; classes are mixed in the
 * loss and numbers in the data; how a step is cut does not matter. */
#include <math.h>

#include "data/mixup.h"
#include "train/trainer.h"

#include "train/array_trainer.h"

enum { INPUTS = 4, CLASSES = 3, OUTPUTS = 3, SAMPLES = 24, SEED = 3 };

static const double alpha = 0.7;

/* What there is, and what it is after mixing in epoch 0. */
static double inputs[SAMPLES][INPUTS], numbers[SAMPLES][OUTPUTS], mixed[SAMPLES][INPUTS],
    mixed_numbers[SAMPLES][OUTPUTS];
static int32_t classes[SAMPLES];

static void make_samples(void) {
    for (int i = 0; i < SAMPLES; i++) {
        classes[i] = class_of(i);
        for (int k = 0; k < INPUTS; k++) inputs[i][k] = sin(i * 7 + k * 3) + classes[i];
        for (int k = 0; k < OUTPUTS; k++) numbers[i][k] = cos(i * 5 + k);
    }
    for (int i = 0; i < SAMPLES; i++) {
        const an_mix mix = an_mix_draw(alpha, SEED, 0, i, SAMPLES);
        const double share = (double)mix.share / AN_MIX_WHOLE;
        for (int k = 0; k < INPUTS; k++) mixed[i][k] = share * inputs[i][k] + (1 - share) * inputs[mix.partner][k];
        for (int k = 0; k < OUTPUTS; k++)
            mixed_numbers[i][k] = share * numbers[i][k] + (1 - share) * numbers[mix.partner][k];
    }
}

/* ---- runs ---- */

typedef struct {
    const void *inputs, *targets;
    int64_t count, micro, leaves;
    const double *weights;
    double alpha;
    double smoothing;
    bool numbers; /* as targets */
    int threads;
} setting;

typedef struct {
    double loss, norm, evaluated;
} outcome;

/* The first step, of all samples. */
static outcome train(const setting *s) {
    const int64_t dims[] = {s->count, INPUTS}, target_dims[] = {s->count, OUTPUTS};
    void *of_targets = (void *)(uintptr_t)s->targets;
    const an_array of_inputs = array_of((void *)(uintptr_t)s->inputs, AN_DTYPE_F64, 2, dims),
                   wanted = s->numbers ? array_of(of_targets, AN_DTYPE_F64, 2, target_dims)
                                       : array_of(of_targets, AN_DTYPE_I32, 1, dims);
    const an_batch_options batch = {.size = sizeof batch, .global = s->count, .micro = s->micro, .leaves = s->leaves};
    const an_augment_options augment = {.size = sizeof augment, .mixup = s->alpha};
    an_trainer_options options = few_steps(1, &batch);
    an_graph *graph = f64_mlp(s->numbers ? AN_LOSS_SQUARED : AN_LOSS_CROSS_ENTROPY);
    options.seed = SEED;
    options.augment = &augment;
    options.loader_threads = s->threads;
    options.class_weights = s->weights;
    options.class_weight_count = s->weights ? CLASSES : 0;
    if (s->smoothing > 0) OK(ctx, an_graph_set_label_smoothing(graph, s->smoothing));
    array_trainer a = array_trainer_create(graph, of_inputs, wanted, &options);
    const an_evaluation evaluation = array_trainer_evaluate(&a);
    const an_step_metrics metrics = array_trainer_step(&a);
    array_trainer_destroy(&a);
    return (outcome){metrics.loss, metrics.norm, evaluation.loss};
}

static void check_close(double one, double other, const char *what) {
    if (!(fabs(one / other - 1) < 1e-11)) fail_msg("%s: %.17g is not %.17g", what, one, other);
}

/* ---- tests ---- */

static void test_numbers(void **state) {
    (void)state;
    make_samples();
    const setting mixes = {inputs, numbers, SAMPLES, .alpha = alpha, .numbers = true},
                  made = {mixed, mixed_numbers, SAMPLES, .numbers = true},
                  plain = {inputs, numbers, SAMPLES, .numbers = true};
    const outcome a = train(&mixes), b = train(&made), c = train(&plain);
    check_close(a.loss, b.loss, "loss");
    check_close(a.norm, b.norm, "norm");
    check_close(a.evaluated, c.evaluated, "evaluations are not mixed");
    assert_true(fabs(a.loss / c.loss - 1) > 1e-3);
}

/* The loss of each blended sample alone, for each of its two classes. */
static void check_classes(const double *weights, double smoothing) {
    double sum = 0, divisor = 0;
    for (int i = 0; i < SAMPLES; i++) {
        const an_mix mix = an_mix_draw(alpha, SEED, 0, i, SAMPLES);
        const int32_t of[2] = {classes[i], classes[mix.partner]};
        for (int k = 0; k < 2; k++) {
            const setting alone = {mixed[i], &of[k], 1, .smoothing = smoothing};
            const double share = (double)mix.share / AN_MIX_WHOLE;
            const double weight = (k == 0 ? share : 1 - share) * (weights ? weights[of[k]] : 1);
            sum += weight * train(&alone).loss;
            divisor += weight;
        }
    }
    const setting mixes = {inputs, classes, SAMPLES, .alpha = alpha, .weights = weights, .smoothing = smoothing};
    check_close(train(&mixes).loss, sum / divisor, "loss");
}

static void test_classes(void **state) {
    (void)state;
    make_samples();
    check_classes(NULL, 0);
    check_classes(NULL, 0.1);
    check_classes((const double[]){1, 8, 2}, 0);
    const setting mixes = {inputs, classes, SAMPLES, .alpha = alpha}, plain = {inputs, classes, SAMPLES, .alpha = 0};
    check_close(train(&mixes).evaluated, train(&plain).evaluated, "evaluations are not mixed");
}

static void test_cuts_do_not_matter(void **state) {
    (void)state;
    make_samples();
    setting s = {inputs, classes, SAMPLES, .alpha = alpha};
    const outcome whole = train(&s);
    for (s.micro = 1; s.micro < 9; s.micro += 3)
        for (s.leaves = 1; s.leaves < 9; s.leaves *= 2) {
            s.threads = (int)s.leaves / 2;
            const outcome cut = train(&s);
            check_close(cut.loss, whole.loss, "loss");
            check_close(cut.norm, whole.norm, "norm");
        }
}

/* Samples that the program hands over have no partners. */
static void test_steps_on_own_samples(void **state) {
    const int64_t dims[] = {SAMPLES, INPUTS};
    const an_array of_inputs = array_of(inputs, AN_DTYPE_F64, 2, dims),
                   of_classes = array_of(classes, AN_DTYPE_I32, 1, dims);
    const an_batch_options batch = {.size = sizeof batch, .global = SAMPLES};
    double losses[2];
    (void)state;
    make_samples();
    for (int i = 0; i < 2; i++) {
        const an_augment_options augment = {.size = sizeof augment, .mixup = i};
        an_trainer_options options = few_steps(1, &batch);
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        options.augment = &augment;
        array_trainer a = array_trainer_create(f64_mlp(AN_LOSS_CROSS_ENTROPY), of_inputs, of_classes, &options);
        OK(ctx, an_trainer_step_on(a.trainer, SAMPLES, &of_inputs, &of_classes, &metrics));
        losses[i] = metrics.loss;
        array_trainer_destroy(&a);
    }
    check_close(losses[1], losses[0], "loss");
}

static void refuse(an_dtype dtype, int target_dims, double mixup, bool sample_mean, const char *words) {
    static int32_t tokens[SAMPLES][INPUTS];
    const int64_t dims[] = {SAMPLES, INPUTS};
    const an_array of_inputs = array_of(dtype == AN_DTYPE_I32 ? (void *)tokens : (void *)inputs, dtype, 2, dims),
                   of_targets =
                       array_of(target_dims == 2 ? (void *)tokens : (void *)classes, AN_DTYPE_I32, target_dims, dims);
    const an_batch_options batch = {.size = sizeof batch, .global = SAMPLES};
    const an_augment_options augment = {.size = sizeof augment, .mixup = mixup};
    an_trainer_options options = few_steps(1, &batch);
    array_trainer a;
    options.augment = &augment;
    options.sample_mean = sample_mean;
    FAILS(ctx, array_trainer_try(&a, f64_mlp(AN_LOSS_CROSS_ENTROPY), of_inputs, of_targets, &options), AN_ERR_ARGUMENT,
          words);
    array_trainer_destroy(&a);
}

static void test_what_is_refused(void **state) {
    (void)state;
    make_samples();
    refuse(AN_DTYPE_F64, 1, -1, false, "mixup is -1; it must be 0, or between 0.001 and 1000");
    refuse(AN_DTYPE_F64, 1, NAN, false, "mixup is");
    refuse(AN_DTYPE_F64, 1, 1e-9, false, "mixup is 1e-09");
    refuse(AN_DTYPE_I32, 1, 1, false, "'inputs' of the data is a list of whole numbers, such as tokens");
    refuse(AN_DTYPE_F64, 2, 1, false, "'targets' of the data is a list of whole numbers, such as tokens");
    refuse(AN_DTYPE_F64, 1, 1, true, "mixup and a mean over samples exclude each other");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_cuts_do_not_matter),
        cmocka_unit_test(test_steps_on_own_samples),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

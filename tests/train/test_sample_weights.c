/* Weights of samples: a sample of weight 2 is trained on as if it were there twice; only ratios matter, and how a step
 * is cut into micro-batches and leaves does not. Mixup is the same as two samples with their shares as weights. */
#include <math.h>

#include "data/mixup.h"
#include "train/trainer.h"

#include "train/array_trainer.h"

enum { INPUTS = 4, CLASSES = 3, OUTPUTS = 3, SAMPLES = 24, MOST = 4 * SAMPLES, SEED = 3 };

static double inputs[MOST][INPUTS], numbers[MOST][OUTPUTS], weights[MOST];
static int32_t classes[MOST];

static void make_sample(int64_t at, int i) {
    classes[at] = class_of(i);
    for (int k = 0; k < INPUTS; k++) inputs[at][k] = sin(i * 7 + k * 3) + classes[at];
    for (int k = 0; k < OUTPUTS; k++) numbers[at][k] = cos(i * 5 + k);
    weights[at] = 1;
}

/* Each sample as often as its weight says; how many there are. */
static int64_t make_copies(void) {
    int64_t count = 0;
    for (int i = 0; i < SAMPLES; i++)
        for (int copy = 0; copy < i % 4; copy++) make_sample(count++, i);
    return count;
}

static int64_t make_weighed(double factor) {
    for (int i = 0; i < SAMPLES; i++) {
        make_sample(i, i);
        weights[i] = factor * (i % 4);
    }
    return SAMPLES;
}

/* ---- runs ---- */

typedef struct {
    int64_t count, micro, leaves;
    const double *class_weights;
    double mixup;
    bool weighs, numbers; /* numbers as targets */
} setting;

typedef struct {
    double loss, norm;
} outcome;

static an_status make_trainer(const setting *s, an_graph **graph, an_dataset **dataset, an_trainer **trainer) {
    const int64_t dims[] = {s->count, INPUTS}, target_dims[] = {s->count, OUTPUTS};
    const an_array arrays[] = {array_of(inputs, AN_DTYPE_F64, 2, dims),
                               s->numbers ? array_of(numbers, AN_DTYPE_F64, 2, target_dims)
                                          : array_of(classes, AN_DTYPE_I32, 1, dims),
                               array_of(weights, AN_DTYPE_F64, 1, dims)};
    const char *const names[] = {"inputs", "targets", "weights"};
    const an_array_source source = {DEFAULTS(an_array_source), .array_count = 3, .target_count = 2, .arrays = arrays,
                                    .names = names};
    const an_batch_options batch = {.size = sizeof batch, .global = s->count, .micro = s->micro, .leaves = s->leaves};
    an_augment_options augment;
    an_augment_options_init(&augment, sizeof augment);
    an_mlp_options model = small_mlp_options();
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    model.dtype = AN_DTYPE_F64;
    if (s->numbers) model.loss = AN_LOSS_SQUARED;
    augment.mixup = s->mixup;
    options.augment = &augment;
    options.batch = &batch;
    options.seed = SEED;
    options.clip_norm = 0;
    options.class_weights = s->class_weights;
    options.class_weight_count = s->class_weights ? CLASSES : 0;
    options.sample_weights = s->weighs ? "weights" : NULL;
    OK(ctx, an_model_mlp(graph, ctx, &model));
    OK(ctx, an_dataset_create_arrays(dataset, ctx, &source));
    return an_trainer_create(trainer, *graph, *dataset, NULL, &options);
}

/* The first step, of all samples. */
static outcome train(const setting *s) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_graph *graph = NULL;
    an_dataset *dataset = NULL;
    an_trainer *trainer = NULL;
    OK(ctx, make_trainer(s, &graph, &dataset, &trainer));
    OK(ctx, an_trainer_step(trainer, &metrics));
    an_trainer_destroy(&trainer);
    an_graph_destroy(&graph);
    an_dataset_destroy(&dataset);
    return (outcome){metrics.loss, metrics.norm};
}

static void check_same(outcome a, outcome b) {
    if (!(fabs(a.loss / b.loss - 1) < 1e-10 && fabs(a.norm / b.norm - 1) < 1e-10))
        fail_msg("loss %.17g and norm %.17g are not %.17g and %.17g", a.loss, a.norm, b.loss, b.norm);
}

/* ---- tests ---- */

static void test_a_weight_is_a_number_of_copies(void **state) {
    static const double of_classes[] = {1, 5, 2};
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        setting s = {.numbers = kind == 1, .class_weights = kind == 2 ? of_classes : NULL};
        s.count = make_copies();
        const outcome copied = train(&s);
        s.weighs = true;
        check_same(train(&s), copied); /* all are 1 */
        s.count = make_weighed(1);
        check_same(train(&s), copied);
        s.count = make_weighed(1e-3);
        check_same(train(&s), copied);
        s.count = make_weighed(0x1p1022); /* the largest would be infinite if they were added */
        check_same(train(&s), copied);
        for (s.micro = 1; s.micro < 9; s.micro += 3)
            for (s.leaves = 1; s.leaves < 9; s.leaves *= 2) check_same(train(&s), copied);
        s.weighs = false;
        assert_true(fabs(train(&s).loss / copied.loss - 1) > 1e-6);
    }
}

/* With mixup, each sample weighs what its two parts do. */
static void test_mixup(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        static double kept[SAMPLES][INPUTS], kept_numbers[SAMPLES][OUTPUTS];
        setting s = {.count = make_weighed(1), .mixup = 0.7, .weighs = true, .numbers = kind == 1};
        const outcome mixed = train(&s);
        memcpy(kept, inputs, sizeof kept);
        memcpy(kept_numbers, numbers, sizeof kept_numbers);
        for (int i = 0; i < SAMPLES; i++) {
            const an_mix mix = an_mix_draw(0.7, SEED, 0, i, SAMPLES);
            const double share = (double)mix.share / AN_MIX_WHOLE;
            for (int half = 0; half < 2; half++) { /* of numbers, both halves are the same */
                const int64_t at = half * SAMPLES + i, of = half ? mix.partner : i;
                classes[at] = class_of((int)of);
                weights[at] = (half ? 1 - share : share) * (double)(of % 4);
                for (int k = 0; k < INPUTS; k++)
                    inputs[at][k] = share * kept[i][k] + (1 - share) * kept[mix.partner][k];
                for (int k = 0; k < OUTPUTS; k++)
                    numbers[at][k] = share * kept_numbers[i][k] + (1 - share) * kept_numbers[mix.partner][k];
            }
        }
        s.count = 2 * SAMPLES;
        s.mixup = 0;
        check_same(mixed, train(&s));
    }
}

/* A step whose weights are all 0: the loss is 0, and nothing moves. */
static void test_nothing_weighs(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_graph *graph = NULL;
    an_dataset *dataset = NULL;
    an_trainer *trainer = NULL;
    (void)state;
    const setting s = {.count = make_weighed(1), .weighs = true};
    OK(ctx, make_trainer(&s, &graph, &dataset, &trainer));
    for (int i = 0; i < SAMPLES; i++) weights[i] = 0; /* later changes of an array are seen */
    OK(ctx, an_trainer_step(trainer, &metrics));
    assert_true(metrics.loss == 0 && metrics.norm == 0);
    an_trainer_destroy(&trainer);
    an_graph_destroy(&graph);
    an_dataset_destroy(&dataset);
}

static void refuse(double weight, const char *words) {
    an_graph *graph = NULL;
    an_dataset *dataset = NULL;
    an_trainer *trainer = NULL;
    const setting s = {.count = make_weighed(weight == 0 ? 0 : 1), .weighs = true};
    if (weight != 0) weights[5] = weight;
    const an_status status = make_trainer(&s, &graph, &dataset, &trainer);
    FAILS(ctx, status, weight == weight && weight > -INFINITY ? AN_ERR_ARGUMENT : AN_ERR_NONFINITE, words);
    an_graph_destroy(&graph);
    an_dataset_destroy(&dataset);
}

static void test_what_is_refused(void **state) {
    (void)state;
    refuse(-1, "'weights' has the weight -1; weights of samples cannot be below 0");
    refuse(0, "every weight of a sample in 'weights' is 0");
    refuse(NAN, "which is not finite");
    refuse(-INFINITY, "which is not finite");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_weight_is_a_number_of_copies),
        cmocka_unit_test(test_mixup),
        cmocka_unit_test(test_nothing_weighs),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

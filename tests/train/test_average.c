/* The moving average of the weights: its bits, what evaluates it, and that training does not notice. */
#include "train/trainer.h"

#include <math.h>

#include "anneal/predict.h"
#include "models/small_models.h" /* last, as its ctx would be shadowed */

enum { INPUTS = 4, CLASSES = 3, SAMPLES = 48, BATCH = 12, STEPS = 6, MOST = 4096, WIDE = 40 };

static const double decay = 0.9;

static double inputs[SAMPLES][INPUTS];
static float narrow[SAMPLES][INPUTS];
static int32_t classes[SAMPLES];

static an_dataset *make_dataset(an_dtype dtype) {
    const int64_t dims[] = {SAMPLES, INPUTS};
    an_dataset *dataset = NULL;
    for (int i = 0; i < SAMPLES; i++) {
        classes[i] = i * i % CLASSES;
        for (int k = 0; k < INPUTS; k++) narrow[i][k] = (float)(inputs[i][k] = sin(i * 7 + k * 3) + classes[i]);
    }
    const an_array arrays[] = {array_of(dtype == AN_DTYPE_F64 ? (void *)inputs : (void *)narrow, dtype, 2, dims),
                               array_of(classes, AN_DTYPE_I32, 1, dims)};
    const an_array_source source = {DEFAULTS(an_array_source), .array_count = 2, .arrays = arrays};
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    return dataset;
}

static an_trainer_options options_of(double ema_decay) {
    static an_batch_options batch;
    an_trainer_options o;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = BATCH;
    an_trainer_options_init(&o, sizeof o);
    o.batch = &batch;
    o.steps = STEPS;
    o.rate = 0.03;
    o.owns = true;
    o.ema_decay = ema_decay;
    return o;
}

/* A model of more than one page a parameter. */
static an_trainer *make_trainer(an_dtype dtype, const an_trainer_options *options) {
    static const int64_t hidden[] = {WIDE, WIDE};
    an_mlp_options model = small_mlp_options();
    an_graph *graph = NULL;
    an_trainer *trainer = NULL;
    model.hidden = hidden;
    model.dtype = dtype;
    OK(ctx, an_model_mlp(&graph, ctx, &model));
    OK(ctx, an_trainer_create(&trainer, graph, make_dataset(dtype), make_dataset(dtype), options));
    return trainer;
}

static an_evaluation evaluate(an_trainer *trainer) {
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    OK(ctx, an_trainer_evaluate(trainer, &e));
    return e;
}

static const an_stored *entry_of(const an_trainer *t, size_t index) {
    return &t->params->entries[index];
}

/* A parameter's part, as bytes. */
static const char *part_of(const an_trainer *t, size_t index, an_param_part part) {
    const char *base = an_params_part(t->params, entry_of(t, index), part);
    return base ? base + entry_of(t, index)->offset : NULL;
}

static size_t bytes_of(const an_trainer *t, size_t index) {
    return (size_t)entry_of(t, index)->elements * an_dtype_size(entry_of(t, index)->dtype);
}

/* ---- its bits ---- */

static void follow_f32(float *average, const float *weights, size_t count, bool first) {
    const float rest = (float)(1 - decay);
    for (size_t i = 0; i < count; i++) {
        const float difference = weights[i] - average[i], part = rest * difference;
        average[i] = first ? weights[i] : average[i] + part;
    }
}

static void follow_f64(double *average, const double *weights, size_t count, bool first) {
    const double rest = 1 - decay;
    for (size_t i = 0; i < count; i++) {
        const double difference = weights[i] - average[i], part = rest * difference;
        average[i] = first ? weights[i] : average[i] + part;
    }
}

static void check_bits(an_dtype dtype) {
    static double expected[8][MOST];
    const an_trainer_options o = options_of(decay);
    an_trainer *t = make_trainer(dtype, &o);
    assert_true(t->params->parameter_count <= 8);
    for (size_t i = 0; i < t->params->parameter_count; i++) /* before the first update it is the weights */
        assert_ptr_equal(part_of(t, i, AN_PART_AVERAGE), part_of(t, i, AN_PART_WEIGHT));
    for (int step = 0; step < STEPS; step++) {
        OK(ctx, an_trainer_step(t, NULL));
        for (size_t i = 0; i < t->params->parameter_count; i++) {
            const size_t count = (size_t)entry_of(t, i)->elements;
            assert_true(count <= MOST);
            if (dtype == AN_DTYPE_F64)
                follow_f64(expected[i], (const double *)(const void *)part_of(t, i, AN_PART_WEIGHT), count, step == 0);
            else
                follow_f32((float *)expected[i], (const float *)(const void *)part_of(t, i, AN_PART_WEIGHT), count,
                           step == 0);
            assert_memory_equal(part_of(t, i, AN_PART_AVERAGE), expected[i], bytes_of(t, i));
        }
    }
    assert_memory_not_equal(part_of(t, 0, AN_PART_AVERAGE), part_of(t, 0, AN_PART_WEIGHT), bytes_of(t, 0));
    an_trainer_destroy(&t);
}

static void test_bits_are_those_of_a_plain_loop(void **state) {
    (void)state;
    check_bits(AN_DTYPE_F32);
    check_bits(AN_DTYPE_F64);
}

/* ---- evaluations ---- */

/* Weights of `to` become the parts of `from`. */
static void copy_weights(an_trainer *to, const an_trainer *from, an_param_part part) {
    for (size_t i = 0; i < from->params->parameter_count; i++) {
        const an_stored *e = entry_of(from, i);
        const an_array array = array_of((void *)(uintptr_t)part_of(from, i, part), e->dtype, e->ndims, e->dims);
        OK(ctx, an_params_set(to->params, e->name, AN_PART_WEIGHT, &array));
    }
}

static void check_evaluation(an_dtype precision) {
    an_trainer_options o = options_of(decay), plain = options_of(0), raw = options_of(decay);
    o.precision = plain.precision = raw.precision = precision;
    raw.weights = AN_MODEL_WEIGHTS_RAW;
    an_trainer *t = make_trainer(AN_DTYPE_F32, &o), *other = make_trainer(AN_DTYPE_F32, &plain),
               *of_weights = make_trainer(AN_DTYPE_F32, &raw);
    assert_true(evaluate(t).loss == evaluate(other).loss); /* of the weights that all begin with */
    for (int i = 0; i < STEPS - 1; i++) {
        OK(ctx, an_trainer_step(t, NULL));
        OK(ctx, an_trainer_step(of_weights, NULL));
    }
    copy_weights(other, t, AN_PART_AVERAGE);
    const double average = evaluate(other).loss;
    copy_weights(other, t, AN_PART_WEIGHT);
    const double weights = evaluate(other).loss;
    assert_true(average != weights);
    assert_true(evaluate(t).loss == average);
    assert_true(evaluate(of_weights).loss == weights);
    an_trainer_destroy(&t);
    an_trainer_destroy(&other);
    an_trainer_destroy(&of_weights);
}

static void test_evaluations_use_the_average(void **state) {
    (void)state;
    check_evaluation(AN_DTYPE_NONE);
    check_evaluation(AN_DTYPE_BF16);
}

/* With low copies too: a step after an evaluation reads those of the weights. */
static void check_training(an_dtype precision) {
    char hashes[3][AN_HASH_TEXT];
    for (int run = 0; run < 3; run++) {
        an_trainer_options o = options_of(run < 2 ? decay : 0);
        o.precision = precision;
        an_trainer *t = make_trainer(AN_DTYPE_F32, &o);
        for (int i = 0; i < STEPS; i++) {
            OK(ctx, an_trainer_step(t, NULL));
            if (run > 0) continue;
            const size_t bytes = t->params->low ? (size_t)an_params_low_bytes(&t->params->sizes, precision) : 0;
            void *low = bytes ? malloc(bytes) : NULL;
            if (bytes) memcpy(low, t->params->low, bytes);
            (void)evaluate(t);
            if (bytes) {
                OK(ctx, an_params_refresh(t->params));
                assert_memory_equal(t->params->low, low, bytes);
            }
            free(low);
        }
        OK(ctx, an_trainer_weights_hash(t, hashes[run]));
        an_trainer_destroy(&t);
    }
    assert_string_equal(hashes[0], hashes[1]);
    assert_string_equal(hashes[0], hashes[2]);
}

static void test_training_does_not_notice(void **state) {
    (void)state;
    check_training(AN_DTYPE_NONE);
    check_training(AN_DTYPE_BF16);
}

static void test_predictors_use_the_average(void **state) {
    (void)state;
    const an_trainer_options o = options_of(decay), plain = options_of(0);
    an_trainer *t = make_trainer(AN_DTYPE_F32, &o), *other = make_trainer(AN_DTYPE_F32, &plain);
    an_predictor *predictor = NULL, *expected = NULL;
    float outputs[2][CLASSES];
    for (int i = 0; i < STEPS; i++) OK(ctx, an_trainer_step(t, NULL));
    copy_weights(other, t, AN_PART_AVERAGE);
    OK(ctx, an_predictor_create(&predictor, t, NULL));
    OK(ctx, an_predictor_create(&expected, other, NULL));
    OK(ctx, an_predictor_run_f32(predictor, 1, narrow[0], outputs[0]));
    OK(ctx, an_predictor_run_f32(expected, 1, narrow[0], outputs[1]));
    assert_memory_equal(outputs[0], outputs[1], sizeof outputs[0]);
    an_predictor_destroy(&predictor);
    an_predictor_destroy(&expected);
    an_trainer_destroy(&t);
    an_trainer_destroy(&other);
}

/* ---- steps that are skipped ---- */

static void test_a_skipped_step_leaves_it(void **state) {
    (void)state;
    static float bad[BATCH][INPUTS];
    static char before[MOST * sizeof(float)];
    const int64_t dims[] = {BATCH, INPUTS};
    an_trainer_options o = options_of(decay);
    o.skips = true;
    an_trainer *t = make_trainer(AN_DTYPE_F32, &o);
    const an_array samples = array_of(bad, AN_DTYPE_F32, 2, dims), targets = array_of(classes, AN_DTYPE_I32, 1, dims);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    for (int i = 0; i < BATCH; i++) bad[i][0] = i ? 0 : INFINITY;
    OK(ctx, an_trainer_step_on(t, BATCH, &samples, &targets, &metrics));
    assert_true(metrics.skipped && !t->params->average.begun);
    OK(ctx, an_trainer_step(t, NULL));
    OK(ctx, an_trainer_step(t, NULL));
    memcpy(before, part_of(t, 1, AN_PART_AVERAGE), bytes_of(t, 1));
    OK(ctx, an_trainer_step_on(t, BATCH, &samples, &targets, &metrics));
    assert_true(metrics.skipped);
    assert_memory_equal(part_of(t, 1, AN_PART_AVERAGE), before, bytes_of(t, 1));
    an_trainer_destroy(&t);
}

/* ---- what a program sets, and what is refused ---- */

static void test_it_can_be_set(void **state) {
    (void)state;
    const an_trainer_options o = options_of(decay), plain = options_of(0);
    an_trainer *t = make_trainer(AN_DTYPE_F32, &o), *other = make_trainer(AN_DTYPE_F32, &plain);
    const an_stored *e = entry_of(t, 1);
    float numbers[WIDE];
    for (int i = 0; i < WIDE; i++) numbers[i] = (float)i;
    assert_int_equal(e->elements, WIDE);
    const an_array array = array_of(numbers, AN_DTYPE_F32, 1, e->dims);
    OK(ctx, an_params_set(t->params, e->name, AN_PART_AVERAGE, &array));
    assert_memory_equal(part_of(t, 1, AN_PART_AVERAGE), numbers, sizeof numbers);
    assert_memory_not_equal(part_of(t, 1, AN_PART_WEIGHT), numbers, sizeof numbers);
    assert_memory_equal(part_of(t, 0, AN_PART_AVERAGE), part_of(t, 0, AN_PART_WEIGHT), bytes_of(t, 0));
    FAILS(ctx, an_params_set(other->params, e->name, AN_PART_AVERAGE, &array), AN_ERR_STATE, "does not have this part");
    an_trainer_destroy(&t);
    an_trainer_destroy(&other);
}

static void refuse(double ema_decay, an_model_weights weights, const char *words) {
    an_mlp_options model = small_mlp_options();
    an_graph *graph = NULL;
    an_trainer *trainer = NULL;
    an_dataset *dataset = make_dataset(AN_DTYPE_F32);
    an_trainer_options o = options_of(ema_decay);
    o.weights = weights;
    OK(ctx, an_model_mlp(&graph, ctx, &model));
    FAILS(ctx, an_trainer_create(&trainer, graph, dataset, NULL, &o), AN_ERR_ARGUMENT, words);
    an_graph_destroy(&graph);
    an_dataset_destroy(&dataset);
}

static void test_what_is_refused(void **state) {
    (void)state;
    refuse(1, AN_MODEL_WEIGHTS_AUTO, "ema_decay is 1; it must be above 0 and below 1");
    refuse(-0.5, AN_MODEL_WEIGHTS_AUTO, "ema_decay is -0.5");
    refuse(NAN, AN_MODEL_WEIGHTS_AUTO, "ema_decay is nan");
    refuse(0, AN_MODEL_WEIGHTS_AVERAGE, "keeps no moving average");
    refuse(0.5, (an_model_weights)3, "not a value of an_model_weights");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_are_those_of_a_plain_loop),
        cmocka_unit_test(test_evaluations_use_the_average),
        cmocka_unit_test(test_training_does_not_notice),
        cmocka_unit_test(test_predictors_use_the_average),
        cmocka_unit_test(test_a_skipped_step_leaves_it),
        cmocka_unit_test(test_it_can_be_set),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

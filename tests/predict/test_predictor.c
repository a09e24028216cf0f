/* Prediction: the trainer's numbers, the same alone and in any batch, on any thread, and nothing allocated. */
#include "anneal/models.h"
#include "anneal/predict.h"
#include "anneal/train.h"
#include "models/small_models.h"

enum { INPUTS = 4, OUTPUTS = 3, SAMPLES = 40 };

static float inputs[SAMPLES][INPUTS], targets[SAMPLES][OUTPUTS];

static ledger counted;

static int setup_counted(void **state) {
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < INPUTS; k++) inputs[i][k] = (float)((i * 7 + k * 3) % 13 - 6) / 6;
        for (int k = 0; k < OUTPUTS; k++) targets[i][k] = inputs[i][k] * inputs[i][k + 1];
    }
    return context_with_ledger(&ctx, &counted, 2) != AN_OK;
}

typedef struct {
    an_dataset *dataset;
    an_graph *graph;
    an_trainer *trainer;
} run;

static void run_create(run *r, an_dtype precision) {
    const int64_t input_dims[] = {SAMPLES, INPUTS}, target_dims[] = {SAMPLES, OUTPUTS};
    const an_array arrays[] = {array_of(inputs, AN_DTYPE_F32, 2, input_dims),
                               array_of(targets, AN_DTYPE_F32, 2, target_dims)};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    an_mlp_options model = small_mlp_options();
    an_trainer_options o;
    an_trainer_options_init(&o, sizeof o);
    source.array_count = 2;
    source.arrays = arrays;
    model.loss = AN_LOSS_SQUARED;
    model.batch_norm = true;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = 8;
    o.batch = &batch;
    o.epochs = 4;
    o.rate = 1e-2;
    o.precision = precision;
    OK(ctx, an_dataset_create_arrays(&r->dataset, ctx, &source));
    OK(ctx, an_model_mlp(&r->graph, ctx, &model));
    OK(ctx, an_trainer_create(&r->trainer, r->graph, r->dataset, r->dataset, &o));
}

static void run_destroy(run *r) {
    an_trainer_destroy(&r->trainer);
    an_graph_destroy(&r->graph);
    an_dataset_destroy(&r->dataset);
}

static an_predictor *make_predictor(run *r, int64_t maximum) {
    an_predictor *predictor = NULL;
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    options.max_samples = maximum;
    OK(ctx, an_predictor_create(&predictor, r->trainer, &options));
    return predictor;
}

static void test_same_bits_in_any_batch(void **state) {
    float alone[SAMPLES][OUTPUTS], together[SAMPLES][OUTPUTS];
    run r;
    (void)state;
    run_create(&r, AN_DTYPE_NONE);
    an_predictor *predictor = make_predictor(&r, SAMPLES);
    assert_int_equal(an_predictor_input_elements(predictor), INPUTS);
    assert_int_equal(an_predictor_output_elements(predictor), OUTPUTS);
    assert_int_equal(an_predictor_dtype(predictor), AN_DTYPE_F32);
    for (int i = 0; i < SAMPLES; i++) OK(ctx, an_predictor_run_f32(predictor, 1, inputs[i], alone[i]));
    for (int64_t batch = 2; batch <= SAMPLES; batch++) {
        for (int64_t at = 0; at < SAMPLES; at += batch) {
            const int64_t n = SAMPLES - at < batch ? SAMPLES - at : batch;
            OK(ctx, an_predictor_run_f32(predictor, n, inputs[at], together[at]));
        }
        assert_memory_equal(alone, together, sizeof alone);
    }
    an_predictor_destroy(&predictor);
    run_destroy(&r);
}

static void test_call_allocates_nothing(void **state) {
    float outputs[SAMPLES][OUTPUTS];
    run r;
    (void)state;
    run_create(&r, AN_DTYPE_NONE);
    an_predictor *predictor = make_predictor(&r, SAMPLES);
    const long calls = counted.calls;
    for (int64_t n = 1; n <= SAMPLES; n++) OK(ctx, an_predictor_run_f32(predictor, n, inputs[0], outputs[0]));
    assert_int_equal(counted.calls, calls);
    an_predictor_destroy(&predictor);
    run_destroy(&r);
}

/* Its weights change when it is told, and then are the trainer's: the mean absolute error is that of evaluation. */
static void test_weights_change_at_refresh_only(void **state) {
    float before[SAMPLES][OUTPUTS], during[SAMPLES][OUTPUTS], after[SAMPLES][OUTPUTS];
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    double error = 0;
    run r;
    (void)state;
    run_create(&r, AN_DTYPE_NONE);
    an_predictor *predictor = make_predictor(&r, SAMPLES);
    OK(ctx, an_predictor_run_f32(predictor, SAMPLES, inputs[0], before[0]));
    while (an_trainer_next_step(r.trainer) < an_trainer_steps(r.trainer)) OK(ctx, an_trainer_step(r.trainer, NULL));
    OK(ctx, an_predictor_run_f32(predictor, SAMPLES, inputs[0], during[0]));
    assert_memory_equal(before, during, sizeof before);
    OK(ctx, an_predictor_refresh(predictor, r.trainer));
    OK(ctx, an_predictor_run_f32(predictor, SAMPLES, inputs[0], after[0]));
    assert_memory_not_equal(before, after, sizeof before);
    OK(ctx, an_trainer_evaluate(r.trainer, &evaluation));
    assert_true(evaluation.measures && !evaluation.classifies);
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < OUTPUTS; k++) error += fabs((double)after[i][k] - (double)targets[i][k]);
    assert_true(fabs(error / (SAMPLES * OUTPUTS) - evaluation.mean_absolute_error) < 1e-12);
    an_predictor_destroy(&predictor);
    run_destroy(&r);
}

/* In bf16 it reads copies of its weights, which must be those of the new ones. */
static void test_refresh_reaches_low_copies(void **state) {
    float refreshed[SAMPLES][OUTPUTS], fresh[SAMPLES][OUTPUTS];
    run r;
    (void)state;
    run_create(&r, AN_DTYPE_BF16);
    an_predictor *predictor = make_predictor(&r, SAMPLES);
    OK(ctx, an_predictor_run_f32(predictor, SAMPLES, inputs[0], refreshed[0]));
    while (an_trainer_next_step(r.trainer) < an_trainer_steps(r.trainer)) OK(ctx, an_trainer_step(r.trainer, NULL));
    OK(ctx, an_predictor_refresh(predictor, r.trainer));
    OK(ctx, an_predictor_run_f32(predictor, SAMPLES, inputs[0], refreshed[0]));
    an_predictor_destroy(&predictor);
    predictor = make_predictor(&r, SAMPLES);
    OK(ctx, an_predictor_run_f32(predictor, SAMPLES, inputs[0], fresh[0]));
    assert_memory_equal(refreshed, fresh, sizeof fresh);
    an_predictor_destroy(&predictor);
    run_destroy(&r);
}

/* One predictor a thread, inside the caller's own parallel region. */
static void test_predictors_of_several_threads(void **state) {
    enum { THREADS = 4, ROUNDS = 50 };
    float expected[SAMPLES][OUTPUTS], outputs[THREADS][SAMPLES][OUTPUTS];
    an_predictor *predictors[THREADS];
    int wrong = 0;
    run r;
    (void)state;
    run_create(&r, AN_DTYPE_NONE);
    for (int i = 0; i < THREADS; i++) predictors[i] = make_predictor(&r, SAMPLES);
    OK(ctx, an_predictor_run_f32(predictors[0], SAMPLES, inputs[0], expected[0]));
#pragma omp parallel for num_threads(THREADS) reduction(+ : wrong)
    for (int i = 0; i < THREADS; i++)
        for (int round = 0; round < ROUNDS; round++) {
            wrong += an_predictor_run_f32(predictors[i], SAMPLES, inputs[0], outputs[i][0]) != AN_OK;
            for (int k = 0; k < SAMPLES * OUTPUTS; k++)
                wrong += outputs[i][k / OUTPUTS][k % OUTPUTS] != expected[k / OUTPUTS][k % OUTPUTS];
        }
    assert_int_equal(wrong, 0);
    for (int i = 0; i < THREADS; i++) an_predictor_destroy(&predictors[i]);
    run_destroy(&r);
}

static void test_mistakes_are_told(void **state) {
    float outputs[OUTPUTS];
    double wide[INPUTS] = {0};
    run r;
    (void)state;
    run_create(&r, AN_DTYPE_NONE);
    an_predictor *predictor = make_predictor(&r, 8);
    assert_int_equal(an_predictor_run_f32(predictor, 9, inputs[0], outputs), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(NULL), "created for 1 to 8"));
    assert_int_equal(an_predictor_run_f64(predictor, 1, wide, wide), AN_ERR_DTYPE);
    assert_non_null(strstr(an_last_error(NULL), "the model reads f32"));
    an_predictor_destroy(&predictor);
    run_destroy(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_in_any_batch),         cmocka_unit_test(test_call_allocates_nothing),
        cmocka_unit_test(test_weights_change_at_refresh_only), cmocka_unit_test(test_refresh_reaches_low_copies),
        cmocka_unit_test(test_predictors_of_several_threads),  cmocka_unit_test(test_mistakes_are_told),
    };
    const int failures = cmocka_run_group_tests(tests, setup_counted, teardown);
    return failures || counted.held || counted.mismatch;
}

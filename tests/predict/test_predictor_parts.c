/* Prediction in parts: whatever threads there are and however samples are cut, the bits are those of a plain program,
 * which keeps nothing of its weights; and the first mistake is told. */
#include "anneal/models.h"
#include "anneal/predict.h"
#include "anneal/train.h"
#include "models/small_models.h"

/* Wider than a block of columns and deeper than a piece of k, and no whole panels. */
enum { INPUTS = 19, OUTPUTS = 5, SAMPLES = 200, TOKENS = 16, WORDS = 11 };
static const int64_t hidden[] = {300, 70};

typedef struct {
    an_dataset *dataset;
    an_graph *graph;
    an_trainer *trainer;
    an_dtype dtype;
    double inputs[SAMPLES * INPUTS], targets[SAMPLES * OUTPUTS]; /* or floats, in their first half */
} run;

static double number(int i) {
    return (double)(i * 7919 % 2003 - 1001) / 400;
}

static void run_create(run *r, an_dtype dtype) {
    const int64_t input_dims[] = {SAMPLES, INPUTS}, target_dims[] = {SAMPLES, OUTPUTS};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    an_mlp_options model;
    an_mlp_options_init(&model, sizeof model);
    an_trainer_options o;
    an_trainer_options_init(&o, sizeof o);
    *r = (run){.dtype = dtype};
    for (int i = 0; i < SAMPLES * INPUTS; i++) {
        if (dtype == AN_DTYPE_F64)
            r->inputs[i] = number(i);
        else
            ((float *)r->inputs)[i] = (float)number(i);
    }
    const an_array arrays[] = {array_of(r->inputs, dtype, 2, input_dims), array_of(r->targets, dtype, 2, target_dims)};
    source.array_count = 2;
    source.arrays = arrays;
    model.inputs = INPUTS;
    model.outputs = OUTPUTS;
    model.hidden_count = 2;
    model.hidden = hidden;
    model.activation = AN_ACTIVATION_TANH;
    model.loss = AN_LOSS_SQUARED;
    model.dtype = dtype;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = 8;
    o.batch = &batch;
    o.epochs = 1;
    OK(ctx, an_dataset_create_arrays(&r->dataset, ctx, &source));
    OK(ctx, an_model_mlp(&r->graph, ctx, &model));
    OK(ctx, an_trainer_create(&r->trainer, r->graph, r->dataset, NULL, &o));
}

static void run_destroy(run *r) {
    an_trainer_destroy(&r->trainer);
    an_graph_destroy(&r->graph);
    an_dataset_destroy(&r->dataset);
}

/* All samples at once, by a program of the trainer's own weights. */
static void run_plainly(run *r, void *outputs) {
    static const char *const symbols[] = {"batch"};
    const int64_t maximum = SAMPLES, input_dims[] = {SAMPLES, INPUTS}, output_dims[] = {SAMPLES, OUTPUTS};
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    an_plan *plan = NULL;
    an_program *program = NULL;
    options.symbol_count = 1;
    options.symbols = symbols;
    options.maxima = &maximum;
    options.programs = AN_PROGRAM_PREDICTION;
    an_array in = array_of(r->inputs, r->dtype, 2, input_dims), out = array_of(outputs, r->dtype, 2, output_dims);
    OK(ctx, an_plan_create(&plan, ctx, r->graph, &options));
    OK(ctx, an_program_create(&program, plan, an_trainer_params(r->trainer)));
    OK(ctx, an_program_bind(program, "batch", SAMPLES));
    an_input_info input;
    an_input_info_init(&input, sizeof input);
    OK(ctx, an_program_input(program, 0, &input));
    OK(ctx, an_program_set_input(program, input.name, &in));
    OK(ctx, an_program_run(program, AN_FORM_PREDICT));
    OK(ctx, an_program_get_output(program, "y", &out));
    an_program_destroy(&program);
    an_plan_destroy(&plan);
}

static an_predictor *make_predictor(an_trainer *trainer, int64_t maximum, int threads) {
    an_predictor *predictor = NULL;
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    options.max_samples = maximum;
    options.threads = threads;
    OK(ctx, an_predictor_create(&predictor, trainer, &options));
    return predictor;
}

static void predict(run *r, an_predictor *p, int64_t first, int64_t n, void *outputs) {
    if (r->dtype == AN_DTYPE_F64)
        OK(ctx, an_predictor_run_f64(p, n, r->inputs + first * INPUTS, (double *)outputs + first * OUTPUTS));
    else
        OK(ctx, an_predictor_run_f32(p, n, (float *)r->inputs + first * INPUTS, (float *)outputs + first * OUTPUTS));
}

static void check_parts(an_dtype dtype) {
    static const int64_t batches[] = {1, 2, 3, 4, 5, 13, 14, 15, 29, 63, 64, 65, 127, 130, 199, SAMPLES};
    const size_t bytes = (dtype == AN_DTYPE_F64 ? sizeof(double) : sizeof(float)) * SAMPLES * OUTPUTS;
    static double expected[SAMPLES * OUTPUTS], outputs[SAMPLES * OUTPUTS];
    static run r;
    run_create(&r, dtype);
    for (int i = 0; i < 3; i++) OK(ctx, an_trainer_step(r.trainer, NULL));
    run_plainly(&r, expected);
    for (int threads = 1; threads <= 3; threads++) {
        an_predictor *p = make_predictor(r.trainer, SAMPLES, threads);
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            memset(outputs, 0, sizeof outputs);
            for (int64_t at = 0; at < SAMPLES; at += batches[b])
                predict(&r, p, at, SAMPLES - at < batches[b] ? SAMPLES - at : batches[b], outputs);
            assert_memory_equal(outputs, expected, bytes);
        }
        an_predictor_destroy(&p);
    }
    run_destroy(&r);
}

/* At every level that the machine has: tiles have other sizes there. */
static void test_bits_are_those_of_a_program(void **state) {
    an_context *usual = ctx;
    (void)state;
    for (an_isa isa = AN_ISA_BASE; isa <= an_context_isa(usual); isa++) {
        an_context_options options;
        an_context_options_init(&options, sizeof options);
        options.threads = 2;
        options.isa = isa;
        OK(NULL, an_context_create(&ctx, &options));
        check_parts(AN_DTYPE_F32);
        check_parts(AN_DTYPE_F64);
        an_context_destroy(&ctx);
    }
    ctx = usual;
}

/* What lanes share is made anew for all of them. */
static void test_refresh_reaches_every_thread(void **state) {
    static double expected[SAMPLES * OUTPUTS], outputs[SAMPLES * OUTPUTS];
    static run r;
    (void)state;
    run_create(&r, AN_DTYPE_F32);
    an_predictor *p = make_predictor(r.trainer, SAMPLES, 2);
    predict(&r, p, 0, SAMPLES, outputs);
    for (int i = 0; i < 3; i++) OK(ctx, an_trainer_step(r.trainer, NULL));
    run_plainly(&r, expected);
    assert_memory_not_equal(outputs, expected, SAMPLES * OUTPUTS * sizeof(float));
    OK(ctx, an_predictor_refresh(p, r.trainer));
    predict(&r, p, 0, SAMPLES, outputs);
    assert_memory_equal(outputs, expected, SAMPLES * OUTPUTS * sizeof(float));
    an_predictor_destroy(&p);
    run_destroy(&r);
}

/* Tokens that the table has no row for, in samples of several threads: the first is told, and the next call works. */
static void test_first_mistake_is_told(void **state) {
    static int32_t tokens[SAMPLES][TOKENS];
    static float outputs[SAMPLES][TOKENS][WORDS], again[SAMPLES][TOKENS][WORDS];
    const int64_t dims[] = {SAMPLES, TOKENS};
    const an_array arrays[] = {array_of(tokens, AN_DTYPE_I32, 2, dims), array_of(tokens, AN_DTYPE_I32, 2, dims)};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    an_gpt2_options model = small_gpt2();
    an_trainer_options o;
    an_trainer_options_init(&o, sizeof o);
    an_dataset *dataset = NULL;
    an_graph *graph = NULL;
    an_trainer *trainer = NULL;
    (void)state;
    for (int i = 0; i < SAMPLES * TOKENS; i++) tokens[i / TOKENS][i % TOKENS] = i * 7 % WORDS;
    source.array_count = 2;
    source.arrays = arrays;
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.global = 8;
    o.batch = &batch;
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    OK(ctx, an_model_gpt2(&graph, ctx, &model));
    OK(ctx, an_trainer_create(&trainer, graph, dataset, NULL, &o));
    an_predictor *p = make_predictor(trainer, SAMPLES, 3);
    OK(ctx, an_predictor_run_tokens(p, SAMPLES, tokens[0], outputs[0][0]));
    for (int round = 0; round < 20; round++) {
        tokens[90][3] = 1000 + round;
        tokens[SAMPLES - 1][0] = 2000;
        char text[32];
        snprintf(text, sizeof text, "%d", 1000 + round);
        assert_int_equal(an_predictor_run_tokens(p, SAMPLES, tokens[0], again[0][0]), AN_ERR_KERNEL);
        assert_non_null(strstr(an_last_error(NULL), text));
        tokens[90][3] = (90 * TOKENS + 3) * 7 % WORDS;
        tokens[SAMPLES - 1][0] = (SAMPLES - 1) * TOKENS * 7 % WORDS;
    }
    OK(ctx, an_predictor_run_tokens(p, SAMPLES, tokens[0], again[0][0]));
    assert_memory_equal(again, outputs, sizeof outputs);
    an_predictor_destroy(&p);
    an_trainer_destroy(&trainer);
    an_graph_destroy(&graph);
    an_dataset_destroy(&dataset);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_are_those_of_a_program),
        cmocka_unit_test(test_refresh_reaches_every_thread),
        cmocka_unit_test(test_first_mistake_is_told),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

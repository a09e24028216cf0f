/* What a trainer allocates is what its plan says, to the byte: leaves, samples that are loaded ahead,
 * evaluation, running statistics. */
#include "anneal/models.h"
#include "anneal/open.h"
#include "anneal/run.h"
#include "support/support.h"

enum { SAMPLES = 64, TOKENS = 16, VOCABULARY = 65, SIDE = 8 };

static an_context *ctx;
static ledger counted;

static int setup(void **state) {
    (void)state;
    return context_with_ledger(&ctx, &counted, 2) != AN_OK;
}

static int teardown(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return counted.held != 0 || counted.mismatch;
}

static an_plan_memory memory_of(an_trainer *trainer) {
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    OK(ctx, an_plan_memory_get(an_trainer_plan(trainer), &memory));
    assert_int_equal(memory.peak, memory.weights + memory.gradients + memory.leaves + memory.optimizer +
                                      memory.activations + memory.scratch + memory.inputs + memory.tables +
                                      memory.checkpoint + memory.trainer + memory.messages);
    return memory;
}

/* ---- models and data ---- */

static an_dataset *make_dataset(const an_array *arrays) {
    an_dataset *dataset = NULL;
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 2;
    source.arrays = arrays;
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    return dataset;
}

static an_dataset *make_sequences(void) {
    static int32_t tokens[SAMPLES * TOKENS];
    const int64_t dims[] = {SAMPLES, TOKENS};
    for (int i = 0; i < SAMPLES * TOKENS; i++) tokens[i] = i * 7 % VOCABULARY;
    const an_array array = array_of(tokens, AN_DTYPE_I32, 2, dims);
    return make_dataset((const an_array[]){array, array});
}

static an_dataset *make_images(void) {
    static float images[SAMPLES * SIDE * SIDE];
    static int32_t classes[SAMPLES];
    const int64_t dims[] = {SAMPLES, 1, SIDE, SIDE};
    for (int i = 0; i < SAMPLES * SIDE * SIDE; i++) images[i] = (float)noise((uint64_t)i);
    for (int i = 0; i < SAMPLES; i++) classes[i] = i % 4;
    return make_dataset(
        (const an_array[]){array_of(images, AN_DTYPE_F32, 4, dims), array_of(classes, AN_DTYPE_I32, 1, dims)});
}

static an_status make_gpt(an_graph **graph) {
    an_gpt2_options o;
    an_gpt2_options_init(&o, sizeof o);
    o.layers = 2;
    o.heads = 2;
    o.width = 32;
    o.context = TOKENS;
    o.vocabulary = VOCABULARY;
    return an_model_gpt2(graph, ctx, &o);
}

static an_status make_cnn(an_graph **graph) {
    static const int64_t filters[] = {6, 5};
    an_cnn_options o;
    an_cnn_options_init(&o, sizeof o);
    o.channels = 1;
    o.height = o.width = SIDE;
    o.classes = 4;
    o.filter_count = 2;
    o.filters = filters;
    o.hidden = 7;
    o.batch_norm = true;
    o.normalize_inputs = true;
    return an_model_cnn(graph, ctx, &o);
}

/* ---- trainers ---- */

static void check_trainer(an_status (*make_model)(an_graph **), an_dataset *training, an_dataset *evaluation,
                          const an_trainer_options *options) {
    an_graph *graph = NULL;
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_evaluation result;
    an_evaluation_init(&result, sizeof result);
    OK(ctx, make_model(&graph));
    const size_t before = counted.held;
    OK(ctx, an_trainer_create(&trainer, graph, training, evaluation, options));
    const an_plan_memory memory = memory_of(trainer);
    if (counted.held - before != (size_t)memory.peak)
        fail_msg("%lld leaves, micro %lld, precision %s, recompute %d, %s: %zu bytes are held, %lld were planned",
                 (long long)options->batch->leaves, (long long)options->batch->micro, an_dtype_name(options->precision),
                 (int)options->recompute, evaluation ? "evaluated" : "not evaluated", counted.held - before,
                 (long long)memory.peak);
    an_normalize_options normalize;
    an_normalize_options_init(&normalize, sizeof normalize);
    OK(ctx, an_trainer_normalize(trainer, &normalize)); /* the cnn does; it takes memory only while it computes */
    assert_true(memory.leaves == 0 || options->batch->leaves != 1);
    assert_int_equal(counted.held - before, memory.peak);
    const long calls = counted.calls;
    for (int i = 0; i < 2; i++) {
        OK(ctx, an_trainer_step(trainer, &metrics));
        if (evaluation) OK(ctx, an_trainer_evaluate(trainer, &result));
    }
    assert_int_equal(counted.calls, calls); /* and nothing was allocated since */
    an_trainer_destroy(&trainer);
    an_graph_destroy(&graph);
}

static void check_model(an_status (*make_model)(an_graph **), an_dataset *dataset, an_recompute deepest) {
    static const int64_t leaves[] = {1, 2, 3, 8}, micros[] = {0, 2}, at_a_time[] = {0, 1, 17, 1000};
    static const an_dtype precisions[] = {AN_DTYPE_NONE, AN_DTYPE_BF16, AN_DTYPE_F16};
    for (int l = 0; l < 4; l++)
        for (int p = 0; p < 3; p++)
            for (int r = AN_RECOMPUTE_NONE; r <= (int)deepest; r++)
                for (int e = 0; e < 2; e++) {
                    an_trainer_options o;
                    an_trainer_options_init(&o, sizeof o);
                    o.batch = &(const an_batch_options){.size = sizeof(an_batch_options),
                                                        .global = 24,
                                                        .micro = micros[(l + p) % 2],
                                                        .leaves = leaves[l]};
                    o.epochs = 4;
                    o.precision = precisions[p];
                    o.recompute = (an_recompute)r;
                    o.loader_threads = e;
                    o.evaluation_micro = e ? at_a_time[(l + p) % 4] : 0;
                    o.ema_decay = l % 2 ? 0.9 : 0;
                    o.norms = e ? AN_NORMS_BLOCK : AN_NORMS_GLOBAL;
                    o.details = p == 1 ? AN_DETAIL_CLASSES | AN_DETAIL_SCORES | AN_DETAIL_OUTPUTS : 0;
                    check_trainer(make_model, dataset, e ? dataset : NULL, &o);
                }
}

static void test_trainers_of_models(void **state) {
    (void)state;
    an_dataset *sequences = make_sequences(), *images = make_images();
    check_model(make_gpt, sequences, AN_RECOMPUTE_BLOCK);
    check_model(make_cnn, images, AN_RECOMPUTE_NONE);
    an_dataset_destroy(&images);
    an_dataset_destroy(&sequences);
}

/* A trainer that was opened only for its plan, of one process or of a rank among others, refuses
 * everything that takes weights. */
static void test_plan_alone(void **state) {
    (void)state;
    static float inputs[SAMPLES * 4], targets[SAMPLES * 2];
    static const int ranks[] = {0, 3};
    const an_array arrays[] = {array_of(inputs, AN_DTYPE_F32, 2, (const int64_t[]){SAMPLES, 4}),
                               array_of(targets, AN_DTYPE_F32, 2, (const int64_t[]){SAMPLES, 2})};
    an_graph *graph = NULL;
    an_predictor *predictor = NULL;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    char hash[AN_HASH_TEXT];
    OK(ctx, small_mlp(&graph, ctx));
    an_dataset *dataset = make_dataset(arrays);
    for (int i = 0; i < 2; i++) {
        an_trainer *t = NULL;
        an_trainer_options o;
        an_trainer_options_init(&o, sizeof o);
        o.batch = &(const an_batch_options){.size = sizeof(an_batch_options), .global = 24, .leaves = 8};
        o.purpose = AN_OPEN_PLAN;
        o.ranks = ranks[i];
        OK(ctx, an_trainer_create(&t, graph, dataset, dataset, &o));
        FAILS(ctx, an_trainer_step(t, NULL), AN_ERR_STATE, "only for its plan");
        FAILS(ctx, an_trainer_step_on(t, SAMPLES, &arrays[0], &arrays[1], NULL), AN_ERR_STATE, "only for its plan");
        FAILS(ctx, an_trainer_step_on_f32(t, SAMPLES, inputs, targets, NULL), AN_ERR_STATE, "only for its plan");
        FAILS(ctx, an_trainer_evaluate(t, &evaluation), AN_ERR_STATE, "only for its plan");
        FAILS(ctx, an_trainer_run(t, NULL, NULL), AN_ERR_STATE, "only for its plan");
        FAILS(ctx, an_trainer_save(t, 0), AN_ERR_STATE, "only for its plan");
        FAILS(ctx, an_trainer_weights_hash(t, hash), AN_ERR_STATE, "only for its plan");
        FAILS(ctx, an_predictor_create(&predictor, t, NULL), AN_ERR_STATE, "only for its plan");
        assert_null(predictor);
        an_trainer_destroy(&t);
    }
    an_dataset_destroy(&dataset);
    an_graph_destroy(&graph);
}

/* ---- configs ---- */

static an_trainer *open_config(an_config *config, an_open_purpose purpose) {
    an_trainer *trainer = NULL;
    an_open_options options;
    an_open_options_init(&options, sizeof options);
    options.purpose = purpose;
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, &options));
    return trainer;
}

/* A trainer that was opened from a config owns its model and data too; the copy for saves is made
 * when the first one begins. */
static void check_config(const char *text) {
    an_config *config = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    FILE *file = fopen("planned.yaml", "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    options.file = "planned.yaml";
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    OK(ctx, an_config_key_get(ctx, 0, &key)); /* the context keeps the table of options from here on */
    const size_t empty = counted.held;
    OK(ctx, an_config_create(&config, ctx, &options));
    an_trainer *trainer = open_config(config, AN_OPEN_PLAN);
    const an_plan_memory planned = memory_of(trainer);
    an_trainer_destroy(&trainer);
    trainer = open_config(config, AN_OPEN_RUN);
    an_config_destroy(&config);
    const an_plan_memory memory = memory_of(trainer);
    assert_memory_equal(&planned, &memory, sizeof memory);
    assert_true(memory.checkpoint > 0);
    assert_int_equal(counted.held - empty, memory.peak - memory.checkpoint);
    OK(ctx, an_trainer_step(trainer, NULL));
    assert_int_equal(counted.held - empty, memory.peak - memory.checkpoint);
    an_trainer_destroy(&trainer);
    assert_int_equal(counted.held, empty);
}

#define CHARACTERS                                                                                                 \
    "version: 1\n"                                                                                                 \
    "run: {dir: planned, steps: 3}\n"                                                                              \
    "model: {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}\n"                                           \
    "data: {train: {type: text, path: planned.txt, tokens: chars}, eval: {type: text, path: planned.txt, tokens: " \
    "chars}, threads: 2}\n"

static void test_runs_of_configs(void **state) {
    (void)state;
    FILE *file = fopen("planned.txt", "wb");
    assert_non_null(file);
    for (int i = 0; i < 400; i++) fprintf(file, "%d bottles of beer on the wall\n", 400 - i);
    assert_int_equal(fclose(file), 0);
    check_config(CHARACTERS "batch: {global: 16}\ntrain: {precision: f32}\n");
    check_config(CHARACTERS "batch: {global: 16, leaves: 2}\ntrain: {precision: bf16}\n");
    check_config(CHARACTERS "batch: {global: 16, leaves: 8}\ntrain: {precision: f32, recompute: block}\n");
    check_config(CHARACTERS "batch: {global: 16, leaves: 8}\ntrain: {precision: bf16}\nlog: {grad_norms: parameter}\n");
}

/* Leaves of a plan without a trainer, and numbers of them that there are not. */
static void test_leaves_of_a_plan(void **state) {
    static const struct {
        int64_t leaves, buffers;
    } cases[] = {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {8, 3}, {1 << 20, 20}};
    static const char *const symbol = "batch";
    static const int64_t maximum = 4;
    an_graph *graph = NULL;
    an_plan *plan = NULL;
    (void)state;
    OK(ctx, small_mlp(&graph, ctx));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_plan_options options;
        an_plan_options_init(&options, sizeof options);
        an_plan_memory memory;
        an_plan_memory_init(&memory, sizeof memory);
        options.symbol_count = 1;
        options.symbols = &symbol;
        options.maxima = &maximum;
        options.leaves = cases[i].leaves;
        OK(ctx, an_plan_create(&plan, ctx, graph, &options));
        OK(ctx, an_plan_memory_get(plan, &memory));
        assert_int_equal(memory.leaves, cases[i].buffers * memory.gradients);
        assert_int_equal(memory.trainer, 0);
        an_plan_destroy(&plan);
        options.leaves = i ? -1 : (1 << 20) + 1;
        FAILS(ctx, an_plan_create(&plan, ctx, graph, &options), AN_ERR_ARGUMENT, "leaves");
    }
    an_graph_destroy(&graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_trainers_of_models, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plan_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_runs_of_configs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_leaves_of_a_plan, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* data.normalize from a config: what is fitted, what the model then takes and gives, what checkpoints
 * keep, and what is refused. */
#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "open/support.h"

enum { ROWS = 600, FIT = 500 };

/* Columns of size 1e6, 1e-3 and one that never changes, and a target around 5000 that depends on both others. */
static float table[ROWS][3], target[ROWS];

static void write_table(void) {
    FILE *file = fopen("units.csv", "w");
    assert_non_null(file);
    fprintf(file, "mass,gap,five,y\n");
    for (int i = 0; i < ROWS; i++) {
        const double a = noise((uint64_t)i), b = noise((uint64_t)i + 10000);
        char cells[3][32];
        snprintf(cells[0], sizeof cells[0], "%.6f", 3e6 + 1e6 * a);
        snprintf(cells[1], sizeof cells[1], "%.9f", 1e-3 * b);
        snprintf(cells[2], sizeof cells[2], "%.3f", 5000 + 100 * (a + b * b));
        fprintf(file, "%s,%s,5,%s\n", cells[0], cells[1], cells[2]);
        table[i][0] = strtof(cells[0], NULL);
        table[i][1] = strtof(cells[1], NULL);
        table[i][2] = 5;
        target[i] = strtof(cells[2], NULL);
    }
    fclose(file);
}

#define DATA "train: {type: csv, path: units.csv, part: 0%..90%}, eval: {type: csv, path: units.csv, part: 90%..100%}"
#define BOTH "normalize: {inputs: standard, targets: standard, fit: first 500 samples}"
#define RUN(dir, data, more)                                                                                     \
    "run: {dir: " dir ", epochs: 30, seed: 2}\nmodel: {type: mlp, hidden: [16], activation: tanh}\ndata: {" data \
    "}\nbatch: {global: 32, leaves: 4}\noptimizer: {lr: 2e-2}\nsave: {every: off}\n" more

static void get_state(an_trainer *trainer, const char *name, int ndims, const int64_t *dims, float *values) {
    an_array array = array_of(values, AN_DTYPE_F32, ndims, dims);
    OK(ctx, an_params_get(an_trainer_params(trainer), name, AN_PART_WEIGHT, &array));
}

static void near(double found, double expected) {
    if (!(fabs(found - expected) <= 1e-6 * fabs(expected))) fail_msg("%.9g is not %.9g", found, expected);
}

static void expect_column(float *mean, float *scale, float *minimum, float *maximum, const float *column, int stride,
                          bool range) {
    double sum = 0, squares = 0, low = (double)column[0], high = low;
    for (int i = 0; i < FIT; i++) {
        const double x = (double)column[i * stride];
        sum += x;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    for (int i = 0; i < FIT; i++) squares += pow((double)column[i * stride] - sum / FIT, 2);
    near((double)*mean, range ? low : sum / FIT);
    near((double)*scale, low == high ? 1 : range ? high - low : sqrt(squares / FIT));
    assert_true((double)*minimum == low && (double)*maximum == high);
}

static void test_statistics_are_those_of_the_first_samples(void **state) {
    (void)state;
    static const char *const configs[] = {
        RUN("fitted", DATA ", normalize: {inputs: standard, targets: range, fit: first 500 samples}", ""),
        RUN("fitted-too", DATA ", normalize: {inputs: range, targets: standard, fit: first 500 samples}", "")};
    const int64_t three = 3, one = 1;
    float input[4][3], of_target[4][1];
    static const char *const input_names[] = {"normalize.input.mean", "normalize.input.scale", "normalize.input.least",
                                              "normalize.input.most"};
    static const char *const target_names[] = {"normalize.target.mean", "normalize.target.scale",
                                               "normalize.target.least", "normalize.target.most"};
    write_table();
    for (int i = 0; i < 2; i++) {
        an_trainer *trainer = open_run(configs[i]);
        for (int s = 0; s < 4; s++) {
            get_state(trainer, input_names[s], 1, &three, input[s]);
            get_state(trainer, target_names[s], 1, &one, of_target[s]);
        }
        for (int c = 0; c < 3; c++)
            expect_column(&input[0][c], &input[1][c], &input[2][c], &input[3][c], &table[0][c], 3, i == 1);
        expect_column(of_target[0], of_target[1], of_target[2], of_target[3], target, 1, i == 0);
        assert_true(input[0][2] == 5.0f && input[1][2] == 1.0f);
        assert_non_null(an_trainer_notes(trainer));
        if (!strstr(an_trainer_notes(trainer), "1 of 3 inputs never change, so their scale is 1: five"))
            fail_msg("%s", an_trainer_notes(trainer));
        an_trainer_destroy(&trainer);
    }
}

/* Columns that f32 has too few digits for are named: 1e9 and 1e9 + 30 are the same number. */
static void test_numbers_that_f32_cannot_tell_apart(void **state) {
    (void)state;
    static const char note[] = "2 of 4 inputs vary too little around a large number for f32, which has 7 digits; set "
                               "data.train.dtype to f64, or subtract that number: steps, same\n";
    FILE *file = fopen("large.csv", "w");
    assert_non_null(file);
    fprintf(file, "steps,same,fine,five,y\n");
    for (int i = 0; i < 100; i++) fprintf(file, "%d,%d,%d,5,%d\n", 1000000000 + i, 1000000000 + i % 9, 1000000 + i, i);
    fclose(file);
    an_trainer *trainer = open_run(RUN("fitted-large", "train: {type: csv, path: large.csv}, normalize: standard", ""));
    if (!strstr(an_trainer_notes(trainer), note)) fail_msg("%s", an_trainer_notes(trainer));
    an_trainer_destroy(&trainer);
    trainer =
        open_run(RUN("fitted-larger", "train: {type: csv, path: large.csv, dtype: f64}, normalize: standard", ""));
    if (strstr(an_trainer_notes(trainer), "f32")) fail_msg("%s", an_trainer_notes(trainer));
    an_trainer_destroy(&trainer);
}

static an_evaluation evaluate(an_trainer *trainer) {
    an_evaluation e;
    an_evaluation_init(&e, sizeof e);
    OK(ctx, an_trainer_evaluate(trainer, &e));
    return e;
}

/* The same with and without: only the one learns. */
static void test_units_that_are_far_apart_are_learned(void **state) {
    (void)state;
    write_table();
    an_trainer *trainer = open_run(RUN("learns", DATA ", " BOTH, ""));
    train(trainer);
    an_evaluation e = evaluate(trainer);
    if (!(e.r2 > 0.95 && e.mean_absolute_error < 15)) fail_msg("r2 %g, mae %g", e.r2, e.mean_absolute_error);
    assert_true(e.loss < 0.1); /* of numbers around 1 */
    an_trainer_destroy(&trainer);
    trainer = open_run(RUN("does-not", DATA, ""));
    train(trainer);
    e = evaluate(trainer);
    if (e.r2 > 0.5) fail_msg("without normalize: r2 %g", e.r2);
    an_trainer_destroy(&trainer);
}

/* Metrics are of physical units, and so is what a predictor takes and gives: one of the trainer and one of its
 * checkpoint. */
static void predictors_agree(an_trainer *trainer, const char *path) {
    enum { FIRST = ROWS * 9 / 10, COUNT = ROWS - FIRST };
    an_predictor *predictor = NULL;
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    static float given[COUNT], again[COUNT];
    an_range_info ranges;
    an_range_info_init(&ranges, sizeof ranges);
    options.max_samples = COUNT;
    OK(ctx, an_predictor_create(&predictor, trainer, &options));
    OK(ctx, an_predictor_run_f32(predictor, COUNT, table[FIRST], given));
    an_predictor_destroy(&predictor);
    const an_evaluation e = evaluate(trainer);
    double sum = 0;
    for (int i = 0; i < COUNT; i++) sum += fabs((double)given[i] - (double)target[FIRST + i]);
    near(e.mean_absolute_error, sum / COUNT);
    OK(ctx, an_predictor_open(&predictor, ctx, path, &options));
    OK(ctx, an_predictor_run_f32(predictor, COUNT, table[FIRST], again));
    assert_memory_equal(given, again, sizeof given);
    OK(ctx, an_predictor_range(predictor, &ranges));
    assert_int_equal(ranges.features, 3);
    assert_int_equal(ranges.samples, COUNT);
    int outside = 0;
    for (int i = FIRST; i < ROWS; i++) {
        bool is_outside = false;
        for (int c = 0; c < 3; c++) {
            float low = table[0][c], high = low;
            for (int k = 0; k < FIT; k++) low = fminf(low, table[k][c]), high = fmaxf(high, table[k][c]);
            is_outside = is_outside || table[i][c] < low || table[i][c] > high;
        }
        outside += is_outside;
    }
    assert_int_equal(ranges.outside, outside);
    float strange[3][3] = {{3e6f, 0, 5}, {3e6f, 1, 5}, {3e6f, NAN, 5}};
    OK(ctx, an_predictor_run_f32(predictor, 3, strange[0], again));
    OK(ctx, an_predictor_range(predictor, &ranges));
    assert_int_equal(ranges.samples, COUNT + 3);
    assert_int_equal(ranges.outside, outside + 2);
    assert_int_equal(ranges.feature, 1);
    assert_true(ranges.maximum > 9e-4 && ranges.maximum < 1e-3 && ranges.minimum < -9e-4);
    an_predictor_destroy(&predictor);
}

static void test_physical_units(void **state) {
    (void)state;
    static const char *const models[] = {
        "model: {type: mlp, hidden: [16], activation: tanh}",
        /* the last product is not followed by a bias: evaluation and prediction must read it in the same precision */
        "model: {type: sequential, layers: [{type: linear, size: 16}, tanh, {type: linear, size: auto, bias: off}]}"};
    static const char *const precisions[] = {"f32", "bf16", "f16"};
    write_table();
    for (int m = 0; m < 2; m++)
        for (int p = 0; p < 3; p++) {
            char config[1024], path[256];
            snprintf(config, sizeof config,
                     "run: {dir: physical-%d-%d, epochs: 5, seed: 2}\n%s\ndata: {%s}\nbatch: {global: 32}\noptimizer: "
                     "{lr: 1e-2}\ntrain: {precision: %s}\nsave: {every: off}\n",
                     m, p, models[m], DATA ", " BOTH, precisions[p]);
            an_trainer *trainer = open_run(config);
            train(trainer);
            const an_evaluation e = evaluate(trainer);
            if (!(e.r2 > 0.5)) fail_msg("%s in %s: r2 is %g", models[m], precisions[p], e.r2);
            OK(ctx, an_trainer_save(trainer, 1));
            snprintf(path, sizeof path, "physical-%d-%d", m, p);
            predictors_agree(trainer, path);
            an_trainer_destroy(&trainer);
        }
}

/* ---- bits ---- */

static void hash_with(const char *config, int threads, int64_t stop, char hash[AN_HASH_TEXT]) {
    an_context *own = NULL;
    an_trainer *trainer = NULL;
    ledger memory = {0};
    assert_int_equal(context_with_ledger(&own, &memory, threads), AN_OK);
    write_text("bits.yaml", config);
    OK(own, an_trainer_open(&trainer, own, "bits.yaml", NULL));
    while (an_trainer_next_step(trainer) < stop) OK(own, an_trainer_step(trainer, NULL));
    if (stop < an_trainer_steps(trainer)) OK(own, an_trainer_save(trainer, stop));
    OK(own, an_trainer_state_hash(trainer, hash));
    an_trainer_destroy(&trainer);
    an_context_destroy(&own);
    assert_true(memory.held == 0 && !memory.mismatch);
}

#define BITS(dir, loaders, model, data)                                                             \
    "run: {dir: " dir ", steps: 12, seed: 2}\nmodel: " model "\ndata: {" data ", threads: " loaders \
    "}\nbatch: {global: 32, leaves: 4}\nsave: {every: off}\n"

static void test_one_hash(void **state) {
    (void)state;
    static const char mlp[] = BITS("one", "0", "{type: mlp, hidden: [16]}", DATA ", " BOTH);
    char first[AN_HASH_TEXT], other[AN_HASH_TEXT];
    write_table();
    hash_with(mlp, 1, 12, first);
    hash_with(mlp, 2, 12, other);
    assert_string_equal(first, other);
    hash_with(BITS("one", "3", "{type: mlp, hidden: [16]}", DATA ", " BOTH), 2, 12, other);
    assert_string_equal(first, other);
    hash_with(BITS("one", "0", "{type: mlp, hidden: [16]}", DATA), 1, 12, other);
    assert_string_not_equal(first, other);
    /* Statistics are of the first samples that the config says, and not of others. */
    hash_with(BITS("one", "0", "{type: mlp, hidden: [16]}", DATA ", normalize: {inputs: standard, targets: standard}"),
              1, 12, other);
    assert_string_not_equal(first, other);
}

/* A run that goes on has the statistics of its checkpoint: a file with other numbers in it would give others. */
static void test_resumes_with_what_it_had(void **state) {
    (void)state;
    static const char whole[] = BITS("whole", "0", "{type: mlp, hidden: [16]}", DATA ", " BOTH);
    static const char parts[] = BITS("parts", "0", "{type: mlp, hidden: [16]}", DATA ", " BOTH);
    char first[AN_HASH_TEXT], other[AN_HASH_TEXT], before[AN_HASH_TEXT];
    const int64_t three = 3;
    float mean[3], again[3];
    an_trainer *trainer = NULL;
    write_table();
    hash_with(whole, 2, 12, first);
    hash_with(parts, 2, 5, before);
    hash_with(parts, 1, 12, other);
    assert_string_equal(first, other);
    trainer = open_run(BITS("kept", "0", "{type: mlp, hidden: [16]}", DATA ", " BOTH));
    float changed[3] = {1, 2, 3};
    const an_array array = array_of(changed, AN_DTYPE_F32, 1, &three);
    OK(ctx, an_params_set(an_trainer_params(trainer), "normalize.input.mean", AN_PART_WEIGHT, &array));
    OK(ctx, an_trainer_step(trainer, NULL));
    OK(ctx, an_trainer_save(trainer, 1));
    get_state(trainer, "normalize.input.mean", 1, &three, mean);
    an_trainer_destroy(&trainer);
    trainer = open_run(BITS("kept", "0", "{type: mlp, hidden: [16]}", DATA ", " BOTH));
    assert_int_equal(an_trainer_next_step(trainer), 1);
    get_state(trainer, "normalize.input.mean", 1, &three, again);
    assert_memory_equal(mean, again, sizeof mean);
    assert_memory_equal(changed, again, sizeof changed);
    an_trainer_destroy(&trainer);
    refused(BITS("kept", "0", "{type: mlp, hidden: [16]}", DATA ", normalize: {inputs: range, targets: standard}"),
            AN_ERR_ARGUMENT, "data.normalize.inputs");
}

/* Weights that were trained with some statistics go on with them. */
static void test_initial_weights_bring_theirs(void **state) {
    (void)state;
    const int64_t three = 3;
    float mean[3], again[3];
    write_table();
    an_trainer *trainer = open_run(BITS("source", "0", "{type: mlp, hidden: [16]}", DATA ", " BOTH));
    OK(ctx, an_trainer_step(trainer, NULL));
    OK(ctx, an_trainer_save(trainer, 1));
    get_state(trainer, "normalize.input.mean", 1, &three, mean);
    an_trainer_destroy(&trainer);
    trainer = open_run(BITS("taken", "0", "{type: mlp, hidden: [16], init: {from: source}}",
                            DATA ", normalize: {inputs: standard, targets: standard, fit: first 20 samples}"));
    get_state(trainer, "normalize.input.mean", 1, &three, again);
    assert_memory_equal(mean, again, sizeof mean);
    for (int end = 0; end < 2; end++) {
        char note[96];
        snprintf(note, sizeof note, "data.normalize: means and scales of the %ss are those of ",
                 end ? "target" : "input");
        if (!strstr(an_trainer_notes(trainer), note)) fail_msg("%s", an_trainer_notes(trainer));
    }
    an_trainer_destroy(&trainer);
    refused(BITS("taken-plain", "0", "{type: mlp, hidden: [16], init: {from: source}}", DATA), AN_ERR_ARGUMENT,
            "normalize.input.mean");
}

/* ---- images ---- */

static void test_images_by_channel(void **state) {
    (void)state;
    static const char *const models[] = {
        "{type: cnn, filters: [4], hidden: 8}",
        "{type: sequential, layers: [{type: convolution, filters: 4, window: 3}, relu, flatten, linear]}"};
    const int64_t dims[] = {1, 1, 1};
    write_images();
    for (int m = 0; m < 2; m++) {
        char config[1024];
        float mean, scale;
        double sum = 0, squares = 0;
        for (int i = 0; i < 40; i++) sum += 6 * (200 + i) / 255.0;
        sum /= 40 * 36;
        for (int i = 0; i < 40; i++) squares += 6 * pow((200 + i) / 255.0 - sum, 2) + 30 * sum * sum;
        snprintf(config, sizeof config,
                 "run: {dir: images, epochs: 8}\nmodel: %s\n"
                 "data: {train: {type: idx, path: images.idx, labels: labels.idx}, normalize: {inputs: standard}}\n"
                 "batch: {global: 8}\noptimizer: {lr: 1e-2}\n",
                 models[m]);
        an_trainer *trainer = open_run(config);
        get_state(trainer, "normalize.input.mean", 3, dims, &mean);
        get_state(trainer, "normalize.input.scale", 3, dims, &scale);
        near((double)mean, sum);
        near((double)scale, sqrt(squares / (40 * 36)));
        assert_true(train(trainer) < 0.5);
        an_trainer_destroy(&trainer);
    }
}

/* ---- what is refused and what is said ---- */

#define SUMS "train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}"
#define CLASSES "train: {type: csv, path: sums.csv, inputs: [a, b], targets: [class], classes: on}"

static void test_refusals(void **state) {
    (void)state;
    write_sums();
    write_text("text.txt", "to be or not to be, that is the question, and the answer too");
    refused("model: {type: mlp}\ndata: {" CLASSES ", normalize: {targets: standard}}\n", AN_ERR_ARGUMENT,
            "run.yaml:2:");
    refused("model: {type: mlp}\ndata: {" CLASSES ", normalize: {targets: standard}}\n", AN_ERR_ARGUMENT,
            "the targets are classes, which have no scale; remove data.normalize.targets");
    refused("model: {type: gpt2, layers: 1, heads: 1, width: 8, context: 4}\n"
            "data: {train: {type: text, path: text.txt}, normalize: standard}\n",
            AN_ERR_ARGUMENT, "tokens, which have no scale");
    refused("model: {type: mlp}\ndata: {" SUMS ", normalize: {inputs: standard, fit: running}}\n", AN_ERR_ARGUMENT,
            "data.normalize.fit is running, which is for streams");
    an_trainer *trainer = open_run("model: {type: mlp}\nrun: {dir: graph-source, steps: 1}\ndata: {" SUMS "}\n");
    char *text = NULL;
    OK(ctx, an_graph_print(an_trainer_graph(trainer), &text));
    write_text("mlp.ang", text);
    an_string_release(ctx, &text);
    an_trainer_destroy(&trainer);
    refused("model: {graph: mlp.ang}\ndata: {" SUMS ", normalize: standard}\n", AN_ERR_ARGUMENT,
            "a graph from a file says itself");
    refused("model: {type: mlp, inputs: 2, outputs: 1}\n"
            "data: {train: {type: csv, path: nowhere.csv}, normalize: standard}\n",
            AN_ERR_FILE, "nowhere.csv");
}

/* A stream has nothing to fit to: its program says what the numbers are, or the first step is refused. */
static void test_streams(void **state) {
    (void)state;
    enum { N = 32 };
    static float x[N][2], y[N];
    for (int i = 0; i < N; i++) {
        x[i][0] = 1e6f * (float)noise((uint64_t)i);
        x[i][1] = (float)noise((uint64_t)i + 99);
        y[i] = x[i][1];
    }
    const int64_t dims[] = {N, 2}, target_dims[] = {N, 1};
    const an_array arrays[] = {array_of(x, AN_DTYPE_F32, 2, dims), array_of(y, AN_DTYPE_F32, 2, target_dims)};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    source.array_count = 2;
    source.arrays = arrays;
    an_dataset *samples = NULL;
    an_features *features = NULL, *others = NULL;
    an_normalize_options options;
    an_normalize_options_init(&options, sizeof options);
    an_trainer *trainer =
        open_run("run: {dir: streamed, steps: 3}\nmodel: {type: mlp, inputs: 2, outputs: 1, hidden: [4]}\n"
                 "data: {source: stream, normalize: {inputs: standard}}\nbatch: {global: 32}\n");
    FAILS(ctx, an_trainer_step_on(trainer, N, &arrays[0], &arrays[1], NULL), AN_ERR_STATE,
          "the model normalises its inputs, but their means and scales are not known");
    FAILS(ctx, an_trainer_normalize(trainer, &options), AN_ERR_STATE, "is a stream");
    OK(ctx, an_dataset_create_arrays(&samples, ctx, &source));
    OK(ctx, an_features_create(&features, samples, 0, 0, 0));
    OK(ctx, an_features_create(&others, samples, 1, 0, 0));
    options.inputs = others;
    FAILS(ctx, an_trainer_normalize(trainer, &options), AN_ERR_SHAPE, "have 1 features, but the model has 2");
    options.inputs = features;
    options.targets = others;
    FAILS(ctx, an_trainer_normalize(trainer, &options), AN_ERR_ARGUMENT, "the model does not normalise them");
    options.targets = NULL;
    OK(ctx, an_trainer_normalize(trainer, &options));
    OK(ctx, an_trainer_step_on(trainer, N, &arrays[0], &arrays[1], NULL));
    FAILS(ctx, an_trainer_normalize(trainer, &options), AN_ERR_STATE, "before the first step");
    an_features_destroy(&features);
    an_features_destroy(&others);
    an_dataset_destroy(&samples);
    an_trainer_destroy(&trainer);
}

static int warnings_with(const char *text, const char *words) {
    int found = 0;
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    options.text = text;
    options.length = strlen(text);
    OK(ctx, an_config_create(&config, ctx, &options));
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, NULL));
    for (int i = 0; i < an_config_warning_count(config); i++)
        found += strstr(an_config_warning(config, i), words) != NULL;
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    return found;
}

static void test_warns_of_scales(void **state) {
    (void)state;
    write_table();
    write_sums();
    assert_int_equal(
        warnings_with(
            "run: {dir: warned, steps: 1}\nmodel: {type: mlp}\ndata: {" DATA "}\n",
            "column 'mass' has values up to 4e+06, column 'gap' only up to 0.001; a network learns little from the "
            "smaller ones, so set data.normalize.inputs to standard"),
        1);
    assert_int_equal(warnings_with("run: {dir: warned2, steps: 1}\nmodel: {type: mlp}\ndata: {" DATA
                                   ", normalize: {inputs: standard}}\n",
                                   "scales"),
                     0);
    assert_int_equal(warnings_with("run: {dir: warned3, steps: 1}\nmodel: {type: mlp}\ndata: {" SUMS "}\n", "scales"),
                     0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(statistics_are_those_of_the_first_samples),
        TEST(numbers_that_f32_cannot_tell_apart),
        TEST(units_that_are_far_apart_are_learned),
        TEST(physical_units),
        TEST(one_hash),
        TEST(resumes_with_what_it_had),
        TEST(initial_weights_bring_theirs),
        TEST(images_by_channel),
        TEST(refusals),
        TEST(streams),
        TEST(warns_of_scales),
    };
    if (system("rm -rf fitted* learns does-not physical-* one whole parts kept source taken* images graph-source "
               "streamed warned*") != 0)
        return 1; /* runs of an earlier test */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

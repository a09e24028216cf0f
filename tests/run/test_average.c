/* The moving average of the weights in checkpoints: a run that goes on keeps it, and whatever reads a checkpoint as
 * a model takes it unless it is told otherwise. */
#include <stdlib.h>
#include <unistd.h>

#include <xxhash.h>

#include "anneal/checkpoint.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "store/manifest.h"

#include "open/support.h" /* last: its context would hide in others' parameters */

enum { STEPS = 8, MIDDLE = 4, INPUTS = 2 };

#define RUN(dir)                                                                                    \
    "run: {dir: " dir ", steps: 8, seed: 3}\nmodel: {type: mlp, hidden: [5]}\nbatch: {global: 8}\n" \
    "optimizer: {lr: 1e-2}\ndata: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
#define AVERAGED RUN("averaged") "train: {ema: 0.7}\n"
#define PLAIN RUN("plain")
#define SAVED "checkpoints/step-00000008-1-at-8"

static const float sample[INPUTS] = {0.3F, 0.6F};

static void forget(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

static void take_steps(an_trainer *trainer, int64_t end) {
    while (an_trainer_next_step(trainer) < end) OK(ctx, an_trainer_step(trainer, NULL));
}

/* A run that was saved after its last step, and its trainer. */
static an_trainer *make_run(const char *folder, const char *config) {
    forget(folder);
    write_sums();
    an_trainer *trainer = open_run(config);
    take_steps(trainer, STEPS);
    OK(ctx, an_trainer_save(trainer, STEPS));
    return trainer;
}

static float predict(an_predictor *predictor) {
    float output = 0;
    OK(ctx, an_predictor_run_f32(predictor, 1, sample, &output));
    return output;
}

static float predict_saved(const char *path, an_model_weights weights) {
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    an_predictor *predictor = NULL;
    options.weights = weights;
    OK(ctx, an_predictor_open(&predictor, ctx, path, &options));
    const float output = predict(predictor);
    an_predictor_destroy(&predictor);
    return output;
}

/* ---- going on ---- */

static void test_a_run_that_goes_on_keeps_it(void **state) {
    (void)state;
    char whole[AN_HASH_TEXT], resumed[AN_HASH_TEXT];
    an_trainer *trainer = make_run("averaged", AVERAGED);
    OK(ctx, an_trainer_state_hash(trainer, whole));
    an_trainer_destroy(&trainer);
    for (int64_t stop = 0; stop <= MIDDLE; stop += MIDDLE) { /* also before there is an average */
        forget("averaged");
        trainer = open_run(AVERAGED);
        take_steps(trainer, stop);
        OK(ctx, an_trainer_save(trainer, 1));
        an_trainer_destroy(&trainer);
        trainer = open_run(AVERAGED);
        assert_non_null(an_trainer_resumed(trainer));
        assert_int_equal(an_trainer_next_step(trainer), stop);
        take_steps(trainer, STEPS);
        OK(ctx, an_trainer_state_hash(trainer, resumed));
        assert_string_equal(whole, resumed);
        an_trainer_destroy(&trainer);
    }
}

/* The state of a run without one has nothing new in it, and weights do not depend on it. */
static void test_hashes(void **state) {
    (void)state;
    char hashes[2][2][AN_HASH_TEXT];
    an_trainer *trainers[] = {make_run("averaged", AVERAGED), make_run("plain", PLAIN)};
    for (int i = 0; i < 2; i++) {
        OK(ctx, an_trainer_weights_hash(trainers[i], hashes[i][0]));
        OK(ctx, an_trainer_state_hash(trainers[i], hashes[i][1]));
        an_trainer_destroy(&trainers[i]);
    }
    assert_string_equal(hashes[0][0], hashes[1][0]);
    assert_string_not_equal(hashes[0][1], hashes[1][1]);
}

static void test_other_runs_are_refused(void **state) {
    (void)state;
    an_trainer *trainer = make_run("plain", PLAIN);
    an_trainer_destroy(&trainer);
    refused(PLAIN "train: {ema: 0.7}\n", AN_ERR_ARGUMENT, "train.ema.decay is 0.7, was off");
    trainer = make_run("averaged", AVERAGED);
    an_trainer_destroy(&trainer);
    refused(RUN("averaged") "train: {ema: 0.8}\n", AN_ERR_ARGUMENT, "train.ema.decay is 0.8, was 0.7");
    refused(RUN("averaged") "train: {ema: off}\n", AN_ERR_ARGUMENT, "train.ema.decay is off, was 0.7");
    /* by calls, without a config to compare */
    forget("another");
    trainer = open_run(RUN("another"));
    FAILS(ctx, an_trainer_load(trainer, "averaged/" SAVED), AN_ERR_UNSUPPORTED,
          "keeps a moving average of its weights");
    OK(ctx, an_trainer_load(trainer, "plain/" SAVED));
    an_trainer_destroy(&trainer);
    forget("another");
    trainer = open_run(RUN("another") "train: {ema: 0.7}\n");
    FAILS(ctx, an_trainer_load(trainer, "plain/" SAVED), AN_ERR_UNSUPPORTED, "was trained without a moving average");
    OK(ctx, an_trainer_load(trainer, "averaged/" SAVED));
    an_trainer_destroy(&trainer);
}

/* ---- reading ---- */

static void read_tensor(const char *path, const char *name, float *numbers, int64_t count) {
    an_checkpoint *checkpoint = NULL;
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, path));
    const int64_t index = an_checkpoint_find(checkpoint, name);
    assert_true(index >= 0);
    OK(ctx, an_checkpoint_read(checkpoint, index, 0, count, numbers));
    an_checkpoint_close(&checkpoint);
}

static an_status export_weights(const an_checkpoint *checkpoint, an_model_weights weights) {
    an_export_options options;
    an_export_options_init(&options, sizeof options);
    options.weights = weights;
    return an_checkpoint_export(checkpoint, "exported.safetensors", &options);
}

static void check_export(an_model_weights weights, const char *saved) {
    enum { WEIGHTS = 10 };
    float expected[WEIGHTS], exported[WEIGHTS];
    an_checkpoint *checkpoint = NULL;
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, "averaged"));
    OK(ctx, export_weights(checkpoint, weights));
    an_checkpoint_close(&checkpoint);
    read_tensor("averaged", saved, expected, WEIGHTS);
    read_tensor("exported.safetensors", "hidden.0.weight", exported, WEIGHTS);
    assert_memory_equal(expected, exported, sizeof expected);
}

static void test_exports(void **state) {
    (void)state;
    an_trainer *trainer = make_run("averaged", AVERAGED);
    an_checkpoint *checkpoint = NULL;
    an_checkpoint_tensor tensor;
    an_checkpoint_tensor_init(&tensor, sizeof tensor);
    an_trainer_destroy(&trainer);
    check_export(AN_MODEL_WEIGHTS_AUTO, "ema/hidden.0.weight");
    check_export(AN_MODEL_WEIGHTS_AVERAGE, "ema/hidden.0.weight");
    check_export(AN_MODEL_WEIGHTS_RAW, "hidden.0.weight");
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, "averaged"));
    OK(ctx, an_checkpoint_tensor_get(checkpoint, an_checkpoint_find(checkpoint, "ema/hidden.0.weight"), &tensor));
    assert_int_equal(tensor.role, AN_SAVED_AVERAGE);
    FAILS(ctx, export_weights(checkpoint, (an_model_weights)7), AN_ERR_ARGUMENT, "an_model_weights");
    an_checkpoint_close(&checkpoint);
    trainer = make_run("plain", PLAIN);
    an_trainer_destroy(&trainer);
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, "plain"));
    FAILS(ctx, export_weights(checkpoint, AN_MODEL_WEIGHTS_AVERAGE), AN_ERR_STATE,
          "has no moving average of the weights");
    an_checkpoint_close(&checkpoint);
}

static void test_predictors(void **state) {
    (void)state;
    an_trainer *trainer = make_run("averaged", AVERAGED);
    an_predictor *predictor = NULL;
    OK(ctx, an_predictor_create(&predictor, trainer, NULL));
    const float average = predict(predictor);
    an_predictor_destroy(&predictor);
    an_trainer_destroy(&trainer);
    trainer = make_run("plain", PLAIN);
    OK(ctx, an_predictor_create(&predictor, trainer, NULL));
    const float raw = predict(predictor);
    an_predictor_destroy(&predictor);
    an_trainer_destroy(&trainer);
    assert_true(average != raw);
    assert_true(predict_saved("averaged", AN_MODEL_WEIGHTS_AUTO) == average);
    assert_true(predict_saved("averaged", AN_MODEL_WEIGHTS_AVERAGE) == average);
    assert_true(predict_saved("averaged", AN_MODEL_WEIGHTS_RAW) == raw);
    assert_true(predict_saved("plain", AN_MODEL_WEIGHTS_AUTO) == raw);
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    options.weights = AN_MODEL_WEIGHTS_AVERAGE;
    FAILS(ctx, an_predictor_open(&predictor, ctx, "plain", &options), AN_ERR_STATE, "has no moving average");
}

/* Puts a text of the same length in the place of another one in the manifest, with a correct hash. */
static void change_manifest(const char *from, const char *to) {
    static const char path[] = "averaged/" SAVED "/manifest.json";
    static char text[1 << 16];
    char digits[AN_HASH_DIGITS + 1] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    char *at = strstr(text, from), *hash = strstr(text, "\n\"hash\": \"");
    assert_true(at && hash && at < hash && strlen(from) == strlen(to));
    memcpy(at, to, strlen(to));
    hash += strlen("\n\"hash\": \"");
    const XXH128_hash_t made = XXH3_128bits(text, (size_t)(hash - text));
    an_hash_write(digits, (const uint64_t[]){made.low64, made.high64});
    memcpy(hash, digits, AN_HASH_DIGITS);
    assert_int_equal(unlink(path), 0);
    write_text(path, text);
}

/* A manifest with a correct hash of its own, whose averages are not those of its weights: what reads
 * them has room for weights. */
static void test_averages_of_other_weights(void **state) {
    static const struct {
        const char *from, *to, *name;
    } changes[] = {
        {"ema/hidden.0.weight", "ema/hidden.0.weighT", "ema/hidden.0.weighT"}, /* of no weight */
        {"ema/output.weight\", \"dtype\": \"f32\", \"shape\": [1, 5], \"slices\": [[3, 0, 5, ",
         "ema/output.weight\", \"dtype\": \"f32\", \"shape\": [1, 4], \"slices\": [[3, 0, 4, ", "ema/output.weight"},
    };
    (void)state;
    an_trainer *trainer = make_run("averaged", AVERAGED);
    an_trainer_destroy(&trainer);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char words[128];
        an_checkpoint *checkpoint = NULL;
        an_predictor *predictor = NULL;
        change_manifest(changes[i].from, changes[i].to);
        snprintf(words, sizeof words, "'%s' does not have the shape and type of a weight", changes[i].name);
        OK(ctx, an_checkpoint_open(&checkpoint, ctx, "averaged"));
        FAILS(ctx, export_weights(checkpoint, AN_MODEL_WEIGHTS_AUTO), AN_ERR_DAMAGED, words);
        OK(ctx, export_weights(checkpoint, AN_MODEL_WEIGHTS_RAW));
        an_checkpoint_close(&checkpoint);
        FAILS(ctx, an_predictor_open(&predictor, ctx, "averaged", NULL), AN_ERR_DAMAGED, changes[i].name);
        change_manifest(changes[i].to, changes[i].from);
    }
}

/* A new run that begins with a saved model. */
static void check_start(const char *weights, float expected) {
    char config[1024];
    an_predictor *predictor = NULL;
    forget("started");
    snprintf(config, sizeof config,
             "run: {dir: started, steps: 8}\nmodel: {type: mlp, hidden: [5], init: {from: averaged, weights: %s}}\n"
             "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n",
             weights);
    an_trainer *trainer = open_run(config);
    OK(ctx, an_predictor_create(&predictor, trainer, NULL));
    assert_true(predict(predictor) == expected);
    an_predictor_destroy(&predictor);
    an_trainer_destroy(&trainer);
}

static void test_new_runs(void **state) {
    (void)state;
    an_trainer *trainer = make_run("averaged", AVERAGED);
    an_trainer_destroy(&trainer);
    const float average = predict_saved("averaged", AN_MODEL_WEIGHTS_AVERAGE),
                raw = predict_saved("averaged", AN_MODEL_WEIGHTS_RAW);
    check_start("auto", average);
    check_start("ema", average);
    check_start("raw", raw);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_that_goes_on_keeps_it),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_other_runs_are_refused),
        cmocka_unit_test(test_exports),
        cmocka_unit_test(test_predictors),
        cmocka_unit_test(test_averages_of_other_weights),
        cmocka_unit_test(test_new_runs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

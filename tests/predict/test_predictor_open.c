/* Predictors that are opened from checkpoints: the bits of a predictor of the trainer that saved it, without
 * data, config or trainer. */
#include <fcntl.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/predict.h"
#include "open/support.h"

enum { MOST = 150, MOST_INPUTS = 64, MOST_OUTPUTS = 8 * 64, PATH = 512 };
#define GOLDEN ANNEAL_SOURCE_DIR "/tests/golden/checkpoints/"
#define SUMS "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]"
#define MLP "model: {type: mlp, hidden: [7, 5], activation: tanh, batch_norm: on}\n"
#define CNN                                                            \
    "model: {type: cnn, filters: [3, 4], hidden: 6, batch_norm: on}\n" \
    "data: {train: {type: idx, path: images.idx, labels: labels.idx}}\n"
#define GPT2                                                            \
    "model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8}\n" \
    "data: {train: {type: text, path: poem.txt, tokens: chars}}\n"
#define RUN "batch: {global: 8}\noptimizer: {lr: 5e-3}\nsave: {writers: 3}\nrun: {steps: 5, dir: saved}\n"

static int write_data(void **state) {
    (void)state;
    write_sums();
    write_images();
    write_text("poem.txt", "a line and a line and one more line, and so it goes on and on, line by line\n");
    return 0;
}

/* ---- asking ---- */

static double inputs[MOST * MOST_INPUTS]; /* room for any type */
static _Alignas(double) unsigned char outputs[2][MOST * MOST_OUTPUTS * sizeof(double)];

static void predict(an_predictor *p, int64_t n, void *to) {
    const an_dtype dtype = an_predictor_dtype(p);
    const int64_t count = n * an_predictor_input_elements(p);
    assert_true(an_predictor_input_elements(p) <= MOST_INPUTS && an_predictor_output_elements(p) <= MOST_OUTPUTS);
    for (int64_t i = 0; i < count; i++) {
        const double value = noise((uint64_t)i);
        if (dtype == AN_DTYPE_F64)
            inputs[i] = value;
        else if (dtype == AN_DTYPE_F32)
            ((float *)inputs)[i] = (float)value;
        else
            ((int32_t *)inputs)[i] = (int32_t)(i * 5 % 11);
    }
    an_status status;
    if (dtype == AN_DTYPE_F64)
        status = an_predictor_run_f64(p, n, inputs, to);
    else if (dtype == AN_DTYPE_F32)
        status = an_predictor_run_f32(p, n, (const float *)inputs, to);
    else
        status = an_predictor_run_tokens(p, n, (const int32_t *)inputs, to);
    if (status != AN_OK) fail_msg("%s", an_last_error(NULL));
}

static void assert_same(an_predictor *one, an_predictor *other) {
    static const int64_t batches[] = {1, 3, 64, 65, MOST};
    assert_int_equal(an_predictor_dtype(one), an_predictor_dtype(other));
    assert_int_equal(an_predictor_input_elements(one), an_predictor_input_elements(other));
    assert_int_equal(an_predictor_output_elements(one), an_predictor_output_elements(other));
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        memset(outputs[0], 0, sizeof outputs[0]);
        memset(outputs[1], 0, sizeof outputs[1]);
        predict(one, batches[i], outputs[0]);
        predict(other, batches[i], outputs[1]);
        if (memcmp(outputs[0], outputs[1], sizeof outputs[0]) != 0)
            fail_msg("a batch of %d has other bits", (int)batches[i]);
    }
}

static an_predictor_options options_of(int64_t maximum) {
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    options.max_samples = maximum;
    return options;
}

static an_predictor *predictor_of(an_trainer *trainer) {
    an_predictor *predictor = NULL;
    const an_predictor_options options = options_of(MOST);
    OK(ctx, an_predictor_create(&predictor, trainer, &options));
    return predictor;
}

static an_predictor *open_predictor(const char *path, const an_predictor_options *options) {
    an_predictor *predictor = NULL;
    OK(ctx, an_predictor_open(&predictor, ctx, path, options));
    return predictor;
}

static void open_refused(const char *path, const an_predictor_options *options, an_status status, const char *words) {
    an_predictor *predictor = NULL;
    const an_status given = an_predictor_open(&predictor, ctx, path, options);
    if (given != status) fail_msg("%s, not %s: %s", an_status_name(given), an_status_name(status), an_last_error(ctx));
    assert_null(predictor);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
}

/* A run that was trained and saved in the folder "saved". */
static an_trainer *save_run(const char *config) {
    assert_int_equal(system("rm -rf saved"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    an_trainer *trainer = open_run(config);
    train(trainer);
    OK(ctx, an_trainer_save(trainer, 1));
    return trainer;
}

/* ---- the same bits ---- */

static const char *const runs[] = {
    MLP SUMS "}}\ntrain: {precision: f32}\n" RUN,
    MLP SUMS ", dtype: f64}}\ntrain: {precision: f64}\n" RUN,
    MLP SUMS "}}\ntrain: {precision: bf16}\n" RUN,
    MLP SUMS "}}\ntrain: {precision: f16}\n" RUN,
    MLP SUMS "}}\ntrain: {precision: f32, matmul_precision: medium}\n" RUN,
    CNN "train: {precision: f32}\n" RUN,
    CNN "train: {precision: bf16}\n" RUN,
    GPT2 "train: {precision: f32}\n" RUN,
    GPT2 "train: {precision: bf16}\n" RUN,
};

/* The data is gone when it is opened, and so is all of the run but the checkpoint. */
static void test_same_bits_as_of_the_trainer(void **state) {
    const an_predictor_options options = options_of(MOST);
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        an_trainer *trainer = save_run(runs[i]);
        an_predictor *of_trainer = predictor_of(trainer);
        an_trainer_destroy(&trainer);
        assert_int_equal(rename("sums.csv", "sums.away") | rename("images.idx", "images.away"), 0);
        assert_int_equal(rename("poem.txt", "poem.away"), 0);
        an_predictor *opened = open_predictor("saved", &options);
        assert_same(of_trainer, opened);
        an_predictor_destroy(&opened);
        opened = open_predictor("saved/checkpoints/step-00000005-1-at-1", &options);
        assert_same(of_trainer, opened);
        an_predictor_destroy(&opened);
        an_predictor_destroy(&of_trainer);
        assert_int_equal(rename("sums.away", "sums.csv") | rename("images.away", "images.idx"), 0);
        assert_int_equal(rename("poem.away", "poem.txt"), 0);
    }
}

/* Its weights can be those of a trainer of the same model later on; another model is refused. */
static void test_refresh(void **state) {
    const an_predictor_options options = options_of(MOST);
    (void)state;
    assert_int_equal(system("rm -rf saved"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    an_trainer *trainer = open_run(MLP SUMS "}}\ntrain: {precision: bf16}\n" RUN);
    OK(ctx, an_trainer_step(trainer, NULL));
    OK(ctx, an_trainer_save(trainer, 1));
    an_predictor *opened = open_predictor("saved", &options);
    OK(ctx, an_trainer_step(trainer, NULL));
    an_predictor *of_trainer = predictor_of(trainer);
    predict(opened, 1, outputs[0]);
    predict(of_trainer, 1, outputs[1]);
    assert_true(memcmp(outputs[0], outputs[1], sizeof(float)) != 0);
    OK(ctx, an_predictor_refresh(opened, trainer));
    assert_same(of_trainer, opened);
    an_predictor_destroy(&of_trainer);
    an_trainer_destroy(&trainer);
    trainer = open_run("model: {type: mlp, hidden: [7]}\n" SUMS "}}\n");
    assert_int_equal(an_predictor_refresh(opened, trainer), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(ctx), "different models"));
    an_trainer_destroy(&trainer);
    an_predictor_destroy(&opened);
}

/* ---- sizes ---- */

static an_predictor_options with_tokens(const int64_t *size) {
    static const char *const symbols[] = {"tokens"};
    an_predictor_options options = options_of(MOST);
    options.symbol_count = 1;
    options.symbols = symbols;
    options.sizes = size;
    return options;
}

/* A causal model's first tokens have the same logits in a shorter sequence. */
static void test_shorter_sequences(void **state) {
    const int64_t four = 4;
    const an_predictor_options options = options_of(1), fewer = with_tokens(&four);
    float longer[8 * 64], shorter[8 * 64];
    (void)state;
    an_trainer *trainer = save_run(GPT2 "train: {precision: f32}\n" RUN);
    an_trainer_destroy(&trainer);
    an_predictor *all = open_predictor("saved", &options), *part = open_predictor("saved", &fewer);
    assert_int_equal(an_predictor_input_elements(all), 8);
    assert_int_equal(an_predictor_input_elements(part), 4);
    predict(all, 1, longer);
    predict(part, 1, shorter);
    for (int i = 0; i < an_predictor_output_elements(part); i++) assert_true(fabsf(longer[i] - shorter[i]) < 1e-5F);
    an_predictor_destroy(&part);
    an_predictor_destroy(&all);
}

/* A model without a table of positions, so that nothing but the arithmetic of sizes is in the way. */
static void test_huge_sizes(void **state) {
    static const int64_t sizes[] = {INT64_MAX, (int64_t)1 << 60};
    (void)state;
    an_trainer *trainer = save_run("model: {type: llama, layers: 1, heads: 2, width: 16, context: 8}\n"
                                   "data: {train: {type: text, path: poem.txt, tokens: chars}}\n" RUN);
    an_trainer_destroy(&trainer);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const an_predictor_options options = with_tokens(&sizes[i]);
        open_refused("saved", &options, AN_ERR_OVERFLOW, "does not fit in 64 bits");
    }
}

/* Checkpoints of 0.1 need no options unless the model has a symbol. */
static void test_older_checkpoints(void **state) {
    static const char *const names[] = {"v1-mlp", "v1-cnn", "v1-sgd"};
    const int64_t eight = 8, nine = 9, none = 0;
    char path[PATH];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, GOLDEN "%s/step-00000007-1", names[i]);
        const an_predictor_options options = options_of(MOST);
        an_predictor *p = open_predictor(path, &options);
        predict(p, MOST, outputs[0]);
        an_predictor_destroy(&p);
    }
    snprintf(path, sizeof path, GOLDEN "v1-gpt2/step-00000007-1");
    open_refused(path, NULL, AN_ERR_ARGUMENT, "the model's symbol 'tokens'");
    open_refused(path, NULL, AN_ERR_ARGUMENT, "give it in an_predictor_options, with symbols and sizes");
    an_predictor_options options = with_tokens(&nine); /* the table of positions has eight */
    open_refused(path, &options, AN_ERR_SHAPE, "tokens");
    options = with_tokens(&none);
    open_refused(path, &options, AN_ERR_ARGUMENT, "the size of the symbol 'tokens' is 0");
    options = with_tokens(&eight);
    options.f32_storage = true;
    open_refused(path, &options, AN_ERR_ARGUMENT, "needs precision bf16");
    options.f32_storage = false;
    an_predictor *p = open_predictor(path, &options);
    assert_int_equal(an_predictor_input_elements(p), 8);
    predict(p, MOST, outputs[0]);
    an_predictor_destroy(&p);
}

/* The weights of a checkpoint of 0.1 are those that a trainer of its config has. */
static void test_older_bits(void **state) {
    static const struct {
        const char *name, *config;
    } models[] = {
        {"v1-gpt2", "model: {type: gpt2, layers: 1, heads: 2, width: 8, context: 8, dropout: 0.1}\n"
                    "data: {train: {type: text, path: " GOLDEN "data/words.txt, tokens: chars, part: 0%..90%}}\n"
                    "train: {precision: f32}\noptimizer: {lr: 3e-3, weight_decay: 0.1}\nbatch: {global: 8, leaves: 4}\n"
                    "run: {steps: 15}\n"},
        {"v1-cnn", "model: {type: cnn, filters: [3, 4], hidden: 6, batch_norm: on}\n"
                   "data: {train: {type: idx, path: " GOLDEN "data/images.idx, labels: " GOLDEN "data/labels.idx}}\n"
                   "train: {precision: bf16}\nbatch: {global: 8}\nrun: {steps: 15}\n"},
    };
    const int64_t eight = 8;
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[PATH];
        snprintf(path, sizeof path, GOLDEN "%s/step-00000007-1", models[i].name);
        const an_predictor_options options = i == 0 ? with_tokens(&eight) : options_of(MOST);
        an_trainer *trainer = open_run(models[i].config);
        OK(ctx, an_trainer_load(trainer, path));
        an_predictor *of_trainer = predictor_of(trainer), *opened = open_predictor(path, &options);
        assert_same(of_trainer, opened);
        an_predictor_destroy(&opened);
        an_predictor_destroy(&of_trainer);
        an_trainer_destroy(&trainer);
    }
}

static void test_wrong_options(void **state) {
    static const char *const batch[] = {"batch"}, *const other[] = {"heads"}, *const null[] = {NULL};
    const int64_t one = 1;
    an_predictor *predictor = NULL;
    (void)state;
    an_trainer *trainer = save_run(GPT2 "train: {precision: f32}\n" RUN);
    an_predictor_options options = with_tokens(&one);
    assert_int_equal(an_predictor_create(&predictor, trainer, &options), AN_ERR_ARGUMENT);
    assert_non_null(strstr(an_last_error(ctx), "options of an_predictor_open"));
    an_trainer_destroy(&trainer);
    options.symbols = batch;
    open_refused("saved", &options, AN_ERR_ARGUMENT, "its option is 'most'");
    options.symbols = other;
    open_refused("saved", &options, AN_ERR_UNKNOWN, "the model has no symbol 'heads'");
    options.symbols = null;
    open_refused("saved", &options, AN_ERR_ARGUMENT, "symbols[0] is NULL");
    options.symbols = NULL;
    open_refused("saved", &options, AN_ERR_ARGUMENT, "symbols or sizes is NULL");
    options.symbol_count = -1;
    open_refused("saved", &options, AN_ERR_ARGUMENT, "symbol_count is -1");
    options = options_of(0);
    open_refused("saved", &options, AN_ERR_ARGUMENT, "max_samples is 0");
    options = options_of(1);
    options.output = "nothing";
    open_refused("saved", &options, AN_ERR_UNKNOWN, "no output 'nothing'");
}

/* ---- what is no checkpoint, or a damaged one ---- */

static void flip(const char *path, off_t at) {
    unsigned char byte = 0;
    const int file = open(path, O_RDWR);
    assert_true(file >= 0 && pread(file, &byte, 1, at) == 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
}

static void test_refused(void **state) {
    an_checkpoint *checkpoint = NULL;
    (void)state;
    an_trainer *trainer = save_run(MLP SUMS "}}\ntrain: {precision: f32}\n" RUN);
    an_trainer_destroy(&trainer);
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, "saved"));
    OK(ctx, an_checkpoint_export(checkpoint, "exported.safetensors", NULL));
    an_checkpoint_close(&checkpoint);
    open_refused("exported.safetensors", NULL, AN_ERR_UNSUPPORTED, "an_predictor_create");
    open_refused("nowhere", NULL, AN_ERR_FILE, "nowhere");
#define SAVED "saved/checkpoints/step-00000005-1-at-1/"
    const char *const files[] = {SAVED "part-00000.safetensors", SAVED "graph.ang", SAVED "manifest.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        flip(files[i], 100);
        open_refused(SAVED, NULL, AN_ERR_DAMAGED, "is damaged");
        flip(files[i], 100);
    }
    flip(SAVED "config.yaml", 10); /* which it does not read */
    an_predictor *predictor = open_predictor(SAVED, NULL);
    an_predictor_destroy(&predictor);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_same_bits_as_of_the_trainer, write_data),
        cmocka_unit_test_setup(test_refresh, write_data),
        cmocka_unit_test_setup(test_shorter_sequences, write_data),
        cmocka_unit_test_setup(test_huge_sizes, write_data),
        cmocka_unit_test_setup(test_older_checkpoints, write_data),
        cmocka_unit_test_setup(test_older_bits, write_data),
        cmocka_unit_test_setup(test_wrong_options, write_data),
        cmocka_unit_test_setup(test_refused, write_data),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

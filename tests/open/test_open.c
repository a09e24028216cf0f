/* Runs from a config: the file alone makes data, model and trainer. */
#include <unistd.h>

#include "anneal/train.h"
#include "support/support.h"

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

/* A file in the test's own folder. */
static void write_file(const char *name, const void *bytes, size_t length) {
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void write_text(const char *name, const char *text) {
    write_file(name, text, strlen(text));
}

static an_trainer *open_run(const char *config) {
    an_trainer *trainer = NULL;
    write_text("run.yaml", config);
    OK(ctx, an_trainer_open(&trainer, ctx, "run.yaml", NULL));
    return trainer;
}

static double train(an_trainer *trainer) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    while (an_trainer_next_step(trainer) < an_trainer_steps(trainer)) OK(ctx, an_trainer_step(trainer, &metrics));
    return metrics.loss;
}

static void refused(const char *config, an_status status, const char *words) {
    an_trainer *trainer = NULL;
    write_text("run.yaml", config);
    assert_int_equal(an_trainer_open(&trainer, ctx, "run.yaml", NULL), status);
    assert_null(trainer);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
}

/* ---- text ---- */

static void write_poem(void) {
    enum { LINES = 200 };
    char text[LINES * 16];
    size_t length = 0;
    for (int i = 0; i < LINES; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "line %d of it\n", i % 10);
    write_file("poem.txt", text, length);
}

static const char text_run[] = "run: {steps: 30, seed: 3}\n"
                               "model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8}\n"
                               "data:\n"
                               "  train: {type: text, path: poem.txt, tokens: chars, part: 0%..90%}\n"
                               "  eval: {type: text, path: poem.txt, tokens: chars, part: 90%..100%}\n"
                               "batch: {global: 16}\n"
                               "optimizer: {lr: 1e-2, betas: [0.9, 0.99], weight_decay: 0.1}\n"
                               "schedule: {type: cosine, warmup: 10%, min_ratio: 0.1}\n"
                               "train: {precision: f32}\n";

static void test_text_run_learns(void **state) {
    an_evaluation before, after;
    an_evaluation_init(&before, sizeof before);
    an_evaluation_init(&after, sizeof after);
    (void)state;
    write_poem();
    an_trainer *trainer = open_run(text_run);
    assert_int_equal(an_trainer_steps(trainer), 30);
    OK(ctx, an_trainer_evaluate(trainer, &before));
    train(trainer);
    OK(ctx, an_trainer_evaluate(trainer, &after));
    assert_true(after.loss < before.loss / 1.5);
    assert_int_equal(after.targets, after.samples * 8);
    an_trainer_destroy(&trainer);
}

/* The warm-up is a share of the run: three steps of thirty. */
static void test_lengths_become_steps(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    write_poem();
    an_trainer *trainer = open_run(text_run);
    const double expected[] = {1.0 / 3, 5.0 / 9, 7.0 / 9, 1};
    for (int i = 0; i < 4; i++) {
        OK(ctx, an_trainer_step(trainer, &metrics));
        assert_true(fabs(metrics.rate - 1e-2 * expected[i]) < 1e-15);
    }
    an_trainer_destroy(&trainer);
}

/* ---- tables and images ---- */

static void test_csv_run_learns(void **state) {
    enum { ROWS = 120 };
    char text[ROWS * 40] = "a,b,sum\n";
    size_t length = strlen(text);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    (void)state;
    for (int i = 0; i < ROWS; i++) {
        const double a = i % 11 / 10.0, b = i % 7 / 6.0;
        length += (size_t)snprintf(text + length, sizeof text - length, "%.3f,%.3f,%.3f\n", a, b, a + b);
    }
    write_file("sums.csv", text, length);
    an_trainer *trainer =
        open_run("run: {epochs: 40}\n"
                 "model: {type: mlp, hidden: [16], activation: tanh}\n"
                 "data: {train: {type: csv, path: sums.csv, dtype: f64}, eval: {type: csv, path: sums.csv, "
                 "dtype: f64}}\n"
                 "batch: {micro: 4, accumulate: 4, leaves: 2}\n"
                 "optimizer: {lr: 1e-2}\n");
    assert_int_equal(an_trainer_steps(trainer), 40 * 8); /* 120 samples by 16: eight steps, the last of 8 */
    train(trainer);
    OK(ctx, an_trainer_evaluate(trainer, &evaluation));
    assert_true(evaluation.measures && evaluation.r2 > 0.99);
    an_trainer_destroy(&trainer);
}

static void test_idx_run_finds_its_classes(void **state) {
    enum { IMAGES = 40, SIDE = 6 };
    unsigned char images[16 + IMAGES * SIDE * SIDE] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
    unsigned char labels[8 + IMAGES] = {0, 0, 8, 1, 0, 0, 0, IMAGES};
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    (void)state;
    for (int i = 0; i < IMAGES; i++) {
        labels[8 + i] = (unsigned char)(i % 4);
        for (int k = 0; k < SIDE; k++) images[16 + (i * SIDE + i % 4) * SIDE + k] = 255; /* class c is line c */
    }
    write_file("images.idx", images, sizeof images);
    write_file("labels.idx", labels, sizeof labels);
    an_trainer *trainer =
        open_run("run: {epochs: 30}\n"
                 "model: {type: cnn, filters: [4], hidden: 8}\n"
                 "data: {train: {type: idx, path: images.idx, labels: labels.idx}, eval: {type: idx, path: "
                 "images.idx, labels: labels.idx}}\n"
                 "batch: {global: 8}\n"
                 "optimizer: {lr: 1e-2}\n");
    train(trainer);
    OK(ctx, an_trainer_evaluate(trainer, &evaluation));
    assert_true(evaluation.classifies && evaluation.accuracy == 1);
    an_trainer_destroy(&trainer);
}

/* ---- mistakes ---- */

static void test_mistakes_have_their_place(void **state) {
    (void)state;
    write_poem();
    refused("model: {type: gpt2}\ndata: {train: {type: text, path: no-such.txt}}\n", AN_ERR_FILE, "no-such.txt");
    refused("model: {type: mpl}\ndata: {train: {type: text, path: poem.txt}}\n", AN_ERR_PARSE, "run.yaml:1:15: ");
    refused("model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8}\n"
            "data: {train: {type: text, path: poem.txt}}\n"
            "optimizer: {groups: [{match: nothing, freeze: on}]}\n",
            AN_ERR_ARGUMENT, "the pattern 'nothing' of a group matches no parameter");
    refused("model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8}\n"
            "data: {train: {type: text, path: poem.txt}}\n"
            "train: {on_nonfinite: rollback}\n",
            AN_ERR_PARSE,
            "run.yaml:3:23: train.on_nonfinite is 'rollback'; use skip, which ends with the same weights");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_run_learns),
        cmocka_unit_test(test_lengths_become_steps),
        cmocka_unit_test(test_csv_run_learns),
        cmocka_unit_test(test_idx_run_finds_its_classes),
        cmocka_unit_test(test_mistakes_have_their_place),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

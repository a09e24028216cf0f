/* What is minimised, as a config says: label smoothing, and means over samples. */
#include "open/support.h"

#define CLASSES "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [class], classes: on}}\n"
#define REST "run: {steps: 3, seed: 7}\nbatch: {global: 12}\noptimizer: {lr: 1e-2}\n"

static double first_loss(const char *model, const char *loss) {
    char text[512];
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    snprintf(text, sizeof text, "%s" REST "train: {precision: f32%s}\n", model, loss);
    an_trainer *trainer = open_run(text);
    OK(ctx, an_trainer_step(trainer, &metrics));
    an_trainer_destroy(&trainer);
    return metrics.loss;
}

/* (1 - s)·(loss) + s·(mean over all classes): linear in s. */
static void test_smoothing_is_linear_in_its_share(void **state) {
    (void)state;
    write_sums();
    write_text("poem.txt", "a line and a line and one more line, and so it goes on and on, line by line\n");
    static const char *const models[] = {
        "model: {type: mlp, hidden: [5]}\n" CLASSES, /* and one whose loss is fused with the product before it */
        "model: {type: gpt2, layers: 1, heads: 2, width: 32, context: 8}\ndata: {train: {type: text, path: "
        "poem.txt}}\n"};
    for (int i = 0; i < 2; i++) {
        const double none = first_loss(models[i], ""), some = first_loss(models[i], ", loss: {label_smoothing: 0.2}"),
                     more = first_loss(models[i], ", loss: {label_smoothing: 0.4}");
        assert_true(fabs(some - none) > 1e-5);
        assert_true(fabs((more - none) - 2 * (some - none)) < 2e-6);
    }
}

/* The same graph as a text that has the attribute. */
static void test_smoothing_is_the_loss_ops_own(void **state) {
    static const char graph[] = "ang 1\nsymbol batch\n"
                                "%%x = input(name=\"x\") : f32[batch,2]\n%%y = input(name=\"y\") : i32[batch]\n"
                                "%%w = param(name=\"w\", initializer=2, scale=0.7) : f32[3,2]\n"
                                "%%o = matmul(%%x, %%w, transpose_b=true)\n"
                                "%%l, _ = cross_entropy(%%o, %%y, ignored=-100%s)\nloss %%l targets %%y\n";
    static const char *const runs[][2] = {{", label_smoothing=0.3", ""},
                                          {"", "train: {loss: {label_smoothing: 0.3}}\n"}};
    char text[1024], hashes[2][AN_HASH_TEXT];
    (void)state;
    write_sums();
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, graph, runs[i][0]);
        write_text("classes.ang", text);
        snprintf(text, sizeof text, "model: {graph: classes.ang}\n" CLASSES REST "%s", runs[i][1]);
        an_trainer *trainer = open_run(text);
        train(trainer);
        OK(ctx, an_trainer_weights_hash(trainer, hashes[i]));
        an_trainer_destroy(&trainer);
    }
    assert_string_equal(hashes[0], hashes[1]);
}

static void test_smoothing_needs_classes(void **state) {
    (void)state;
    write_sums();
    refused("model: {type: mlp}\ndata: {train: {type: csv, path: sums.csv, targets: [sum]}}\n"
            "train: {loss: {label_smoothing: 0.1}}\n",
            AN_ERR_ARGUMENT,
            "run.yaml:3:33: train.loss.label_smoothing: label smoothing needs a model whose loss is a cross entropy");
}

/* ---- means over samples ---- */

enum { SAMPLES = 5, PLACES = 4, FEATURES = 3, KINDS = 6 };

static float inputs[SAMPLES][PLACES][FEATURES];
static int32_t targets[SAMPLES][PLACES];

/* Samples with 1, 4, 0, 2 and 4 targets. */
static void make_samples(void) {
    static const int counts[SAMPLES] = {1, 4, 0, 2, 4};
    for (int i = 0; i < SAMPLES; i++)
        for (int p = 0; p < PLACES; p++) {
            targets[i][p] = p < counts[i] ? (i * 3 + p) % KINDS : -100;
            for (int f = 0; f < FEATURES; f++)
                inputs[i][p][f] = (float)noise(((uint64_t)i * PLACES + (uint64_t)p) * FEATURES + (uint64_t)f);
        }
}

static const char places_graph[] = "ang 1\nsymbol batch\n"
                                   "%x = input(name=\"x\") : f32[batch,4,3]\n%y = input(name=\"y\") : i32[batch,4]\n"
                                   "%w = param(name=\"w\", initializer=2, scale=0.7) : f32[6,3]\n"
                                   "%o = matmul(%x, %w, transpose_b=true)\n"
                                   "%l, _ = cross_entropy(%o, %y, ignored=-100)\nloss %l targets %y\n";

/* The weights after one plain step on some samples, and its loss. */
static double step_on(const char *options, int first, int count, float weights[KINDS * FEATURES],
                      an_step_metrics *metrics) {
    char text[512];
    const int64_t input_dims[] = {count, PLACES, FEATURES}, target_dims[] = {count, PLACES}, dims[] = {KINDS, FEATURES};
    const an_array x = array_of(inputs[first], AN_DTYPE_F32, 3, input_dims),
                   y = array_of(targets[first], AN_DTYPE_I32, 2, target_dims);
    an_array w = array_of(weights, AN_DTYPE_F32, 2, dims);
    write_text("places.ang", places_graph);
    snprintf(text, sizeof text,
             "model: {graph: places.ang}\ndata: {source: stream}\n"
             "optimizer: {type: sgd, lr: 0.5, weight_decay: 0}\n%s",
             options);
    an_trainer *trainer = open_run(text);
    OK(ctx, an_trainer_step_on(trainer, count, &x, &y, metrics));
    OK(ctx, an_params_get(an_trainer_params(trainer), "w", AN_PART_WEIGHT, &w));
    an_trainer_destroy(&trainer);
    return metrics->loss;
}

#define MEANS "train: {precision: f32, clip_norm: off, loss: {reduction: sample_mean}}\n"
#define MEAN "train: {precision: f32, clip_norm: off}\n"

/* A plain step on all of them is the mean of the steps on each: those without targets do not count. */
static void test_sample_mean_is_a_mean_over_samples(void **state) {
    static const char *const cuts[] = {"batch: {global: 5}\n", "batch: {global: 5, micro: 2}\n",
                                       "batch: {global: 5, leaves: 2}\n", "batch: {global: 5, leaves: 5}\n"};
    float all[KINDS * FEATURES], one[KINDS * FEATURES];
    double mean[KINDS * FEATURES] = {0}, loss = 0;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    char text[256];
    (void)state;
    make_samples();
    for (int i = 0; i < SAMPLES; i++) {
        if (i == 2) continue;
        loss += step_on(MEAN, i, 1, one, &metrics) / 4;
        for (int k = 0; k < KINDS * FEATURES; k++) mean[k] += one[k] / 4;
    }
    for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
        snprintf(text, sizeof text, "%s" MEANS, cuts[c]);
        const double given = step_on(text, 0, SAMPLES, all, &metrics);
        if (!(fabs(given - loss) < 1e-6)) fail_msg("%s: the loss is %g, not %g", cuts[c], given, loss);
        for (int k = 0; k < KINDS * FEATURES; k++) assert_true(fabs(all[k] - mean[k]) < 1e-6);
        assert_int_equal(metrics.targets, 11);
    }
    step_on(MEAN, 0, SAMPLES, all, &metrics); /* the mean over targets is another */
    int different = 0;
    for (int k = 0; k < KINDS * FEATURES; k++) different += fabs(all[k] - mean[k]) > 1e-3;
    assert_true(different > 0);
    assert_true(fabs(metrics.loss - loss) > 1e-3);
}

/* Where every sample has as many targets, both are the same, to the last bit. */
static void test_means_agree_where_counts_do(void **state) {
    float mean[KINDS * FEATURES], means[KINDS * FEATURES];
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    make_samples();
    memcpy(targets[0], targets[1], sizeof targets[0]);
    step_on("batch: {global: 2}\n" MEAN, 0, 2, mean, &metrics);
    step_on("batch: {global: 2}\n" MEANS, 0, 2, means, &metrics);
    assert_memory_equal(mean, means, sizeof mean);
    assert_int_equal(metrics.samples, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smoothing_is_linear_in_its_share),
        cmocka_unit_test(test_smoothing_is_the_loss_ops_own),
        cmocka_unit_test(test_smoothing_needs_classes),
        cmocka_unit_test(test_sample_mean_is_a_mean_over_samples),
        cmocka_unit_test(test_means_agree_where_counts_do),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

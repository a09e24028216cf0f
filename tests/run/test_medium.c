/* matmul_precision: medium. Products read bf16 and everything is stored in f32: against the same model written out in
 * f32 with its inputs rounded, which differs in the order of sums only. */
#include "anneal/models.h"
#include "anneal/predict.h"
#include "open/support.h"

enum { SAMPLES = 16, INPUTS = 24, OUTPUTS = 3 };

static float x[SAMPLES][INPUTS], y[SAMPLES][OUTPUTS];

static void make_samples(void) {
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < INPUTS; k++) x[i][k] = (float)noise((uint64_t)i * INPUTS + (uint64_t)k);
        for (int k = 0; k < OUTPUTS; k++) y[i][k] = (float)(x[i][k] * x[i][k + 3]);
    }
}

/* A linear layer whose operands are rounded where `rounds`, written out. */
static void write_model(bool rounds) {
    static const char round[] = "%%%c1 = cast(%%%c, dtype=bf16)\n%%%c2 = cast(%%%c1, dtype=f32)\n";
    char text[2048], *at = text;
    at += sprintf(at, "ang 1\nsymbol batch\n%%x = input(name=\"x\") : f32[batch,%d]\n", INPUTS);
    at += sprintf(at, "%%y = input(name=\"y\") : f32[batch,%d]\n", OUTPUTS);
    at += sprintf(at, "%%w = param(name=\"w\", initializer=2, scale=0.2) : f32[32,%d]\n", INPUTS);
    at += sprintf(at, "%%v = param(name=\"v\", initializer=2, scale=0.2) : f32[%d,32]\n", OUTPUTS);
    if (rounds) at += sprintf(at, round, 'x', 'x', 'x', 'x'), at += sprintf(at, round, 'w', 'w', 'w', 'w');
    at += sprintf(at, "%%h = matmul(%s, transpose_b=true)\n%%t = tanh(%%h)\n", rounds ? "%x2, %w2" : "%x, %w");
    if (rounds) at += sprintf(at, round, 't', 't', 't', 't'), at += sprintf(at, round, 'v', 'v', 'v', 'v');
    at += sprintf(at, "%%o = matmul(%s, transpose_b=true)\n", rounds ? "%t2, %v2" : "%t, %v");
    sprintf(at, "%%l = squared_error(%%o, %%y)\noutput(%%o, name=\"o\")\nloss %%l targets %%y\n");
    write_text("model.ang", text);
}

static an_trainer *open_model(const char *precision) {
    char text[256];
    snprintf(text, sizeof text,
             "model: {graph: model.ang}\ndata: {source: stream}\nbatch: {global: 16}\n"
             "optimizer: {type: sgd, lr: 0.5, weight_decay: 0}\ntrain: {precision: f32, clip_norm: off%s}\n",
             precision);
    return open_run(text);
}

static double first_loss(const char *precision, double *norm) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_trainer *trainer = open_model(precision);
    OK(ctx, an_trainer_step_on_f32(trainer, SAMPLES, &x[0][0], &y[0][0], &metrics));
    an_trainer_destroy(&trainer);
    *norm = metrics.norm;
    return metrics.loss;
}

static void test_products_round_what_they_read(void **state) {
    double exact_norm, medium_norm, written_norm;
    (void)state;
    make_samples();
    write_model(false);
    const double exact = first_loss("", &exact_norm), medium = first_loss(", matmul_precision: medium", &medium_norm);
    write_model(true);
    const double written = first_loss("", &written_norm);
    assert_true(fabs(medium - exact) > 1e-5 * exact);                    /* it rounds … */
    assert_true(fabs(medium - written) < 2e-6 * exact);                  /* … as the model that says so */
    assert_true(fabs(medium_norm - written_norm) < 1e-2 * written_norm); /* which rounds other gradients */
    assert_true(fabs(medium_norm - exact_norm) < 2e-2 * exact_norm);
}

/* It learns as in f32, and a predictor gives what evaluation would. */
static void test_medium_learns(void **state) {
    double losses[2];
    (void)state;
    make_samples();
    write_model(false);
    for (int i = 0; i < 2; i++) {
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        an_predictor *predictor = NULL;
        an_predictor_options options;
        an_predictor_options_init(&options, sizeof options);
        float outputs[SAMPLES][OUTPUTS];
        double loss = 0;
        an_trainer *trainer = open_model(i ? ", matmul_precision: medium" : "");
        for (int s = 0; s < 200; s++) OK(ctx, an_trainer_step_on_f32(trainer, SAMPLES, &x[0][0], &y[0][0], &metrics));
        options.max_samples = SAMPLES;
        OK(ctx, an_predictor_create(&predictor, trainer, &options));
        OK(ctx, an_predictor_run_f32(predictor, SAMPLES, &x[0][0], &outputs[0][0]));
        OK(ctx, an_trainer_step_on_f32(trainer, SAMPLES, &x[0][0], &y[0][0], &metrics));
        for (int k = 0; k < SAMPLES * OUTPUTS; k++)
            loss += pow((&outputs[0][0])[k] - (&y[0][0])[k], 2) / (SAMPLES * OUTPUTS);
        assert_true(fabs(loss - metrics.loss) < 1e-5 * loss);
        losses[i] = metrics.loss;
        an_predictor_destroy(&predictor);
        an_trainer_destroy(&trainer);
    }
    assert_true(losses[0] < 0.05);
    assert_true(fabs(losses[1] - losses[0]) < 0.05 * losses[0]);
}

/* Images, and a language model whose attention stays in f32. */
static void test_other_models_train(void **state) {
    (void)state;
    write_images();
    write_text("poem.txt", "a line and a line and one more line, and so it goes on and on, line by line\n");
    static const char *const runs[] = {"model: {type: cnn, filters: [4], hidden: 8}\ndata: {train: {type: idx, path: "
                                       "images.idx, labels: labels.idx}}\n",
                                       "model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8}\ndata: {train: "
                                       "{type: text, path: poem.txt}}\n"};
    for (int i = 0; i < 2; i++) {
        char text[512];
        double losses[2];
        for (int medium = 0; medium < 2; medium++) {
            snprintf(text, sizeof text, "%srun: {steps: 20}\noptimizer: {lr: 5e-3}\ntrain: {precision: f32%s}\n",
                     runs[i], medium ? ", matmul_precision: medium" : "");
            an_trainer *trainer = open_run(text);
            losses[medium] = train(trainer);
            an_trainer_destroy(&trainer);
        }
        assert_true(losses[0] != losses[1]);
        assert_true(fabs(losses[1] - losses[0]) < 0.03 * losses[0]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_round_what_they_read),
        cmocka_unit_test(test_medium_learns),
        cmocka_unit_test(test_other_models_train),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

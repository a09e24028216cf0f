/* Runs of models with ops and kernels of the program: opened from a config, resumed by a program that has them,
 * refused by one that has not. */
#include "anneal/checkpoint.h"
#include "anneal/experimental.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "support/own_ops.h"

#include "open/support.h" /* last: its context would hide in others' parameters */

enum { MIDDLE = 6, OUTPUTS = 150 };

#define DATA "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"
#define RUN "run: {steps: 12, dir: "

static const char model[] = "ang 1\n"
                            "graph \"own\"\n"
                            "symbol batch\n"
                            "%x = input(name=\"x\") : f32[batch,2]\n"
                            "%t = input(name=\"targets\") : f32[batch,1]\n"
                            "%w = param(name=\"w\", initializer=2, scale=0.7) : f32[8,2]\n"
                            "%b = param(name=\"b\", initializer=2, scale=0.7) : f32[8]\n"
                            "%1 = matmul(%x, %w, transpose_b=true)\n"
                            "%2 = bias(%1, %b, axis=1)\n"
                            "%h = steep_relu(%2, slope=1) : f32[batch,8]\n"
                            "%v = param(name=\"v\", initializer=2, scale=0.3) : f32[1,8]\n"
                            "%y = matmul(%h, %v, transpose_b=true) : f32[batch,1]\n"
                            "output(%y, name=\"y\")\n"
                            "%l = squared_error(%y, %t)\n"
                            "loss %l targets %t\n";

static an_status open_text(an_trainer **trainer, const char *text, bool new_bits) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    an_config *config = NULL;
    write_text("run.yaml", text);
    options.file = "run.yaml";
    open.new_bits = new_bits;
    OK(ctx, an_config_create(&config, ctx, &options));
    const an_status status = an_trainer_open_config(trainer, ctx, config, &open);
    an_config_destroy(&config);
    return status;
}

static void write_files(const char *folder) {
    char command[128], *own, relu[sizeof model];
    write_sums();
    write_text("own.ang", model);
    memcpy(relu, model, sizeof model); /* the same model with the library's op */
    own = strstr(relu, "steep_relu(%2, slope=1)");
    assert_non_null(own);
    memcpy(own, "relu(%2)               ", strlen("steep_relu(%2, slope=1)"));
    write_text("relu.ang", relu);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

/* A context that knows nothing but what is built in. */
static void new_context(void) {
    an_context_destroy(&ctx);
    assert_int_equal(context_with_ledger(&ctx, &counted, 2), AN_OK);
}

static void predict(an_trainer *trainer, float *outputs) {
    static float inputs[OUTPUTS][2];
    an_predictor *predictor = NULL;
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    for (int i = 0; i < OUTPUTS; i++) inputs[i][0] = (float)i / OUTPUTS, inputs[i][1] = (float)(i % 7) / 7;
    options.max_samples = OUTPUTS;
    options.threads = 2;
    OK(ctx, an_predictor_create(&predictor, trainer, &options));
    OK(ctx, an_predictor_run_f32(predictor, OUTPUTS, inputs[0], outputs));
    an_predictor_destroy(&predictor);
}

/* From the checkpoint of the middle, if there is one, to the end. */
static void finish(const char *text, bool resumes, char weights[AN_HASH_TEXT], float *outputs) {
    an_trainer *trainer = NULL;
    OK(ctx, open_text(&trainer, text, false));
    assert_int_equal(an_trainer_next_step(trainer), resumes ? MIDDLE : 0);
    train(trainer);
    OK(ctx, an_trainer_weights_hash(trainer, weights));
    predict(trainer, outputs);
    an_trainer_destroy(&trainer);
}

static void save_middle(const char *text) {
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, open_text(&trainer, text, false));
    for (int i = 0; i < MIDDLE; i++) OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, MIDDLE));
    an_trainer_destroy(&trainer);
}

/* ---- an op ---- */

static void test_op_in_config(void **state) {
    static const char own[] = RUN "own}\nmodel: {graph: own.ang}\n" DATA,
                      usual[] = RUN "usual}\nmodel: {graph: relu.ang}\n" DATA;
    static float usual_outputs[OUTPUTS], outputs[OUTPUTS];
    char usual_weights[AN_HASH_TEXT], weights[AN_HASH_TEXT];
    an_trainer *trainer = NULL;
    an_predictor *predictor = NULL;
    (void)state;
    write_files("own usual");
    finish(usual, false, usual_weights, usual_outputs);
    FAILS(ctx, open_text(&trainer, own, false), AN_ERR_PARSE, "own.ang:10:6: there is no op 'steep_relu'");
    OK(ctx, add_steep(ctx));
    save_middle(own);
    new_context(); /* a program without the op cannot resume, one with it can */
    FAILS(ctx, open_text(&trainer, own, false), AN_ERR_PARSE, "there is no op 'steep_relu'");
    assert_null(trainer);
    FAILS(ctx, an_predictor_open(&predictor, ctx, "own", NULL), AN_ERR_PARSE, "there is no op 'steep_relu'");
    OK(ctx, add_steep(ctx));
    steep_runs = 0;
    OK(ctx, an_predictor_open(&predictor, ctx, "own", NULL));
    OK(ctx, an_predictor_run_f32(predictor, 1, (const float[]){1, 2}, outputs));
    assert_int_equal(steep_runs, 1);
    an_predictor_destroy(&predictor);
    steep_runs = 0;
    finish(own, true, weights, outputs);
    assert_true(steep_runs >= MIDDLE);
    assert_string_equal(weights, usual_weights);
    assert_memory_equal(outputs, usual_outputs, sizeof outputs);
}

/* ---- a kernel ---- */

static int mine_runs;

static an_status run_mine(const an_call *call) {
    const float *src = call->src[0].data;
    float *dst = call->dst[0].data;
    mine_runs++;
    for (int64_t i = 0; i < own_elements(&call->dst[0]); i++) dst[i] = src[i] < 0 ? 0 : src[i];
    return AN_OK;
}

static void test_kernel_in_checkpoint(void **state) {
    static const char text[] = RUN "kernel}\nmodel: {type: mlp, hidden: [8]}\n" DATA;
    const an_kernel mine = {.name = "mine", .applies = own_is_f32, .run = run_mine},
                    yours = {.name = "yours", .applies = own_is_f32, .run = run_mine};
    static float outputs[OUTPUTS];
    char weights[AN_HASH_TEXT];
    an_trainer *trainer = NULL;
    (void)state;
    write_files("kernel");
    OK(ctx, an_context_add_kernel(ctx, "relu", &mine));
    save_middle(text);
    assert_int_equal(mine_runs, MIDDLE);
    new_context();
    FAILS(ctx, open_text(&trainer, text, false), AN_ERR_UNSUPPORTED,
          "the run has used kernels relu=mine until now, but here it would be chosen by default");
    OK(ctx, an_context_add_kernel(ctx, "relu", &yours));
    FAILS(ctx, open_text(&trainer, text, false), AN_ERR_UNSUPPORTED,
          "the run has used kernels relu=mine until now, but here it would be relu=yours");
    assert_null(trainer);
    OK(ctx, open_text(&trainer, text, true)); /* who allows new bits may */
    an_trainer_destroy(&trainer);
    OK(ctx, an_context_add_kernel(ctx, "relu", &mine)); /* the last one is asked first */
    finish(text, true, weights, outputs);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_op_in_config, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_kernel_in_checkpoint, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

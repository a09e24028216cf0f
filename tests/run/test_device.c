/* Whole runs on a device that has memory and kernels of its own (apart_device.h): the host's bits, and nobody
 * else touches that memory. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/experimental.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "base/device.h"
#include "run/apart_device.h"
#include "support/poisoned_device.h"
#include "train/trainer.h"

#include "open/support.h" /* last: its context would hide in others' parameters */

enum { STEPS = 12, MIDDLE = 5, MOST_TEXT = 1024, OUTPUTS = 7 };

static an_device device;
static apart_memory memory;

static int begin_device(void **state) {
    (void)state;
    apart_begin(&memory);
    device = apart_device(&memory);
    write_sums();
    return 0;
}

static int end_device(void **state) {
    (void)state;
    apart_end(&memory);
    return 0;
}

/* A context on the device, or on the host with the level of instructions whose bits the device's kernels have. */
static void begin_context(const an_device *on) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.device = on;
    options.threads = 1;
    options.isa = AN_ISA_BASE;
    assert_int_equal(an_context_create(&ctx, &options), AN_OK);
}

/* Four leaves a step of two micro-batches each; gradients that are clipped; evaluations on the way. */
static bool allows_new_bits;

static an_status open_on(an_trainer **trainer, const char *folder, const char *activation) {
    char text[MOST_TEXT], command[MOST_TEXT];
    an_config *config = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_open_options open;
    an_open_options_init(&open, sizeof open);
    snprintf(text, sizeof text,
             "run: {dir: %s, steps: %d}\n"
             "model: {type: mlp, hidden: [7, 5], activation: %s}\n"
             "optimizer: {type: adamw, lr: 1e-2, weight_decay: 0.1}\n"
             "train: {clip_norm: 0.05, precision: f32, ema: 0.8}\n"
             "batch: {global: 16, leaves: 4, micro: 2}\n"
             "eval: {every: 4 steps}\n"
             "data:\n"
             "  train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}\n"
             "  eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}\n"
             "  threads: 0\n",
             folder, STEPS, activation);
    snprintf(command, sizeof command, "%s.yaml", folder);
    write_text(command, text);
    options.file = command;
    open.new_bits = allows_new_bits;
    OK(ctx, an_config_create(&config, ctx, &options));
    const an_status status = an_trainer_open_config(trainer, ctx, config, &open);
    an_config_destroy(&config);
    return status;
}

static void remove_folder(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

typedef struct {
    char state[AN_HASH_TEXT], weights[AN_HASH_TEXT];
    double loss, evaluated;
    float predicted[OUTPUTS];
} results;

static void finish(an_trainer *trainer, results *r) {
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    an_predictor *predictor = NULL;
    an_predictor_options options;
    an_predictor_options_init(&options, sizeof options);
    const float inputs[OUTPUTS][2] = {{0, 0}, {1, 0}, {0, 1}, {0.5F, 0.25F}, {-1, 2}, {0.125F, 0.75F}, {1, 1}};
    r->loss = train(trainer);
    OK(ctx, an_trainer_evaluate(trainer, &evaluation));
    r->evaluated = evaluation.loss;
    OK(ctx, an_trainer_state_hash(trainer, r->state));
    OK(ctx, an_trainer_weights_hash(trainer, r->weights));
    options.max_samples = OUTPUTS;
    options.threads = 1;
    OK(ctx, an_predictor_create(&predictor, trainer, &options));
    OK(ctx, an_predictor_run_f32(predictor, OUTPUTS, inputs[0], r->predicted));
    an_predictor_destroy(&predictor);
}

/* A run in one go, or in two halves: saved, closed with its context, resumed. */
static void whole_run(const an_device *on, const char *folder, bool in_halves, results *r) {
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    remove_folder(folder);
    memset(r, 0, sizeof *r);
    begin_context(on);
    OK(ctx, open_on(&trainer, folder, "relu"));
    for (int i = 0; i < MIDDLE; i++) {
        OK(ctx, an_trainer_step(trainer, &metrics));
        assert_true(metrics.norm > 0.05); /* so that clipping has work to do */
    }
    if (in_halves) {
        OK(ctx, an_trainer_save(trainer, MIDDLE));
        an_trainer_destroy(&trainer);
        an_context_destroy(&ctx);
        begin_context(on);
        OK(ctx, open_on(&trainer, folder, "relu"));
        assert_non_null(an_trainer_resumed(trainer));
        assert_int_equal(an_trainer_next_step(trainer), MIDDLE);
    }
    finish(trainer, r);
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
}

static void test_same_bits(void **state) {
    results host, apart, halves;
    (void)state;
    whole_run(NULL, "host", false, &host);
    whole_run(&device, "apart", false, &apart);
    assert_true(memory.launches > 500 && memory.copies > 100);
    assert_int_equal(memory.pieces, 0);
    assert_string_equal(apart.weights, host.weights);
    assert_string_equal(apart.state, host.state);
    assert_memory_equal(&apart, &host, sizeof host);
    whole_run(&device, "halves", true, &halves);
    assert_memory_equal(&halves, &host, sizeof host);
}

/* Half on the host, half here, if the program allows it. */
static void test_checkpoint_moves(void **state) {
    results host, moved;
    an_trainer *trainer = NULL;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    whole_run(NULL, "stays", false, &host);
    remove_folder("moves");
    memset(&moved, 0, sizeof moved);
    for (int half = 0; half < 2; half++) {
        begin_context(half == 0 ? NULL : &device);
        if (half == 1)
            FAILS(ctx, open_on(&trainer, "moves", "relu"), AN_ERR_UNSUPPORTED,
                  "the run has used kernels chosen by default until now, but here it would be device=apart");
        allows_new_bits = half == 1;
        OK(ctx, open_on(&trainer, "moves", "relu"));
        allows_new_bits = false;
        for (int i = 0; half == 0 && i < MIDDLE; i++) OK(ctx, an_trainer_step(trainer, &metrics));
        if (half == 0)
            OK(ctx, an_trainer_save(trainer, MIDDLE));
        else
            finish(trainer, &moved);
        an_trainer_destroy(&trainer);
        an_context_destroy(&ctx);
    }
    assert_memory_equal(&moved, &host, sizeof host);
}

/* Batch norms with their statistics, dropout, copies of low precision with a scaled loss, weights that are packed for
 * prediction: all kinds of memory that a run has, with the host's kernels. */
static void run_images(const an_device *on, const char *folder, const char *precision, results *r) {
    char text[MOST_TEXT];
    an_trainer *trainer = NULL;
    remove_folder(folder);
    memset(r, 0, sizeof *r);
    snprintf(text, sizeof text,
             "run: {dir: %s, steps: 6}\n"
             "model: {type: cnn, filters: [4, 6], hidden: 8, batch_norm: on, dropout: 0.2}\n"
             "train: {precision: %s}\n"
             "batch: {global: 8, leaves: 2}\n"
             "data: {train: {type: idx, path: images.idx, labels: labels.idx}, threads: 0}\n",
             folder, precision);
    begin_context(on);
    trainer = open_run(text);
    r->loss = train(trainer);
    OK(ctx, an_trainer_save(trainer, MIDDLE));
    an_trainer_destroy(&trainer);
    trainer = open_run(text);
    assert_non_null(an_trainer_resumed(trainer));
    OK(ctx, an_trainer_state_hash(trainer, r->state));
    OK(ctx, an_trainer_weights_hash(trainer, r->weights));
    an_trainer_destroy(&trainer);
    an_context_destroy(&ctx);
}

static void test_all_kinds_of_memory(void **state) {
    static const char *const precisions[] = {"f32", "bf16", "f16"};
    poisoned_memory poisoned = {0};
    const an_device guarded = poisoned_device(&poisoned);
    (void)state;
    write_images();
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        results host, there;
        run_images(NULL, "images", precisions[i], &host);
        run_images(&guarded, "poisoned", precisions[i], &there);
        assert_memory_equal(&there, &host, sizeof host);
        assert_int_equal(poisoned.count, 0);
    }
}

/* ---- what it lacks ---- */

static void test_missing_kernels(void **state) {
    static const struct {
        const char *without, *activation, *words;
    } cases[] = {
        {"relu", "relu", "device 'apart' has no kernel for relu, which the model needs at 'hidden.0'"},
        {"relu_diff", "relu", "device 'apart' has no kernel for relu_diff"},
        {"grad", "relu", "device 'apart' has no kernel for grad"},
        {"update", "relu", "device 'apart' has no kernel for update"},
        {"square_sums", "relu", "device 'apart' has no kernel for square_sums"},
        {"add", "relu", "device 'apart' has no kernel for add"},
        {"average", "relu", "device 'apart' has no kernel for average"},
        {"swap", "relu", "device 'apart' has no kernel for swap"},
        {NULL, "gelu", "device 'apart' has no kernel for gelu"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_trainer *trainer = NULL;
        memory.without = cases[i].without;
        remove_folder("lacks");
        begin_context(&device);
        FAILS(ctx, open_on(&trainer, "lacks", cases[i].activation), AN_ERR_UNSUPPORTED, cases[i].words);
        assert_null(trainer);
        an_context_destroy(&ctx);
        assert_int_equal(memory.pieces, 0);
    }
    memory.without = NULL;
}

static void test_records(void **state) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_device bad = device;
    (void)state;
    options.device = &bad;
    bad.kernels = NULL;
    FAILS(NULL, an_context_create(&ctx, &options), AN_ERR_ARGUMENT, "the device record lacks kernels");
    bad = device;
    bad.copy = NULL;
    FAILS(NULL, an_context_create(&ctx, &options), AN_ERR_ARGUMENT, "lacks copy or fill");
    bad = device;
    bad.name = NULL;
    FAILS(NULL, an_context_create(&ctx, &options), AN_ERR_ARGUMENT, "has no name");
    bad = device;
    bad.size -= sizeof(void *);
    FAILS(NULL, an_context_create(&ctx, &options), AN_ERR_ARGUMENT, "another size");
}

/* ---- who else touches its memory dies ---- */

typedef enum { NOTHING, READ_A_WEIGHT, WRITE_A_GRADIENT, HOST_UPDATE, HOST_PRODUCT } mistake;

/* In a child process, with a mistake planted; gives the signal that it died of, 0 if it lived. */
static int signal_after(mistake planted) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        an_trainer *trainer = NULL;
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's report is of no use here */
        signal(SIGBUS, SIG_DFL);
        memory.without = planted == HOST_UPDATE ? "update" : planted == HOST_PRODUCT ? "matmul" : NULL;
        memory.lends_host = true;
        begin_context(&device);
        remove_folder("dies");
        if (open_on(&trainer, "dies", "relu") != AN_OK) _exit(1);
        volatile float *weights = trainer->params->masters, *gradients = trainer->params->gradients;
        if (planted == READ_A_WEIGHT && weights[0] > 0) an_context_destroy(&ctx);
        if (planted == WRITE_A_GRADIENT) gradients[0] = 0;
        _exit(an_trainer_step(trainer, &metrics) == AN_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_direct_access(void **state) {
    static const mistake mistakes[] = {READ_A_WEIGHT, WRITE_A_GRADIENT, HOST_UPDATE, HOST_PRODUCT};
    (void)state;
    assert_int_equal(signal_after(NOTHING), 0);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
        assert_int_equal(signal_after(mistakes[i]), SIGSEGV);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_checkpoint_moves),
                                       cmocka_unit_test(test_all_kinds_of_memory),
                                       cmocka_unit_test(test_missing_kernels),
                                       cmocka_unit_test(test_records),
                                       cmocka_unit_test(test_direct_access)};
    return cmocka_run_group_tests(tests, begin_device, end_device);
}

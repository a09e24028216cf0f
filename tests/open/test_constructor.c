/* Whatever a config can do, a program can do: every option of examples/shakespeare/char.yaml by public calls, and the
 * config's own run, end with one state. Nothing but public headers is included.
 *
 *     test_constructor [STEPS]      fewer than the example's 2,000 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/checkpoint.h"
#include "anneal/models.h"
#include "anneal/open.h"
#include "anneal/run.h"

static int fail(const an_context *ctx, const char *what) {
    fprintf(stderr, "%s: %s\n", what, an_last_error(ctx));
    exit(1);
}

#define TRY(call)                              \
    do {                                       \
        if ((call) != AN_OK) fail(ctx, #call); \
    } while (0)

typedef struct {
    char weights[AN_HASH_TEXT], state[AN_HASH_TEXT];
    double best;
} result;

/* Runs to the end, with a run folder. */
static result run(an_context *ctx, an_trainer *trainer) {
    result r = {.best = 0};
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    TRY(an_trainer_run(trainer, NULL, &outcome));
    TRY(an_trainer_weights_hash(trainer, r.weights));
    TRY(an_trainer_state_hash(trainer, r.state));
    r.best = outcome.best_value;
    return r;
}

/* ---- the config ---- */

static result run_config(an_context *ctx, int64_t steps) {
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    char length[64];
    const char *const sets[] = {length, "run.dir=by-config"};
    snprintf(length, sizeof length, "run.steps=%lld", (long long)steps);
    options.file = ANNEAL_SOURCE_DIR "/examples/shakespeare/char.yaml";
    options.sets = sets;
    options.set_count = 2;
    TRY(an_config_create(&config, ctx, &options));
    TRY(an_trainer_open_config(&trainer, ctx, config, NULL));
    const result r = run(ctx, trainer);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    return r;
}

/* ---- the same by calls ---- */

enum { CONTEXT = 64, GLOBAL = 12, SEED = 1337 };

static an_dataset *open_text(an_context *ctx, double begin, double end, const an_dataset *vocabulary) {
    an_dataset *dataset = NULL;
    an_text_source source;
    an_text_source_init(&source, sizeof source);
    source.path = ANNEAL_SOURCE_DIR "/examples/shakespeare/tinyshakespeare.txt";
    source.tokens = AN_TEXT_CHARACTERS;
    source.context = CONTEXT;
    source.begin = begin;
    source.end = end;
    source.vocabulary = vocabulary;
    TRY(an_dataset_create_text(&dataset, ctx, &source));
    return dataset;
}

static an_graph *build_model(an_context *ctx, const an_dataset *training) {
    an_graph *graph = NULL;
    an_gpt2_options model;
    an_gpt2_options_init(&model, sizeof model);
    model.layers = model.heads = 4;
    model.width = 128;
    model.context = CONTEXT;
    TRY(an_dataset_vocabulary(training, &model.vocabulary));
    TRY(an_model_gpt2(&graph, ctx, &model));
    return graph;
}

static int64_t steps_of(an_context *ctx, const an_batches *batches, int64_t steps) {
    const an_length length = {AN_LENGTH_STEPS, (double)steps};
    an_length_options options;
    an_length_options_init(&options, sizeof options);
    int64_t counted;
    TRY(an_batches_steps(batches, &length, &options, &counted));
    return counted;
}

static void set_up_run(an_context *ctx, an_trainer *trainer) {
    an_save_options saving;
    an_save_options_init(&saving, sizeof saving);
    an_log_options logging;
    an_log_options_init(&logging, sizeof logging);
    an_run_options run_options;
    an_run_options_init(&run_options, sizeof run_options);
    saving.folder = "by-calls";
    saving.every = (an_interval){.steps = 250};
    saving.keep_last = 2;
    TRY(an_trainer_set_saving(trainer, &saving));
    logging.every = (an_interval){.steps = 10};
    logging.tensorboard = true;
    TRY(an_trainer_set_logging(trainer, &logging));
    run_options.evaluate_every = 250;
    run_options.best = "val_loss";
    TRY(an_trainer_set_run_options(trainer, &run_options));
}

static result run_calls(an_context *ctx, int64_t steps) {
    an_trainer *trainer = NULL;
    an_batches *batches = NULL;
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    an_group_options groups;
    an_group_options_init(&groups, sizeof groups);
    an_optimizer_options optimizer;
    an_optimizer_options_init(&optimizer, sizeof optimizer);
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    an_schedule_options schedule;
    an_schedule_options_init(&schedule, sizeof schedule);
    an_dataset *training = open_text(ctx, 0, 0.9, NULL), *evaluation = open_text(ctx, 0.9, 1, training);
    an_graph *graph = build_model(ctx, training);
    batch.global = GLOBAL;
    options.batch = &batch;
    TRY(an_batches_create(&batches, ctx, an_dataset_count(training), &batch));
    options.steps = steps_of(ctx, batches, steps);
    options.seed = SEED;
    groups.weight_decay = 0.1;
    groups.decay = AN_DECAY_DIM;
    optimizer.type = AN_OPTIMIZER_ADAMW;
    optimizer.beta_1 = 0.9;
    optimizer.beta_2 = 0.99;
    schedule.type = AN_SCHEDULE_COSINE;
    schedule.steps = options.steps;
    schedule.warmup = steps_of(ctx, batches, 100);
    schedule.min_ratio = 0.1;
    options.groups = &groups;
    options.optimizer = &optimizer;
    options.schedule = &schedule;
    options.rate = 1e-3;
    options.clip_norm = 1;
    options.recompute = AN_RECOMPUTE_NONE;
    options.precision = an_context_isa(ctx) == AN_ISA_AMX ? AN_DTYPE_BF16 : AN_DTYPE_NONE; /* what `auto` is */
    options.loader_threads = 2;
    options.owns = options.saves = true;
    TRY(an_graph_check_data(graph, training));
    TRY(an_trainer_create(&trainer, graph, training, evaluation, &options));
    set_up_run(ctx, trainer);
    const result r = run(ctx, trainer);
    an_trainer_destroy(&trainer);
    an_batches_destroy(&batches);
    return r;
}

int main(int argc, char **argv) {
    const int64_t steps = argc > 1 ? strtoll(argv[1], NULL, 10) : 2000;
    an_context *ctx = NULL;
    if (system("rm -rf by-config by-calls") != 0) return 1; /* NOLINT(cert-env33-c): this test's own folders */
    TRY(an_context_create(&ctx, NULL));
    const result config = run_config(ctx, steps), calls = run_calls(ctx, steps);
    an_context_destroy(&ctx);
    printf("config %s %s %g\ncalls  %s %s %g\n", config.weights, config.state, config.best, calls.weights, calls.state,
           calls.best);
    return strcmp(config.state, calls.state) == 0 && strcmp(config.weights, calls.weights) == 0 &&
                   config.best == calls.best
               ? 0
               : 1;
}

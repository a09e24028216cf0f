/* Calls that read configs, train, save and predict. */
#ifndef TESTS_TRAIN_FLOAT_RUN_CALLS_H
#define TESTS_TRAIN_FLOAT_RUN_CALLS_H

#include "anneal/checkpoint.h"
#include "anneal/generate.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "anneal/run.h"
#include "train/float_step_calls.h"

/* ---- configs ---- */

#define CONFIG                                                                                                \
    "run: {dir: run, steps: 6, max_time: 1.7h}\n"                                                             \
    "model: {type: mlp, inputs: 2, outputs: 1, hidden: [8], dropout: 0.1, batch_norm: on}\n"                  \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum], part: 0%..70%}, threads: 2,\n" \
    "       eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum], part: 70%..100%}}\n"            \
    "batch: {global: 16, leaves: 2}\n"                                                                        \
    "optimizer: {lr: 0.1e-2, betas: [0.9, 0.97], weight_decay: 0.1}\n"                                        \
    "schedule: {type: points, points: {0: 0.3, 2: 1, 4: 0.7}, warmup: 30%}\n"                                 \
    "eval: {every: 3 steps}\nlog: {grad_norms: parameter, tensorboard: off}\nsave: {every: off}\n"

static inline void read_config(void) {
    an_config_options options = {.size = sizeof options, .file = "run.yaml", .text = CONFIG, .length = strlen(CONFIG)};
    an_config *config = NULL;
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    an_length length = {0}, lengths[4] = {{0}};
    const char *text, *value;
    char *whole = NULL;
    double real, end, reals[4];
    int64_t count, counts[4];
    int n;
    bool yes;
    DO(an_config_read, &config, ctx, &options);
    an_config_destroy(&config);
    DO(an_config_create, &config, ctx, &options);
    const an_samples_options samples = {
        .size = sizeof samples, .path = "sums.csv", .elements = 2, .dtype = AN_DTYPE_F32};
    an_samples_info about = {.size = sizeof about};
    an_dataset *dataset = NULL;
    DO(an_samples_open, &dataset, ctx, config, &samples, &about);
    an_dataset_destroy(&dataset);
    DO(an_config_set, config, "train.clip_norm=0.3");
    DO(an_config_real, config, "train.clip_norm", &real);
    NOTE(real);
    DO(an_config_string, config, "optimizer.lr", &text);
    note_text(text);
    DO(an_config_path, config, "data.train.path", &text);
    note_text(text);
    DO(an_config_bool, config, "model.batch_norm", &yes);
    DO(an_config_count, config, "batch.global", &count);
    NOTE(count);
    DO(an_config_seconds, config, "run.max_time", &real);
    NOTE(real);
    DO(an_config_range, config, "data.train.part", &real, &end);
    NOTE(real), NOTE(end);
    DO(an_config_length, config, "schedule.warmup.steps", &length);
    NOTE(length.amount);
    DO(an_config_reals, config, "optimizer.betas", 4, reals, &n);
    note(reals, 2 * sizeof *reals);
    DO(an_config_counts, config, "model.hidden", 4, counts, &n);
    DO(an_config_pair, config, "schedule.points", 1, &count, &real);
    NOTE(real);
    DO(an_config_show, config, &whole);
    note_string(&whole);
    DO(an_config_write, config, &whole);
    note_string(&whole);
    DO(an_config_schema, ctx, &whole);
    note_string(&whole);
    for (int i = 0; CALL(an_config_key_get, ctx, i, &key) == AN_OK; i++) note_text(key.type);
    OK(ctx, an_config_set(config, "model.init={from: x, rename: {a: b}}"));
    DO(an_config_entry, config, "model.init.rename", 0, &text, &value);
    OK(ctx,
       an_config_set(config, "schedule={type: sequence, parts: [{type: linear}, {type: cosine}], milestones: [30%]}"));
    DO(an_config_lengths, config, "schedule.milestones", 4, lengths, &n);
    NOTE(lengths[0].amount);
    an_config_destroy(&config);
}

/* ---- runs ---- */

static inline void note_hashes(const an_trainer *trainer) {
    char hash[AN_HASH_TEXT];
    DO(an_trainer_weights_hash, trainer, hash);
    note_text(hash);
    DO(an_trainer_state_hash, trainer, hash);
    note_text(hash);
}

static inline void ask(an_predictor *predictor) {
    float outputs[SAMPLES];
    double wide[SAMPLES];
    if (an_predictor_dtype(predictor) == AN_DTYPE_F64) {
        DO(an_predictor_run_f64, predictor, SAMPLES, &wide_x[0][0], wide);
        NOTE(wide);
    } else {
        DO(an_predictor_run_f32, predictor, SAMPLES, &x[0][0], outputs);
        NOTE(outputs);
    }
}

static inline void predict(an_trainer *trainer) {
    const an_predictor_options options = {DEFAULTS(an_predictor_options), .max_samples = SAMPLES};
    an_predictor *predictor = NULL;
    an_range_info ranges;
    an_range_info_init(&ranges, sizeof ranges);
    DO(an_predictor_create, &predictor, trainer, &options);
    DO(an_predictor_refresh, predictor, trainer);
    ask(predictor);
    DO(an_predictor_range, predictor, &ranges);
    NOTE(ranges.outside);
    an_predictor_destroy(&predictor);
}

static inline void predict_from_checkpoint(void) {
    const an_predictor_options options = {DEFAULTS(an_predictor_options), .max_samples = SAMPLES};
    an_predictor *predictor = NULL;
    DO(an_predictor_open, &predictor, ctx, "run", &options);
    ask(predictor);
    an_predictor_destroy(&predictor);
}

static inline void look_at_checkpoint(void) {
    an_checkpoint *checkpoint = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    float values[16];
    char *text = NULL;
    DO(an_checkpoint_verify, ctx, "run");
    DO(an_checkpoint_open, &checkpoint, ctx, "run");
    DO(an_checkpoint_info_get, checkpoint, &info);
    NOTE(info.loss), NOTE(info.rate), NOTE(info.norm), NOTE(info.best_value);
    DO(an_checkpoint_read, checkpoint, 0, 0, 4, values);
    note(values, 4 * sizeof *values);
    char name[AN_KEY_TEXT], value[AN_KEY_TEXT];
    DO(an_checkpoint_key, checkpoint, 0, name, value);
    DO(an_checkpoint_text, checkpoint, "metrics.json", &text);
    note_string(&text);
    an_export_options export;
    an_export_options_init(&export, sizeof export);
    DO(an_checkpoint_export, checkpoint, "exported.safetensors", &export);
    export.format = AN_EXPORT_TORCH;
    DO(an_checkpoint_export, checkpoint, "exported", &export);
    export.format = AN_EXPORT_ONNX;
    DO(an_checkpoint_export, checkpoint, "exported.onnx", &export);
    an_checkpoint_close(&checkpoint);
}

static inline an_status expect_host_after_step(void *user, an_trainer *trainer) {
    return expect_host(user, an_trainer_next_step(trainer));
}

static inline void run_to_its_end(an_trainer *trainer, an_config *config) {
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_folder *folder = NULL;
    an_folder_state state;
    an_output_metrics output;
    an_output_metrics_init(&output, sizeof output);
    bool hosts = true, logged;
    double value;
    DO(an_folder_create, &folder, trainer, config, NULL);
    DO(an_trainer_run_options, trainer, &run);
    run.callbacks = &(const an_run_callbacks){
        .size = sizeof(an_run_callbacks), .after_step = expect_host_after_step, .user = &hosts};
    run.min_delta = 0.1;
    DO(an_trainer_run, trainer, &run, &outcome);
    assert_true(hosts); /* callbacks are the host's own code */
    DO(an_trainer_step_metrics, trainer, &metrics);
    DO(an_trainer_evaluation, trainer, &evaluation);
    NOTE(outcome.best_value), NOTE(metrics.loss), NOTE(evaluation.loss);
    DO(an_trainer_evaluate, trainer, &evaluation);
    NOTE(evaluation.loss), NOTE(evaluation.perplexity), NOTE(evaluation.mean_absolute_error), NOTE(evaluation.r2);
    DO(an_trainer_output_metrics, trainer, 0, &output);
    NOTE(output.mean_absolute_error), NOTE(output.root_mean_squared_error), NOTE(output.r2);
    NUMBER(an_evaluation_metric, &evaluation, "val_r2", &value);
    NOTE(value);
    NUMBER(an_trainer_metric_value, trainer, "val_r2", &value);
    NOTE(value);
    DO(an_folder_step, folder, &metrics, &logged);
    DO(an_folder_evaluation, folder, 6, &evaluation);
    DO(an_folder_log, folder, "a line");
    CALL(an_folder_speed, folder);
    DO(an_folder_finish, folder, &outcome, NULL);
    an_folder_destroy(&folder);
    DO(an_folder_look, ctx, "run", &state);
    DO(an_folder_check_free, ctx, "run");
    char *changes = NULL;
    DO(an_folder_compare, "run", config, &changes);
    an_string_release(ctx, &changes);
}

static inline an_status make_schedule(void *user, int64_t steps, an_schedule **schedule, double *rate) {
    an_schedule_options options = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_COSINE, .steps = steps};
    (void)user;
    *rate = 0.1;
    return an_schedule_create(schedule, ctx, &options);
}

static inline void update_nothing_f32(void *user, const an_optimizer_numbers *numbers, int64_t count,
                                      const float *gradients, float *weights, float *moment_1, float *moment_2) {
    (void)user, (void)numbers, (void)count, (void)gradients, (void)weights, (void)moment_1, (void)moment_2;
}

static inline void update_nothing_f64(void *user, const an_optimizer_numbers *numbers, int64_t count,
                                      const double *gradients, double *weights, double *moment_1, double *moment_2) {
    (void)user, (void)numbers, (void)count, (void)gradients, (void)weights, (void)moment_1, (void)moment_2;
}

static inline an_status measure_nothing(void *user, an_trainer *trainer, double *value) {
    (void)user, (void)trainer, (void)value;
    return AN_OK;
}

/* Into a context of its own, as nothing is ever taken out again. */
static inline void add_own(void) {
    const an_optimizer_record nothing = {.name = "nothing",
                                         .version = 1,
                                         .beta_1 = 0.1,
                                         .weight_decay = 0.1,
                                         .update_f32 = update_nothing_f32,
                                         .update_f64 = update_nothing_f64};
    const an_metric_options metric = {.size = sizeof metric, .name = "nothing", .measure = measure_nothing};
    an_context *own = NULL;
    assert_int_equal(an_context_create(&own, NULL), AN_OK);
    DO(an_context_add_optimizer, own, &nothing);
    DO(an_context_add_metric, own, &metric);
    an_context_destroy(&own);
}

/* The parts of an_trainer_open, on the run that train_from_config left. */
static inline void open_by_parts(void) {
    const an_config_options options = {.size = sizeof options, .file = "run/config.yaml"};
    const an_open_options opening = {.size = sizeof opening, .extend = AN_EXTEND_KEEP},
                          fresh = {.size = sizeof fresh, .fresh = true};
    const an_save_options saving = {.size = sizeof saving, .folder = "parts", .every = {.epochs = 0.3}};
    const an_log_options logging = {.size = sizeof logging, .every = {.seconds = 0.7}};
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_load_options init;
    an_load_options_init(&init, sizeof init);
    an_config *config = NULL;
    an_candidates *candidates = NULL;
    an_resume *resume = NULL;
    an_trainer *trainer = NULL;
    int64_t steps;
    double seconds;
    an_context_options context;
    an_context_options_init(&context, sizeof context);
    DO(an_context_options_from_config, &context, &options, &opening);
    NOTE(context.threads);
    add_own();
    OK(ctx, an_config_create(&config, ctx, &options));
    OK(ctx, an_candidates_create(&candidates, ctx, config, &opening));
    init.path = an_candidates_path(candidates, 0);
    DO(an_resume_create, &resume, ctx, config, init.path, &opening);
    DO(an_resume_schedule_steps, resume, make_schedule, NULL, 20, &steps);
    NOTE(steps);
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, &fresh));
    DO(an_trainer_load_weights, trainer, &init);
    note_hashes(trainer);
    DO(an_resume_apply, resume, trainer);
    note_hashes(trainer);
    run.min_delta = 0.3;
    DO(an_trainer_set_run_options, trainer, &run);
    DO(an_trainer_set_saving, trainer, &saving);
    DO(an_trainer_set_logging, trainer, &logging);
    setenv("SLURM_JOB_END_TIME", "9000000000", 1);
    DO(an_job_seconds, ctx, &seconds);
    unsetenv("SLURM_JOB_END_TIME");
    an_resume_destroy(&resume);
    an_trainer_destroy(&trainer);
    an_candidates_destroy(&candidates);
    an_config_destroy(&config);
}

/* The last column of sides.csv as a label. */
static inline void look_at_labels(void) {
    static const char text[] = "run: {dir: run-labels, steps: 4}\n"
                               "model: {type: mlp, hidden: [8], loss: binary_cross_entropy}\n"
                               "data: {train: {type: csv, path: sides.csv, classes: off}, threads: 0,\n"
                               "       eval: {type: csv, path: sides.csv, classes: off}}\n"
                               "eval: {metrics: [f1, auc]}\n";
    const an_config_options options = {
        .size = sizeof options, .file = "labels.yaml", .text = text, .length = strlen(text)};
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    an_label_metrics label;
    an_label_metrics_init(&label, sizeof label);
    OK(ctx, an_config_create(&config, ctx, &options));
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, NULL));
    OK(ctx, an_trainer_step(trainer, NULL));
    OK(ctx, an_trainer_evaluate(trainer, &evaluation));
    assert_int_equal(an_trainer_label_count(trainer), 1);
    DO(an_trainer_label_metrics, trainer, 0, &label);
    NOTE(label.accuracy), NOTE(label.precision), NOTE(label.recall), NOTE(label.f1), NOTE(label.auc);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
}

/* The details of a model of two classes: whether the sum is above 1. */
static inline void look_at_classes(void) {
    static const char text[] = "run: {dir: run-classes, steps: 4}\nmodel: {type: mlp, hidden: [8]}\n"
                               "data: {train: {type: csv, path: sides.csv, classes: on, part: 0%..50%}, threads: 0,\n"
                               "       eval: {type: csv, path: sides.csv, classes: on, part: 50%..100%}}\n"
                               "eval: {metrics: [f1, auc]}\n";
    const an_config_options options = {
        .size = sizeof options, .file = "sides.yaml", .text = text, .length = strlen(text)};
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    an_class_metrics metrics;
    an_class_metrics_init(&metrics, sizeof metrics);
    an_roc_point points[9];
    int64_t count = 0;
    FILE *file = fopen("sides.csv", "w");
    assert_non_null(file);
    for (int i = 0; i < 40; i++) fprintf(file, "%d.%d,%d,%d\n", i % 3, i * 7 % 10, i % 2, (i % 3 + i % 2) > 1);
    fclose(file);
    OK(ctx, an_config_create(&config, ctx, &options));
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, NULL));
    OK(ctx, an_trainer_step(trainer, NULL));
    DO(an_trainer_evaluate, trainer, &evaluation);
    NOTE(evaluation.precision), NOTE(evaluation.recall), NOTE(evaluation.f1), NOTE(evaluation.auc);
    DO(an_trainer_class_metrics, trainer, 1, &metrics);
    NOTE(metrics.precision), NOTE(metrics.recall), NOTE(metrics.f1);
    DO(an_trainer_roc, trainer, 9, points, &count);
    for (int64_t i = 0; i < count; i++) NOTE(points[i]);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    look_at_labels();
}

static inline void train_from_config(an_dtype dtype) {
    const an_open_options fresh = {.size = sizeof fresh, .fresh = true, .details = AN_DETAIL_OUTPUTS};
    an_config_options options = {.size = sizeof options, .file = "run.yaml"};
    an_trainer_info info;
    an_trainer_info_init(&info, sizeof info);
    an_strategy strategy;
    an_strategy_init(&strategy, sizeof strategy);
    an_plan_memory needed;
    an_plan_memory_init(&needed, sizeof needed);
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    const char *name;
    double norm;
    assert_int_equal(system("rm -rf run run-* exported exported.safetensors"), 0);
    write_text("run.yaml", CONFIG);
    options.set_count = dtype == AN_DTYPE_F64 ? 3 : 0;
    options.sets = (const char *const[]){"train.precision=f64", "data.train.dtype=f64", "data.eval.dtype=f64"};
    OK(ctx, an_config_create(&config, ctx, &options));
    DO(an_trainer_open_config, &trainer, ctx, config, &fresh);
    DO(an_trainer_info_get, trainer, &info);
    DO(an_trainer_strategy, trainer, AN_SHARD_NONE, &strategy);
    NOTE(strategy.seconds);
    DO(an_trainer_strategy_memory, trainer, AN_SHARD_NONE, &needed);
    NOTE(needed);
    NOTE(info);
    note_hashes(trainer);
    DO(an_trainer_step, trainer, &metrics);
    NOTE(metrics.loss), NOTE(metrics.norm), NOTE(metrics.rate);
    DO(an_trainer_norm, trainer, 0, &name, &norm);
    NOTE(norm);
    run_to_its_end(trainer, config);
    note_hashes(trainer);
    predict(trainer);
    look_at_classes();
    DO(an_trainer_save, trainer, 77);
    DO(an_trainer_save_over, trainer, 77);
    an_trainer_destroy(&trainer);
    look_at_checkpoint();
    predict_from_checkpoint();
    DO(an_trainer_open, &trainer, ctx, "run/config.yaml", NULL);
    note_hashes(trainer);
    an_trainer_destroy(&trainer);
    const int64_t user_step = 77;
    an_open_options at;
    an_open_options_init(&at, sizeof at);
    at.user_step = &user_step;
    DO(an_trainer_open, &trainer, ctx, "run/config.yaml", &at);
    note_hashes(trainer);
    an_trainer_destroy(&trainer);
    DO(an_trainer_open_config, &trainer, ctx, config, NULL);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    open_by_parts();
}

static inline void fit(an_trainer *trainer, an_dataset *dataset) {
    an_features *features = NULL;
    an_feature_info info;
    an_feature_info_init(&info, sizeof info);
    an_normalize_options options;
    an_normalize_options_init(&options, sizeof options);
    DO(an_features_create, &features, dataset, 0, 0, 0);
    DO(an_features_get, features, 1, &info);
    NOTE(info.mean), NOTE(info.deviation), NOTE(info.minimum), NOTE(info.maximum);
    DO(an_trainer_normalize, trainer, &options);
    an_features_destroy(&features);
}

static inline void restart_from(const char *path, const an_mlp_options *mlp, an_dataset *dataset,
                                const an_trainer_options *options) {
    an_graph *graph = NULL;
    an_trainer *trainer = NULL;
    OK(ctx, an_model_mlp(&graph, ctx, mlp));
    OK(ctx, an_trainer_create(&trainer, graph, dataset, NULL, options));
    DO(an_trainer_restart, trainer, path);
    note_hashes(trainer);
    an_trainer_destroy(&trainer);
    an_graph_destroy(&graph);
}

/* On the caller's own samples, without a config, and through a checkpoint. */
static inline void train_on_samples(void) {
    const an_array arrays[] = {array_of(x, AN_DTYPE_F32, 2, (int64_t[]){SAMPLES, INPUTS}),
                               array_of(y, AN_DTYPE_F32, 2, (int64_t[]){SAMPLES, OUTPUTS})};
    const an_array_source source = {DEFAULTS(an_array_source), .array_count = 2, .arrays = arrays};
    an_mlp_options mlp = mlp_options();
    an_trainer_options options = {DEFAULTS(an_trainer_options), .epochs = 9, .rate = 1e-2, .precision = AN_DTYPE_BF16};
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    an_checkpoint *checkpoint = NULL;
    an_graph *graph = NULL;
    an_dataset *dataset = NULL;
    an_trainer *trainer = NULL;
    mlp.dropout = 0;
    mlp.normalize_inputs = mlp.normalize_targets = true;
    options.batch = &(const an_batch_options){.size = sizeof(an_batch_options), .global = 5};
    assert_int_equal(system("rm -rf saved"), 0);
    OK(ctx, an_dataset_create_arrays(&dataset, ctx, &source));
    for (int again = 0; again < 2; again++) {
        OK(ctx, an_model_mlp(&graph, ctx, &mlp));
        DO(an_trainer_create, &trainer, graph, dataset, NULL, &options);
        DO(an_trainer_set_folder, trainer, "saved");
        if (again) {
            OK(ctx, an_checkpoint_open(&checkpoint, ctx, "saved"));
            OK(ctx, an_checkpoint_info_get(checkpoint, &info));
            DO(an_trainer_load, trainer, info.path);
            restart_from(info.path, &mlp, dataset, &options);
            an_checkpoint_close(&checkpoint);
        } else {
            fit(trainer, dataset);
            DO(an_trainer_step_on, trainer, SAMPLES, &arrays[0], &arrays[1], NULL);
            DO(an_trainer_step_on_f32, trainer, SAMPLES, &x[0][0], &y[0][0], NULL);
            DO(an_trainer_step_on_f64, trainer, SAMPLES, &wide_x[0][0], &wide_y[0][0], NULL);
            OK(ctx, an_trainer_save(trainer, 1));
        }
        note_hashes(trainer);
        an_trainer_destroy(&trainer);
        an_graph_destroy(&graph);
    }
    an_dataset_destroy(&dataset);
}

static inline void generate(an_generator *generator, an_trainer *trainer) {
    const an_sampling_options sampling = {DEFAULTS(an_sampling_options), .temperature = 0.8, .top_k = 9, .top_p = 0.9};
    const int32_t prompt[] = {1, 2, 3};
    an_generator_info info;
    an_generated token = {0};
    int64_t count;
    if (trainer) DO(an_generator_refresh, generator, trainer);
    an_generator_info_init(&info, sizeof info);
    DO(an_generator_info_get, generator, &info);
    DO(an_generator_add, generator, prompt, 3, &sampling);
    for (int i = 0; i < 4; i++) {
        DO(an_generator_step, generator, &token, &count);
        NOTE(token.token);
    }
    an_generator_destroy(&generator);
}

static inline void train_on_text(void) {
    an_predictor *predictor = NULL;
    an_generator *generator = NULL;
    int32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float logits[8 * 11];
    assert_int_equal(system("rm -rf text"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    an_trainer *trainer = open_run("model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8}\n"
                                   "data: {train: {type: text, path: poem.txt, tokens: chars}}\n"
                                   "batch: {global: 4}\nrun: {dir: text, steps: 2}\nsave: {every: off}\n");
    DO(an_trainer_step, trainer, NULL);
    note_hashes(trainer);
    DO(an_predictor_create, &predictor, trainer, NULL);
    DO(an_predictor_run_tokens, predictor, 1, tokens, logits);
    NOTE(logits);
    an_predictor_destroy(&predictor);
    DO(an_generator_create, &generator, trainer, NULL);
    generate(generator, trainer);
    DO(an_trainer_save, trainer, 1);
    an_trainer_destroy(&trainer);
    generator = NULL;
    DO(an_generator_open, &generator, ctx, "text", NULL);
    generate(generator, NULL);
}

/* Sentences, with a published BERT. */
static inline void predict_sentences(void) {
    static const int32_t tokens[12] = {2, 3, 4}, types[12] = {0, 0, 1}, mask[12] = {1, 1, 1};
    an_predictor *predictor = NULL;
    float logits[3];
    DO(an_predictor_open, &predictor, ctx, ANNEAL_SOURCE_DIR "/tests/golden/huggingface/bert", NULL);
    DO(an_predictor_run_sentences, predictor, 1, tokens, types, mask, logits);
    NOTE(logits);
    an_predictor_destroy(&predictor);
}

/* An adapter, from a config to a file that other programs read. */
static inline void train_adapter(void) {
    unsigned short tokens[64];
    const char config[] =
        "model: {type: gpt2, layers: 2, heads: 4, width: 16, context: 8, vocabulary: 24, init: "
        "{from: " ANNEAL_SOURCE_DIR
        "/tests/golden/huggingface/gpt2}}\nlora: {targets: [c_fc], rank: 2, alpha: 0.3, dropout: 0.1}\n"
        "data: {train: {type: tokens, path: adapter.bin}}\nrun: {dir: adapter, steps: 2}\nbatch: {global: 2}\n"
        "train: {precision: f32}\nsave: {every: off}\n";
    an_trainer *trainer = NULL;
    an_checkpoint *checkpoint = NULL;
    for (int i = 0; i < 64; i++) tokens[i] = (unsigned short)(i % 24);
    assert_int_equal(system("rm -rf adapter"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    FILE *file = fopen("adapter.bin", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(tokens, 1, sizeof tokens, file), sizeof tokens);
    fclose(file);
    file = fopen("adapter.yaml", "w");
    assert_non_null(file);
    fputs(config, file);
    fclose(file);
    DO(an_trainer_open, &trainer, ctx, "adapter.yaml", NULL);
    for (int i = 0; i < 2; i++) DO(an_trainer_step, trainer, NULL);
    note_hashes(trainer);
    DO(an_trainer_save, trainer, 2);
    an_trainer_destroy(&trainer);
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, "adapter"));
    an_export_options export;
    an_export_options_init(&export, sizeof export);
    export.format = AN_EXPORT_ADAPTER;
    DO(an_checkpoint_export, checkpoint, "adapter/exported", &export);
    export.format = AN_EXPORT_MERGED;
    DO(an_checkpoint_export, checkpoint, "adapter/merged.safetensors", &export);
    export.format = AN_EXPORT_HUGGINGFACE;
    DO(an_checkpoint_export, checkpoint, "adapter/hf", &export);
    export.format = AN_EXPORT_GGUF;
    export.dtype = AN_DTYPE_Q8_0;
    DO(an_checkpoint_export, checkpoint, "adapter/model.gguf", &export);
    an_checkpoint_close(&checkpoint);
    float merged[16 * 64];
    OK(ctx, an_checkpoint_open(&checkpoint, ctx, "adapter/merged.safetensors"));
    DO(an_checkpoint_read, checkpoint, an_checkpoint_find(checkpoint, "transformer.h.0.mlp.c_fc.weight"), 0, 16 * 64,
       merged);
    NOTE(merged);
    an_checkpoint_close(&checkpoint);
}

#endif

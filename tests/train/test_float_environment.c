/* Every public function that touches a floating-point number, in every floating-point environment that a host may have: four rounding
 * modes, denormals flushed, exceptions that trap. The bits are those of the default environment, and the host's is put back. */
#define AN_NO_PLACES
#include <sys/stat.h>

#include "anneal/checkpoint.h"
#include "anneal/experimental.h"
#include "anneal/models.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "anneal/run.h"
#include "support/own_ops.h"

#include "open/support.h" /* after others: its context would hide in their parameters */
#include "train/float_support.h"

enum { INPUTS = 3, OUTPUTS = 2, SAMPLES = 8, TOKENS = 200 };

static float x[SAMPLES][INPUTS], y[SAMPLES][OUTPUTS];
static double wide_x[SAMPLES][INPUTS], wide_y[SAMPLES][OUTPUTS];
static char poem[TOKENS + 1];

static void make_data(void) {
    unsigned char tokens[2 * TOKENS], index[34 + 12 + 16] = "MMIDIDX";
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < INPUTS; k++) wide_x[i][k] = noise((uint64_t)i * INPUTS + (uint64_t)k);
        for (int k = 0; k < OUTPUTS; k++) wide_y[i][k] = wide_x[i][k] / 3 - wide_x[i][2];
        for (int k = 0; k < INPUTS; k++) x[i][k] = (float)wide_x[i][k];
        for (int k = 0; k < OUTPUTS; k++) y[i][k] = (float)wide_y[i][k];
    }
    for (int i = 0; i < TOKENS; i++) {
        poem[i] = (char)('a' + i * 7 % 11);
        tokens[2 * i] = (unsigned char)(i % 11), tokens[2 * i + 1] = 0;
    }
    write_sums();
    write_images();
    write_file("poem.txt", poem, TOKENS);
    write_file("tokens.bin", tokens, sizeof tokens);
    write_file("set.bin", tokens, sizeof tokens);
    index[9] = 1, index[17] = 8, index[18] = 1, index[26] = 2; /* version, u16, one sequence, two borders */
    index[34] = (unsigned char)TOKENS, index[34 + 12 + 8] = 1;
    write_file("set.idx", index, sizeof index);
}

static void note_string(char **text) {
    note_text(*text);
    an_string_release(ctx, text);
}

/* ---- graphs ---- */

static bool in_hosts; /* whether the functions of the own op saw the host's environment */

static const char *own_infer(const an_own_node *node, an_own_output *outputs) {
    in_hosts = in_hosts && has_environment(host);
    return infer_steep(node, outputs);
}

static void note_graph(const an_graph *graph) {
    char *text = NULL;
    DO(an_graph_print, graph, &text);
    note_string(&text);
}

/* An op of the program. It has a number in its record and one in its attributes. */
static void build_own(void) {
    an_context *own = NULL;
    an_graph *g = NULL;
    char *text = NULL;
    an_own_op op = steep_record();
    const steep_attributes attributes = {.slope = 1.0 / 3};
    in_hosts = true;
    op.infer = own_infer;
    op.flops = 4.9e-324;
    OK(NULL, an_context_create(&own, NULL));
    DO(an_context_add_op, own, &op);
    DO(an_ranks_agree, own, AN_OK);
    OK(own, an_graph_create(&g, own, "own"));
    const an_value in = an_input(g, "in", AN_DTYPE_F32, AN_DIMS(2, 6));
    an_graph_set_output(g, CALL(an_own, g, op.name, 1, &in, &attributes), "out");
    assert_true(in_hosts);
    DO(an_graph_verify, g);
    DO(an_graph_print, g, &text);
    note_text(text);
    an_string_release(own, &text);
    an_graph_destroy(&g);
    an_context_destroy(&own);
}

/* One rank adds nothing; tests/comm/conformance.c has more of them, with other roundings. */
static void call_ranks(void) {
    float numbers[4] = {0.1f, 1e-40f, 3, 4}, others[4] = {0};
    DO(an_barrier, ctx);
    DO(an_broadcast, ctx, numbers, 4, AN_DTYPE_F32, 0);
    DO(an_gather_ranks, ctx, numbers, others, 4, AN_DTYPE_F32, 0);
    DO(an_all_gather, ctx, numbers, others, 4, AN_DTYPE_F32);
    DO(an_all_reduce, ctx, numbers, 4, AN_DTYPE_F32, AN_REDUCE_SUM);
    DO(an_reduce_scatter, ctx, numbers, others, 4, AN_DTYPE_F32, AN_REDUCE_MAX);
    NOTE(others);
}

/* Every builder that has or makes a number. */
static void build_graph(void) {
    an_graph *g = NULL, *again = NULL;
    char *text = NULL;
    an_rotary_options rotary = {DEFAULTS(an_rotary_options), .base = 10000.0 / 3, .factor = 8.1,
                                .low_factor = 1.1,           .high_factor = 4.3,  .original_context = 16};
    an_attention_options attention = {DEFAULTS(an_attention_options), .causal = true};
    an_cross_entropy_options loss = {DEFAULTS(an_cross_entropy_options), .label_smoothing = 0.1};
    OK(ctx, an_graph_create(&g, ctx, "numbers"));
    const an_dim batch = an_symbol_dim(g, "batch");
    const an_value in = an_input(g, "in", AN_DTYPE_F32, AN_DIMS(batch, 6)),
                   samples = an_input(g, "samples", AN_DTYPE_I64, AN_DIMS(batch)),
                   labels = an_input(g, "labels", AN_DTYPE_I32, AN_DIMS(batch)),
                   image = an_input(g, "image", AN_DTYPE_F32, AN_DIMS(batch, 3, 8, 8)),
                   heads = an_input(g, "heads", AN_DTYPE_F32, AN_DIMS(batch, 2, 5, 6));
    const an_value weight = CALL(an_param, g, "w", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1.0 / 3, AN_DIMS(6)),
                   frozen = CALL(an_frozen_param, g, "b", AN_DTYPE_F32, AN_INITIALIZER_UNIFORM, 1e-310, AN_DIMS(6)),
                   mean = CALL(an_run_state, g, "m", AN_DTYPE_F32, 0.1, AN_DIMS(6)),
                   variance = CALL(an_run_state, g, "v", AN_DTYPE_F32, 1.1, AN_DIMS(6)),
                   constant = CALL(an_constant, g, AN_DTYPE_F64, 4.9e-324, AN_DIMS(2));
    an_graph_set_output(g, constant, "constant");
    an_value h = CALL(an_scale, g, in, 1.0 / 3);
    h = CALL(an_clamp, g, h, -0.1, 0.7);
    h = CALL(an_layer_norm, g, h, weight, frozen, 1e-5);
    h = CALL(an_rms_norm, g, h, weight, 1e-6);
    h = CALL(an_batch_norm, g, h, weight, frozen, mean, variance, 0.1, 1e-5);
    h = CALL(an_dropout, g, h, samples, 0.1);
    h = CALL(an_linear, g, h, "fc", 7);
    h = CALL(an_linear_plain, g, h, "plain", 7);
    h = CALL(an_layer_norm_layer, g, h, "ln", 1e-5);
    h = CALL(an_rms_norm_layer, g, h, "rms", 1e-5);
    h = CALL(an_batch_norm_layer, g, h, "bn", 0.3, 1e-5);
    an_graph_set_output(g, h, "h");
    an_graph_set_output(g, CALL(an_convolution_layer, g, image, "conv", 4, 3, NULL), "conv");
    an_graph_set_output(g, CALL(an_embedding_layer, g, labels, "table", AN_DTYPE_F32, 11, 5), "rows");
    an_value q = CALL(an_rotary, g, heads, &rotary);
    an_graph_set_output(g, CALL(an_attention, g, q, heads, heads, &attention), "seen");
    an_graph_set_output(g, CALL(an_huber_error, g, h, h, 0.3), "huber");
    an_graph_set_loss(g, CALL(an_cross_entropy, g, h, labels, &loss), labels);
    DO(an_graph_verify, g);
    note_graph(g);
    DO(an_graph_dot, g, &text);
    note_string(&text);
    DO(an_graph_print, g, &text);
    DO(an_graph_parse, &again, ctx, text, strlen(text));
    an_string_release(ctx, &text);
    note_graph(again);
    an_graph_destroy(&again);
    an_graph_destroy(&g);
}

static an_mlp_options mlp_options(void) {
    static const int64_t hidden[] = {8};
    return (an_mlp_options){.size = sizeof(an_mlp_options),
                            .inputs = INPUTS,
                            .outputs = OUTPUTS,
                            .hidden = hidden,
                            .hidden_count = 1,
                            .batch_norm = true,
                            .dropout = 0.1,
                            .loss = AN_LOSS_SQUARED};
}

static void build_models(void) {
    static const int64_t filters[] = {4, 6};
    const an_mlp_options mlp = mlp_options();
    an_cnn_options cnn = {.size = sizeof cnn,
                          .channels = 1,
                          .height = 8,
                          .width = 8,
                          .classes = 3,
                          .filters = filters,
                          .filter_count = 2,
                          .hidden = 7,
                          .dropout = 0.3};
    an_gpt2_options gpt2 = {.size = sizeof gpt2, .layers = 3, .heads = 2, .width = 6, .context = 8, .vocabulary = 11};
    an_llama_options llama = {DEFAULTS(an_llama_options),
                              .layers = 3,
                              .heads = 2,
                              .kv_heads = 1,
                              .width = 12,
                              .hidden = 16,
                              .context = 8,
                              .vocabulary = 11};
    const int64_t inputs[] = {6};
    const an_layer layers[] = {{DEFAULTS(an_layer), .type = AN_LAYER_LINEAR, .features = 5},
                               {DEFAULTS(an_layer), .type = AN_LAYER_LAYER_NORM, .epsilon = 1e-5},
                               {DEFAULTS(an_layer), .type = AN_LAYER_DROPOUT, .rate = 0.3}};
    const an_sequential_options sequential = {.size = sizeof sequential,
                                              .loss = AN_LOSS_SQUARED,
                                              .input_ndims = 1,
                                              .inputs = inputs,
                                              .layer_count = 3,
                                              .layers = layers};
    an_graph *graph = NULL;
    DO(an_model_mlp, &graph, ctx, &mlp);
    note_graph(graph);
    an_graph_destroy(&graph);
    DO(an_model_cnn, &graph, ctx, &cnn);
    note_graph(graph);
    an_graph_destroy(&graph);
    DO(an_model_gpt2, &graph, ctx, &gpt2);
    note_graph(graph);
    an_graph_destroy(&graph);
    DO(an_model_sequential, &graph, ctx, &sequential);
    note_graph(graph);
    an_graph_destroy(&graph);
    DO(an_model_llama, &graph, ctx, &llama);
    note_graph(graph);
    an_graph_destroy(&graph);
    DO(an_model_preset, &graph, ctx, "gpt2-124m", AN_DTYPE_NONE);
    note_graph(graph);
    an_graph_destroy(&graph);
}

/* ---- the parts of a step ---- */

static void note_params(an_params *params) {
    for (int64_t i = 0; i < an_params_count(params); i++) {
        float values[64];
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_param_info_get(params, i, &info));
        an_array array = array_of(values, info.dtype, info.ndims, info.dims);
        DO(an_params_get, params, info.name, AN_PART_WEIGHT, &array);
        note(values, (size_t)info.elements * sizeof *values);
        if (i == 0) DO(an_params_set, params, info.name, AN_PART_WEIGHT, &array);
    }
}

static void look_at_plan(an_plan *plan) {
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    an_plan_traffic traffic;
    an_plan_traffic_init(&traffic, sizeof traffic);
    an_plan_cost cost;
    an_plan_cost_init(&cost, sizeof cost);
    an_plan_op op;
    an_plan_op_init(&op, sizeof op);
    an_plan_life life;
    an_plan_life_init(&life, sizeof life);
    char *text = NULL;
    DO(an_plan_memory_get, plan, &memory);
    DO(an_plan_traffic_get, plan, &traffic);
    NOTE(memory);
    DO(an_plan_cost_get, plan, AN_FORM_TRAIN_FIRST, &cost);
    NOTE(cost.flops), NOTE(cost.bytes), NOTE(cost.seconds), NOTE(cost.recompute_ratio);
    for (int i = 0; i < an_plan_op_count(); i++) {
        DO(an_plan_op_get, plan, AN_FORM_TRAIN_FIRST, i, &op);
        NOTE(op.flops), NOTE(op.bytes);
    }
    DO(an_plan_life_get, plan, AN_FORM_TRAIN_FIRST, 0, &life);
    NOTE(life.bytes);
    DO(an_plan_dump, plan, AN_FORM_TRAIN_FIRST, NULL, &text);
    note_string(&text);
    DO(an_plan_dot, plan, AN_FORM_TRAIN_FIRST, &text);
    note_string(&text);
}

static an_status expect_host(void *user, int64_t instruction) {
    (void)instruction;
    *(bool *)user = *(bool *)user && has_environment(host);
    return AN_OK;
}

static void run_program(an_program *program) {
    const an_array in = array_of(x, AN_DTYPE_F32, 2, (int64_t[]){SAMPLES, INPUTS}),
                   out = array_of(y, AN_DTYPE_F32, 2, (int64_t[]){SAMPLES, OUTPUTS});
    int64_t numbers[SAMPLES] = {0}, targets;
    const an_array samples = array_of(numbers, AN_DTYPE_I64, 1, (int64_t[]){SAMPLES});
    float result[SAMPLES * OUTPUTS];
    double loss;
    bool hosts = true;
    an_array given = {0};
    an_profile_entry entry;
    an_profile_entry_init(&entry, sizeof entry);
    DO(an_program_bind, program, "batch", SAMPLES);
    DO(an_program_set_input, program, "x", &in);
    DO(an_program_set_input, program, "targets", &out);
    DO(an_program_set_input, program, "samples", &samples);
    DO(an_program_count_targets, program, &out, &targets);
    NOTE(targets);
    DO(an_program_set_scalar, program, "loss_gradient", 1.0 / 3);
    DO(an_program_set_scalar_i64, program, "seed", 7);
    an_program_set_hook(program, expect_host, &hosts);
    DO(an_program_run, program, AN_FORM_EVALUATE);
    assert_true(hosts); /* a hook is the host's own code */
    an_program_set_hook(program, NULL, NULL);
    DO(an_program_loss, program, &loss);
    NOTE(loss);
    given.data = result;
    given.dtype = AN_DTYPE_NONE;
    DO(an_program_get_output, program, "y", &given);
    NOTE(result);
    DO(an_profile_entry_get, program, AN_FORM_EVALUATE, 0, &entry);
    NOTE(entry.flops), NOTE(entry.bytes);
}

static void take_step_by_parts(an_stepper *stepper, an_optimizer *optimizer) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_update update = {DEFAULTS(an_update), .rate = 1e-3 / 3, .clip_norm = 0.1};
    double norm;
    DO(an_step_begin, stepper, SAMPLES * OUTPUTS);
    DO(an_step_micro_batch, stepper, 0, SAMPLES / 2);
    DO(an_step_micro_batch, stepper, 1, SAMPLES / 2);
    DO(an_step_reduce, stepper);
    DO(an_step_unscale, stepper);
    DO(an_step_clip, stepper);
    DO(an_step_update, stepper);
    DO(an_step_schedule, stepper);
    DO(an_step_end, stepper, &metrics);
    NOTE(metrics.loss), NOTE(metrics.norm), NOTE(metrics.rate), NOTE(metrics.scale);
    NUMBER(an_stepper_rate, stepper);
    DO(an_optimizer_norm, optimizer, 3, &norm);
    NOTE(norm);
    DO(an_optimizer_parameter_norm, optimizer, "hidden.0.weight", &norm);
    NOTE(norm);
    update.scale = 3;
    DO(an_optimizer_update, optimizer, &update);
}

static void make_parts(an_dtype precision) {
    const char *symbol = "batch";
    const int64_t most = SAMPLES;
    const an_mlp_options mlp = mlp_options();
    const an_group_rule rule = {DEFAULTS(an_group_rule), .match = "bias", .lr_scale = 1.0 / 3};
    const an_group_options group = {DEFAULTS(an_group_options), .weight_decay = 0.1, .rule_count = 1, .rules = &rule};
    const an_schedule_options one_cycle = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_ONE_CYCLE, .steps = 7};
    an_plan_options options = {DEFAULTS(an_plan_options),
                               .symbol_count = 1,
                               .symbols = &symbol,
                               .maxima = &most,
                               .programs = AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION,
                               .precision = precision};
    an_stepper_options step = {DEFAULTS(an_stepper_options), .rate = 1e-2, .leaves = 2, .scales = true};
    an_group_info info;
    an_group_info_init(&info, sizeof info);
    an_scaler scaler = {DEFAULTS(an_scaler), .scale = 3, .growth = 1.1, .interval = 1};
    an_graph *graph = NULL;
    an_groups *groups = NULL;
    an_schedule *schedule = NULL;
    an_plan *plan = NULL;
    an_params *params = NULL;
    an_program *program = NULL;
    an_optimizer *optimizer = NULL;
    an_stepper *stepper = NULL;
    int moments;
    OK(ctx, an_model_mlp(&graph, ctx, &mlp));
    DO(an_groups_create, &groups, graph, &group);
    DO(an_group_info_get, groups, 0, &info);
    NOTE(info.lr_scale), NOTE(info.weight_decay);
    OK(ctx, an_graph_verify(graph));
    DO(an_schedule_create, &schedule, ctx, &one_cycle);
    for (int t = 0; t < 7; t++) {
        NUMBER(an_schedule_factor, schedule, t);
        NUMBER(an_schedule_momentum, schedule, t);
    }
    NUMBER(an_scaler_update, &scaler, true);
    NOTE(scaler.scale);
    DO(an_plan_create, &plan, ctx, graph, &options);
    look_at_plan(plan);
    NUMBER(an_optimizer_moments, NULL);
    DO(an_optimizer_moments_in, ctx, NULL, &moments);
    DO(an_params_create, &params, ctx, graph, NULL);
    DO(an_params_init, params, 7);
    note_params(params);
    DO(an_program_create, &program, plan, params);
    run_program(program);
    DO(an_optimizer_create, &optimizer, params, groups, NULL);
    DO(an_stepper_create, &stepper, program, optimizer, schedule, &step);
    take_step_by_parts(stepper, optimizer);
    note_params(params);
    an_stepper_destroy(&stepper);
    an_optimizer_destroy(&optimizer);
    an_program_destroy(&program);
    an_params_destroy(&params);
    an_plan_destroy(&plan);
    an_schedule_destroy(&schedule);
    an_groups_destroy(&groups);
    an_graph_destroy(&graph);
}

/* ---- data ---- */

static void read_samples(an_dataset **dataset) {
    static double inputs[1024], targets[1024];
    memset(inputs, 0, sizeof inputs);
    memset(targets, 0, sizeof targets);
    DO(an_dataset_read, *dataset, 2, ((int64_t[]){0, 3}), ((void *const[]){inputs, targets}));
    NOTE(inputs), NOTE(targets);
    an_class_info classes;
    an_class_info_init(&classes, sizeof classes);
    DO(an_class_info_get, *dataset, &classes);
    NOTE(classes.classes);
}

static void count_batches(void) {
    const an_batch_options options = {.size = sizeof options, .global = 7};
    const an_length length = {AN_LENGTH_EPOCHS, 0.7};
    an_length_options by;
    an_length_options_init(&by, sizeof by);
    an_batches *batches = NULL;
    int64_t steps;
    DO(an_batches_create, &batches, ctx, 100, &options);
    DO(an_batches_steps, batches, &length, &by, &steps);
    NOTE(steps);
    by.from = 30;
    DO(an_batches_steps_before_end, batches, &length, &by, &steps);
    NOTE(steps);
    an_batches_destroy(&batches);
}

static an_status read_thirds(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                             size_t capacity) {
    (void)user, (void)message, (void)capacity;
    for (int64_t i = 0; i < n; i++) ((float *)fields[0])[i] = (float)indices[i] / 3;
    return AN_OK;
}

static void make_datasets(void) {
    const an_array arrays[] = {array_of(wide_x, AN_DTYPE_F64, 2, (int64_t[]){SAMPLES, INPUTS}),
                               array_of(wide_y, AN_DTYPE_F64, 2, (int64_t[]){SAMPLES, OUTPUTS})};
    const an_field field = {.size = sizeof field, .name = "x", .dtype = AN_DTYPE_F32};
    const an_dataset_record own = {
        .size = sizeof own, .count = 9, .field_count = 1, .fields = &field, .read = read_thirds};
    const an_array_source memory = {DEFAULTS(an_array_source), .array_count = 2, .arrays = arrays, .end = 0.9};
    const an_idx_source idx = {DEFAULTS(an_idx_source), .inputs = "images.idx", .targets = "labels.idx", .begin = 0.1};
    const an_csv_source csv = {DEFAULTS(an_csv_source), .path = "sums.csv", .end = 0.9};
    const an_text_source text = {DEFAULTS(an_text_source), .path = "poem.txt", .context = 8, .end = 0.7};
    const an_token_source tokens = {DEFAULTS(an_token_source), .path = "tokens.bin", .context = 8, .end = 0.7};
    const an_megatron_source megatron = {DEFAULTS(an_megatron_source), .prefix = "set", .context = 8, .end = 0.7};
    an_dataset *d = NULL, *two[2] = {NULL};
    DO(an_dataset_create, &d, ctx, &own);
    read_samples(&d);
    an_dataset_destroy(&d);
    DO(an_dataset_create_arrays, &d, ctx, &memory);
    read_samples(&d);
    an_dataset_destroy(&d);
    count_batches();
    DO(an_dataset_create_idx, &d, ctx, &idx);
    read_samples(&d);
    an_dataset_destroy(&d);
    DO(an_dataset_create_csv, &d, ctx, &csv);
    read_samples(&d);
    an_dataset_destroy(&d);
    DO(an_dataset_create_tokens, &d, ctx, &tokens);
    read_samples(&d);
    an_dataset_destroy(&d);
    DO(an_dataset_create_megatron, &d, ctx, &megatron);
    read_samples(&d);
    an_dataset_destroy(&d);
    for (int i = 0; i < 2; i++) DO(an_dataset_create_text, &two[i], ctx, &text);
    const an_mixture_source mixture = {
        .size = sizeof mixture, .source_count = 2, .sources = two, .weights = (const double[]){0.1, 0.7}};
    DO(an_dataset_create_mixture, &d, ctx, &mixture);
    read_samples(&d);
    an_dataset_destroy(&d);
    for (int i = 0; i < 2; i++) an_dataset_destroy(&two[i]);
}

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

static void read_config(void) {
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

static void note_hashes(const an_trainer *trainer) {
    char hash[AN_HASH_TEXT];
    DO(an_trainer_weights_hash, trainer, hash);
    note_text(hash);
    DO(an_trainer_state_hash, trainer, hash);
    note_text(hash);
}

static void ask(an_predictor *predictor) {
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

static void predict(an_trainer *trainer) {
    const an_predictor_options options = {DEFAULTS(an_predictor_options), .most = SAMPLES};
    an_predictor *predictor = NULL;
    DO(an_predictor_create, &predictor, trainer, &options);
    DO(an_predictor_refresh, predictor, trainer);
    ask(predictor);
    an_predictor_destroy(&predictor);
}

static void predict_from_checkpoint(void) {
    const an_predictor_options options = {DEFAULTS(an_predictor_options), .most = SAMPLES};
    an_predictor *predictor = NULL;
    DO(an_predictor_open, &predictor, ctx, "run", &options);
    ask(predictor);
    an_predictor_destroy(&predictor);
}

static void look_at_checkpoint(void) {
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
    DO(an_checkpoint_text, checkpoint, "metrics.json", &text);
    note_string(&text);
    DO(an_checkpoint_export, checkpoint, "exported.safetensors");
    DO(an_checkpoint_export_torch, checkpoint, "exported");
    an_checkpoint_close(&checkpoint);
}

static an_status expect_host_after_step(void *user, an_trainer *trainer) {
    return expect_host(user, an_trainer_next_step(trainer));
}

static void run_to_its_end(an_trainer *trainer, an_config *config) {
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
    bool hosts = true, logged;
    double value;
    DO(an_folder_create, &folder, trainer, config, NULL);
    DO(an_run_options_get, trainer, &run);
    run.callbacks = &(const an_run_callbacks){
        .size = sizeof(an_run_callbacks), .after_step = expect_host_after_step, .user = &hosts};
    run.min_delta = 0.1;
    DO(an_trainer_run, trainer, &run, &outcome);
    assert_true(hosts); /* callbacks are the host's own code */
    DO(an_step_metrics_get, trainer, &metrics);
    DO(an_evaluation_get, trainer, &evaluation);
    NOTE(outcome.best_value), NOTE(metrics.loss), NOTE(evaluation.loss);
    DO(an_trainer_evaluate, trainer, &evaluation);
    NOTE(evaluation.loss), NOTE(evaluation.perplexity), NOTE(evaluation.mean_absolute_error), NOTE(evaluation.r2);
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
}

static an_status make_schedule(void *user, int64_t steps, an_schedule **schedule, double *rate) {
    an_schedule_options options = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_COSINE, .steps = steps};
    (void)user;
    *rate = 0.1;
    return an_schedule_create(schedule, ctx, &options);
}

static void update_nothing_f32(void *user, const an_optimizer_numbers *numbers, int64_t count, const float *gradients,
                               float *weights, float *moment_1, float *moment_2) {
    (void)user, (void)numbers, (void)count, (void)gradients, (void)weights, (void)moment_1, (void)moment_2;
}

static void update_nothing_f64(void *user, const an_optimizer_numbers *numbers, int64_t count, const double *gradients,
                               double *weights, double *moment_1, double *moment_2) {
    (void)user, (void)numbers, (void)count, (void)gradients, (void)weights, (void)moment_1, (void)moment_2;
}

static an_status measure_nothing(void *user, an_trainer *trainer, double *value) {
    (void)user, (void)trainer, (void)value;
    return AN_OK;
}

/* Into a context of its own, as nothing is ever taken out again. */
static void add_own(void) {
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
static void open_by_parts(void) {
    const an_config_options options = {.size = sizeof options, .file = "run/config.yaml"};
    const an_open_options opening = {.size = sizeof opening, .extend = AN_EXTEND_KEEP},
                          fresh = {.size = sizeof fresh, .fresh = true};
    const an_save_options saving = {.size = sizeof saving, .folder = "parts", .every = {.epochs = 0.3}};
    const an_log_options logging = {.size = sizeof logging, .every = {.seconds = 0.7}};
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_init_options init;
    an_init_options_init(&init, sizeof init);
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
    OK(ctx, an_trainer_open_with(&trainer, ctx, config, &fresh));
    DO(an_trainer_init, trainer, &init);
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
    an_trainer_close(&trainer);
    an_candidates_destroy(&candidates);
    an_config_destroy(&config);
}

static void train_from_config(an_dtype dtype) {
    const an_open_options fresh = {.size = sizeof fresh, .fresh = true};
    an_config_options options = {.size = sizeof options, .file = "run.yaml"};
    an_trainer_info info;
    an_trainer_info_init(&info, sizeof info);
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
    DO(an_trainer_open_with, &trainer, ctx, config, &fresh);
    DO(an_trainer_info_get, trainer, &info);
    NOTE(info);
    note_hashes(trainer);
    DO(an_trainer_step, trainer, &metrics);
    NOTE(metrics.loss), NOTE(metrics.norm), NOTE(metrics.rate);
    DO(an_trainer_norm, trainer, 0, &name, &norm);
    NOTE(norm);
    run_to_its_end(trainer, config);
    note_hashes(trainer);
    predict(trainer);
    DO(an_trainer_save, trainer, 77);
    DO(an_trainer_save_over, trainer, 77);
    an_trainer_close(&trainer);
    look_at_checkpoint();
    predict_from_checkpoint();
    DO(an_trainer_open, &trainer, ctx, "run/config.yaml");
    note_hashes(trainer);
    an_trainer_close(&trainer);
    DO(an_trainer_open_at, &trainer, ctx, "run/config.yaml", 77);
    note_hashes(trainer);
    an_trainer_close(&trainer);
    DO(an_trainer_open_config, &trainer, ctx, config);
    an_trainer_close(&trainer);
    an_config_destroy(&config);
    open_by_parts();
}

/* On the caller's own samples, without a config, and through a checkpoint. */
static void train_on_samples(void) {
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
            an_checkpoint_close(&checkpoint);
        } else {
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

static void train_on_text(void) {
    an_predictor *predictor = NULL;
    int32_t tokens[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float logits[8 * 11];
    an_trainer *trainer = open_run("model: {type: gpt2, layers: 1, heads: 2, width: 16, context: 8}\n"
                                   "data: {train: {type: text, path: poem.txt, tokens: chars}}\n"
                                   "batch: {global: 4}\nrun: {dir: text, steps: 2}\nsave: {every: off}\n");
    DO(an_trainer_step, trainer, NULL);
    note_hashes(trainer);
    DO(an_predictor_create, &predictor, trainer, NULL);
    DO(an_predictor_run_tokens, predictor, 1, tokens, logits);
    NOTE(logits);
    an_predictor_destroy(&predictor);
    an_trainer_close(&trainer);
}

/* ---- all of them, everywhere ---- */

static void test_every_environment_gives_the_same_bits(void **state) {
    (void)state;
    make_data();
    for (int i = 0; i < ENVIRONMENTS; i++) {
        host = &environments[i];
        record_count = 0;
        build_own();
        call_ranks();
        build_graph();
        build_models();
        make_parts(AN_DTYPE_NONE);
        make_parts(AN_DTYPE_F16);
        make_datasets();
        read_config();
        train_from_config(AN_DTYPE_F32);
        train_from_config(AN_DTYPE_F64);
        train_on_samples();
        train_on_text();
        compare_records();
    }
}

/* A function that is new belongs in the test above, or in the list of those that touch no such number. */
static void test_every_public_call_was_made(void **state) {
    static public_calls all;
    int missing = 0;
    (void)state;
    read_public_calls(&all);
    assert_true(all.count > 200);
    for (int i = 0; i < all.count; i++) {
        bool made = is_listed(plain_calls, all.names[i]);
        for (int k = 0; k < first_count && !made; k++) made = !strcmp(first_record[k].name, all.names[i]);
        if (!made) print_error("%s is not tested in other floating-point environments\n", all.names[i]), missing++;
    }
    assert_int_equal(missing, 0);
    for (const char *const *name = plain_calls; *name; name++) {
        bool is_there = false;
        for (int i = 0; i < all.count && !is_there; i++) is_there = !strcmp(all.names[i], *name);
        if (!is_there) fail_msg("there is no public function %s", *name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_environment_gives_the_same_bits),
        cmocka_unit_test(test_every_public_call_was_made),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

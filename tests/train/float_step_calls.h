/* Calls that make the parts of a step and read data. */
#ifndef TESTS_TRAIN_FLOAT_STEP_CALLS_H
#define TESTS_TRAIN_FLOAT_STEP_CALLS_H

#include "anneal/pretrained.h"
#include "train/float_graph_calls.h"

/* ---- the parts of a step ---- */

static inline void note_params(an_params *params) {
    for (int64_t i = 0; i < an_params_count(params); i++) {
        float values[64];
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        OK(ctx, an_params_info(params, i, &info));
        an_array array = array_of(values, info.dtype, info.ndims, info.dims);
        DO(an_params_get, params, info.name, AN_PART_WEIGHT, &array);
        note(values, (size_t)info.elements * sizeof *values);
        if (i == 0) DO(an_params_set, params, info.name, AN_PART_WEIGHT, &array);
    }
}

static inline void look_at_plan(an_plan *plan) {
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    an_plan_traffic traffic;
    an_plan_traffic_init(&traffic, sizeof traffic);
    an_plan_cost cost;
    an_plan_cost_init(&cost, sizeof cost);
    an_plan_op op;
    an_plan_op_init(&op, sizeof op);
    an_plan_node node;
    an_plan_node_init(&node, sizeof node);
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
    for (int64_t i = 0; i < an_plan_node_count(plan, AN_FORM_TRAIN_FIRST); i++) {
        DO(an_plan_node_get, plan, AN_FORM_TRAIN_FIRST, i, &node);
        NOTE(node.flops), NOTE(node.bytes);
    }
    DO(an_plan_life_get, plan, AN_FORM_TRAIN_FIRST, 0, &life);
    NOTE(life.bytes);
    DO(an_plan_dump, plan, AN_FORM_TRAIN_FIRST, NULL, &text);
    note_string(&text);
    DO(an_plan_dot, plan, AN_FORM_TRAIN_FIRST, &text);
    note_string(&text);
}

static inline an_status expect_host(void *user, int64_t instruction) {
    (void)instruction;
    *(bool *)user = *(bool *)user && has_environment(host);
    return AN_OK;
}

static inline void run_program(an_program *program) {
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
    DO(an_program_profile_entry, program, AN_FORM_EVALUATE, 0, &entry);
    NOTE(entry.flops), NOTE(entry.bytes);
}

static inline void take_step_by_parts(an_stepper *stepper, an_optimizer *optimizer) {
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

static inline void make_parts(an_dtype precision) {
    const char *symbol = "batch";
    const int64_t maximum = SAMPLES;
    const an_mlp_options mlp = mlp_options();
    const an_group_rule rule = {DEFAULTS(an_group_rule), .match = "bias", .lr_scale = 1.0 / 3};
    const an_group_options group = {DEFAULTS(an_group_options), .weight_decay = 0.1, .rule_count = 1, .rules = &rule};
    const an_schedule_options one_cycle = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_ONE_CYCLE, .steps = 7};
    an_plan_options options = {DEFAULTS(an_plan_options),
                               .symbol_count = 1,
                               .symbols = &symbol,
                               .maxima = &maximum,
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
    static const char *const targets[] = {"weight"};
    const an_lora_options lora = {DEFAULTS(an_lora_options), .targets = targets, .target_count = 1, .rank = 1,
                                  .alpha = 0.3};
    OK(ctx, an_model_mlp(&graph, ctx, &mlp));
    DO(an_graph_add_lora, graph, &lora);
    an_graph_destroy(&graph);
    OK(ctx, an_model_mlp(&graph, ctx, &mlp));
    DO(an_groups_create, &groups, graph, &group);
    DO(an_groups_get, groups, 0, &info);
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
    DO(an_params_reset, params, 7);
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

static inline void read_samples(an_dataset **dataset) {
    static double inputs[1024], targets[1024], third[1024], fourth[1024]; /* sentences have four fields */
    memset(inputs, 0, sizeof inputs);
    memset(targets, 0, sizeof targets);
    DO(an_dataset_read, *dataset, 2, ((int64_t[]){0, 3}), ((void *const[]){inputs, targets, third, fourth}));
    NOTE(inputs), NOTE(targets);
    an_class_info classes;
    an_class_info_init(&classes, sizeof classes);
    DO(an_dataset_class_info, *dataset, &classes);
    NOTE(classes.classes);
}

static inline void count_batches(void) {
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

static inline an_status read_thirds(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                                    size_t capacity) {
    (void)user, (void)message, (void)capacity;
    for (int64_t i = 0; i < n; i++) ((float *)fields[0])[i] = (float)indices[i] / 3;
    return AN_OK;
}

static inline void make_datasets(void) {
    const an_array arrays[] = {array_of(wide_x, AN_DTYPE_F64, 2, (int64_t[]){SAMPLES, INPUTS}),
                               array_of(wide_y, AN_DTYPE_F64, 2, (int64_t[]){SAMPLES, OUTPUTS})};
    const an_field field = {.size = sizeof field, .name = "x", .dtype = AN_DTYPE_F32};
    const an_dataset_record own = {
        .size = sizeof own, .count = 9, .field_count = 1, .fields = &field, .read = read_thirds};
    const an_array_source memory = {DEFAULTS(an_array_source), .array_count = 2, .arrays = arrays, .end = 0.9};
    const an_idx_source idx = {DEFAULTS(an_idx_source), .inputs = "images.idx", .targets = "labels.idx", .begin = 0.1};
    const an_images_source pictures = {DEFAULTS(an_images_source), .path = "pictures", .width = 3};
    const an_csv_source csv = {DEFAULTS(an_csv_source), .path = "sums.csv", .end = 0.9};
    const an_npy_source npy = {DEFAULTS(an_npy_source), .path = "x.npy", .end = 0.8};
    const an_hdf5_source hdf5 = {DEFAULTS(an_hdf5_source), .path = ANNEAL_SOURCE_DIR "/tests/golden/hdf5/small.h5",
                                 .dtype = AN_DTYPE_F64};
    const an_jsonl_source jsonl = {DEFAULTS(an_jsonl_source), .path = "x.jsonl"};
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
#ifdef AN_HAVE_PNG
    DO(an_dataset_create_images, &d, ctx, &pictures);
    read_samples(&d);
    an_dataset_destroy(&d);
#endif
    static const char json[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"dropout\": 0.0}}";
    an_tokenizer *tokenizer = NULL;
    DO(an_tokenizer_create, &tokenizer, ctx, json, sizeof json - 1, NULL, 0);
    an_tokenizer_destroy(&tokenizer);
    write_text("tokenizer.json", json);
    DO(an_tokenizer_open, &tokenizer, ctx, "tokenizer.json");
    an_tokenizer_destroy(&tokenizer);
    DO(an_pretrained_tokenizer, &tokenizer, ctx, "tokenizer.json");
    an_tokenizer_destroy(&tokenizer);
    an_csv_facts *facts = NULL;
    an_csv_column column;
    an_csv_column_init(&column, sizeof column);
    DO(an_csv_facts_create, &facts, ctx, "sums.csv", 0);
    DO(an_csv_facts_column, facts, 0, &column);
    NOTE(column.minimum), NOTE(column.maximum);
    an_csv_facts_destroy(&facts);
    DO(an_dataset_create_csv, &d, ctx, &csv);
    read_samples(&d);
    char *text_of_encoding = NULL;
    an_encoding *encoding = NULL;
    DO(an_encoding_write, an_dataset_encoding(d), &text_of_encoding);
    DO(an_encoding_parse, &encoding, ctx, text_of_encoding, strlen(text_of_encoding));
    an_encoding_destroy(&encoding);
    an_string_release(ctx, &text_of_encoding);
    const an_split_source split = {DEFAULTS(an_split_source), .source = d};
    DO(an_dataset_split, &two[0], &two[1], ctx, &split);
    for (int i = 0; i < 2; i++) {
        read_samples(&two[i]);
        an_dataset_destroy(&two[i]);
    }
    an_dataset_destroy(&d);
    DO(an_dataset_create_npy, &d, ctx, &npy);
    read_samples(&d);
    an_dataset_destroy(&d);
#ifdef AN_HAVE_HDF5
    DO(an_dataset_create_hdf5, &d, ctx, &hdf5);
    read_samples(&d);
    an_dataset_destroy(&d);
#else /* without its plugin it only says so */
    assert_int_equal(CALL(an_dataset_create_hdf5, &d, ctx, &hdf5), AN_ERR_UNSUPPORTED);
#endif
    DO(an_dataset_create_jsonl, &d, ctx, &jsonl);
    read_samples(&d);
    an_dataset_destroy(&d);
    OK(ctx, an_tokenizer_open(&tokenizer, ctx, ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"));
    write_text("said.jsonl", "{\"text\": \"abc abc\", \"label\": 0}\n{\"text\": \"d\", \"label\": 2}\n"
                             "{\"text\": \"efg\", \"label\": 1}\n{\"text\": \"hijk\", \"label\": 0}\n");
    an_chat_source said = {DEFAULTS(an_chat_source), .path = "said.jsonl", .tokenizer = tokenizer, .context = 4};
    said.packed = false;
    const an_sentence_source sentences = {DEFAULTS(an_sentence_source), .path = "said.jsonl", .tokenizer = tokenizer,
                                          .context = 4};
    DO(an_dataset_create_chat, &d, ctx, &said);
    read_samples(&d);
    an_dataset_destroy(&d);
    DO(an_dataset_create_sentences, &d, ctx, &sentences);
    read_samples(&d);
    an_dataset_destroy(&d);
    an_tokenizer_destroy(&tokenizer);
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

#endif

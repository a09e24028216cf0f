/* Rows of the calls that plan, run and read: plan.h, config.h, data.h. */
#ifndef TESTS_TRAIN_NULL_RUN_CALLS_H
#define TESTS_TRAIN_NULL_RUN_CALLS_H

#include "anneal/open.h"
#include "anneal/text.h"
#include "train/null_graph_calls.h"

static an_params *params;
static an_plan *plan;
static an_program *program;
static an_config *config;
static an_dataset *table, *poem;
static float numbers[64];
static an_array in, targets; /* of the small MLP, for one sample */

static inline void make_program(void) {
    in = array_of(numbers, AN_DTYPE_F32, 2, (int64_t[]){1, 4});
    targets = array_of(numbers, AN_DTYPE_F32, 2, (int64_t[]){1, 2});
    OK(ctx, plan_for(&plan, ctx, model, "batch", 4, AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION));
    OK(ctx, an_params_create(&params, ctx, model, NULL));
    OK(ctx, an_program_create(&program, plan, params));
    OK(ctx, an_program_bind(program, "batch", 1));
    OK(ctx, an_program_set_input(program, "x", &in));
    OK(ctx, an_program_set_input(program, "y", &targets));
    OK(ctx, an_program_run(program, AN_FORM_EVALUATE));
}

static inline void call_plans(void) {
    const char *symbol = "batch";
    const int64_t maximum = 4;
    an_plan_options options = {DEFAULTS(an_plan_options), .symbol_count = 1, .symbols = &symbol, .maxima = &maximum};
    an_plan *fresh = NULL;
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
    STATUS(an_plan_create, N(&fresh), N(ctx), N(model), O(&options));
    NOTHING(an_plan_destroy, O(&plan));
    VALUE(an_plan_one_leaf, NULL, N(plan));
    STATUS(an_plan_memory_get, N(plan), N(&memory));
    STATUS(an_plan_traffic_get, N(plan), N(&traffic));
    STATUS(an_plan_cost_get, N(plan), AN_FORM_EVALUATE, N(&cost));
    PLAIN(an_plan_op_count);
    STATUS(an_plan_op_get, N(plan), AN_FORM_EVALUATE, 0, N(&op));
    VALUE(an_plan_node_count, 0, N(plan), AN_FORM_EVALUATE);
    STATUS(an_plan_node_get, N(plan), AN_FORM_EVALUATE, 0, N(&node));
    VALUE(an_plan_life_count, 0, N(plan), AN_FORM_EVALUATE);
    STATUS(an_plan_life_get, N(plan), AN_FORM_EVALUATE, 0, N(&life));
    STATUS(an_plan_dump, N(plan), AN_FORM_EVALUATE, O("select"), N(&text));
    STATUS(an_plan_dot, N(plan), AN_FORM_EVALUATE, N(&text));
}

static inline an_status never_stops(void *user, int64_t instruction) {
    (void)user, (void)instruction;
    return AN_OK;
}

static inline void call_programs(void) {
    an_params_options options;
    an_params_options_init(&options, sizeof options);
    an_params *fresh_params = NULL;
    an_program *fresh = NULL;
    an_param_info parameter;
    an_param_info_init(&parameter, sizeof parameter);
    an_input_info input;
    an_input_info_init(&input, sizeof input);
    an_profile_entry entry;
    an_profile_entry_init(&entry, sizeof entry);
    an_array bias = array_of(numbers, AN_DTYPE_F32, 1, (int64_t[]){2});
    int64_t count;
    double number;
    STATUS(an_params_create, N(&fresh_params), N(ctx), N(model), O(&options));
    NOTHING(an_params_destroy, O(&params));
    STATUS(an_params_reset, N(params), 7);
    VALUE(an_params_count, 0, N(params));
    STATUS(an_params_info, N(params), 0, N(&parameter));
    STATUS(an_params_get, N(params), N("fc2.bias"), AN_PART_WEIGHT, N(&bias));
    STATUS(an_params_set, N(params), N("fc2.bias"), AN_PART_WEIGHT, N(&bias));
    STATUS(an_program_create, N(&fresh), N(plan), N(params));
    NOTHING(an_program_destroy, O(&program));
    STATUS(an_program_bind, N(program), N("batch"), 2);
    VALUE(an_program_input_count, 0, N(program));
    STATUS(an_program_input, N(program), 0, N(&input));
    STATUS(an_program_set_input, N(program), N("x"), N(&in));
    STATUS(an_program_set_scalar, N(program), N("loss_gradient"), 1);
    STATUS(an_program_set_scalar_i64, N(program), N("loss_gradient"), 1);
    STATUS(an_program_count_targets, N(program), N(&targets), N(&count));
    STATUS(an_program_run, N(program), AN_FORM_EVALUATE);
    STATUS(an_program_loss, N(program), N(&number));
    STATUS(an_program_get_output, N(program), N("out"), N(&targets));
    NOTHING(an_program_set_hook, N(program), O(never_stops), O(&count));
    NOTHING(an_program_profile, N(program), true);
    VALUE(an_program_profile_count, 0, N(program), AN_FORM_EVALUATE);
    STATUS(an_program_profile_entry, N(program), AN_FORM_EVALUATE, 0, N(&entry));
}

/* ---- configs ---- */

#define LISTS                                                                                 \
    "model: {type: mlp, inputs: 2, outputs: 1, hidden: [8]}\n"                                \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]},\n"            \
    "       eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n" \
    "optimizer: {betas: [0.9, 0.99]}\nschedule: {type: points, points: {0: 1.0, 2: 0.5}}\n"   \
    "batch: {global: 16}\nrun: {dir: run, steps: 4}\nlog: {every: 1}\nsave: {every: off}\n"

static inline void make_config(void) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    assert_int_equal(system("rm -rf run"), 0);
    write_sums();
    write_text("run.yaml", LISTS);
    options.file = "run.yaml";
    OK(ctx, an_config_create(&config, ctx, &options));
}

static inline void call_configs(void) {
    an_config_options options = {.size = sizeof options, .file = "run.yaml"};
    an_config *fresh = NULL;
    an_config_key key;
    an_config_key_init(&key, sizeof key);
    an_context_options context;
    an_context_options_init(&context, sizeof context);
    an_open_options open_options;
    an_open_options_init(&open_options, sizeof open_options);
    an_length length = {0}, lengths[4];
    const char *text, *other;
    char *written = NULL;
    bool on;
    int64_t count, counts[4];
    int listed;
    double real, second, reals[4];
    STATUS(an_config_create, N(&fresh), N(ctx), N(&options));
    an_config_destroy(&fresh);
    STATUS(an_config_read, N(&fresh), N(ctx), N(&options));
    an_dataset *fresh_samples = NULL;
    an_samples_options asked = {.size = sizeof asked, .path = "sums.csv", .elements = 2, .dtype = AN_DTYPE_F32};
    an_samples_info about;
    an_samples_info_init(&about, sizeof about);
    STATUS(an_samples_open, N(&fresh_samples), N(ctx), N(config), N(&asked), O(&about));
    NOTHING(an_config_destroy, O(&config));
    STATUS(an_config_set, N(config), N("run.steps=5"));
    VALUE(an_config_warning_count, 0, N(config));
    TEXT(an_config_warning, N(config), 0);
    VALUE(an_config_origin_of, AN_ORIGIN_NONE, N(config), N("run.steps"));
    TEXT(an_config_place, N(config), N("run.steps"));
    VALUE(an_config_is, false, N(config), N("save.every"), N("off"));
    STATUS(an_config_string, N(config), N("model.type"), N(&text));
    STATUS(an_config_path, N(config), N("data.train.path"), N(&text));
    STATUS(an_config_bool, N(config), N("model.batch_norm"), N(&on));
    STATUS(an_config_count, N(config), N("batch.global"), N(&count));
    STATUS(an_config_real, N(config), N("optimizer.lr"), N(&real));
    REFUSED(an_config_seconds, N(config), N("run.max_time"), N(&real));
    REFUSED(an_config_range, N(config), N("data.train.range"), N(&real), N(&second));
    STATUS(an_config_length, N(config), N("log.every"), N(&length));
    VALUE(an_config_size, 0, N(config), N("model.hidden"));
    STATUS(an_config_reals, N(config), N("optimizer.betas"), 4, N(reals), N(&listed));
    STATUS(an_config_counts, N(config), N("model.hidden"), 4, N(counts), N(&listed));
    REFUSED(an_config_lengths, N(config), N("schedule.milestones"), 4, N(lengths), N(&listed));
    STATUS(an_config_pair, N(config), N("schedule.points"), 0, N(&count), N(&real));
    STATUS(an_config_entry, N(config), N("schedule.points"), 0, N(&text), N(&other));
    STATUS(an_config_show, N(config), N(&written));
    STATUS(an_config_write, N(config), N(&written));
    STATUS(an_config_schema, N(ctx), N(&written));
    STATUS(an_config_key_get, N(ctx), 0, N(&key));
    STATUS(an_context_options_from_config, N(&context), N(&options), O(&open_options));
}

/* ---- data ---- */

static inline an_status read_zeros(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                                   size_t message_capacity) {
    (void)user, (void)indices, (void)message, (void)message_capacity;
    memset(fields[0], 0, (size_t)n * sizeof(float));
    return AN_OK;
}

static inline void make_data(void) {
    enum { TOKENS = 200 };
    unsigned char tokens[2 * TOKENS] = {0}, index[34 + 12 + 16] = "MMIDIDX";
    char text[TOKENS];
    an_csv_source csv = {DEFAULTS(an_csv_source), .path = "sums.csv"};
    an_text_source source = {DEFAULTS(an_text_source), .path = "poem.txt", .context = 4, .tokens = AN_TEXT_CHARACTERS};
    for (int i = 0; i < TOKENS; i++) text[i] = (char)('a' + i * 7 % 11);
    index[9] = 1, index[17] = 8, index[18] = 1, index[26] = 2; /* version, u16, one sequence, two borders */
    index[34] = (unsigned char)TOKENS, index[34 + 12 + 8] = 1;
    write_images();
    write_pictures();
    write_array();
    write_file("poem.txt", text, sizeof text);
    write_file("tokens.bin", tokens, sizeof tokens);
    write_file("set.bin", tokens, sizeof tokens);
    write_file("set.idx", index, sizeof index);
    OK(ctx, an_dataset_create_csv(&table, ctx, &csv));
    OK(ctx, an_dataset_create_text(&poem, ctx, &source));
}

/* ---- text.h ---- */

static inline void call_text(void) {
    static const char json[] = "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": []}}",
                      names_of[] = "{}";
    static const char *const names[] = {"a", "b"};
    an_tokenizer_parts parts;
    an_tokenizer_parts_init(&parts, sizeof parts);
    parts.model = "gpt2";
    parts.tokens = names;
    parts.token_count = 2;
    an_tokenizer_info info;
    an_tokenizer_info_init(&info, sizeof info);
    an_encode_options options;
    an_encode_options_init(&options, sizeof options);
    an_tokenizer *tokenizer = NULL, *fresh = NULL;
    an_encoder *encoder = NULL, *fresh_encoder = NULL;
    an_decoder *decoder = NULL, *fresh_decoder = NULL;
    const int32_t *tokens, ids[] = {0, 1};
    int64_t count;
    size_t length;
    char bytes[8];
    const char *text;
    write_text("tokenizer.json", json);
    OK(ctx, an_tokenizer_open(&tokenizer, ctx, "tokenizer.json"));
    OK(ctx, an_encoder_create(&encoder, tokenizer));
    OK(ctx, an_decoder_create(&decoder, tokenizer, true));
    STATUS(an_tokenizer_create, N(&fresh), N(ctx), N(json), sizeof json - 1, O(names_of), sizeof names_of - 1);
    STATUS(an_tokenizer_open, N(&fresh), N(ctx), N("tokenizer.json"));
    STATUS(an_tokenizer_create_parts, N(&fresh), N(ctx), N(&parts));
    STATUS(an_tokenizer_info_get, N(tokenizer), N(&info));
    VALUE(an_tokenizer_token, NULL, N(tokenizer), 0, O(&length));
    VALUE(an_tokenizer_id, -1, N(tokenizer), N("a"), 1);
    VALUE(an_tokenizer_is_special, false, N(tokenizer), 0);
    STATUS(an_tokenizer_decode, N(tokenizer), N(ids), 2, true, N(bytes), sizeof bytes, N(&length));
    STATUS(an_encoder_create, N(&fresh_encoder), N(tokenizer));
    STATUS(an_encoder_run, N(encoder), N("ab"), 2, O(&options), N(&tokens), N(&count));
    VALUE(an_encoder_types, NULL, N(encoder));
    STATUS(an_decoder_create, N(&fresh_decoder), N(tokenizer), true);
    STATUS(an_decoder_push, N(decoder), 0, N(&text), N(&length));
    STATUS(an_decoder_end, N(decoder), N(&text), N(&length));
    NOTHING(an_encoder_destroy, O(&encoder));
    NOTHING(an_decoder_destroy, O(&decoder));
    an_bpe_trainer *trainer = NULL, *fresh_trainer = NULL;
    an_bpe_options trained;
    an_bpe_options_init(&trained, sizeof trained);
    trained.vocabulary = 300;
    const char *const words[] = {"one and one"};
    const size_t word_lengths[] = {11};
    char *made = NULL;
    OK(ctx, an_bpe_trainer_create(&trainer, ctx, &trained));
    STATUS(an_bpe_trainer_create, N(&fresh_trainer), N(ctx), N(&trained));
    an_bpe_trainer_destroy(&fresh_trainer);
    STATUS(an_bpe_trainer_add, N(trainer), N(words), N(word_lengths), 1);
    STATUS(an_bpe_trainer_run, N(trainer), N(&made), O(&count));
    an_string_release(ctx, &made);
    NOTHING(an_bpe_trainer_destroy, O(&trainer));
    an_bpe_trainer_destroy(&trainer);
    NOTHING(an_tokenizer_destroy, O(&tokenizer));
    an_encoder_destroy(&encoder);
    an_decoder_destroy(&decoder);
    an_tokenizer_destroy(&tokenizer);
}

static inline void call_data(void) {
    const an_field zeros = {.size = sizeof zeros, .name = "x", .dtype = AN_DTYPE_F32};
    an_dataset_record record = {
        .size = sizeof record, .count = 4, .field_count = 1, .fields = &zeros, .read = read_zeros};
    an_array_source arrays = {DEFAULTS(an_array_source), .array_count = 1, .arrays = &in};
    an_idx_source idx = {DEFAULTS(an_idx_source), .inputs = "images.idx"};
    an_images_source pictures = {DEFAULTS(an_images_source), .path = "pictures"};
    an_csv_source csv = {DEFAULTS(an_csv_source), .path = "sums.csv"};
    an_npy_source npy = {DEFAULTS(an_npy_source), .path = "x.npy"};
    an_hdf5_source hdf5 = {DEFAULTS(an_hdf5_source), .path = ANNEAL_SOURCE_DIR "/tests/golden/hdf5/small.h5"};
    an_jsonl_source jsonl = {DEFAULTS(an_jsonl_source), .path = "x.jsonl"};
    an_text_source text = {DEFAULTS(an_text_source), .path = "poem.txt", .context = 4};
    an_token_source tokens = {DEFAULTS(an_token_source), .path = "tokens.bin", .context = 4};
    an_megatron_source megatron = {DEFAULTS(an_megatron_source), .prefix = "set", .context = 4};
    an_mixture_source mixture = {.size = sizeof mixture, .source_count = 1, .sources = &table};
    an_dataset *fresh = NULL;
    an_field field;
    an_field_init(&field, sizeof field);
    an_class_info classes;
    an_class_info_init(&classes, sizeof classes);
    an_features *features = NULL, *fresh_features = NULL;
    an_feature_info feature;
    an_feature_info_init(&feature, sizeof feature);
    OK(ctx, an_features_create(&features, table, 0, 0, 0));
    const an_batch_options batch = {.size = sizeof batch, .global = 4};
    const an_length_options by = {DEFAULTS(an_length_options)};
    const an_length length_of_run = {AN_LENGTH_EPOCHS, 2};
    an_batches *batches = NULL, *fresh_batches = NULL;
    int64_t steps;
    OK(ctx, an_batches_create(&batches, ctx, 10, &batch));
    const int64_t indices[] = {0};
    void *const fields[] = {numbers, numbers};
    char bytes[AN_TOKEN_BYTES];
    int length;
    int32_t encoded[4];
    int64_t count;
    STATUS(an_dataset_create, N(&fresh), N(ctx), N(&record));
    NOTHING(an_dataset_destroy, O(&table));
    VALUE(an_dataset_count, 0, N(table));
    VALUE(an_dataset_field_count, 0, N(table));
    STATUS(an_dataset_field, N(table), 0, N(&field));
    STATUS(an_dataset_read, N(table), 1, N(indices), N(fields));
    STATUS(an_dataset_class_info, N(table), N(&classes));
    int64_t class_counts[2];
    REFUSED(an_dataset_count_classes, N(table), 2, N(class_counts));
    VALUE(an_dataset_notice, NULL, N(table));
    VALUE(an_dataset_class_name, NULL, N(table), 0);
    VALUE(an_dataset_column, NULL, N(table), 0, 0);
    STATUS(an_features_create, N(&fresh_features), N(table), 0, 0, 0);
    VALUE(an_features_count, 0, N(features));
    STATUS(an_features_get, N(features), 0, N(&feature));
    NOTHING(an_features_destroy, O(&features));
    an_features_destroy(&features);
    STATUS(an_dataset_set_limit, N(poem), N("tokens"), 100);
    STATUS(an_dataset_create_arrays, N(&fresh), N(ctx), N(&arrays));
    STATUS(an_dataset_create_idx, N(&fresh), N(ctx), N(&idx));
#ifdef AN_HAVE_PNG
    STATUS(an_dataset_create_images, N(&fresh), N(ctx), N(&pictures));
#else
    REFUSED(an_dataset_create_images, N(&fresh), N(ctx), N(&pictures));
#endif
    STATUS(an_dataset_create_csv, N(&fresh), N(ctx), N(&csv));
    static const char *const columns[] = {"1"};
    an_cells *cells = NULL, *fresh_cells = NULL;
    OK(ctx, an_cells_create(&cells, table, 1, columns));
    STATUS(an_cells_create, N(&fresh_cells), N(table), 1, N(columns));
    VALUE(an_cells_name, NULL, N(cells), 0);
    VALUE(an_cells_get, NULL, N(cells), 0, 0);
    NOTHING(an_cells_destroy, O(&cells));
    an_cells_destroy(&cells);
    an_csv_facts *facts = NULL, *fresh_facts = NULL;
    an_csv_info table_info;
    an_csv_info_init(&table_info, sizeof table_info);
    an_csv_column column;
    an_csv_column_init(&column, sizeof column);
    OK(ctx, an_csv_facts_create(&facts, ctx, "sums.csv", 0));
    STATUS(an_csv_facts_create, N(&fresh_facts), N(ctx), N("sums.csv"), 0);
    STATUS(an_csv_facts_info, N(facts), N(&table_info));
    STATUS(an_csv_facts_column, N(facts), 0, N(&column));
    VALUE(an_csv_facts_value, NULL, N(facts), 0, 0, O(&count));
    NOTHING(an_csv_facts_destroy, O(&facts));
    an_csv_facts_destroy(&facts);
    STATUS(an_dataset_create_npy, N(&fresh), N(ctx), N(&npy));
#ifdef AN_HAVE_HDF5
    STATUS(an_dataset_create_hdf5, N(&fresh), N(ctx), N(&hdf5));
#else
    REFUSED(an_dataset_create_hdf5, N(&fresh), N(ctx), N(&hdf5));
#endif
    STATUS(an_dataset_create_jsonl, N(&fresh), N(ctx), N(&jsonl));
    an_tokenizer *tokenizer = NULL;
    OK(ctx, an_tokenizer_open(&tokenizer, ctx, ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"));
    write_text("said.jsonl", "{\"text\": \"abc\", \"label\": 0}\n");
    const an_chat_source said = {DEFAULTS(an_chat_source), .path = "said.jsonl", .tokenizer = tokenizer, .context = 8};
    const an_sentence_source sentences = {DEFAULTS(an_sentence_source), .path = "said.jsonl", .tokenizer = tokenizer,
                                          .context = 8};
    STATUS(an_dataset_create_chat, N(&fresh), N(ctx), N(&said));
    STATUS(an_dataset_create_sentences, N(&fresh), N(ctx), N(&sentences));
    an_tokenizer_destroy(&tokenizer);
    STATUS(an_dataset_create_text, N(&fresh), N(ctx), N(&text));
    STATUS(an_dataset_vocabulary, N(poem), N(&count));
    STATUS(an_dataset_token_text, N(poem), 0, N(bytes), N(&length));
    STATUS(an_dataset_encode, N(poem), N("abc"), 3, N(encoded), 4, N(&count));
    STATUS(an_dataset_create_tokens, N(&fresh), N(ctx), N(&tokens));
    STATUS(an_dataset_create_megatron, N(&fresh), N(ctx), N(&megatron));
    STATUS(an_dataset_create_mixture, N(&fresh), N(ctx), N(&mixture));
    an_encoding *encoding = NULL;
    char *encoding_text = NULL;
    OK(ctx, an_encoding_write(an_dataset_encoding(table), &encoding_text));
    OK(ctx, an_encoding_parse(&encoding, ctx, encoding_text, strlen(encoding_text)));
    an_category_info category;
    an_category_info_init(&category, sizeof category);
    an_encoding *fresh_encoding = NULL;
    char *fresh_text = NULL;
    STATUS(an_encoding_parse, N(&fresh_encoding), N(ctx), N(encoding_text), strlen(encoding_text));
    STATUS(an_encoding_write, N(encoding), N(&fresh_text));
    VALUE(an_encoding_class, NULL, N(encoding), 0);
    VALUE(an_encoding_category_count, 0, N(encoding));
    REFUSED(an_encoding_category, N(encoding), 0, N(&category));
    VALUE(an_encoding_agrees, false, N(encoding), N(encoding));
    VALUE(an_dataset_encoding, NULL, N(table));
    VALUE(an_dataset_notice, NULL, N(table));
    NOTHING(an_encoding_destroy, O(&encoding));
    an_encoding_destroy(&encoding);
    an_string_release(ctx, &encoding_text);
    an_split_source split = {DEFAULTS(an_split_source), .source = table};
    an_dataset *evaluated = NULL;
    STATUS(an_dataset_split, N(&fresh), N(&evaluated), N(ctx), N(&split));
    STATUS(an_batches_create, N(&fresh_batches), N(ctx), 10, N(&batch));
    STATUS(an_batches_steps, N(batches), N(&length_of_run), N(&by), N(&steps));
    STATUS(an_batches_steps_before_end, N(batches), N(&length_of_run), N(&by), N(&steps));
    VALUE(an_batches_epoch_begin, 0, N(batches), 0);
    VALUE(an_batches_epoch_steps, 0, N(batches), 0);
    VALUE(an_batches_change, -1, N(batches), 0);
    NOTHING(an_batches_destroy, O(&batches));
    an_batches_destroy(&batches);
}

#endif

/* Public structs in one expression: an_update u = {DEFAULTS(an_update), .rate = 0.1}. Programs call the init functions;
 * tests have tables of structs. tests/base/test_structs.c holds these against the init functions. */
#ifndef TESTS_SUPPORT_STRUCTS_H
#define TESTS_SUPPORT_STRUCTS_H

#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Woverride-init"
#endif

#define DEFAULTS(type) DEFAULTS_##type

#define DEFAULTS_an_group_rule .size = sizeof(an_group_rule), .lr_scale = 1, .weight_decay = AN_AUTO
#define DEFAULTS_an_group_options \
    .size = sizeof(an_group_options), .weight_decay = AN_AUTO, .layer_decay = 1, .decay_embeddings = true
#define DEFAULTS_an_lora_options .size = sizeof(an_lora_options), .alpha = AN_AUTO
#define DEFAULTS_an_optimizer_options \
    .size = sizeof(an_optimizer_options), .beta_1 = AN_AUTO, .beta_2 = AN_AUTO, .epsilon = 1e-8
#define DEFAULTS_an_update .size = sizeof(an_update), .beta_1 = AN_AUTO, .scale = 1
#define DEFAULTS_an_schedule_options                                                                                \
    .size = sizeof(an_schedule_options), .start_factor = AN_AUTO, .period_growth = 1, .power = 1, .pct_start = 0.3, \
    .div_factor = 25, .final_div_factor = 1e4, .cycle_momentum = true
#define DEFAULTS_an_scaler .size = sizeof(an_scaler), .scale = 65536, .growth = 2, .backoff = 0.5, .interval = 2000
#define DEFAULTS_an_stepper_options .size = sizeof(an_stepper_options), .rate = 1e-4, .clip_norm = 1
#define DEFAULTS_an_trainer_options                                                                    \
    .size = sizeof(an_trainer_options), .rate = 1e-4, .clip_norm = 1, .max_skips = 100, .fused = true, \
    .recompute = AN_RECOMPUTE_AUTO
#define DEFAULTS_an_params_options .size = sizeof(an_params_options), .moments = 2, .gradients = true
#define DEFAULTS_an_plan_options .size = sizeof(an_plan_options), .moments = 2, .fused = true
#define DEFAULTS_an_run_options .size = sizeof(an_run_options), .patience = 5
#define DEFAULTS_an_cross_entropy_options .size = sizeof(an_cross_entropy_options), .ignored = AN_TARGET_IGNORED
#define DEFAULTS_an_convolution_options \
    .size = sizeof(an_convolution_options), .stride = {1, 1}, .dilation = {1, 1}, .groups = 1
#define DEFAULTS_an_pool_options .size = sizeof(an_pool_options), .count_padding = true
#define DEFAULTS_an_rotary_options .size = sizeof(an_rotary_options), .base = 10000, .position = AN_NONE
#define DEFAULTS_an_attention_options                                                                     \
    .size = sizeof(an_attention_options), .query_offset = AN_NONE, .documents = AN_NONE, .mask = AN_NONE, \
    .samples = AN_NONE
#define DEFAULTS_an_idx_source .size = sizeof(an_idx_source), .end = 1, .scaled = true
#define DEFAULTS_an_split_source .size = sizeof(an_split_source), .evaluation = 0.2
#define DEFAULTS_an_images_source .size = sizeof(an_images_source), .end = 1, .has_targets = true, .scaled = true
#define DEFAULTS_an_csv_source .size = sizeof(an_csv_source), .end = 1, .has_targets = true, .delimiter = ','
#define DEFAULTS_an_npy_source .size = sizeof(an_npy_source), .end = 1, .scaled = true
#define DEFAULTS_an_hdf5_source .size = sizeof(an_hdf5_source), .end = 1, .scaled = true, .has_targets = true
#define DEFAULTS_an_jsonl_source .size = sizeof(an_jsonl_source), .end = 1, .has_targets = true
#define DEFAULTS_an_chat_source .size = sizeof(an_chat_source), .end = 1, .packed = true
#define DEFAULTS_an_sentence_source .size = sizeof(an_sentence_source), .end = 1, .has_targets = true
#define DEFAULTS_an_text_source .size = sizeof(an_text_source), .end = 1
#define DEFAULTS_an_token_source .size = sizeof(an_token_source), .end = 1
#define DEFAULTS_an_megatron_source .size = sizeof(an_megatron_source), .end = 1
#define DEFAULTS_an_array_source .size = sizeof(an_array_source), .end = 1, .has_targets = true
#define DEFAULTS_an_layer .size = sizeof(an_layer), .momentum = 0.1, .epsilon = 1e-5, .bias = true
#define DEFAULTS_an_bert_options .size = sizeof(an_bert_options), .token_types = 2, .epsilon = 1e-12
#define DEFAULTS_an_llama_options .size = sizeof(an_llama_options), .rotary_base = 10000, .epsilon = 1e-5
#define DEFAULTS_an_length_options .size = sizeof(an_length_options), .tokens_a_sample = 1
#define DEFAULTS_an_predictor_options .size = sizeof(an_predictor_options), .max_samples = 1
#define DEFAULTS_an_sampling_options .size = sizeof(an_sampling_options), .top_p = 1, .repetition_penalty = 1

#endif

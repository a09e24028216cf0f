/* Rows of the calls that build graphs: anneal.h, graph.h, builders.h, models.h. */
#ifndef TESTS_TRAIN_NULL_GRAPH_CALLS_H
#define TESTS_TRAIN_NULL_GRAPH_CALLS_H

#include "anneal/chat.h"
#include "anneal/experimental.h"
#include "anneal/heartbeat.h"
#include "anneal/models.h"
#include "anneal/pretrained.h"
#include "anneal/ranks.h"
#include "anneal/watch.h"
#include "support/own_ops.h"
#include "train/null_support.h"

static an_graph *model; /* verified */
static an_graph *open;  /* that rows add to */
static an_value x, rows, labels, image, filters, heads, weight, mean, samples, loss, param;

static const an_dim some_dims[] = {4, 6};
static const int some_axes[] = {1, 0};

static inline void make_graphs(void) {
    OK(ctx, small_mlp(&model, ctx));
    OK(ctx, an_graph_create(&open, ctx, "open"));
    x = an_input(open, "x", AN_DTYPE_F32, 2, some_dims);
    rows = an_input(open, "rows", AN_DTYPE_I32, 2, some_dims);
    labels = an_input(open, "labels", AN_DTYPE_I32, 1, some_dims);
    image = an_input(open, "image", AN_DTYPE_F32, AN_DIMS(4, 3, 8, 8));
    filters = an_input(open, "filters", AN_DTYPE_F32, AN_DIMS(2, 3, 3, 3));
    heads = an_input(open, "heads", AN_DTYPE_F32, AN_DIMS(4, 2, 5, 6));
    weight = an_input(open, "weight", AN_DTYPE_F32, AN_DIMS(6));
    mean = an_run_state(open, "mean", AN_DTYPE_F32, 0, AN_DIMS(6));
    samples = an_input(open, "samples", AN_DTYPE_I64, AN_DIMS(4));
    param = an_param(open, "param", AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 1, AN_DIMS(6));
    loss = an_squared_error(open, x, x);
    assert_true(loss && param);
}

static inline void call_contexts(void) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    an_context *fresh = NULL;
    an_heartbeat heartbeat, copy;
    an_heartbeat_init(&heartbeat, sizeof heartbeat);
    an_ranks_info ranks;
    an_ranks_info_init(&ranks, sizeof ranks);
    STATUS(an_context_create, N(&fresh), O(&options));
    NOTHING(an_context_destroy, O(&ctx));
    VALUE(an_last_error, NULL, O(ctx));
    VALUE(an_last_error_trail, NULL, O(ctx));
    VALUE(an_context_threads, 0, N(ctx));
    VALUE(an_context_spin, 0, N(ctx));
    VALUE(an_context_isa, AN_ISA_AUTO, N(ctx));
    VALUE(an_context_bytes, 0, N(ctx));
    NOTHING(an_context_set_span, N(ctx), NULL, NULL);
    PLAIN(an_isa_name);
    PLAIN(an_status_name);
    PLAIN(an_status_text);
    PLAIN(an_dtype_name);
    PLAIN(an_dtype_size);
    PLAIN(an_version);
    PLAIN(an_onednn_version);
    PLAIN(an_mpi_version);
    NOTHING(an_heartbeat_read, N(&heartbeat), N(&copy));
    NOTHING(an_heartbeat_init, N(&heartbeat), sizeof heartbeat);
    STATUS(an_context_ranks_info, N(ctx), N(&ranks));
    STATUS(an_ranks_agree, N(ctx), AN_OK);
    PLAIN(an_auto);
    PLAIN(an_is_auto);
    an_watch *watch = NULL;
    an_watch_options watching;
    an_watch_options_init(&watching, sizeof watching);
    REFUSED(an_watch_create, N(&watch), N(ctx), O(&watching)); /* the context has no heartbeat */
    NOTHING(an_watch_destroy, O(&watch));
#define AN_STRUCT(type, ...)                         \
    {                                                \
        static type own;                             \
        NOTHING(type##_init, N(&own), sizeof(type)); \
    }
#include "support/all_structs.def"
#undef AN_STRUCT
}

/* ranks.h, and the communicators of experimental.h. This process has no MPI. */
static inline void call_ranks(void) {
    an_context *fresh = NULL;
    an_comm *comm = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    float numbers[4] = {0}, others[4];
    REFUSED(an_context_create_mpi_f, N(&fresh), 0, O(&options));
    REFUSED(an_comm_start, N(&comm), N("none"));
    REFUSED(an_comm_finish, N(&comm), N("none"));
    VALUE(an_context_rank, 0, N(ctx));
    VALUE(an_context_ranks, 0, N(ctx));
    STATUS(an_ranks_barrier, N(ctx));
    STATUS(an_ranks_broadcast, N(ctx), N(numbers), 4, AN_DTYPE_F32, 0);
    STATUS(an_ranks_gather, N(ctx), N(numbers), N(others), 4, AN_DTYPE_F32, 0);
    STATUS(an_ranks_all_gather, N(ctx), N(numbers), N(others), 4, AN_DTYPE_F32);
    STATUS(an_ranks_all_reduce, N(ctx), N(numbers), 4, AN_DTYPE_F32, AN_REDUCE_SUM);
    STATUS(an_ranks_reduce_scatter, N(ctx), N(numbers), N(others), 4, AN_DTYPE_F32, AN_REDUCE_SUM);
}

static inline void call_own(void) {
    an_own_op op = steep_record();
    const an_kernel kernel = {.name = "mine", .run = run_steep};
    const an_call call = {.ctx = ctx};
    const steep_attributes attributes = {.slope = 1};
    STATUS(an_context_add_op, N(ctx), N(&op));
    STATUS(an_context_add_kernel, N(ctx), N("relu"), N(&kernel));
    OK(ctx, an_context_add_op(ctx, &op));
    VALUE(an_own, 0, N(open), N(op.name), 1, N(&x), O(&attributes));
    REFUSED(an_kernel_fail, N(&call), AN_ERR_KERNEL, N("message"));
}

static inline void call_graphs(void) {
    an_graph *fresh = NULL;
    char *text = NULL, *printed = NULL;
    OK(ctx, an_graph_print(model, &printed));
    STATUS(an_graph_create, N(&fresh), N(ctx), O("name"));
    NOTHING(an_graph_destroy, O(&open));
    VALUE(an_graph_context, NULL, N(model));
    STATUS(an_graph_verify, N(model));
    VALUE(an_graph_at, NULL, N(open), O("file"), 7);
    NOTHING(an_graph_set_loss, N(open), loss, AN_NONE);
    NOTHING(an_graph_set_output, N(open), x, N("name"));
    NOTHING(an_graph_set_prediction, N(open), x, N("name"));
    STATUS(an_graph_print, N(model), N(&text));
    STATUS(an_graph_parse, N(&fresh), N(ctx), N(printed), strlen(printed));
    NOTHING(an_string_release, N(ctx), O(&printed));
    STATUS(an_graph_dot, N(model), N(&text));
    an_string_release(ctx, &printed);
    VALUE(an_graph_symbol_name, NULL, N(model), 0);
    an_graph_info about;
    an_graph_info_init(&about, sizeof about);
    VALUE(an_graph_parameter_elements, 0, N(model));
    STATUS(an_graph_info_get, N(model), N(&about));
    REFUSED(an_graph_set_label_smoothing, N(model), 0.1);
    REFUSED(an_graph_set_focal, N(model), 2);
    VALUE(an_value_ndims, 0, N(open), x);
    VALUE(an_value_dim, 0, N(open), x, 0);
    VALUE(an_value_dtype, AN_DTYPE_NONE, N(open), x);
    PLAIN(an_value_output);
    VALUE(an_symbol_dim, 0, N(open), N("name"));
    VALUE(an_dim_add, 0, N(open), 4, 4);
    VALUE(an_dim_subtract, 0, N(open), 4, 2);
    VALUE(an_dim_multiply, 0, N(open), 4, 4);
    VALUE(an_dim_window, 0, N(open), 4, 1, 1);
    NOTHING(an_block_begin, N(open), N("name"), 0);
    NOTHING(an_block_end, N(open));
    NOTHING(an_scope_begin, N(open), N("name"));
    NOTHING(an_scope_end, N(open));
    VALUE(an_input, 0, N(open), N("name"), AN_DTYPE_F32, 2, N(some_dims));
    VALUE(an_param, 0, N(open), N("name"), AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.5, 2, N(some_dims));
    VALUE(an_frozen_param, 0, N(open), N("name"), AN_DTYPE_F32, AN_INITIALIZER_NORMAL, 0.5, 2, N(some_dims));
    VALUE(an_run_state, 0, N(open), N("name"), AN_DTYPE_F32, 0.5, 2, N(some_dims));
    VALUE(an_program_state, 0, N(open), N("name"), AN_DTYPE_F32, 2, N(some_dims));
    VALUE(an_scalar, 0, N(open), N("name"), AN_DTYPE_F32);
    VALUE(an_constant, 0, N(open), AN_DTYPE_F32, 0.5, 2, N(some_dims));
    NOTHING(an_param_freeze, N(open), param);
}

static inline void call_elementwise(void) {
    VALUE(an_bias, 0, N(open), x, weight, 1);
    VALUE(an_relu, 0, N(open), x);
    VALUE(an_gelu, 0, N(open), x);
    VALUE(an_gelu_tanh, 0, N(open), x);
    VALUE(an_silu, 0, N(open), x);
    VALUE(an_sigmoid, 0, N(open), x);
    VALUE(an_tanh, 0, N(open), x);
    VALUE(an_exp, 0, N(open), x);
    VALUE(an_log, 0, N(open), x);
    VALUE(an_sqrt, 0, N(open), x);
    VALUE(an_softplus, 0, N(open), x);
    VALUE(an_mish, 0, N(open), x);
    VALUE(an_hard_swish, 0, N(open), x);
    VALUE(an_sin, 0, N(open), x);
    VALUE(an_cos, 0, N(open), x);
    VALUE(an_abs, 0, N(open), x);
    VALUE(an_negate, 0, N(open), x);
    VALUE(an_scale, 0, N(open), x, 0.5);
    VALUE(an_clamp, 0, N(open), x, 0, 1);
    VALUE(an_add, 0, N(open), x, x);
    VALUE(an_subtract, 0, N(open), x, x);
    VALUE(an_multiply, 0, N(open), x, x);
    VALUE(an_divide, 0, N(open), x, x);
    VALUE(an_maximum, 0, N(open), x, x);
    VALUE(an_minimum, 0, N(open), x, x);
    VALUE(an_power, 0, N(open), x, x);
    VALUE(an_cast, 0, N(open), x, AN_DTYPE_F64);
    VALUE(an_reduce_sum, 0, N(open), x, 2, N(some_axes), false);
    VALUE(an_reduce_mean, 0, N(open), x, 2, N(some_axes), false);
    VALUE(an_reduce_max, 0, N(open), x, 2, N(some_axes), false);
    VALUE(an_softmax, 0, N(open), x, 1);
    VALUE(an_log_softmax, 0, N(open), x, 1);
    VALUE(an_layer_norm, 0, N(open), x, weight, weight, 1e-5);
    VALUE(an_rms_norm, 0, N(open), x, weight, 1e-5);
    VALUE(an_batch_norm, 0, N(open), x, weight, weight, mean, mean, 0.1, 1e-5);
}

static inline void call_builders(void) {
    an_convolution_options convolution;
    an_convolution_options_init(&convolution, sizeof convolution);
    an_pool_options pool = {DEFAULTS(an_pool_options), .window = {2, 2}};
    an_rotary_options rotary;
    an_rotary_options_init(&rotary, sizeof rotary);
    an_attention_options attention;
    an_attention_options_init(&attention, sizeof attention);
    an_cross_entropy_options cross_entropy;
    an_cross_entropy_options_init(&cross_entropy, sizeof cross_entropy);
    const an_value values[] = {x, x};
    VALUE(an_matmul, 0, N(open), x, x, false, true);
    VALUE(an_convolution, 0, N(open), image, filters, O(&convolution));
    VALUE(an_max_pool, 0, N(open), image, N(&pool));
    VALUE(an_average_pool, 0, N(open), image, N(&pool));
    VALUE(an_embedding, 0, N(open), labels, x);
    VALUE(an_rotary, 0, N(open), heads, O(&rotary));
    VALUE(an_attention, 0, N(open), heads, heads, heads, O(&attention));
    VALUE(an_dropout, 0, N(open), x, samples, 0.1);
    VALUE(an_reshape, 0, N(open), x, 2, N(some_dims));
    VALUE(an_transpose, 0, N(open), x, 0, 1);
    VALUE(an_permute, 0, N(open), x, 2, N(some_axes));
    VALUE(an_slice, 0, N(open), x, 0, 1, 2);
    VALUE(an_split, 0, N(open), x, 0, 2);
    VALUE(an_expand, 0, N(open), x, 2, N(some_dims));
    VALUE(an_contiguous, 0, N(open), x);
    VALUE(an_concat, 0, N(open), 0, 2, N(values));
    VALUE(an_pad, 0, N(open), x, 0, 1, 1);
    VALUE(an_gather, 0, N(open), x, rows, 0);
    VALUE(an_cross_entropy, 0, N(open), x, labels, O(&cross_entropy));
    VALUE(an_squared_error, 0, N(open), x, x);
    VALUE(an_absolute_error, 0, N(open), x, x);
    VALUE(an_huber_error, 0, N(open), x, x, 0.5);
    VALUE(an_binary_cross_entropy, 0, N(open), x, x);
    VALUE(an_weigh_loss, 0, N(open), loss, x);
    VALUE(an_linear, 0, N(open), x, O("name"), 4);
    VALUE(an_linear_plain, 0, N(open), x, O("name"), 4);
    VALUE(an_convolution_layer, 0, N(open), image, O("name"), 2, 3, O(&convolution));
    VALUE(an_embedding_layer, 0, N(open), labels, O("name"), AN_DTYPE_F32, 4, 4);
    VALUE(an_layer_norm_layer, 0, N(open), x, O("name"), 1e-5);
    VALUE(an_rms_norm_layer, 0, N(open), x, O("name"), 1e-5);
    VALUE(an_batch_norm_layer, 0, N(open), x, O("name"), 0.1, 1e-5);
}

static inline void call_models(void) {
    static const int64_t sizes[] = {4};
    an_graph *fresh = NULL;
    an_mlp_options mlp = {.size = sizeof mlp, .inputs = 2, .outputs = 2, .hidden_count = 1, .hidden = sizes};
    an_cnn_options cnn = {.size = sizeof cnn,
                          .channels = 1,
                          .height = 8,
                          .width = 8,
                          .classes = 3,
                          .filter_count = 1,
                          .filters = sizes,
                          .hidden = 4};
    an_gpt2_options gpt2 = {.size = sizeof gpt2, .layers = 1, .heads = 2, .width = 4, .context = 4, .vocabulary = 5};
    an_llama_options llama = {DEFAULTS(an_llama_options),
                              .layers = 1,
                              .heads = 2,
                              .kv_heads = 1,
                              .width = 4,
                              .hidden = 4,
                              .context = 4,
                              .vocabulary = 5};
    an_bert_options bert = {DEFAULTS(an_bert_options), .layers = 1, .heads = 2, .width = 6, .hidden = 8, .context = 8,
                            .vocabulary = 11,          .classes = 3};
    const an_layer layers[] = {{DEFAULTS(an_layer), .type = AN_LAYER_LINEAR, .features = 3}};
    an_sequential_options sequential = {
        .size = sizeof sequential, .input_ndims = 1, .inputs = sizes, .layer_count = 1, .layers = layers};
    STATUS(an_model_sequential, N(&fresh), N(ctx), N(&sequential));
    STATUS(an_model_mlp, N(&fresh), N(ctx), N(&mlp));
    STATUS(an_model_cnn, N(&fresh), N(ctx), N(&cnn));
    STATUS(an_model_gpt2, N(&fresh), N(ctx), N(&gpt2));
    STATUS(an_model_llama, N(&fresh), N(ctx), N(&llama));
    STATUS(an_model_bert, N(&fresh), N(ctx), N(&bert));
    STATUS(an_model_preset, N(&fresh), N(ctx), N("gpt2-124m"), AN_DTYPE_F32);
    STATUS(an_model_preset_options, O(ctx), N("gpt2-124m"), N(&gpt2));
    PLAIN(an_model_preset_name);

    const an_chat_message message = {"user", "Hello"};
    an_chat_format chat = {.size = sizeof chat};
    char system[AN_CHAT_SYSTEM_BYTES], text[64];
    size_t length;
    STATUS(an_chat_recognize, N(&chat), O(ctx), N("<|im_start|><|im_end|>"), N(system));
    STATUS(an_chat_open, N(&chat), N(ctx), N(ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"), N(system));
    STATUS(an_chat_render, N(ctx), N(&chat), N(&message), 1, true, N(text), sizeof text, N(&length));
    an_tokenizer *chat_tokenizer = NULL;
    an_encoder *chat_encoder = NULL;
    const int32_t *chat_tokens;
    int64_t chat_count;
    OK(ctx, an_tokenizer_open(&chat_tokenizer, ctx, ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"));
    OK(ctx, an_encoder_create(&chat_encoder, chat_tokenizer));
    STATUS(an_chat_encode, N(ctx), N(chat_encoder), N(&chat), N(&message), 1, true, N(&chat_tokens), N(&chat_count));
    an_encoder_destroy(&chat_encoder);
    an_tokenizer_destroy(&chat_tokenizer);
    VALUE(an_chat_end, NULL, N(&chat));
    PLAIN(an_chat_template_name);
    static const char published[] = ANNEAL_SOURCE_DIR "/tests/golden/pretrained/qwen3";
    an_pretrained *pretrained = NULL, *again = NULL;
    an_pretrained_info about;
    an_pretrained_info_init(&about, sizeof about);
    an_pretrained_options built = {.size = sizeof built};
    OK(ctx, an_pretrained_open(&pretrained, ctx, published));
    STATUS(an_pretrained_open, N(&again), N(ctx), N(published));
    an_pretrained_close(&again);
    STATUS(an_pretrained_info_get, N(pretrained), N(&about));
    an_pretrained_sampling sampling;
    an_pretrained_sampling_init(&sampling, sizeof sampling);
    STATUS(an_pretrained_sampling_get, N(pretrained), N(&sampling));
    STATUS(an_pretrained_graph, N(pretrained), N(&fresh), O(&built));
    PLAIN(an_pretrained_family);
    an_tokenizer *published_tokenizer = NULL;
    char published_system[AN_CHAT_SYSTEM_BYTES];
    an_chat_format published_chat = {.size = sizeof published_chat};
    STATUS(an_pretrained_tokenizer, N(&published_tokenizer), N(ctx), N(ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"));
    an_tokenizer_destroy(&published_tokenizer);
    STATUS(an_pretrained_chat, N(&published_chat), N(ctx), N(ANNEAL_SOURCE_DIR "/tests/golden/finetune/bpe"),
           N(published_system));
    NOTHING(an_pretrained_close, O(&pretrained));
    an_pretrained_close(&pretrained);
}

#endif

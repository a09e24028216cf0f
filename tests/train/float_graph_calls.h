/* The data of the calls in float_step_calls.h and float_run_calls.h, and calls that build graphs. */
#ifndef TESTS_TRAIN_FLOAT_GRAPH_CALLS_H
#define TESTS_TRAIN_FLOAT_GRAPH_CALLS_H

#include "anneal/experimental.h"
#include "anneal/models.h"
#include "anneal/pretrained.h"
#include "support/own_ops.h"

#include "open/support.h" /* after others: its context would hide in their parameters */
#include "train/float_support.h"

enum { INPUTS = 3, OUTPUTS = 2, SAMPLES = 8, TOKENS = 200 };

static float x[SAMPLES][INPUTS], y[SAMPLES][OUTPUTS];
static double wide_x[SAMPLES][INPUTS], wide_y[SAMPLES][OUTPUTS];
static char poem[TOKENS + 1];

static inline void make_data(void) {
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
    write_pictures();
    write_array();
    write_file("poem.txt", poem, TOKENS);
    write_file("tokens.bin", tokens, sizeof tokens);
    write_file("set.bin", tokens, sizeof tokens);
    index[9] = 1, index[17] = 8, index[18] = 1, index[26] = 2; /* version, u16, one sequence, two borders */
    index[34] = (unsigned char)TOKENS, index[34 + 12 + 8] = 1;
    write_file("set.idx", index, sizeof index);
}

static inline void note_string(char **text) {
    note_text(*text);
    an_string_release(ctx, text);
}

/* ---- graphs ---- */

static bool in_hosts; /* whether the functions of the own op saw the host's environment */

static inline const char *own_infer(const an_own_node *node, an_own_output *outputs) {
    in_hosts = in_hosts && has_environment(host);
    return infer_steep(node, outputs);
}

static inline void note_graph(const an_graph *graph) {
    char *text = NULL;
    DO(an_graph_print, graph, &text);
    note_string(&text);
}

/* An op of the program. It has a number in its record and one in its attributes. */
static inline void build_own(void) {
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
static inline void call_ranks(void) {
    float numbers[4] = {0.1f, 1e-40f, 3, 4}, others[4] = {0};
    DO(an_ranks_barrier, ctx);
    DO(an_ranks_broadcast, ctx, numbers, 4, AN_DTYPE_F32, 0);
    DO(an_ranks_gather, ctx, numbers, others, 4, AN_DTYPE_F32, 0);
    DO(an_ranks_all_gather, ctx, numbers, others, 4, AN_DTYPE_F32);
    DO(an_ranks_all_reduce, ctx, numbers, 4, AN_DTYPE_F32, AN_REDUCE_SUM);
    DO(an_ranks_reduce_scatter, ctx, numbers, others, 4, AN_DTYPE_F32, AN_REDUCE_MAX);
    NOTE(others);
}

/* Every builder that has or makes a number. */
static inline void build_graph(void) {
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

static inline an_mlp_options mlp_options(void) {
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

static inline void build_models(void) {
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
    an_bert_options bert = {DEFAULTS(an_bert_options), .layers = 3, .heads = 2, .width = 6, .hidden = 8, .context = 8,
                            .vocabulary = 11,          .classes = 3};
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
    DO(an_model_bert, &graph, ctx, &bert);
    note_graph(graph);
    an_graph_destroy(&graph);
    an_pretrained *pretrained = NULL;
    an_pretrained_info about;
    an_pretrained_info_init(&about, sizeof about);
    DO(an_pretrained_open, &pretrained, ctx, ANNEAL_SOURCE_DIR "/tests/golden/pretrained/llama");
    DO(an_pretrained_info_get, pretrained, &about);
    NOTE(about.rotary_base), NOTE(about.rotary_factor);
    an_pretrained_sampling sampling;
    an_pretrained_sampling_init(&sampling, sizeof sampling);
    DO(an_pretrained_sampling_get, pretrained, &sampling);
    NOTE(sampling.temperature), NOTE(sampling.top_p);
    DO(an_pretrained_graph, pretrained, &graph, NULL);
    an_pretrained_close(&pretrained);
    note_graph(graph);
    an_graph_destroy(&graph);
    DO(an_model_preset, &graph, ctx, "gpt2-124m", AN_DTYPE_NONE);
    note_graph(graph);
    an_graph_destroy(&graph);
}

#endif

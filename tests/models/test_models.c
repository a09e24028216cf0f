/* Models: names, counts, depths, shapes that stay views. */
#include "models/small_models.h"

/* ---- names ---- */

typedef struct {
    const char *name, *type;
    int depth;
} expected;

/* The parameters, in order, with their types and depths; the list ends with NULL. */
static void check_parameters(const an_graph *g, const expected *list) {
    size_t i = 0;
    for (; list[i].name; i++) {
        if (i >= g->parameter_count) fail_msg("'%s' is missing", list[i].name);
        const an_parameter *p = &g->parameters[i];
        assert_string_equal(p->name, list[i].name);
        assert_string_equal(AN_DESCRIBE(g, &p->node->outputs[0]), list[i].type);
        assert_int_equal(p->depth, list[i].depth);
    }
    if (i < g->parameter_count) fail_msg("'%s' is too many", g->parameters[i].name);
}

static void gpt2_names(void **state) {
    static const expected list[] = {{"wte.weight", "f32[11,8]", 0},
                                    {"wpe.weight", "f32[16,8]", 0},
                                    {"h.0.ln_1.weight", "f32[8]", 1},
                                    {"h.0.ln_1.bias", "f32[8]", 1},
                                    {"h.0.attn.c_attn.weight", "f32[24,8]", 1},
                                    {"h.0.attn.c_attn.bias", "f32[24]", 1},
                                    {"h.0.attn.c_proj.weight", "f32[8,8]", 1},
                                    {"h.0.attn.c_proj.bias", "f32[8]", 1},
                                    {"h.0.ln_2.weight", "f32[8]", 1},
                                    {"h.0.ln_2.bias", "f32[8]", 1},
                                    {"h.0.mlp.c_fc.weight", "f32[32,8]", 1},
                                    {"h.0.mlp.c_fc.bias", "f32[32]", 1},
                                    {"h.0.mlp.c_proj.weight", "f32[8,32]", 1},
                                    {"h.0.mlp.c_proj.bias", "f32[8]", 1},
                                    {"ln_f.weight", "f32[8]", 2},
                                    {"ln_f.bias", "f32[8]", 2},
                                    {0}};
    an_gpt2_options o = small_gpt2();
    an_graph *g = NULL;
    (void)state;
    o.layers = 1;
    OK(ctx, an_model_gpt2(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

static void llama_names(void **state) {
    static const expected list[] = {{"model.embed_tokens.weight", "f64[11,16]", 0},
                                    {"model.layers.0.input_layernorm.weight", "f64[16]", 1},
                                    {"model.layers.0.self_attn.q_proj.weight", "f64[16,16]", 1},
                                    {"model.layers.0.self_attn.k_proj.weight", "f64[8,16]", 1},
                                    {"model.layers.0.self_attn.v_proj.weight", "f64[8,16]", 1},
                                    {"model.layers.0.self_attn.o_proj.weight", "f64[16,16]", 1},
                                    {"model.layers.0.post_attention_layernorm.weight", "f64[16]", 1},
                                    {"model.layers.0.mlp.gate_proj.weight", "f64[24,16]", 1},
                                    {"model.layers.0.mlp.up_proj.weight", "f64[24,16]", 1},
                                    {"model.layers.0.mlp.down_proj.weight", "f64[16,24]", 1},
                                    {"model.norm.weight", "f64[16]", 2},
                                    {"lm_head.weight", "f64[11,16]", 2},
                                    {0}};
    an_llama_options o = small_llama();
    an_graph *g = NULL;
    (void)state;
    o.layers = 1;
    o.dtype = AN_DTYPE_F64;
    OK(ctx, an_model_llama(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

/* What the relatives of Llama have: heads of a size of their own, their norms, and biases. */
static void llama_relatives(void **state) {
    static const expected list[] = {{"model.embed_tokens.weight", "f32[11,16]", 0},
                                    {"model.layers.0.input_layernorm.weight", "f32[16]", 1},
                                    {"model.layers.0.self_attn.q_proj.weight", "f32[24,16]", 1},
                                    {"model.layers.0.self_attn.q_proj.bias", "f32[24]", 1},
                                    {"model.layers.0.self_attn.q_norm.weight", "f32[6]", 1},
                                    {"model.layers.0.self_attn.k_proj.weight", "f32[12,16]", 1},
                                    {"model.layers.0.self_attn.k_proj.bias", "f32[12]", 1},
                                    {"model.layers.0.self_attn.k_norm.weight", "f32[6]", 1},
                                    {"model.layers.0.self_attn.v_proj.weight", "f32[12,16]", 1},
                                    {"model.layers.0.self_attn.v_proj.bias", "f32[12]", 1},
                                    {"model.layers.0.self_attn.o_proj.weight", "f32[16,24]", 1},
                                    {"model.layers.0.self_attn.o_proj.bias", "f32[16]", 1},
                                    {"model.layers.0.post_attention_layernorm.weight", "f32[16]", 1},
                                    {"model.layers.0.mlp.gate_proj.weight", "f32[24,16]", 1},
                                    {"model.layers.0.mlp.gate_proj.bias", "f32[24]", 1},
                                    {"model.layers.0.mlp.up_proj.weight", "f32[24,16]", 1},
                                    {"model.layers.0.mlp.up_proj.bias", "f32[24]", 1},
                                    {"model.layers.0.mlp.down_proj.weight", "f32[16,24]", 1},
                                    {"model.layers.0.mlp.down_proj.bias", "f32[16]", 1},
                                    {"model.norm.weight", "f32[16]", 2},
                                    {0}};
    an_llama_options o = small_llama();
    an_graph *g = NULL;
    (void)state;
    o.layers = 1;
    o.head_size = 6;
    o.window = 4;
    o.tied = o.attention_bias = o.output_bias = o.feed_forward_bias = o.query_key_norm = true;
    o.rotary_factor = 8;
    o.rotary_low = 1;
    o.rotary_high = 4;
    o.rotary_context = 16;
    OK(ctx, an_model_llama(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
    o.head_size = 5;
    FAILS(ctx, an_model_llama(&g, ctx, &o), AN_ERR_ARGUMENT, "head_size is 5, but rotary positions need an even size");
    o.head_size = -2;
    FAILS(ctx, an_model_llama(&g, ctx, &o), AN_ERR_ARGUMENT, "head_size is -2");
    o.head_size = 0;
    o.window = -1;
    FAILS(ctx, an_model_llama(&g, ctx, &o), AN_ERR_ARGUMENT, "window is -1");
    o.window = 0;
    o.rotary_high = 0.5;
    FAILS(ctx, an_model_llama(&g, ctx, &o), AN_ERR_ARGUMENT, "scaling by factor 8 needs");
}

static void bert_names(void **state) {
#define LAYER "encoder.layer.0."
    static const expected list[] = {{"embeddings.word_embeddings.weight", "f32[11,8]", 0},
                                    {"embeddings.position_embeddings.weight", "f32[16,8]", 0},
                                    {"embeddings.token_type_embeddings.weight", "f32[2,8]", 0},
                                    {"embeddings.LayerNorm.weight", "f32[8]", 0},
                                    {"embeddings.LayerNorm.bias", "f32[8]", 0},
                                    {LAYER "attention.self.query.weight", "f32[8,8]", 1},
                                    {LAYER "attention.self.query.bias", "f32[8]", 1},
                                    {LAYER "attention.self.key.weight", "f32[8,8]", 1},
                                    {LAYER "attention.self.key.bias", "f32[8]", 1},
                                    {LAYER "attention.self.value.weight", "f32[8,8]", 1},
                                    {LAYER "attention.self.value.bias", "f32[8]", 1},
                                    {LAYER "attention.output.dense.weight", "f32[8,8]", 1},
                                    {LAYER "attention.output.dense.bias", "f32[8]", 1},
                                    {LAYER "attention.output.LayerNorm.weight", "f32[8]", 1},
                                    {LAYER "attention.output.LayerNorm.bias", "f32[8]", 1},
                                    {LAYER "intermediate.dense.weight", "f32[12,8]", 1},
                                    {LAYER "intermediate.dense.bias", "f32[12]", 1},
                                    {LAYER "output.dense.weight", "f32[8,12]", 1},
                                    {LAYER "output.dense.bias", "f32[8]", 1},
                                    {LAYER "output.LayerNorm.weight", "f32[8]", 1},
                                    {LAYER "output.LayerNorm.bias", "f32[8]", 1},
                                    {"pooler.dense.weight", "f32[8,8]", 2},
                                    {"pooler.dense.bias", "f32[8]", 2},
                                    {"classifier.weight", "f32[3,8]", 2},
                                    {"classifier.bias", "f32[3]", 2},
                                    {0}};
#undef LAYER
    an_bert_options o = small_bert();
    an_graph *g = NULL;
    (void)state;
    o.layers = 1;
    OK(ctx, an_model_bert(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

/* A model without a pooler or a classifier has no parameters of these. */
static void bert_heads(void **state) {
    static const struct {
        an_bert_head head;
        an_bert_pooling pooling;
        int fewer; /* parameters than with both */
        bool has_loss;
    } rows[] = {{AN_BERT_HEAD_CLASSES, AN_BERT_POOLING_POOLER, 0, true},
                {AN_BERT_HEAD_CLASSES, AN_BERT_POOLING_MEAN, 2, true},
                {AN_BERT_HEAD_CLASSES, AN_BERT_POOLING_FIRST, 2, true},
                {AN_BERT_HEAD_EMBEDDING, AN_BERT_POOLING_POOLER, 2, false},
                {AN_BERT_HEAD_EMBEDDING, AN_BERT_POOLING_MEAN, 4, false},
                {AN_BERT_HEAD_EMBEDDING, AN_BERT_POOLING_FIRST, 4, false},
                {AN_BERT_HEAD_NONE, AN_BERT_POOLING_POOLER, 4, false}};
    size_t maximum = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        an_bert_options o = small_bert();
        an_graph *g = NULL;
        o.head = rows[i].head;
        o.pooling = rows[i].pooling;
        if (o.head != AN_BERT_HEAD_CLASSES) o.classes = 0;
        OK(ctx, an_model_bert(&g, ctx, &o));
        if (i == 0) maximum = g->parameter_count;
        assert_int_equal(g->parameter_count + (size_t)rows[i].fewer, maximum);
        assert_int_equal(g->loss != 0, rows[i].has_loss);
        an_graph_destroy(&g);
    }
}

static void mlp_names(void **state) {
    static const expected list[] = {
        {"hidden.0.weight", "f32[6,4]", 1}, {"hidden.0.norm.weight", "f32[6]", 1}, {"hidden.0.norm.bias", "f32[6]", 1},
        {"hidden.1.weight", "f32[5,6]", 2}, {"hidden.1.norm.weight", "f32[5]", 2}, {"hidden.1.norm.bias", "f32[5]", 2},
        {"output.weight", "f32[3,5]", 3},   {"output.bias", "f32[3]", 3},          {0}};
    an_mlp_options o = small_mlp_options();
    an_graph *g = NULL;
    (void)state;
    o.batch_norm = true;
    OK(ctx, an_model_mlp(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

static void cnn_names(void **state) {
    static const expected list[] = {{"convolution.0.weight", "f32[6,3,3,3]", 1},
                                    {"convolution.0.bias", "f32[6]", 1},
                                    {"convolution.1.weight", "f32[5,6,3,3]", 2},
                                    {"convolution.1.bias", "f32[5]", 2},
                                    {"hidden.weight", "f32[7,20]", 3}, /* 9 × 8 is halved twice: 2 × 2 of 5 channels */
                                    {"hidden.bias", "f32[7]", 3},
                                    {"output.weight", "f32[4,7]", 4},
                                    {"output.bias", "f32[4]", 4},
                                    {0}};
    an_cnn_options o = small_cnn();
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_model_cnn(&g, ctx, &o));
    check_parameters(g, list);
    an_graph_destroy(&g);
}

/* ---- counts ---- */

static void preset_counts(void **state) {
    static const struct {
        const char *name;
        int64_t parameters;
    } published[] = {
        {"gpt2-124m", 124439808}, {"gpt2-355m", 354823168}, {"gpt2-774m", 774030080}, {"gpt2-1.5b", 1557611200}};
    int i = 0;
    (void)state;
    for (; an_model_preset_name(i); i++) {
        an_graph *g = NULL;
        assert_string_equal(an_model_preset_name(i), published[i].name);
        OK(ctx, an_model_preset(&g, ctx, published[i].name, AN_DTYPE_NONE));
        assert_int_equal(an_graph_parameter_elements(g), published[i].parameters);
        an_graph_destroy(&g);
    }
    assert_int_equal(i, sizeof published / sizeof published[0]);
    assert_null(an_model_preset_name(-1));
}

static void llama_count(void **state) {
    (void)state;
    for (int tied = 0; tied < 2; tied++) {
        an_llama_options o = small_llama();
        const int64_t kv = o.width / o.heads * o.kv_heads;
        const int64_t block = 2 * o.width * o.width + 2 * o.width * kv + 3 * o.width * o.hidden + 2 * o.width;
        an_graph *g = NULL;
        o.tied = tied;
        OK(ctx, an_model_llama(&g, ctx, &o));
        assert_int_equal(an_graph_parameter_elements(g),
                         o.layers * block + o.width + (tied ? 1 : 2) * o.vocabulary * o.width);
        an_graph_destroy(&g);
    }
}

/* ---- structure ---- */

static int count_ops(const an_graph *g, const char *name) {
    int count = 0;
    for (const an_node *n = g->first; n; n = n->next) count += !strcmp(n->op->name, name);
    return count;
}

/* Heads are cut out and put together again without a copy. */
static void heads_are_views(void **state) {
    an_gpt2_options gpt2 = small_gpt2();
    an_llama_options llama = small_llama();
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt2));
    assert_int_equal(count_ops(g, "contiguous"), 0);
    assert_int_equal(count_ops(g, "attention"), gpt2.layers);
    an_graph_destroy(&g);
    OK(ctx, an_model_llama(&g, ctx, &llama));
    assert_int_equal(count_ops(g, "contiguous"), 0);
    assert_int_equal(count_ops(g, "rotary"), 2 * llama.layers);
    an_graph_destroy(&g);
}

static bool has_input(const an_graph *g, const char *name, const char *type) {
    for (size_t i = 0; i < g->source_count; i++) {
        const char **found = an_node_attribute(g->sources[i], "name", AN_ATTRIBUTE_STRING);
        if (!strcmp(*found, name)) return !strcmp(AN_DESCRIBE(g, &g->sources[i]->outputs[0]), type);
    }
    return false;
}

static void dropout_adds_samples(void **state) {
    an_gpt2_options gpt2 = small_gpt2();
    an_mlp_options mlp = small_mlp_options();
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt2));
    assert_false(has_input(g, "samples", "i64[batch]"));
    assert_true(has_input(g, "tokens", "i32[batch,tokens]"));
    assert_true(has_input(g, "targets", "i32[batch,tokens]"));
    an_graph_destroy(&g);
    gpt2.dropout = mlp.dropout = 0.1;
    OK(ctx, an_model_gpt2(&g, ctx, &gpt2));
    assert_true(has_input(g, "samples", "i64[batch]"));
    assert_int_equal(count_ops(g, "dropout"), 1 + 2 * gpt2.layers);
    an_graph_destroy(&g);
    OK(ctx, an_model_mlp(&g, ctx, &mlp));
    assert_true(has_input(g, "samples", "i64[batch]"));
    an_graph_destroy(&g);
}

static void mlp_targets_follow_loss(void **state) {
    an_mlp_options o = small_mlp_options();
    an_graph *g = NULL;
    (void)state;
    OK(ctx, an_model_mlp(&g, ctx, &o));
    assert_true(has_input(g, "targets", "i32[batch]"));
    an_graph_destroy(&g);
    o.loss = AN_LOSS_SQUARED;
    o.dtype = AN_DTYPE_F64;
    OK(ctx, an_model_mlp(&g, ctx, &o));
    assert_true(has_input(g, "x", "f64[batch,4]"));
    assert_true(has_input(g, "targets", "f64[batch,3]"));
    an_graph_destroy(&g);
}

/* The start of PyTorch's layers: uniform within 1 / sqrt(fan in). */
static void layers_start(void **state) {
    an_convolution_options grouped;
    an_convolution_options_init(&grouped, sizeof grouped);
    an_graph *g = NULL;
    (void)state;
    grouped.groups = 2;
    OK(ctx, an_graph_create(&g, ctx, "layers"));
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(an_symbol_dim(g, "batch"), 8, 10, 16));
    an_linear(g, x, "linear", 3);
    an_linear_plain(g, x, "plain", 3);
    an_convolution_layer(g, x, "convolution", 6, 2, &grouped);
    an_scope_begin(g, "norms");
    an_layer_norm_layer(g, x, "layer", 1e-5);
    an_rms_norm_layer(g, x, "rms", 1e-5);
    an_batch_norm_layer(g, x, "batch", 0.1, 1e-5);
    an_scope_end(g);
    OK(ctx, an_graph_verify(g));
    static const expected list[] = {{"linear.weight", "f32[3,16]", 0},
                                    {"linear.bias", "f32[3]", 0},
                                    {"plain.weight", "f32[3,16]", 0},
                                    {"convolution.weight", "f32[6,4,2,2]", 0},
                                    {"convolution.bias", "f32[6]", 0},
                                    {"norms.layer.weight", "f32[16]", 0},
                                    {"norms.layer.bias", "f32[16]", 0},
                                    {"norms.rms.weight", "f32[16]", 0},
                                    {"norms.batch.weight", "f32[8]", 0},
                                    {"norms.batch.bias", "f32[8]", 0},
                                    {0}};
    static const double scales[] = {0.25, 0.25, 0.25, 0.25, 0.25, 1, 0, 1, 1, 0}; /* 16 inputs, or 4 · 2 · 2 */
    check_parameters(g, list);
    for (size_t i = 0; i < g->parameter_count; i++) {
        const double *scale = an_node_attribute(g->parameters[i].node, "scale", AN_ATTRIBUTE_FLOAT);
        assert_true(*scale == scales[i]);
    }
    assert_true(has_input(g, "norms.batch.running_mean", "f32[8]"));
    assert_true(has_input(g, "norms.batch.running_var", "f32[8]"));
    an_graph_destroy(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2_names),
        cmocka_unit_test(llama_names),
        cmocka_unit_test(llama_relatives),
        cmocka_unit_test(bert_names),
        cmocka_unit_test(bert_heads),
        cmocka_unit_test(mlp_names),
        cmocka_unit_test(cnn_names),
        cmocka_unit_test(preset_counts),
        cmocka_unit_test(llama_count),
        cmocka_unit_test(heads_are_views),
        cmocka_unit_test(dropout_adds_samples),
        cmocka_unit_test(mlp_targets_follow_loss),
        cmocka_unit_test(layers_start),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* GPT-2, with the names of its published weights. Weights of linear layers are [out, in]; those files have [in, out],
 * and model.init transposes them. */
#include "models/model.h"

#include "base/guard.h"

static const char model[] = "gpt2";
static const double epsilon = 1e-5;

typedef struct {
    int64_t heads, width;
    double dropout;
    an_value samples;   /* AN_NONE without dropout */
    an_value documents; /* AN_NONE: all of a sample is one */
    an_start start;     /* of weights */
    an_start residual;  /* of weights whose product is added to the residual stream */
} gpt2;

static const an_start zeros = {AN_INITIALIZER_CONSTANT, 0};

/* x + dropout(branch) */
static an_value add_branch(an_graph *g, const gpt2 *m, an_value x, an_value branch) {
    if (m->dropout > 0) branch = an_dropout(g, branch, m->samples, m->dropout);
    return an_add(g, x, branch);
}

/* (batch, tokens, width) seen as (batch, heads, tokens, size). */
static an_value to_heads(an_graph *g, const gpt2 *m, an_value x) {
    an_dim batch = an_value_dim(g, x, 0), tokens = an_value_dim(g, x, 1);
    return an_transpose(g, an_reshape(g, x, AN_DIMS(batch, tokens, m->heads, m->width / m->heads)), 1, 2);
}

static an_value attention(an_graph *g, const gpt2 *m, an_value x) {
    an_attention_options options;
    an_attention_options_init(&options, sizeof options);
    options.causal = true;
    options.dropout = m->dropout;
    options.samples = m->samples;
    options.documents = m->documents;

    an_scope_begin(g, "attn");
    an_dim batch = an_value_dim(g, x, 0), tokens = an_value_dim(g, x, 1);
    an_value parts = an_split(g, an_linear_with(g, x, "c_attn", 3 * m->width, &m->start, &zeros), -1, 3); /* q, k, v */
    an_value q = to_heads(g, m, parts);
    an_value k = to_heads(g, m, an_value_output(parts, 1));
    an_value v = to_heads(g, m, an_value_output(parts, 2));
    x = an_transpose(g, an_attention(g, q, k, v, &options), 1, 2);
    x = an_reshape(g, x, AN_DIMS(batch, tokens, m->width));
    x = an_linear_with(g, x, "c_proj", m->width, &m->residual, &zeros);
    an_scope_end(g);
    return x;
}

static an_value feed_forward(an_graph *g, const gpt2 *m, an_value x) {
    an_scope_begin(g, "mlp");
    x = an_linear_with(g, x, "c_fc", 4 * m->width, &m->start, &zeros);
    x = an_linear_with(g, an_gelu_tanh(g, x), "c_proj", m->width, &m->residual, &zeros);
    an_scope_end(g);
    return x;
}

static an_value table(an_graph *g, const char *name, const gpt2 *m, an_dtype dtype, int64_t entries) {
    an_scope_begin(g, name);
    an_value weight = an_param(g, "weight", dtype, m->start.initializer, m->start.scale, AN_DIMS(entries, m->width));
    an_scope_end(g);
    return weight;
}

static an_status check(an_context *ctx, const an_gpt2_options *options) {
    const an_model_size sizes[] = {AN_MODEL_SIZE(options, layers), AN_MODEL_SIZE(options, heads),
                                   AN_MODEL_SIZE(options, width), AN_MODEL_SIZE(options, context),
                                   AN_MODEL_SIZE(options, vocabulary)};
    AN_TRY_RETURN(an_model_check_sizes(ctx, model, sizes, AN_COUNT(sizes)));
    AN_TRY_RETURN(an_model_check_layers(ctx, model, options->layers));
    AN_TRY_RETURN(an_model_check_heads(ctx, model, options->width, options->heads));
    return an_model_check_dropout(ctx, model, options->dropout);
}

an_status an_model_gpt2(an_graph **graph, an_context *ctx, const an_gpt2_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, graph);
    an_gpt2_options own, *const options = &own;
    const double deviation = 0.02; /* as published */
    an_dtype dtype = AN_DTYPE_NONE;
    an_graph *g = NULL;

    *graph = NULL;
    AN_TRY_RETURN(an_model_check_options(ctx, model, given));
    AN_TRY_RETURN(an_gpt2_options_read(ctx, &own, given));
    AN_TRY_RETURN(check(ctx, options));
    AN_TRY_RETURN(an_model_choose_dtype(ctx, model, options->dtype, &dtype));
    AN_TRY_RETURN(an_graph_create(&g, ctx, model));

    gpt2 m = {.heads = options->heads,
              .width = options->width,
              .dropout = options->dropout,
              .samples = AN_NONE,
              .documents = AN_NONE};
    m.start = (an_start){AN_INITIALIZER_NORMAL, deviation};
    m.residual = (an_start){AN_INITIALIZER_NORMAL, deviation / __builtin_sqrt(2 * (double)options->layers)};

    an_dim batch = an_symbol_dim(g, "batch"), tokens = an_symbol_dim(g, "tokens");
    an_value indices = an_input(g, "tokens", AN_DTYPE_I32, AN_DIMS(batch, tokens));
    an_value targets = an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(batch, tokens));
    if (options->documents) m.documents = an_input(g, "documents", AN_DTYPE_I32, AN_DIMS(batch, tokens));
    if (m.dropout > 0) m.samples = an_input(g, "samples", AN_DTYPE_I64, AN_DIMS(batch));

    an_value wte = table(g, "wte", &m, dtype, options->vocabulary);
    an_value wpe = table(g, "wpe", &m, dtype, options->context);
    an_value x = an_embedding(g, indices, wte);
    x = an_add(g, x, an_slice(g, wpe, 0, 0, tokens));
    if (m.dropout > 0) x = an_dropout(g, x, m.samples, m.dropout);

    for (int64_t i = 0; i < options->layers && g->status == AN_OK; i++) {
        an_model_block_begin(g, "h", i);
        x = add_branch(g, &m, x, attention(g, &m, an_layer_norm_layer(g, x, "ln_1", epsilon)));
        x = add_branch(g, &m, x, feed_forward(g, &m, an_layer_norm_layer(g, x, "ln_2", epsilon)));
        an_block_end(g);
    }

    an_block_begin(g, "ln_f", an_model_depth_after(options->layers));
    x = an_layer_norm_layer(g, x, NULL, epsilon);
    an_block_end(g);
    an_value logits = an_matmul(g, x, wte, false, true);
    an_graph_set_prediction(g, logits, "logits");
    an_graph_set_loss(g, an_cross_entropy(g, logits, targets, NULL), targets);
    return an_model_finish(graph, g);
}

/* BERT, with the names and the [out, in] weights of its published files. Norms come after the sums of the
 * residual stream.
 *
 * Sentences of a batch have different lengths, so most end in padding. Attention takes the mask of the
 * padding as documents: tokens are one document and padding is another, so no token sees padding, and
 * what padding computes goes nowhere. */
#include "models/model.h"

#include "base/guard.h"

static const char model[] = "bert";

static const an_start start = {AN_INITIALIZER_NORMAL, 0.02}; /* as published */
static const an_start zeros = {AN_INITIALIZER_CONSTANT, 0};

typedef struct {
    int64_t heads, width, hidden;
    double dropout, epsilon;
    an_dtype dtype;
    an_value mask;    /* 1: token, 0: padding */
    an_value samples; /* AN_NONE without dropout */
} bert;

static an_value linear(an_graph *g, an_value x, const char *name, int64_t features) {
    return an_linear_with(g, x, name, features, &start, &zeros);
}

static an_value drop(an_graph *g, const bert *m, an_value x) {
    return m->dropout > 0 ? an_dropout(g, x, m->samples, m->dropout) : x;
}

/* ---- embeddings ---- */

static an_value table(an_graph *g, const bert *m, const char *name, int64_t entries) {
    an_scope_begin(g, name);
    an_value weight = an_param(g, "weight", m->dtype, start.initializer, start.scale, AN_DIMS(entries, m->width));
    an_scope_end(g);
    return weight;
}

static an_value embed(an_graph *g, const bert *m, const an_bert_options *o, an_value tokens, an_value types) {
    an_scope_begin(g, "embeddings");
    an_value words = table(g, m, "word_embeddings", o->vocabulary);
    an_value positions = table(g, m, "position_embeddings", o->context);
    an_value kinds = table(g, m, "token_type_embeddings", o->token_types);
    an_value x = an_add(g, an_embedding(g, tokens, words), an_embedding(g, types, kinds));
    x = an_add(g, x, an_slice(g, positions, 0, 0, an_value_dim(g, tokens, 1)));
    x = drop(g, m, an_layer_norm_layer(g, x, "LayerNorm", m->epsilon));
    an_scope_end(g);
    return x;
}

/* ---- blocks ---- */

/* A linear layer seen as (batch, heads, tokens, size). */
static an_value project(an_graph *g, const bert *m, an_value x, const char *name) {
    an_dim batch = an_value_dim(g, x, 0), tokens = an_value_dim(g, x, 1);
    x = linear(g, x, name, m->width);
    return an_transpose(g, an_reshape(g, x, AN_DIMS(batch, tokens, m->heads, m->width / m->heads)), 1, 2);
}

/* norm(x + dropout(dense(branch))), in a scope that both kinds of branch have. */
static an_value finish_branch(an_graph *g, const bert *m, an_value x, an_value branch) {
    an_scope_begin(g, "output");
    branch = drop(g, m, linear(g, branch, "dense", m->width));
    x = an_layer_norm_layer(g, an_add(g, x, branch), "LayerNorm", m->epsilon);
    an_scope_end(g);
    return x;
}

static an_value attention(an_graph *g, const bert *m, an_value x) {
    an_attention_options options;
    an_attention_options_init(&options, sizeof options);
    options.dropout = m->dropout;
    options.samples = m->samples;
    options.documents = m->mask;

    an_dim batch = an_value_dim(g, x, 0), tokens = an_value_dim(g, x, 1);
    an_scope_begin(g, "attention");
    an_scope_begin(g, "self");
    an_value q = project(g, m, x, "query"), k = project(g, m, x, "key"), v = project(g, m, x, "value");
    an_value branch = an_transpose(g, an_attention(g, q, k, v, &options), 1, 2);
    an_scope_end(g);
    x = finish_branch(g, m, x, an_reshape(g, branch, AN_DIMS(batch, tokens, m->width)));
    an_scope_end(g);
    return x;
}

static an_value feed_forward(an_graph *g, const bert *m, an_value x) {
    an_scope_begin(g, "intermediate");
    an_value branch = an_gelu(g, linear(g, x, "dense", m->hidden));
    an_scope_end(g);
    return finish_branch(g, m, x, branch);
}

/* ---- what the model gives ---- */

/* The mean over the tokens of each sample; padding is not counted. A sample of padding alone gives zeros. */
static an_value mean_of_tokens(an_graph *g, const bert *m, an_value x) {
    an_dim batch = an_value_dim(g, x, 0), tokens = an_value_dim(g, x, 1);
    an_value mask = an_cast(g, m->mask, m->dtype);
    an_value count = an_clamp(g, an_reduce_sum(g, mask, AN_AXES(1), true), 1, __builtin_inf());
    an_value sum =
        an_reduce_sum(g, an_multiply(g, x, an_reshape(g, mask, AN_DIMS(batch, tokens, 1))), AN_AXES(1), false);
    return an_divide(g, sum, count);
}

static an_value pool(an_graph *g, const bert *m, const an_bert_options *o, an_value x) {
    if (o->pooling == AN_BERT_POOLING_MEAN) return mean_of_tokens(g, m, x);
    x = an_reshape(g, an_slice(g, x, 1, 0, 1), AN_DIMS(an_value_dim(g, x, 0), m->width));
    if (o->pooling == AN_BERT_POOLING_FIRST) return x;
    an_block_begin(g, "pooler", an_model_depth_after(o->layers));
    x = an_tanh(g, linear(g, x, "dense", m->width));
    an_block_end(g);
    return x;
}

/* Rows of length 1. */
static an_value normalize_rows(an_graph *g, an_value x) {
    const double minimum = 1e-12; /* a row of zeros stays one; as PyTorch's normalize */
    an_value square = an_reduce_sum(g, an_multiply(g, x, x), AN_AXES(1), true);
    return an_divide(g, x, an_clamp(g, an_sqrt(g, square), minimum, __builtin_inf()));
}

static void add_head(an_graph *g, const bert *m, const an_bert_options *o, an_value x) {
    if (o->head == AN_BERT_HEAD_NONE) {
        an_graph_set_prediction(g, x, "hidden");
        return;
    }
    x = pool(g, m, o, x);
    if (o->head == AN_BERT_HEAD_EMBEDDING) {
        an_graph_set_prediction(g, normalize_rows(g, x), "embedding");
        return;
    }
    an_value targets = an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(an_value_dim(g, x, 0)));
    an_block_begin(g, "classifier", an_model_depth_after(o->layers));
    an_value logits = linear(g, drop(g, m, x), NULL, o->classes);
    an_block_end(g);
    an_graph_set_output(g, logits, "logits"); /* they are few, and evaluations count classes by them */
    an_graph_set_loss(g, an_cross_entropy(g, logits, targets, NULL), targets);
}

/* ---- the model ---- */

static an_status check(an_context *ctx, const an_bert_options *options) {
    const an_model_size sizes[] = {AN_MODEL_SIZE(options, layers),     AN_MODEL_SIZE(options, heads),
                                   AN_MODEL_SIZE(options, width),      AN_MODEL_SIZE(options, hidden),
                                   AN_MODEL_SIZE(options, context),    AN_MODEL_SIZE(options, vocabulary),
                                   AN_MODEL_SIZE(options, token_types)};
    const an_model_size classes = AN_MODEL_SIZE(options, classes);
    AN_TRY_RETURN(an_model_check_sizes(ctx, model, sizes, AN_COUNT(sizes)));
    AN_TRY_RETURN(an_model_check_layers(ctx, model, options->layers));
    AN_TRY_RETURN(an_model_check_heads(ctx, model, options->width, options->heads));
    AN_TRY_RETURN(an_model_check_dropout(ctx, model, options->dropout));
    if (options->head < AN_BERT_HEAD_CLASSES || options->head > AN_BERT_HEAD_NONE)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: head is %d, which is not a value of an_bert_head", model,
                        (int)options->head);
    if (options->pooling < AN_BERT_POOLING_POOLER || options->pooling > AN_BERT_POOLING_FIRST)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: pooling is %d, which is not a value of an_bert_pooling", model,
                        (int)options->pooling);
    if (!(options->epsilon > 0))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: epsilon is %g; it must be above 0", model, options->epsilon);
    if (options->head == AN_BERT_HEAD_CLASSES) return an_model_check_sizes(ctx, model, &classes, 1);
    if (options->classes == 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: classes is %lld, but a model without a classifier has none; set it to 0",
                    model, (long long)options->classes);
}

an_status an_model_bert(an_graph **graph, an_context *ctx, const an_bert_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, graph);
    an_bert_options own, *const options = &own;
    an_dtype dtype = AN_DTYPE_NONE;
    an_graph *g = NULL;

    *graph = NULL;
    AN_TRY_RETURN(an_model_check_options(ctx, model, given));
    AN_TRY_RETURN(an_bert_options_read(ctx, &own, given));
    AN_TRY_RETURN(check(ctx, options));
    AN_TRY_RETURN(an_model_choose_dtype(ctx, model, options->dtype, &dtype));
    AN_TRY_RETURN(an_graph_create(&g, ctx, model));

    bert m = {.heads = options->heads,
              .width = options->width,
              .hidden = options->hidden,
              .dropout = options->dropout,
              .epsilon = options->epsilon,
              .dtype = dtype,
              .samples = AN_NONE};
    an_dim batch = an_symbol_dim(g, "batch"), length = an_symbol_dim(g, "tokens");
    an_value tokens = an_input(g, "tokens", AN_DTYPE_I32, AN_DIMS(batch, length));
    an_value types = an_input(g, "token_types", AN_DTYPE_I32, AN_DIMS(batch, length));
    m.mask = an_input(g, "mask", AN_DTYPE_I32, AN_DIMS(batch, length));
    if (m.dropout > 0) m.samples = an_input(g, "samples", AN_DTYPE_I64, AN_DIMS(batch));

    an_value x = embed(g, &m, options, tokens, types);
    for (int64_t i = 0; i < options->layers && g->status == AN_OK; i++) {
        an_model_block_begin(g, "encoder.layer", i);
        x = feed_forward(g, &m, attention(g, &m, x));
        an_block_end(g);
    }
    add_head(g, &m, options, x);
    return an_model_finish(graph, g);
}

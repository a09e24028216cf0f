/* Llama and its relatives, with the names and the [out, in] weights of its published files. */
#include "models/model.h"

#include "base/guard.h"

static const char model[] = "llama";

static const an_start start = {AN_INITIALIZER_NORMAL, 0.02}; /* as published */

typedef struct {
    int64_t heads, kv_heads, width, head_size, hidden;
    double epsilon;
    an_rotary_options rotary;
    an_value documents; /* AN_NONE: all of a sample is one */
    int64_t window;
    bool norms_heads;
    const an_start *attention_bias, *output_bias, *feed_forward_bias; /* NULL: none */
} llama;

static const an_start zeros = {AN_INITIALIZER_CONSTANT, 0};

/* A linear layer whose features are `heads` heads, seen as (batch, heads, tokens, size). norm NULL:
 * heads are not normalised. */
static an_value project(an_graph *g, const llama *m, an_value x, const char *name, int64_t heads, const char *norm) {
    an_dim batch = an_value_dim(g, x, 0), tokens = an_value_dim(g, x, 1);
    x = an_linear_with(g, x, name, heads * m->head_size, &start, m->attention_bias);
    x = an_reshape(g, x, AN_DIMS(batch, tokens, heads, m->head_size));
    if (norm && m->norms_heads) x = an_rms_norm_layer(g, x, norm, m->epsilon);
    return an_transpose(g, x, 1, 2);
}

static an_value attention(an_graph *g, const llama *m, an_value x) {
    an_attention_options options;
    an_attention_options_init(&options, sizeof options);
    options.causal = true;
    options.documents = m->documents;
    options.window = m->window;

    an_scope_begin(g, "self_attn");
    an_dim batch = an_value_dim(g, x, 0), tokens = an_value_dim(g, x, 1);
    an_value q = an_rotary(g, project(g, m, x, "q_proj", m->heads, "q_norm"), &m->rotary);
    an_value k = an_rotary(g, project(g, m, x, "k_proj", m->kv_heads, "k_norm"), &m->rotary);
    an_value v = project(g, m, x, "v_proj", m->kv_heads, NULL);
    x = an_transpose(g, an_attention(g, q, k, v, &options), 1, 2);
    x = an_reshape(g, x, AN_DIMS(batch, tokens, m->heads * m->head_size));
    x = an_linear_with(g, x, "o_proj", m->width, &start, m->output_bias);
    an_scope_end(g);
    return x;
}

static an_value feed_forward(an_graph *g, const llama *m, an_value x) {
    an_scope_begin(g, "mlp");
    an_value gate = an_silu(g, an_linear_with(g, x, "gate_proj", m->hidden, &start, m->feed_forward_bias));
    an_value up = an_linear_with(g, x, "up_proj", m->hidden, &start, m->feed_forward_bias);
    x = an_linear_with(g, an_multiply(g, gate, up), "down_proj", m->width, &start, m->feed_forward_bias);
    an_scope_end(g);
    return x;
}

static int64_t head_size_of(const an_llama_options *options) {
    return options->head_size ? options->head_size : options->width / options->heads;
}

static an_status check(an_context *ctx, const an_llama_options *options) {
    const an_model_size sizes[] = {AN_MODEL_SIZE(options, layers),    AN_MODEL_SIZE(options, heads),
                                   AN_MODEL_SIZE(options, kv_heads),  AN_MODEL_SIZE(options, width),
                                   AN_MODEL_SIZE(options, hidden),    AN_MODEL_SIZE(options, context),
                                   AN_MODEL_SIZE(options, vocabulary)};
    AN_TRY_RETURN(an_model_check_sizes(ctx, model, sizes, AN_COUNT(sizes)));
    AN_TRY_RETURN(an_model_check_layers(ctx, model, options->layers));
    if (options->head_size == 0) AN_TRY_RETURN(an_model_check_heads(ctx, model, options->width, options->heads));
    if (options->heads % options->kv_heads != 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: %lld heads cannot share %lld key and value heads: heads must be a multiple of kv_heads",
                        model, (long long)options->heads, (long long)options->kv_heads);
    const an_model_size size = {"head_size", head_size_of(options)};
    AN_TRY_RETURN(an_model_check_sizes(ctx, model, &size, 1));
    if (options->head_size != 0 && options->head_size % 2 != 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: head_size is %lld, but rotary positions need an even size", model,
                        (long long)options->head_size);
    if (size.value % 2 != 0)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "%s: a width of %lld gives each of %lld heads an odd size of %lld, but rotary positions need an even size",
            model, (long long)options->width, (long long)options->heads, (long long)size.value);
    if (options->window < 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: window is %lld, but must be a number of tokens, or 0 for all", model,
                        (long long)options->window);
    if (!(options->rotary_base > 0) || !(options->epsilon > 0))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: rotary_base is %g and epsilon %g; both must be above 0", model,
                        options->rotary_base, options->epsilon);
    return AN_OK;
}

an_status an_model_llama(an_graph **graph, an_context *ctx, const an_llama_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, graph);
    an_llama_options own, *const options = &own;
    an_dtype dtype = AN_DTYPE_NONE;
    an_graph *g = NULL;

    *graph = NULL;
    AN_TRY_RETURN(an_model_check_options(ctx, model, given));
    AN_TRY_RETURN(an_llama_options_read(ctx, &own, given));
    AN_TRY_RETURN(check(ctx, options));
    AN_TRY_RETURN(an_model_choose_dtype(ctx, model, options->dtype, &dtype));
    AN_TRY_RETURN(an_graph_create(&g, ctx, model));

    llama m = {.heads = options->heads,
               .kv_heads = options->kv_heads,
               .width = options->width,
               .head_size = head_size_of(options),
               .hidden = options->hidden,
               .epsilon = options->epsilon,
               .documents = AN_NONE,
               .window = options->window,
               .norms_heads = options->query_key_norm,
               .attention_bias = options->attention_bias ? &zeros : NULL,
               .output_bias = options->output_bias ? &zeros : NULL,
               .feed_forward_bias = options->feed_forward_bias ? &zeros : NULL};
    an_rotary_options_init(&m.rotary, sizeof m.rotary);
    m.rotary.base = options->rotary_base;
    m.rotary.factor = options->rotary_factor;
    m.rotary.low_factor = options->rotary_low;
    m.rotary.high_factor = options->rotary_high;
    m.rotary.original_context = options->rotary_context;

    an_dim batch = an_symbol_dim(g, "batch"), tokens = an_symbol_dim(g, "tokens");
    an_value indices = an_input(g, "tokens", AN_DTYPE_I32, AN_DIMS(batch, tokens));
    an_value targets = an_input(g, "targets", AN_DTYPE_I32, AN_DIMS(batch, tokens));
    if (options->documents) m.documents = an_input(g, "documents", AN_DTYPE_I32, AN_DIMS(batch, tokens));

    an_scope_begin(g, "model.embed_tokens");
    an_value table =
        an_param(g, "weight", dtype, start.initializer, start.scale, AN_DIMS(options->vocabulary, m.width));
    an_value x = an_embedding(g, indices, table);
    an_scope_end(g);

    for (int64_t i = 0; i < options->layers && g->status == AN_OK; i++) {
        an_model_block_begin(g, "model.layers", i);
        x = an_add(g, x, attention(g, &m, an_rms_norm_layer(g, x, "input_layernorm", m.epsilon)));
        x = an_add(g, x, feed_forward(g, &m, an_rms_norm_layer(g, x, "post_attention_layernorm", m.epsilon)));
        an_block_end(g);
    }

    an_block_begin(g, "model.norm", an_model_depth_after(options->layers));
    x = an_rms_norm_layer(g, x, NULL, m.epsilon);
    an_block_end(g);
    an_value logits;
    if (options->tied) {
        logits = an_matmul(g, x, table, false, true);
    } else {
        an_block_begin(g, "lm_head", an_model_depth_after(options->layers));
        logits = an_linear_with(g, x, NULL, options->vocabulary, &start, NULL);
        an_block_end(g);
    }
    an_graph_set_prediction(g, logits, "logits");
    an_graph_set_loss(g, an_cross_entropy(g, logits, targets, NULL), targets);
    return an_model_finish(graph, g);
}

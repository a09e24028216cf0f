#include "pretrained/llama_like.h"

#include <string.h>

#include "base/status.h"

#define NAMES(turned)                                                                                                \
    {"token_embd", "model.embed_tokens", false}, {"output_norm", "model.norm", false}, {"output", "lm_head", false}, \
        {"rope_freqs", NULL, false}, {"blk.#.attn_norm", "model.layers.#.input_layernorm", false},                   \
        {"blk.#.attn_q", "model.layers.#.self_attn.q_proj", turned},                                                 \
        {"blk.#.attn_k", "model.layers.#.self_attn.k_proj", turned},                                                 \
        {"blk.#.attn_v", "model.layers.#.self_attn.v_proj", false},                                                  \
        {"blk.#.attn_output", "model.layers.#.self_attn.o_proj", false},                                             \
        {"blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm", false},                                             \
        {"blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm", false},                                             \
        {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm", false},                                        \
        {"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj", false},                                                   \
        {"blk.#.ffn_up", "model.layers.#.mlp.up_proj", false},                                                       \
        {"blk.#.ffn_down", "model.layers.#.mlp.down_proj", false}, AN_FAMILY_NAMES_END

const an_family_name an_llama_names[] = {NAMES(false)};
const an_family_name an_llama_own_names[] = {NAMES(true)};

/* ---- what absent keys mean ---- */

void an_llama_settle(an_description *d) {
    an_stated *v = d->values;
    const double heads = v[AN_ROW_HEADS].number, width = v[AN_ROW_HIDDEN_SIZE].number, maximum = 1e15;
    if (!v[AN_ROW_KV_HEADS].assumed) an_description_assume(d, AN_ROW_KV_HEADS, heads);
    if (!v[AN_ROW_HEAD_DIM].assumed)
        an_description_assume(d, AN_ROW_HEAD_DIM, heads > 0 && width < maximum ? (double)(int64_t)(width / heads) : 0);
    if (!v[AN_ROW_WINDOW].assumed) an_description_assume(d, AN_ROW_WINDOW, 0);
    an_description_assume_word(d, AN_ROW_HIDDEN_ACT, "silu");
    an_description_state(d, AN_FACT_OUTPUT_BIAS, v[AN_ROW_ATTENTION_BIAS].number);
    an_description_state(d, AN_FACT_QUERY_KEY_NORM, 0);
    if (d->windowed_layers > 0 && d->whole_layers > 0)
        an_description_doubt(d, "", "layer_types"); /* one window for all layers is what we have */
}

void an_llama_settle_window(an_description *d) {
    an_stated *v = d->values, *window = &v[AN_ROW_WINDOW];
    const double layers = v[AN_ROW_LAYERS].number, first = v[AN_ROW_MAX_WINDOW_LAYERS].number;
    const bool listed = d->windowed_layers + d->whole_layers > 0;
    const bool some = listed ? d->windowed_layers > 0 : first < layers;
    if (v[AN_ROW_USES_WINDOW].number != 0 && some) {
        if (!listed && first > 0) an_description_doubt(d, "", "max_window_layers");
        return;
    }
    *window = (an_stated){.parent = ""};
    an_description_assume(d, AN_ROW_WINDOW, 0);
}

/* ---- the graph ---- */

static an_status get_sizes(const an_description *d, an_llama_options *m) {
    AN_TRY_RETURN(an_description_count(d, AN_FACT_LAYERS, "number of layers", &m->layers));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_HEADS, "number of heads", &m->heads));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_KV_HEADS, "number of key and value heads", &m->kv_heads));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_HEAD_SIZE, "head size", &m->head_size));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_WIDTH, "width", &m->width));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_HIDDEN, "width of the feed-forward layers", &m->hidden));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_CONTEXT, "largest number of positions", &m->context));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_VOCABULARY, "size of the vocabulary", &m->vocabulary));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_WINDOW, "window", &m->window));
    if (m->head_size > 0 && m->heads > 0 && m->head_size == m->width / m->heads && m->width % m->heads == 0)
        m->head_size = 0; /* the usual one */
    return AN_OK;
}

static an_status get_rotary(const an_description *d, an_llama_options *m) {
    const an_stated *type = an_description_rope_type(d);
    AN_TRY_RETURN(an_description_positive(d, AN_FACT_ROTARY_BASE, "rotary base", &m->rotary_base));
    if (an_description_fact(d, AN_FACT_ROTARY_FACTOR) == 0 && !(type->given && !strcmp(type->word, "llama3")))
        return AN_OK;
    AN_TRY_RETURN(an_description_positive(d, AN_FACT_ROTARY_FACTOR, "rotary factor", &m->rotary_factor));
    AN_TRY_RETURN(an_description_positive(d, AN_FACT_ROTARY_LOW, "lower rotary factor", &m->rotary_low));
    AN_TRY_RETURN(an_description_positive(d, AN_FACT_ROTARY_HIGH, "higher rotary factor", &m->rotary_high));
    return an_description_count(d, AN_FACT_ROTARY_ORIGINAL, "original number of positions", &m->rotary_context);
}

an_status an_llama_build(an_graph **graph, const an_description *d, const an_pretrained_options *options) {
    an_context *ctx = d->ctx;
    an_llama_options m;
    an_llama_options_init(&m, sizeof m);
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_ACTIVATION, "activation", an_activation_find("silu")));
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_ROTARY_SHARE, "share of a head that rotates", 1));
    AN_TRY_RETURN(an_description_no_classes(d, options));
    if (options->dropout != 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: the dropout is %g, but a model of type %s has none here", d->path,
                        options->dropout, d->family->name);
    AN_TRY_RETURN(get_sizes(d, &m));
    AN_TRY_RETURN(get_rotary(d, &m));
    AN_TRY_RETURN(an_description_positive(d, AN_FACT_EPSILON, "epsilon of the norms", &m.epsilon));
    m.tied = an_description_fact(d, AN_FACT_TIED) != 0;
    m.attention_bias = an_description_fact(d, AN_FACT_ATTENTION_BIAS) != 0;
    m.output_bias = an_description_fact(d, AN_FACT_OUTPUT_BIAS) != 0;
    m.feed_forward_bias = an_description_fact(d, AN_FACT_MLP_BIAS) != 0;
    m.query_key_norm = an_description_fact(d, AN_FACT_QUERY_KEY_NORM) != 0;
    m.dtype = options->dtype;
    m.documents = options->documents;
    const an_status status = an_model_llama(graph, ctx, &m);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s: %s", d->path, an_last_error(ctx));
}

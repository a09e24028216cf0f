/* GPT-2. */
#include "base/options/settings.h"
#include "base/status.h"
#include "pretrained/description.h"

/* Defaults are those of GPT2Config in transformers. */
static const an_family_key keys[] = {
    {AN_ROW_N_EMBD, 768, AN_SETTING(model.width)},
    {AN_ROW_N_INNER, AN_KEY_UNSTATED, NULL},
    {AN_ROW_N_LAYER, 12, AN_SETTING(model.layers)},
    {AN_ROW_N_HEAD, 12, AN_SETTING(model.heads)},
    {AN_ROW_N_POSITIONS, 1024, AN_SETTING(model.context)},
    {AN_ROW_VOCABULARY, 50257, AN_SETTING(model.vocabulary)},
    {AN_ROW_LAYER_NORM_EPSILON, 1e-5, NULL},
    {AN_ROW_SCALE_ATTN_WEIGHTS, 1, NULL},
    {AN_ROW_ACTIVATION_FUNCTION, AN_KEY_UNSTATED, NULL},
    {AN_ROW_TIED, 1, NULL},
    {AN_ROW_WINDOW, 0, NULL},
    AN_FAMILY_KEYS_END,
};

static const an_family_name names[] = {{"token_embd", "wte", false},
                                       {"position_embd", "wpe", false},
                                       {"output_norm", "ln_f", false},
                                       {"output", NULL, false}, /* the token table again */
                                       {"blk.#.attn_norm", "h.#.ln_1", false},
                                       {"blk.#.attn_qkv", "h.#.attn.c_attn", false},
                                       {"blk.#.attn_output", "h.#.attn.c_proj", false},
                                       {"blk.#.ffn_norm", "h.#.ln_2", false},
                                       {"blk.#.ffn_up", "h.#.mlp.c_fc", false},
                                       {"blk.#.ffn_down", "h.#.mlp.c_proj", false},
                                       AN_FAMILY_NAMES_END};

static void settle(an_description *d) {
    an_description_assume(d, AN_ROW_N_INNER, 4 * d->values[AN_ROW_N_EMBD].number);
    an_description_assume_word(d, AN_ROW_ACTIVATION_FUNCTION, "gelu_new");
}

static an_status build(an_graph **graph, const an_description *d, const an_pretrained_options *options) {
    an_context *ctx = d->ctx;
    an_gpt2_options m;
    an_gpt2_options_init(&m, sizeof m);
    AN_TRY_RETURN(an_description_count(d, AN_FACT_LAYERS, "number of layers", &m.layers));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_HEADS, "number of heads", &m.heads));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_WIDTH, "width", &m.width));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_POSITIONS, "number of positions", &m.context));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_VOCABULARY, "size of the vocabulary", &m.vocabulary));
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_HIDDEN, "width of the feed-forward layers", 4 * (double)m.width));
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_ACTIVATION, "activation", an_activation_find("gelu_new")));
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_EPSILON, "epsilon of the norms", 1e-5));
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_TIED, "tie of head and token table", 1));
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_SCALED, "scaling of the scores", 1));
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_WINDOW, "window", 0));
    AN_TRY_RETURN(an_description_no_classes(d, options));
    m.dropout = options->dropout;
    m.dtype = options->dtype;
    m.documents = options->documents;
    const an_status status = an_model_gpt2(graph, ctx, &m);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s: %s", d->path, an_last_error(ctx));
}

const an_family an_family_gpt2 = {
    .name = "gpt2",
    .gguf = "gpt2",
    .type = "gpt2",
    .architectures = {"GPT2LMHeadModel", "GPT2Model", "GPT2DoubleHeadsModel", "GPT2ForSequenceClassification",
                      "GPT2ForTokenClassification", "GPT2ForQuestionAnswering"},
    .keys = keys,
    .table = "wte.weight",
    .names = names,
    .settle = settle,
    .build = build,
    .prefix = "transformer.",
};

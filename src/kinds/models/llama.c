/* Models of type llama. */
#include "kinds/models/models.h"
#include "kinds/models/rows.h"

static const an_option options[] = {
    OPTION_AT(190, "model.layers", COUNT, REQUIRED, "", BETWEEN(1, 4096), FIXED(MODEL),
              INTO(IN(an_llama_options, layers)), "number of transformer blocks"),
    OPTION_AT(200, "model.heads", COUNT, REQUIRED, "", FROM(1), FIXED(MODEL), INTO(IN(an_llama_options, heads)),
              "number of attention heads"),
    OPTION_AT(210, "model.kv_heads", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_llama_options, kv_heads)),
              "number of key and value heads; auto is as many as model.heads"),
    OPTION_AT(220, "model.width", COUNT, REQUIRED, "", FROM(1), FIXED(MODEL), INTO(IN(an_llama_options, width)),
              "size of the residual stream"),
    OPTION_AT(
        230, "model.hidden", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_llama_options, hidden)),
        "size of the feed-forward layer; auto is 8/3 of the width, rounded up to a multiple of 64, which costs as much "
        "as 4 times the width without a gate"),
    CONTEXT_OPTION(INTO(IN(an_llama_options, context))),
    VOCABULARY_OPTION(INTO(IN(an_llama_options, vocabulary))),
    OPTION_AT(360, "model.rotary_base", REAL, "10000", "", ABOVE(0), FIXED(MODEL),
              INTO(IN(an_llama_options, rotary_base)), "base of the rotary position frequencies; same as Llama 2"),
    OPTION_AT(370, "model.epsilon", REAL, "1e-5", "", ABOVE(0), FIXED(MODEL), INTO(IN(an_llama_options, epsilon)),
              "epsilon of the norms; same as Llama 2"),
    OPTION_AT(380, "model.tied", BOOL, "off", "", ANY, FIXED(MODEL), INTO(IN(an_llama_options, tied)),
              "output head shares its weights with the token embedding; same as Llama 2"),
    OPTIONS_END,
};

static an_status open_model(an_model_opening *o) {
    enum { MULTIPLE = 64 };
    an_context *ctx = o->ctx;
    an_llama_options m;
    an_llama_options_init(&m, sizeof m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_llama_options, &m));
    if (an_config_is(o->config, "model.kv_heads", "auto")) m.kv_heads = m.heads;
    if (an_config_is(o->config, "model.hidden", "auto"))
        m.hidden = (m.width * 8 / 3 + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    AN_TRY_RETURN(an_model_vocabulary(o, &m.vocabulary));
    m.documents = an_model_keeps_documents_apart(o);
    return an_model_llama(o->graph, ctx, &m);
}

const an_model_kind an_model_kind_llama = {
    .kind = {.name = "llama", .options = options, .samples = AN_GIVES_TOKENS},
    .open = open_model,
    .no_scale = AN_TOKENS_HAVE_NO_SCALE,
};

/* Models of type gpt2. */
#include "kinds/models/models.h"
#include "kinds/models/rows.h"

static const an_option options[] = {
    OPTION_AT(160, "model.layers", COUNT, "12", "", BETWEEN(1, 4096), FIXED(MODEL), INTO(IN(an_gpt2_options, layers)),
              "number of transformer blocks; same as GPT-2 124M"),
    OPTION_AT(170, "model.heads", COUNT, "12", "", FROM(1), FIXED(MODEL), INTO(IN(an_gpt2_options, heads)),
              "number of attention heads; same as GPT-2 124M"),
    OPTION_AT(180, "model.width", COUNT, "768", "", FROM(1), FIXED(MODEL), INTO(IN(an_gpt2_options, width)),
              "size of the residual stream; same as GPT-2 124M"),
    CONTEXT_OPTION(INTO(IN(an_gpt2_options, context))),
    VOCABULARY_OPTION(INTO(IN(an_gpt2_options, vocabulary))),
    DROPOUT_OPTION(INTO(IN(an_gpt2_options, dropout))),
    OPTIONS_END,
};

static an_status open_model(an_model_opening *o) {
    an_context *ctx = o->ctx;
    an_gpt2_options m;
    an_gpt2_options_init(&m, sizeof m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_gpt2_options, &m));
    AN_TRY_RETURN(an_model_vocabulary(o, &m.vocabulary));
    m.documents = an_model_keeps_documents_apart(o);
    return an_model_gpt2(o->graph, ctx, &m);
}

const an_model_kind an_model_kind_gpt2 = {
    .kind = {.name = "gpt2", .options = options, .samples = AN_GIVES_TOKENS},
    .open = open_model,
    .no_scale = AN_TOKENS_HAVE_NO_SCALE,
};

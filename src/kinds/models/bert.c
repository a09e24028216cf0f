/* Models of type bert: an encoder with a classifier. */
#include "kinds/models/models.h"
#include "kinds/models/rows.h"

static const an_option options[] = {
    CLASSES_OPTION(INTO(IN(an_bert_options, classes))),
    OPTION_AT(240, "model.layers", COUNT, "12", "", BETWEEN(1, 4096), FIXED(MODEL), INTO(IN(an_bert_options, layers)),
              "number of transformer blocks; same as BERT base"),
    OPTION_AT(250, "model.heads", COUNT, "12", "", FROM(1), FIXED(MODEL), INTO(IN(an_bert_options, heads)),
              "number of attention heads; same as BERT base"),
    OPTION_AT(260, "model.width", COUNT, "768", "", FROM(1), FIXED(MODEL), INTO(IN(an_bert_options, width)),
              "size of the hidden states; same as BERT base"),
    OPTION_AT(270, "model.hidden", COUNT, "auto", "auto", FROM(1), FIXED(MODEL), INTO(IN(an_bert_options, hidden)),
              "size of the feed-forward layer; auto is 4 times the width, same as BERT"),
    OPTION_AT(280, "model.context", COUNT, "512", "", FROM(2), FIXED(MODEL), INTO(IN(an_bert_options, context)),
              "most tokens in a sample; same as BERT"),
    OPTION_AT(290, "model.token_types", COUNT, "2", "", FROM(2), FIXED(MODEL), INTO(IN(an_bert_options, token_types)),
              "number of token types: one for a sentence, one for a second sentence beside it; same as BERT"),
    OPTION_AT(
        300, "model.pooling", CHOICE, "pooler", "pooler|mean|first", ANY, FIXED(MODEL),
        INTO(IN(an_bert_options, pooling)),
        "what the classifier reads: the first token through a layer of its own (pooler), the mean over all tokens, or "
        "the first token as it is; pooler, same as BERT"),
    OPTION_AT(320, "model.epsilon", REAL, "1e-12", "", ABOVE(0), FIXED(MODEL), INTO(IN(an_bert_options, epsilon)),
              "epsilon of the norms; same as BERT"),
    VOCABULARY_OPTION(INTO(IN(an_bert_options, vocabulary))),
    DROPOUT_OPTION(INTO(IN(an_bert_options, dropout))),
    OPTIONS_END,
};

static an_status open_model(an_model_opening *o) {
    an_context *ctx = o->ctx;
    an_bert_options m;
    an_bert_options_init(&m, sizeof m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_bert_options, &m));
    if (an_config_is(o->config, "model.hidden", "auto")) m.hidden = 4 * m.width;
    AN_TRY_RETURN(an_model_vocabulary(o, &m.vocabulary));
    if (an_config_is(o->config, "model.classes", "auto")) {
        AN_TRY_RETURN(an_model_classes(o));
        m.classes = o->classes;
    }
    return an_model_bert(o->graph, ctx, &m);
}

const an_model_kind an_model_kind_bert = {
    .kind = {.name = "bert", .options = options, .samples = AN_GIVES_SENTENCES},
    .open = open_model,
    .no_scale = "sentences are tokens and classes, which have no scale",
};

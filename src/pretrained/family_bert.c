/* BERT, with a classifier, as a sentence encoder, or without a head. */
#include <string.h>

#include "base/options/settings.h"
#include "base/status.h"
#include "pretrained/description.h"
#include "pretrained/pooling.h"

/* Defaults are those of BertConfig in transformers. */
static const an_family_key keys[] = {
    {AN_ROW_HIDDEN_SIZE, 768, AN_SETTING(model.width)},
    {AN_ROW_INTERMEDIATE_SIZE, 3072, AN_SETTING(model.hidden)},
    {AN_ROW_LAYERS, 12, AN_SETTING(model.layers)},
    {AN_ROW_HEADS, 12, AN_SETTING(model.heads)},
    {AN_ROW_VOCABULARY, 30522, AN_SETTING(model.vocabulary)},
    {AN_ROW_MOST_POSITIONS, 512, AN_SETTING(model.context)},
    {AN_ROW_TOKEN_TYPES, 2, AN_SETTING(model.token_types)},
    {AN_ROW_LAYER_NORM_EPS, 1e-12, AN_SETTING(model.epsilon)},
    {AN_ROW_HIDDEN_ACT, AN_KEY_UNSTATED, NULL},
    {AN_ROW_HIDDEN_DROPOUT, 0.1, NULL},
    {AN_ROW_POSITION_TYPE, AN_KEY_UNSTATED, NULL},
    {AN_ROW_IS_DECODER, 0, NULL},
    {AN_ROW_LABELS, 2, NULL},
    {AN_ROW_TIED, AN_KEY_UNSTATED, NULL},
    AN_FAMILY_KEYS_END,
};

static const an_family_name names[] = {AN_FAMILY_NAMES_END};

static void settle(an_description *d) {
    an_stated *v = d->values;
    v[AN_ROW_TIED] = (an_stated){.parent = ""}; /* of a head that predicts tokens, which no model here has */
    an_description_assume_word(d, AN_ROW_HIDDEN_ACT, "gelu");
    an_description_state(d, AN_FACT_DROPOUT, v[AN_ROW_HIDDEN_DROPOUT].number);
    for (int i = 0; i < d->architecture_count; i++)
        if (!strcmp(d->architectures[i].word, "BertForSequenceClassification"))
            an_description_state(d, AN_FACT_CLASSES, d->labels > 0 ? (double)d->labels : v[AN_ROW_LABELS].number);
    if (v[AN_ROW_IS_DECODER].number != 0)
        an_description_refuse(d, "", "is_decoder", "true", "attention goes in both directions here");
    if (v[AN_ROW_POSITION_TYPE].given && strcmp(v[AN_ROW_POSITION_TYPE].word, "absolute") != 0)
        an_description_refuse(d, "", "position_embedding_type", v[AN_ROW_POSITION_TYPE].word,
                              "only absolute is supported");
}

/* ---- the graph ---- */

static an_status get_sizes(const an_description *d, an_bert_options *m) {
    AN_TRY_RETURN(an_description_count(d, AN_FACT_LAYERS, "number of layers", &m->layers));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_HEADS, "number of heads", &m->heads));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_WIDTH, "width", &m->width));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_HIDDEN, "width of the feed-forward layers", &m->hidden));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_CONTEXT, "number of positions", &m->context));
    AN_TRY_RETURN(an_description_count(d, AN_FACT_VOCABULARY, "size of the vocabulary", &m->vocabulary));
    return an_description_count(d, AN_FACT_TOKEN_TYPES, "number of token types", &m->token_types);
}

static an_status choose_head(const an_description *d, const an_pretrained_options *options, an_bert_options *m) {
    const int known = (int)an_description_fact(d, AN_FACT_POOLING),
              pooling = options->pooling ? options->pooling : known;
    const double classes = an_description_fact(d, AN_FACT_CLASSES);
    m->classes = options->classes;
    m->pooling = pooling ? (an_bert_pooling)(pooling - 1) : AN_BERT_POOLING_POOLER;
    m->head = AN_BERT_HEAD_CLASSES;
    if (m->classes > 0) return AN_OK;
    if (classes == 1)
        return AN_ERROR(d->ctx, AN_ERR_UNSUPPORTED,
                        "%s: its classifier has one class, so it gives a number, which is not supported; ask for 2 "
                        "classes or more",
                        d->path);
    if (classes > 0) return an_description_count(d, AN_FACT_CLASSES, "number of classes", &m->classes);
    m->head = pooling ? AN_BERT_HEAD_EMBEDDING : AN_BERT_HEAD_NONE;
    return AN_OK;
}

static an_status build(an_graph **graph, const an_description *d, const an_pretrained_options *options) {
    an_context *ctx = d->ctx;
    an_bert_options m;
    an_bert_options_init(&m, sizeof m);
    AN_TRY_RETURN(an_description_expect(d, AN_FACT_ACTIVATION, "activation", an_activation_find("gelu")));
    if (options->documents)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: a model of type bert takes sentences, not documents", d->path);
    AN_TRY_RETURN(get_sizes(d, &m));
    AN_TRY_RETURN(choose_head(d, options, &m));
    AN_TRY_RETURN(an_description_positive(d, AN_FACT_EPSILON, "epsilon of the norms", &m.epsilon));
    m.dropout = options->dropout;
    m.dtype = options->dtype;
    const an_status status = an_model_bert(graph, ctx, &m);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "%s: %s", d->path, an_last_error(ctx));
}

/* ---- what is written ---- */

/* BertModel has nothing before its names; other classes have it as their body, beside their heads. */
static bool prefixed(const an_description *d, const char *name) {
    static const char *const heads[] = {"classifier.", "cls."};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (!strncmp(name, heads[i], strlen(heads[i]))) return false;
    if (an_description_fact(d, AN_FACT_CLASSES) > 0) return true;
    return d->architecture_count > 0 && strcmp(d->architectures[0].word, "BertModel") != 0;
}

const an_family an_family_bert = {
    .name = "bert",
    .type = "bert",
    .architectures = {"BertModel", "BertForSequenceClassification", "BertForMaskedLM", "BertForPreTraining",
                      "BertForNextSentencePrediction"},
    .keys = keys,
    .table = "embeddings.word_embeddings.weight",
    .names = names,
    .body = "embeddings.word_embeddings.weight",
    .heads = {"pooler.", "classifier.", "cls."},
    .settle = settle,
    .look = an_pooling_read,
    .build = build,
    .prefix = "bert.",
    .prefixed = prefixed,
    .classifier = "BertForSequenceClassification",
};

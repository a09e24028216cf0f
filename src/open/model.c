/* Builds the model of a config. Sizes that the config leaves open come from the data. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "anneal/config.h"
#include "anneal/models.h"
#include "anneal/pretrained.h"
#include "open/open.h"

typedef an_model_opening opening;

static an_status find_fields(opening *o) {
    an_context *ctx = o->ctx;
    an_field_init(&o->inputs, sizeof o->inputs);
    an_field_init(&o->targets, sizeof o->targets);
    if (!o->dataset) return AN_OK;
    AN_TRY_RETURN(an_field_get(o->dataset, 0, &o->inputs));
    for (int i = an_dataset_field_count(o->dataset) - 1; i >= 0; i--) {
        an_field field;
        an_field_init(&field, sizeof field);
        AN_TRY_RETURN(an_field_get(o->dataset, i, &field));
        if (field.target) o->targets = field;
    }
    return AN_OK;
}

/* Only data says what is left open. */
static an_status expect_sizes(const opening *o, const char *const *paths, int count) {
    for (int i = 0; i < count && !o->dataset; i++)
        if (an_config_is(o->config, paths[i], "auto"))
            return AN_ERROR(o->ctx, AN_ERR_ARGUMENT, "%s: a stream does not describe its samples; set %s",
                            an_config_place(o->config, "model"), paths[i]);
    return AN_OK;
}

/* ---- one function a type ---- */

static an_status open_mlp(opening *o) {
    an_context *ctx = o->ctx;
    static const char *const sizes[] = {"model.inputs", "model.outputs"};
    an_mlp_options m;
    an_mlp_options_init(&m, sizeof m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_open_loss_kind(o, &m.loss));
    AN_TRY_RETURN(expect_sizes(o, sizes, 2));
    m.inputs = an_open_elements(&o->inputs);
    if (an_config_is(o->config, "model.outputs", "auto") && m.loss == AN_LOSS_CROSS_ENTROPY)
        AN_TRY_RETURN(an_open_classes(o));
    m.outputs = m.loss == AN_LOSS_CROSS_ENTROPY ? o->classes : an_open_elements(&o->targets);
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_mlp_options, &m));
    m.normalize_inputs = an_open_normalizes(o->config, "data.normalize.inputs");
    m.normalize_targets = an_open_normalizes(o->config, "data.normalize.targets");
    an_embedded_column embedded[AN_OPEN_MOST_EMBEDDED];
    AN_TRY_RETURN(an_open_embedded(o, embedded, &m.embedded_count));
    m.embedded = embedded;
    return an_model_mlp(o->graph, ctx, &m);
}

static an_status open_cnn(opening *o) {
    an_context *ctx = o->ctx;
    static const char *const sizes[] = {"model.channels", "model.height", "model.width", "model.classes"};
    an_cnn_options m;
    an_cnn_options_init(&m, sizeof m);
    AN_TRY_RETURN(expect_sizes(o, sizes, 4));
    if (o->inputs.ndims == 3) {
        m.channels = o->inputs.dims[0];
        m.height = o->inputs.dims[1];
        m.width = o->inputs.dims[2];
    }
    m.dtype = o->dtype;
    if (an_config_is(o->config, "model.classes", "auto")) AN_TRY_RETURN(an_open_classes(o));
    m.classes = o->classes;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_cnn_options, &m));
    m.normalize_inputs = an_open_normalizes(o->config, "data.normalize.inputs");
    return an_model_cnn(o->graph, ctx, &m);
}

/* The tokenizer that 'anneal tokenize' has put beside a file of tokens. */
static an_status ask_tokenizer(const opening *o, int64_t *vocabulary) {
    an_status status;
    an_context *ctx = o->ctx;
    const char *file = NULL;
    char place[4096];
    an_tokenizer *tokenizer = NULL;
    an_tokenizer_info info;
    an_tokenizer_info_init(&info, sizeof info);
    if (!an_config_is(o->config, "data.train.type", "tokens")) return AN_OK;
    AN_TRY_RETURN(an_config_path(o->config, "data.train.path", &file));
    if (snprintf(place, sizeof place, "%s.tokenizer", file) >= (int)sizeof place || access(place, F_OK) != 0)
        return AN_OK;
    AN_TRY(an_pretrained_tokenizer(&tokenizer, ctx, place));
    AN_TRY(an_tokenizer_info_get(tokenizer, &info));
    *vocabulary = info.count;
    status = AN_OK;
fail:
    an_tokenizer_destroy(&tokenizer);
    return status;
}

/* Unless the config says it. Token files do not say how many tokens there are. */
static an_status find_vocabulary(const opening *o, int64_t *vocabulary) {
    an_context *ctx = o->ctx;
    if (!an_config_is(o->config, "model.vocabulary", "auto")) return AN_OK;
    *vocabulary = 0;
    if (o->dataset) AN_TRY_RETURN(an_dataset_vocabulary(o->dataset, vocabulary));
    if (*vocabulary == 0) *vocabulary = o->inputs.limit; /* a tokenizer says it */
    if (*vocabulary == 0) AN_TRY_RETURN(ask_tokenizer(o, vocabulary));
    if (*vocabulary > 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: the data does not say how many different tokens there are, and no tokenizer lies beside it; "
                    "set model.vocabulary",
                    an_config_place(o->config, "model"));
}

static an_status open_gpt2(opening *o) {
    an_context *ctx = o->ctx;
    an_gpt2_options m;
    an_gpt2_options_init(&m, sizeof m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_gpt2_options, &m));
    AN_TRY_RETURN(find_vocabulary(o, &m.vocabulary));
    m.documents = an_open_keeps_documents_apart(o);
    return an_model_gpt2(o->graph, ctx, &m);
}

static an_status open_llama(opening *o) {
    enum { MULTIPLE = 64 };
    an_context *ctx = o->ctx;
    an_llama_options m;
    an_llama_options_init(&m, sizeof m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_llama_options, &m));
    if (an_config_is(o->config, "model.kv_heads", "auto")) m.kv_heads = m.heads;
    if (an_config_is(o->config, "model.hidden", "auto"))
        m.hidden = (m.width * 8 / 3 + MULTIPLE - 1) / MULTIPLE * MULTIPLE;
    AN_TRY_RETURN(find_vocabulary(o, &m.vocabulary));
    m.documents = an_open_keeps_documents_apart(o);
    return an_model_llama(o->graph, ctx, &m);
}

static an_status open_bert(opening *o) {
    an_context *ctx = o->ctx;
    an_bert_options m;
    an_bert_options_init(&m, sizeof m);
    m.dtype = o->dtype;
    AN_TRY_RETURN(an_config_fill(o->config, "model", an_bert_options, &m));
    if (an_config_is(o->config, "model.hidden", "auto")) m.hidden = 4 * m.width;
    AN_TRY_RETURN(find_vocabulary(o, &m.vocabulary));
    if (an_config_is(o->config, "model.classes", "auto")) {
        AN_TRY_RETURN(an_open_classes(o));
        m.classes = o->classes;
    }
    return an_model_bert(o->graph, ctx, &m);
}

#define TOKENS "the inputs and targets of a language model are tokens, which have no scale"

static const struct {
    const char *type;
    an_status (*open)(opening *o);
    const char *refusal; /* why data.normalize cannot be used; NULL: it can */
    bool embeds;         /* data.train.categories: embedding */
} types[] = {{"mlp", open_mlp, NULL, true},
             {"cnn", open_cnn, NULL, false},
             {"gpt2", open_gpt2, TOKENS, false},
             {"llama", open_llama, TOKENS, false},
             {"bert", open_bert, "sentences are tokens and classes, which have no scale", false},
             {"pretrained", an_open_pretrained, TOKENS, false},
             {"sequential", an_open_sequential, NULL, true},
             {"graph", an_open_graph, "a graph from a file says itself what it does with its inputs", false}};

/* Targets that are classes have no scale either. */
static an_status check_normalize(const opening *o, const char *refusal) {
    const bool targets = an_open_normalizes(o->config, "data.normalize.targets");
    if (refusal && (targets || an_open_normalizes(o->config, "data.normalize.inputs")))
        return AN_ERROR(o->ctx, AN_ERR_ARGUMENT, "%s: data.normalize cannot be used: %s; remove it",
                        an_config_place(o->config, "data.normalize"), refusal);
    const bool classes = an_config_is(o->config, "model.type", "cnn") || an_open_wants_classes(o);
    const bool labels = an_config_is(o->config, "model.loss", "binary_cross_entropy");
    if (targets && (classes || labels))
        return AN_ERROR(o->ctx, AN_ERR_ARGUMENT,
                        "%s: the targets are %s, which have no scale; remove data.normalize.targets",
                        an_config_place(o->config, "data.normalize.targets"), classes ? "classes" : "labels");
    return AN_OK;
}

an_status an_open_model(an_graph **graph, an_config *config, an_context *ctx, an_dataset *dataset, an_dtype dtype,
                        const char *checkpoint) {
    opening o = {
        .graph = graph, .config = config, .ctx = ctx, .dataset = dataset, .dtype = dtype, .checkpoint = checkpoint};
    *graph = NULL;
    AN_TRY_RETURN(find_fields(&o));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (an_config_is(config, "model.type", types[i].type)) {
            AN_TRY_RETURN(check_normalize(&o, types[i].refusal));
            if (an_open_embeds(config) && !types[i].embeds)
                return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                                "%s: a model of type %s does not embed categories; use mlp or sequential, or onehot",
                                an_config_place(config, "data.train.categories"), types[i].type);
            return types[i].open(&o);
        }
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: models of this type are not supported in a config yet",
                    an_config_place(config, "model.type"));
}

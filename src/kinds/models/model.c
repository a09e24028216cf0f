/* Builds the model of a config. Sizes that the config leaves open come from the data. */
#include <stdio.h>
#include <unistd.h>

#include "anneal/config.h"
#include "anneal/models.h"
#include "anneal/pretrained.h"
#include "kinds/data/data.h"
#include "kinds/fields.h"
#include "kinds/models/models.h"

static an_status find_fields(an_model_opening *o) {
    an_field_init(&o->inputs, sizeof o->inputs);
    an_field_init(&o->targets, sizeof o->targets);
    if (!o->dataset) return AN_OK;
    AN_TRY_RETURN(an_dataset_field(o->dataset, 0, &o->inputs));
    for (int i = an_dataset_field_count(o->dataset) - 1; i >= 0; i--) {
        an_field field;
        an_field_init(&field, sizeof field);
        AN_TRY_RETURN(an_dataset_field(o->dataset, i, &field));
        if (field.target) o->targets = field;
    }
    return AN_OK;
}

an_status an_model_expect_sizes(const an_model_opening *o, const char *const *paths, int count) {
    for (int i = 0; i < count && !o->dataset; i++)
        if (an_config_is(o->config, paths[i], "auto"))
            return AN_ERROR(o->ctx, AN_ERR_ARGUMENT, "%s: a stream does not describe its samples; set %s",
                            an_config_place(o->config, "model"), paths[i]);
    return AN_OK;
}

/* The tokenizer that 'anneal tokenize' has put beside a file of tokens. */
static an_status ask_tokenizer(const an_model_opening *o, int64_t *vocabulary) {
    an_status status;
    an_context *ctx = o->ctx;
    const char *file = NULL;
    char place[4096];
    const an_data_kind *data = an_data_kind_at(o->config, "data.train");
    an_tokenizer *tokenizer = NULL;
    an_tokenizer_info info;
    an_tokenizer_info_init(&info, sizeof info);
    if (!data || !data->has_tokenizer) return AN_OK;
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

bool an_model_keeps_documents_apart(const an_model_opening *o) {
    return an_field_find(o->dataset, "documents") >= 0;
}

/* Token files do not say how many tokens there are. */
an_status an_model_vocabulary(const an_model_opening *o, int64_t *vocabulary) {
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

/* Targets that are classes have no scale either. */
static an_status check_normalize(const an_model_opening *o, const an_model_kind *kind) {
    const bool targets = an_model_normalizes(o->config, "data.normalize.targets");
    if (kind->no_scale && (targets || an_model_normalizes(o->config, "data.normalize.inputs")))
        return AN_ERROR(o->ctx, AN_ERR_ARGUMENT, "%s: data.normalize cannot be used: %s; remove it",
                        an_config_place(o->config, "data.normalize"), kind->no_scale);
    const bool classes = kind->takes_images || an_model_wants_classes(o);
    const bool labels = an_config_is(o->config, "model.loss", "binary_cross_entropy");
    if (targets && (classes || labels))
        return AN_ERROR(o->ctx, AN_ERR_ARGUMENT,
                        "%s: the targets are %s, which have no scale; remove data.normalize.targets",
                        an_config_place(o->config, "data.normalize.targets"), classes ? "classes" : "labels");
    return AN_OK;
}

an_status an_model_open(an_graph **graph, an_config *config, an_context *ctx, an_dataset *dataset, an_dtype dtype,
                        const char *checkpoint) {
    an_model_opening o = {
        .graph = graph, .config = config, .ctx = ctx, .dataset = dataset, .dtype = dtype, .checkpoint = checkpoint};
    const an_model_kind *kind = an_model_kind_of(config);
    *graph = NULL;
    AN_TRY_RETURN(find_fields(&o));
    AN_TRY_RETURN(check_normalize(&o, kind));
    if (an_model_embeds(config) && !kind->embeds)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: a model of type %s does not embed categories; use mlp or sequential, or onehot",
                        an_config_place(config, "data.train.categories"), kind->kind.name);
    return kind->open(&o);
}

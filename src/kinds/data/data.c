/* Sources of samples, by their type. */
#include "kinds/data/data.h"

#include <stdio.h>
#include <string.h>

#include "anneal/pretrained.h"
#include "base/files/foreign.h"
#include "kinds/fields.h"
#include "kinds/models/models.h"

/* ---- what types have in common ---- */

bool an_data_is_flat(const an_data_opening *o) {
    const an_model_kind *model = an_model_kind_of(o->config);
    return model && model->takes_rows;
}

bool an_data_is_of_images(const an_data_opening *o) {
    const an_model_kind *model = an_model_kind_of(o->config);
    return model && model->takes_images;
}

bool an_data_evaluates(const an_data_opening *o) {
    return !strncmp(o->path, "data.eval", strlen("data.eval"));
}

const an_dataset *an_data_classes(const an_data_opening *o) {
    return *o->vocabulary && an_dataset_class_name(*o->vocabulary, 0) ? *o->vocabulary : NULL;
}

void an_data_remember(const an_data_opening *o) {
    if (!*o->vocabulary) *o->vocabulary = *o->dataset;
}

an_status an_data_ignores_borders(const an_data_opening *o, bool documents, bool *ignores) {
    bool border_targets;
    AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "border_targets"), &border_targets));
    *ignores = documents && !border_targets;
    return AN_OK;
}

/* Samples of text are as long as the model's context. */
an_status an_data_context(an_config *config, an_context *ctx, const char *path, int64_t *context) {
    const an_key key = an_key_join(path, "context");
    if (!an_config_is(config, key.text, "auto")) return an_config_count(config, key.text, context);
    if (an_key_is_there(config, "model.context")) return an_model_context(config, ctx, context);
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: the model does not say how many tokens a sample has; set %s.context",
                    an_config_place(config, path), path);
}

/* The tokenizer's own path, or the model that the weights come from. */
static an_status find_tokenizer(const an_data_opening *o, const char **place) {
    const an_key key = an_key_join(o->path, "tokenizer");
    if (!an_config_is(o->config, key.text, "auto")) return an_config_path(o->config, key.text, place);
    static const char *const models[] = {"model.from", "model.init.from"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (an_key_is_there(o->config, models[i])) return an_config_path(o->config, models[i], place);
    return AN_ERROR(o->ctx, AN_ERR_ARGUMENT,
                    "%s: nothing says which tokenizer makes tokens of the text; set %s to a tokenizer.json, its "
                    "folder, or a GGUF file",
                    an_config_place(o->config, o->path), key.text);
}

an_status an_data_tokenizer(const an_data_opening *o, an_tokenizer **tokenizer, const char **place) {
    an_context *ctx = o->ctx;
    AN_TRY_RETURN(find_tokenizer(o, place));
    return an_pretrained_tokenizer(tokenizer, ctx, *place);
}

int64_t an_data_elements(const an_dataset *dataset) {
    an_field field;
    an_field_init(&field, sizeof field);
    return an_dataset_field(dataset, 0, &field) == AN_OK ? an_field_elements(&field) : 0;
}

an_status an_samples_check(const an_samples_opening *o, const char *what, const char *advice) {
    const int64_t elements = an_data_elements(*o->source.dataset);
    if (elements == o->model->elements) return AN_OK;
    an_dataset_destroy(o->source.dataset);
    return AN_ERROR(o->source.ctx, AN_ERR_SHAPE, "%s: %s has %lld numbers, but the model reads %lld%s", o->model->path,
                    what, (long long)elements, (long long)o->model->elements, advice);
}

/* ---- opening ---- */

/* Adds which source it is to what is wrong with it, unless the message begins with a place of the config anyway. */
static an_status name_source(const an_data_opening *o, an_status status) {
    const char *message = an_last_error(o->ctx);
    const char *place = an_config_place(o->config, o->path);
    const size_t name = strcspn(place, ":"); /* of the config */
    if (!strncmp(message, place, name + 1)) return status;
    return AN_ERROR(o->ctx, status, "%s (%s of %s)", message, o->path, place);
}

/* Spreadsheets and the like, where a text was expected. */
static an_status refuse_foreign(const an_data_opening *o) {
    const an_key key = an_key_join(o->path, "path");
    const int size = an_config_size(o->config, key.text);
    for (int k = 0; k < (size > 0 ? size : 1); k++) {
        char element[AN_PATH_TEXT + 16];
        const char *path = NULL;
        snprintf(element, sizeof element, size > 0 ? "%s[%d]" : "%s", key.text, k);
        if (an_config_path(o->config, element, &path) != AN_OK) return AN_OK; /* which opening it will say */
        const an_foreign *foreign = an_foreign_find(path);
        if (foreign) return AN_ERROR(o->ctx, AN_ERR_PARSE, "%s: %s", path, an_foreign_describe(foreign, path).text);
    }
    return AN_OK;
}

an_status an_data_open(an_dataset **dataset, const an_dataset **vocabulary, an_config *config, an_context *ctx,
                       const char *path) {
    const an_data_opening o = {dataset, vocabulary, config, ctx, path};
    const an_data_kind *kind = an_data_kind_at(config, path);
    *dataset = NULL;
    if (!kind) return AN_OK;
    if (!kind->open)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: data of this type comes from a program and cannot be read from a config",
                        an_config_place(config, AN_KEY(path, "type")));
    an_status status = kind->is_text ? refuse_foreign(&o) : AN_OK;
    if (status == AN_OK) status = kind->open(&o);
    return status == AN_OK ? AN_OK : name_source(&o, status);
}

/* What a config has chosen: its kinds, a scaling, an adapter. */
#include "kinds/data/data.h"
#include "kinds/models/models.h"

const an_data_kind *an_data_kind_at(const an_config *config, const char *path) {
    const char *type = NULL;
    if (!an_key_is_there(config, AN_KEY(path, "type"))) return NULL;
    if (an_config_string(config, AN_KEY(path, "type"), &type) != AN_OK) return NULL;
    return (const an_data_kind *)an_kind_find(config->ctx, AN_KINDS_DATA, type);
}

bool an_data_streams(const an_config *config) {
    const an_data_kind *kind = an_data_kind_at(config, AN_SETTING(data.train));
    return kind && kind->kind.flags & AN_KIND_ENDLESS;
}

const an_model_kind *an_model_kind_of(const an_config *config) {
    return (const an_model_kind *)an_kind_find(config->ctx, AN_KINDS_MODEL, config->settings->model.type);
}

bool an_model_normalizes(const an_config *config, const char *path) {
    return an_key_is_there(config, path) && !an_config_is(config, path, "off");
}

bool an_model_adapts(const an_config *config) {
    return an_key_is_there(config, AN_SETTING(lora.targets)) || config->settings->lora.from;
}

/* Which kinds a config has chosen. */
#include "open/data/data.h"
#include "open/models/models.h"

const an_data_kind *an_data_kind_at(const an_config *config, const char *path) {
    const char *type = NULL;
    if (!an_open_has(config, AN_KEY(path, "type"))) return NULL;
    if (an_config_string(config, AN_KEY(path, "type"), &type) != AN_OK) return NULL;
    return (const an_data_kind *)an_kind_find(config->ctx, AN_KINDS_DATA, type);
}

bool an_open_streams(const an_config *config) {
    const an_data_kind *kind = an_data_kind_at(config, AN_SETTING(data.train));
    return kind && kind->kind.flags & AN_KIND_ENDLESS;
}

const an_model_kind *an_model_kind_of(const an_config *config) {
    return (const an_model_kind *)an_kind_find(config->ctx, AN_KINDS_MODEL, config->settings->model.type);
}

/* Keys of the config that several parts of it have. */
#include <string.h>

#include "open/open.h"

an_key an_key_join(const char *path, const char *key) {
    an_key joined = {""};
    const size_t length = strlen(path), rest = strlen(key);
    if (length + 1 + rest >= sizeof joined.text) return joined;
    memcpy(joined.text, path, length);
    joined.text[length] = '.';
    memcpy(joined.text + length + 1, key, rest + 1);
    return joined;
}

an_status an_open_count(an_config *config, const char *path, int64_t *value) {
    return an_config_is(config, path, "auto") ? AN_OK : an_config_count(config, path, value);
}

/* Samples of text are as long as the model's context. */
an_status an_open_context(an_config *config, an_context *ctx, const char *path, int64_t *context) {
    const an_key key = an_key_join(path, "context");
    if (!an_config_is(config, key.text, "auto")) return an_config_count(config, key.text, context);
    if (an_config_origin_of(config, "model.context") != AN_ORIGIN_NONE)
        return an_open_model_context(config, ctx, context);
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: the model does not say how many tokens a sample has; set %s.context",
                    an_config_place(config, path), path);
}

/* Keys of the config that several parts of it have. */
#include "kinds/keys.h"

#include <string.h>

#include "base/status.h"

an_key an_key_join(const char *path, const char *key) {
    an_key joined = {""};
    const size_t length = strlen(path), rest = strlen(key);
    if (length + 1 + rest >= sizeof joined.text) return joined;
    memcpy(joined.text, path, length);
    joined.text[length] = '.';
    memcpy(joined.text + length + 1, key, rest + 1);
    return joined;
}

an_status an_key_blame(const an_config *config, an_context *ctx, an_status status, const char *key) {
    if (status == AN_OK) return AN_OK;
    return AN_ERROR(ctx, status, "%s: %s", an_config_place(config, key), an_last_error(ctx));
}

an_status an_key_blame_named(const an_config *config, an_context *ctx, an_status status, const char *key) {
    if (status == AN_OK) return AN_OK;
    return AN_ERROR(ctx, status, "%s: %s: %s", an_config_place(config, key), key, an_last_error(ctx));
}

an_status an_key_refuse(const an_config *config, an_context *ctx, const char *key, const char *reason) {
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s: %s", an_config_place(config, key), key, reason);
}

an_status an_key_count(an_config *config, const char *path, int64_t *value) {
    return an_config_is(config, path, "auto") ? AN_OK : an_config_count(config, path, value);
}

/* What other tools call it: keys and values that people bring along, and what does the same job here. */
#include <string.h>
#include <strings.h>

#include "config/config.h"

static const struct {
    const char *key, *path, *why;
} keys[] = {
#define OTHER_KEY(key, path, why) {key, path, why},
#define OTHER_VALUE(path, text, status, why)
#include "config/other_names.def"
#undef OTHER_KEY
#undef OTHER_VALUE
};

static const struct {
    const char *path, *text;
    an_status status;
    const char *why;
} values[] = {
#define OTHER_KEY(key, path, why)
#define OTHER_VALUE(path, text, status, why) {path, text, status, why},
#include "config/other_names.def"
#undef OTHER_KEY
#undef OTHER_VALUE
};

/* Case does not matter: some tools write such names in capitals. */
an_status an_config_other_key(an_config *config, an_spot place, const char *path, const char *key) {
    an_context *ctx = config->ctx;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcasecmp(keys[i].key, strchr(keys[i].key, '.') ? path : key) != 0) continue;
        if (keys[i].path)
            return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: unknown key '%s'; the key is called %s", AN_SPOT(place), path,
                            keys[i].path);
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: unknown key '%s'; %s", AN_SPOT(place), path, keys[i].why);
    }
    return AN_OK;
}

an_status an_config_other_value(an_config *config, const an_option *option, const an_config_node *node,
                                const char *path) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!strcmp(values[i].path, option->path) && !strcasecmp(values[i].text, node->text))
            return AN_ERROR(config->ctx, values[i].status, "%s: %s is '%s'; %s", AN_SPOT(node->place), path, node->text,
                            values[i].why);
    return AN_OK;
}

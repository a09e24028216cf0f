/* Keys of a config, and the place of one before what is wrong with its value. */
#ifndef AN_KINDS_KEYS_H
#define AN_KINDS_KEYS_H

#include "config/config.h"

enum { AN_PATH_TEXT = 256 };

/* `path` and a key behind it. */
typedef struct an_key {
    char text[AN_PATH_TEXT];
} an_key; /* "", which no option has, where mixtures of mixtures are deeper than this */
an_key an_key_join(const char *path, const char *key);
/* … for the expression that it is in, and no longer. */
#define AN_KEY(path, key) (an_key_join((path), (key)).text)

/* Whether an option has a value, if only its default, or a table is there. */
static inline bool an_key_is_there(const an_config *config, const char *key) {
    return an_config_origin_of(config, key) != AN_ORIGIN_NONE;
}
/* A count that may be the word `auto`, which leaves *value as it is. */
an_status an_key_count(an_config *config, const char *path, int64_t *value);

/* AN_OK for AN_OK. For others puts the place of an option before the last error's message, which comes from a part that
 * knows no config; or its place and its key. */
an_status an_key_blame(const an_config *config, an_context *ctx, an_status status, const char *key);
an_status an_key_blame_named(const an_config *config, an_context *ctx, an_status status, const char *key);
/* An option that cannot be used here: AN_ERR_ARGUMENT with its place, its key and the reason. */
an_status an_key_refuse(const an_config *config, an_context *ctx, const char *key, const char *reason);

#endif

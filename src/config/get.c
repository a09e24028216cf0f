/* Returns the values of a config by path, and its warnings. */
#include "config/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/guard.h"

/* ---- warnings ---- */

an_status an_config_warn(an_config *config, an_spot place, const char *format, ...) {
    an_context *ctx = config->ctx;
    char text[AN_MESSAGE_BYTES];
    va_list arguments;
    int used = snprintf(text, sizeof text, "%s: ", AN_SPOT(place));
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    AN_TRY_RETURN(an_grow(ctx, (void **)&config->warnings, &config->warning_capacity, config->warning_count + 1,
                          sizeof *config->warnings));
    AN_TRY_RETURN(an_arena_string(config->texts, &config->warnings[config->warning_count], text, strlen(text)));
    config->warning_count++;
    return AN_OK;
}

int an_config_warning_count(const an_config *config) {
    AN_NEED_OR(0, config);
    return (int)config->warning_count;
}

const char *an_config_warning(const an_config *config, int index) {
    AN_NEED_OR("", config);
    return index >= 0 && (size_t)index < config->warning_count ? config->warnings[index] : "";
}

/* ---- asking it ---- */

an_config_node *an_config_find(const an_config *config, const char *path) {
    an_config_node *node = config->root;
    while (node && *path) {
        const size_t length = strcspn(path, ".[");
        if (length > 0) {
            an_config_node *n = node->type == AN_CONFIG_TABLE ? node->first : NULL;
            while (n && (strncmp(n->key, path, length) != 0 || n->key[length])) n = n->next;
            node = n;
            path += length;
        }
        if (node && *path == '[') {
            int index = 0;
            for (path++; *path >= '0' && *path <= '9'; path++)
                index = index < 1000000 ? index * 10 + (*path - '0') : index;
            if (*path++ != ']' || node->type != AN_CONFIG_LIST) return NULL;
            an_config_node *n = node->first;
            while (n && index-- > 0) n = n->next;
            node = n;
        }
        if (*path == '.') path++;
    }
    return node;
}

an_config_origin an_config_origin_of(const an_config *config, const char *path) {
    AN_NEED_OR(AN_ORIGIN_NONE, config, path);
    const an_config_node *node = an_config_find(config, path);
    return node ? node->origin : AN_ORIGIN_NONE;
}

const char *an_config_place(const an_config *config, const char *path) {
    AN_NEED_OR("", config, path);
    const an_config_node *node = an_config_find(config, path);
    const char *text = config->name;
    if (!node || node->origin == AN_ORIGIN_DEFAULT) return text;
    const an_spot_text place = an_spot_describe(node->place);
    return an_arena_string(config->texts, &text, place.text, strlen(place.text)) == AN_OK ? text : config->name;
}

bool an_config_is(const an_config *config, const char *path, const char *word) {
    AN_NEED_OR(false, config, path, word);
    const an_config_node *node = an_config_find(config, path);
    return node && node->type == AN_CONFIG_SCALAR && !strcmp(node->text, word);
}

int an_config_size(const an_config *config, const char *path) {
    AN_NEED_OR(0, config, path);
    const an_config_node *node = an_config_find(config, path);
    return node ? node->count : 0;
}

/* A scalar of some kinds (a set of bits), or any. */
static an_status ask(const an_config *config, const char *path, unsigned kinds, const char *what,
                     const an_config_node **node) {
    an_context *ctx = config->ctx;
    *node = an_config_find(config, path);
    if (!*node)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: '%s' has no value; check an_config_origin_of first", config->name,
                        path);
    if ((*node)->type != AN_CONFIG_SCALAR || !(*node)->option || !(kinds >> (*node)->option->kind & 1))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: '%s' is not %s", config->name, path, what);
    return AN_OK;
}

#define KIND(name) (1u << AN_OPTION_##name)

static an_status no_value(const an_config *config, const char *path, const an_config_node *node) {
    return AN_ERROR(config->ctx, AN_ERR_STATE, "%s: %s is '%s', which is not a number; check an_config_is first",
                    config->name, path, AN_QUOTE(node->text));
}

an_status an_config_string(const an_config *config, const char *path, const char **text) {
    AN_GUARD;
    AN_NEED(config, path, text);
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, ~0u, "a single value", &node));
    *text = node->text;
    return AN_OK;
}

an_status an_config_path(const an_config *config, const char *path, const char **file) {
    AN_GUARD;
    AN_NEED(config, path, file);
    const an_config_node *node;
    char *whole = NULL;
    AN_TRY_RETURN(ask(config, path, KIND(INPUT) | KIND(INPUTS) | KIND(OUTPUT), "a path", &node));
    *file = node->text;
    if (node->option->kind == AN_OPTION_OUTPUT || node->origin == AN_ORIGIN_SET || node->text[0] == '/') return AN_OK;
    const size_t folder = strlen(config->folder), name = strlen(node->text);
    AN_TRY_RETURN(an_arena_alloc(config->texts, (void **)&whole, folder + name + 1, 1));
    memcpy(whole, config->folder, folder);
    memcpy(whole + folder, node->text, name);
    *file = whole;
    return AN_OK;
}

an_status an_config_bool(const an_config *config, const char *path, bool *value) {
    AN_GUARD;
    AN_NEED(config, path, value);
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(BOOL), "on or off", &node));
    return an_read_bool(node->text, value) ? AN_OK : no_value(config, path, node);
}

an_status an_config_count(const an_config *config, const char *path, int64_t *value) {
    AN_GUARD;
    AN_NEED(config, path, value);
    const an_config_node *node;
    AN_TRY_RETURN(
        ask(config, path, KIND(COUNT) | KIND(COUNTS) | KIND(BYTES) | KIND(FIRST_SAMPLES), "a whole number", &node));
    const bool ok = node->option->kind == AN_OPTION_BYTES           ? an_read_bytes(node->text, value)
                    : node->option->kind == AN_OPTION_FIRST_SAMPLES ? an_read_first_samples(node->text, value)
                                                                    : an_read_count(node->text, value);
    return ok ? AN_OK : no_value(config, path, node);
}

an_status an_config_real(const an_config *config, const char *path, double *value) {
    AN_GUARD;
    AN_NEED(config, path, value);
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(REAL) | KIND(SHARE) | KIND(REALS), "a number", &node));
    return an_read_share(node->text, value) ? AN_OK : no_value(config, path, node);
}

an_status an_config_seconds(const an_config *config, const char *path, double *value) {
    AN_GUARD;
    AN_NEED(config, path, value);
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(DURATION), "a duration", &node));
    return an_read_seconds(node->text, value) ? AN_OK : no_value(config, path, node);
}

an_status an_config_range(const an_config *config, const char *path, double *begin, double *end) {
    AN_GUARD;
    AN_NEED(config, path, begin, end);
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(RANGE), "a range", &node));
    return an_read_range(node->text, begin, end) ? AN_OK : no_value(config, path, node);
}

an_status an_config_length(const an_config *config, const char *path, an_length *length) {
    AN_GUARD;
    AN_NEED(config, path, length);
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(LENGTH) | KIND(LENGTHS), "a length", &node));
    return an_read_length(node->text, node->option->units, length) ? AN_OK : no_value(config, path, node);
}

/* The elements of a list of some kinds. */
static an_status ask_list(const an_config *config, const char *path, unsigned kinds, const char *what,
                          const an_config_node **first, int *count) {
    const an_config_node *node = an_config_find(config, path);
    if (!node || !node->option || !(kinds >> node->option->kind & 1) || node->type != AN_CONFIG_LIST)
        return AN_ERROR(config->ctx, AN_ERR_ARGUMENT, "%s: '%s' is not %s", config->name, path, what);
    *first = node->first;
    *count = node->count;
    return AN_OK;
}

an_status an_config_reals(const an_config *config, const char *path, int capacity, double *values, int *count) {
    AN_GUARD;
    AN_NEED(config, path, count);
    if (capacity > 0) AN_NEED(config, values);
    const an_config_node *n;
    AN_TRY_RETURN(ask_list(config, path, KIND(REALS) | KIND(NAMED_REALS), "a list of numbers", &n, count));
    for (int i = 0; n && i < capacity; i++, n = n->next) an_read_real(n->text, &values[i]);
    return AN_OK;
}

an_status an_config_counts(const an_config *config, const char *path, int capacity, int64_t *values, int *count) {
    AN_GUARD;
    AN_NEED(config, path, count);
    if (capacity > 0) AN_NEED(config, values);
    const an_config_node *n;
    AN_TRY_RETURN(ask_list(config, path, KIND(COUNTS), "a list of whole numbers", &n, count));
    for (int i = 0; n && i < capacity; i++, n = n->next) an_read_count(n->text, &values[i]);
    return AN_OK;
}

an_status an_config_lengths(const an_config *config, const char *path, int capacity, an_length *values, int *count) {
    AN_GUARD;
    AN_NEED(config, path, count);
    if (capacity > 0) AN_NEED(config, values);
    const an_config_node *n;
    AN_TRY_RETURN(ask_list(config, path, KIND(LENGTHS), "a list of lengths", &n, count));
    for (int i = 0; n && i < capacity; i++, n = n->next) an_read_length(n->text, n->option->units, &values[i]);
    return AN_OK;
}

static an_status ask_entry(const an_config *config, const char *path, unsigned kinds, int index,
                           const an_config_node **entry) {
    const an_config_node *node = an_config_find(config, path);
    if (!node || !node->option || !(kinds >> node->option->kind & 1) || index < 0 || index >= node->count)
        return AN_ERROR(config->ctx, AN_ERR_ARGUMENT, "%s: '%s' has no entry %d of that kind", config->name, path,
                        index);
    *entry = node->first;
    while (index-- > 0) *entry = (*entry)->next;
    return AN_OK;
}

an_status an_config_pair(const an_config *config, const char *path, int index, int64_t *key, double *value) {
    AN_GUARD;
    AN_NEED(config, path, key, value);
    const an_config_node *entry;
    int64_t count;
    AN_TRY_RETURN(ask_entry(config, path, KIND(COUNT_MAP) | KIND(REAL_MAP), index, &entry));
    an_read_count(entry->key, key);
    if (entry->option->kind == AN_OPTION_REAL_MAP)
        an_read_real(entry->text, value);
    else if (an_read_count(entry->text, &count))
        *value = (double)count;
    return AN_OK;
}

an_status an_config_entry(const an_config *config, const char *path, int index, const char **key, const char **value) {
    AN_GUARD;
    AN_NEED(config, path, key, value);
    an_context *ctx = config->ctx;
    const an_config_node *entry;
    AN_TRY_RETURN(ask_entry(config, path, KIND(COUNT_MAP) | KIND(REAL_MAP) | KIND(STRING_MAP) | KIND(NAMED_REALS),
                            index, &entry));
    if (!entry->key)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: '%s' is a list, whose entries have no keys", config->name, path);
    *key = entry->key;
    *value = entry->text;
    return AN_OK;
}

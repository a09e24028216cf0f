/* A config as an object: made from a file or a text, changed by settings, asked by path. */
#include "train/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"

/* ---- making one ---- */

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
    AN_TRY_RETURN(an_arena_string(&config->arena, &config->warnings[config->warning_count], text, strlen(text)));
    config->warning_count++;
    return AN_OK;
}

/* "runs/NAME" has the name of the config. */
static an_status name_folder(an_config *config) {
    an_context *ctx = config->ctx;
    an_config_node *node = an_config_find(config, "run.dir");
    char text[256];
    if (!node || node->origin != AN_ORIGIN_DEFAULT) return AN_OK;
    const char *slash = strrchr(config->name, '/'), *name = config->piped ? "config" : slash ? slash + 1 : config->name;
    const char *dot = strrchr(name, '.');
    const int length = dot && dot > name ? (int)(dot - name) : (int)strlen(name);
    snprintf(text, sizeof text, "runs/%.*s", length, name);
    AN_TRY_RETURN(an_arena_string(&config->arena, &node->text, text, strlen(text)));
    return AN_OK;
}

/* Makes a given tree whole and takes both; on error the config is as before. */
static an_status take(an_config *config, an_config_node *given) {
    an_context *ctx = config->ctx;
    an_status status;
    const an_config before = *config;
    config->warnings = NULL;
    config->warning_count = config->warning_capacity = 0;
    config->given = given;
    AN_TRY(an_config_node_copy(config, &config->root, given));
    AN_TRY(an_config_resolve(config, config->root));
    AN_TRY(name_folder(config));
    AN_TRY(an_config_check(config));
    an_release(ctx, (void **)(uintptr_t)&before.warnings, before.warning_capacity, sizeof *before.warnings);
    return AN_OK;
fail:
    an_release(ctx, (void **)&config->warnings, config->warning_capacity, sizeof *config->warnings);
    config->warnings = before.warnings;
    config->warning_count = before.warning_count;
    config->warning_capacity = before.warning_capacity;
    config->given = before.given;
    config->root = before.root;
    return status;
}

/* Reads a file whole; one byte more than is allowed is enough to refuse it. The caller releases what it gives. */
static an_status read_file(an_config *config, char **text, size_t *capacity, size_t *length) {
    enum { AT_ONCE = 16384 }; /* most configs */
    an_context *ctx = config->ctx;
    an_status status;
    size_t got = 1;
    errno = 0;
    FILE *file = fopen(config->name, "rb");
    while (file && got > 0 && *length <= AN_CONFIG_MOST_BYTES) {
        AN_TRY(an_grow(ctx, (void **)text, capacity, *length + AT_ONCE, 1));
        got = fread(*text + *length, 1, AT_ONCE, file);
        *length += got;
    }
    AN_CHECK(ctx, file && !ferror(file), AN_ERR_FILE,
             "%s: the config cannot be read: %s; look at its name and its rights", config->name, strerror(errno));
    status = AN_OK;
fail:
    if (file) fclose(file);
    return status;
}

/* Whether a config comes through a pipe or an open file, such as <(command) or /dev/stdin: its name says nothing then. */
static bool is_piped(const char *file) {
    struct stat found;
    if (!strcmp(file, "/dev/stdin") || !strncmp(file, "/dev/fd/", 8) || !strncmp(file, "/proc/self/fd/", 14))
        return true;
    return stat(file, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

/* The folder of a path with its slash, or "". */
static an_status folder_of(an_config *config, const char *file, const char **folder) {
    const char *slash = config->piped ? NULL : strrchr(file, '/');
    return an_arena_string(&config->arena, folder, file, slash ? (size_t)(slash - file) + 1 : 0);
}

static an_status working_folder(an_config *config) {
    char folder[4096];
    size_t length = getcwd(folder, sizeof folder - 2) ? strlen(folder) : 0; /* one that was removed has no name */
    if (length > 0 && folder[length - 1] != '/') folder[length++] = '/';
    folder[length] = 0;
    if (!an_config_is_utf8(folder)) length = 0; /* what YAML cannot write: paths stay relative */
    return an_arena_string(&config->arena, &config->working, folder, length);
}

an_status an_config_create_renamed(an_config **config, an_context *ctx, const an_config_options *options,
                                   const an_rename *renames) {
    an_status status;
    an_config *c = NULL;
    an_config_node *given = NULL;
    char *text = NULL; /* of the file */
    size_t capacity = 0, length = 0;
    *config = NULL;
    AN_CHECK(ctx, options && options->size >= sizeof *options, AN_ERR_ARGUMENT,
             "an_config_options has size %zu: set it with AN_INIT", options ? options->size : 0);
    AN_CHECK(ctx, options->file || options->text, AN_ERR_ARGUMENT, "a config needs a file or a text");
    AN_CHECK(ctx, options->set_count == 0 || options->sets, AN_ERR_ARGUMENT,
             "%d settings were announced, and none given", options->set_count);
    const char *name = options->file ? options->file : "config";
    AN_CHECK(ctx, an_config_is_utf8(name), AN_ERR_ARGUMENT, "%s: the path of a config is UTF-8; rename it",
             AN_QUOTE(name));
    AN_TRY(an_alloc(ctx, (void **)&c, 1, sizeof *c));
    c->ctx = ctx;
    c->renames = renames;
    c->stored = options->stored;
    an_arena_init(&c->arena, ctx);
    AN_TRY(an_arena_string(&c->arena, &c->name, name, strlen(name)));
    c->piped = options->file && is_piped(options->file);
    AN_TRY(folder_of(c, name, &c->folder));
    AN_TRY(working_folder(c));
    if (!options->text) AN_TRY(read_file(c, &text, &capacity, &length));
    AN_TRY(an_config_parse(c, c->name, options->text ? options->text : text, options->text ? options->length : length,
                           AN_ORIGIN_FILE, &given));
    an_release(ctx, (void **)&text, capacity, 1);
    if (!given) AN_TRY(an_config_node_create(c, &given, AN_CONFIG_TABLE, AN_ORIGIN_FILE, (an_spot){c->name, 1, 1}));
    for (int i = 0; i < options->set_count; i++) AN_TRY(an_config_merge(c, given, options->sets[i]));
    AN_TRY(take(c, given));
    *config = c;
    return AN_OK;
fail:
    an_release(ctx, (void **)&text, capacity, 1);
    an_config_destroy(&c);
    return status;
}

an_status an_config_create(an_config **config, an_context *ctx, const an_config_options *options) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, config, options);
    return an_config_create_renamed(config, ctx, options, an_renames);
}

void an_config_destroy(an_config **config) {
    an_config *c = config ? *config : NULL;
    if (!c) return;
    an_context *ctx = c->ctx;
    an_release(ctx, (void **)&c->warnings, c->warning_capacity, sizeof *c->warnings);
    an_arena_destroy(&c->arena);
    an_release(ctx, (void **)config, 1, sizeof *c);
}

an_status an_config_set(an_config *config, const char *setting) {
    AN_GUARD;
    AN_NEED(config, setting);
    an_context *ctx = config->ctx;
    an_config_node *given = NULL;
    AN_TRY_RETURN(an_config_node_copy(config, &given, config->given));
    AN_TRY_RETURN(an_config_merge(config, given, setting));
    return take(config, given);
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

const char *an_config_place(an_config *config, const char *path) {
    AN_NEED_OR("", config, path);
    const an_config_node *node = an_config_find(config, path);
    const char *text = config->name;
    if (!node || node->origin == AN_ORIGIN_DEFAULT) return text;
    const an_spot_text place = an_spot_describe(node->place);
    return an_arena_string(&config->arena, &text, place.text, strlen(place.text)) == AN_OK ? text : config->name;
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
static an_status ask(an_config *config, const char *path, unsigned kinds, const char *what,
                     const an_config_node **node) {
    an_context *ctx = config->ctx;
    *node = an_config_find(config, path);
    if (!*node)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: '%s' has no value; ask an_config_origin_of first", config->name,
                        path);
    if ((*node)->type != AN_CONFIG_SCALAR || !(*node)->option || !(kinds >> (*node)->option->kind & 1))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: '%s' is not %s", config->name, path, what);
    return AN_OK;
}

#define KIND(name) (1u << AN_OPTION_##name)

static an_status no_value(an_config *config, const char *path, const an_config_node *node) {
    return AN_ERROR(config->ctx, AN_ERR_STATE, "%s: %s is '%s', which is no number; ask an_config_is first",
                    config->name, path, AN_QUOTE(node->text));
}

an_status an_config_string(an_config *config, const char *path, const char **text) {
    AN_GUARD;
    AN_NEED(config, path, text);
    an_context *ctx = config->ctx;
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, ~0u, "a single value", &node));
    *text = node->text;
    return AN_OK;
}

an_status an_config_path(an_config *config, const char *path, const char **file) {
    AN_GUARD;
    AN_NEED(config, path, file);
    an_context *ctx = config->ctx;
    const an_config_node *node;
    char *whole = NULL;
    AN_TRY_RETURN(ask(config, path, KIND(INPUT) | KIND(OUTPUT), "a path", &node));
    *file = node->text;
    if (node->option->kind == AN_OPTION_OUTPUT || node->origin == AN_ORIGIN_SET || node->text[0] == '/') return AN_OK;
    const size_t folder = strlen(config->folder), name = strlen(node->text);
    AN_TRY_RETURN(an_arena_alloc(&config->arena, (void **)&whole, folder + name + 1, 1));
    memcpy(whole, config->folder, folder);
    memcpy(whole + folder, node->text, name);
    *file = whole;
    return AN_OK;
}

an_status an_config_bool(an_config *config, const char *path, bool *value) {
    AN_GUARD;
    AN_NEED(config, path, value);
    an_context *ctx = config->ctx;
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(BOOL), "on or off", &node));
    return an_read_bool(node->text, value) ? AN_OK : no_value(config, path, node);
}

an_status an_config_count(an_config *config, const char *path, int64_t *value) {
    AN_GUARD;
    AN_NEED(config, path, value);
    an_context *ctx = config->ctx;
    const an_config_node *node;
    AN_TRY_RETURN(
        ask(config, path, KIND(COUNT) | KIND(COUNTS) | KIND(BYTES) | KIND(FIRST_SAMPLES), "a whole number", &node));
    const bool ok = node->option->kind == AN_OPTION_BYTES           ? an_read_bytes(node->text, value)
                    : node->option->kind == AN_OPTION_FIRST_SAMPLES ? an_read_first_samples(node->text, value)
                                                                    : an_read_count(node->text, value);
    return ok ? AN_OK : no_value(config, path, node);
}

an_status an_config_real(an_config *config, const char *path, double *value) {
    AN_GUARD;
    AN_NEED(config, path, value);
    an_context *ctx = config->ctx;
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(REAL) | KIND(SHARE) | KIND(REALS), "a number", &node));
    return an_read_share(node->text, value) ? AN_OK : no_value(config, path, node);
}

an_status an_config_seconds(an_config *config, const char *path, double *value) {
    AN_GUARD;
    AN_NEED(config, path, value);
    an_context *ctx = config->ctx;
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(DURATION), "a duration", &node));
    return an_read_seconds(node->text, value) ? AN_OK : no_value(config, path, node);
}

an_status an_config_range(an_config *config, const char *path, double *begin, double *end) {
    AN_GUARD;
    AN_NEED(config, path, begin, end);
    an_context *ctx = config->ctx;
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(RANGE), "a range", &node));
    return an_read_range(node->text, begin, end) ? AN_OK : no_value(config, path, node);
}

an_status an_config_length(an_config *config, const char *path, an_length *length) {
    AN_GUARD;
    AN_NEED(config, path, length);
    an_context *ctx = config->ctx;
    const an_config_node *node;
    AN_TRY_RETURN(ask(config, path, KIND(LENGTH) | KIND(LENGTHS), "a length", &node));
    return an_read_length(node->text, node->option->units, length) ? AN_OK : no_value(config, path, node);
}

/* The elements of a list of one kind. */
static an_status ask_list(an_config *config, const char *path, an_option_kind kind, const char *what,
                          const an_config_node **first, int *count) {
    const an_config_node *node = an_config_find(config, path);
    if (!node || !node->option || node->option->kind != kind || node->type != AN_CONFIG_LIST)
        return AN_ERROR(config->ctx, AN_ERR_ARGUMENT, "%s: '%s' is not %s", config->name, path, what);
    *first = node->first;
    *count = node->count;
    return AN_OK;
}

an_status an_config_reals(an_config *config, const char *path, int capacity, double *values, int *count) {
    AN_GUARD;
    AN_NEED(config, path, count);
    if (capacity > 0) AN_NEED(config, values);
    an_context *ctx = config->ctx;
    const an_config_node *n;
    AN_TRY_RETURN(ask_list(config, path, AN_OPTION_REALS, "a list of numbers", &n, count));
    for (int i = 0; n && i < capacity; i++, n = n->next) an_read_real(n->text, &values[i]);
    return AN_OK;
}

an_status an_config_counts(an_config *config, const char *path, int capacity, int64_t *values, int *count) {
    AN_GUARD;
    AN_NEED(config, path, count);
    if (capacity > 0) AN_NEED(config, values);
    an_context *ctx = config->ctx;
    const an_config_node *n;
    AN_TRY_RETURN(ask_list(config, path, AN_OPTION_COUNTS, "a list of whole numbers", &n, count));
    for (int i = 0; n && i < capacity; i++, n = n->next) an_read_count(n->text, &values[i]);
    return AN_OK;
}

an_status an_config_lengths(an_config *config, const char *path, int capacity, an_length *values, int *count) {
    AN_GUARD;
    AN_NEED(config, path, count);
    if (capacity > 0) AN_NEED(config, values);
    an_context *ctx = config->ctx;
    const an_config_node *n;
    AN_TRY_RETURN(ask_list(config, path, AN_OPTION_LENGTHS, "a list of lengths", &n, count));
    for (int i = 0; n && i < capacity; i++, n = n->next) an_read_length(n->text, n->option->units, &values[i]);
    return AN_OK;
}

static an_status ask_entry(an_config *config, const char *path, unsigned kinds, int index,
                           const an_config_node **entry) {
    const an_config_node *node = an_config_find(config, path);
    if (!node || !node->option || !(kinds >> node->option->kind & 1) || index < 0 || index >= node->count)
        return AN_ERROR(config->ctx, AN_ERR_ARGUMENT, "%s: '%s' has no entry %d of that kind", config->name, path,
                        index);
    *entry = node->first;
    while (index-- > 0) *entry = (*entry)->next;
    return AN_OK;
}

an_status an_config_pair(an_config *config, const char *path, int index, int64_t *key, double *value) {
    AN_GUARD;
    AN_NEED(config, path, key, value);
    an_context *ctx = config->ctx;
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

an_status an_config_entry(an_config *config, const char *path, int index, const char **key, const char **value) {
    AN_GUARD;
    AN_NEED(config, path, key, value);
    an_context *ctx = config->ctx;
    const an_config_node *entry;
    AN_TRY_RETURN(ask_entry(config, path, KIND(COUNT_MAP) | KIND(REAL_MAP) | KIND(STRING_MAP), index, &entry));
    *key = entry->key;
    *value = entry->text;
    return AN_OK;
}

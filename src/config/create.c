/* Creates a config from a file or a text, and changes it by settings. */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/text/utf8.h"
#include "config/structs.h"

/* "runs/NAME" has the name of the config. */
static an_status name_folder(an_config *config) {
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
    AN_TRY(an_config_settle(config));
    an_release(ctx, (void **)(uintptr_t)&before.warnings, before.warning_capacity, sizeof *before.warnings);
    return AN_OK;
fail:
    an_release(ctx, (void **)&config->warnings, config->warning_capacity, sizeof *config->warnings);
    config->warnings = before.warnings;
    config->warning_count = before.warning_count;
    config->warning_capacity = before.warning_capacity;
    config->given = before.given;
    config->root = before.root;
    config->settings = before.settings;
    return status;
}

/* One byte more than is allowed is enough to refuse it. */
an_status an_config_read_file(an_context *ctx, const char *name, char **text, size_t *capacity, size_t *length) {
    enum { AT_ONCE = 16384 }; /* most configs */
    an_status status;
    size_t got = 1;
    errno = 0;
    FILE *file = fopen(name, "rb");
    while (file && got > 0 && *length <= AN_CONFIG_MOST_BYTES) {
        AN_TRY(an_grow(ctx, (void **)text, capacity, *length + AT_ONCE, 1));
        got = fread(*text + *length, 1, AT_ONCE, file);
        *length += got;
    }
    AN_CHECK(ctx, file && !ferror(file), AN_ERR_FILE,
             "%s: the config cannot be read: %s; check its name and permissions", name, strerror(errno));
    status = AN_OK;
fail:
    if (file) fclose(file);
    return status;
}

/* Whether a config comes through a pipe or an open file, such as <(command) or /dev/stdin: its name says nothing
 * then. */
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
    if (!an_utf8_is_valid(folder)) length = 0; /* what YAML cannot write: paths stay relative */
    return an_arena_string(&config->arena, &config->working, folder, length);
}

an_status an_config_create_renamed(an_config **config, an_context *ctx, const an_config_options *given_options,
                                   const an_rename *renames) {
    an_status status;
    an_config *c = NULL;
    an_config_node *given = NULL;
    char *text = NULL; /* of the file */
    size_t capacity = 0, length = 0;
    an_config_options own;
    const an_config_options *const options = &own;
    *config = NULL;
    AN_TRY(an_config_options_check(ctx, given_options)); /* NULL is refused: there is no default config */
    AN_TRY(an_config_options_read(ctx, &own, given_options));
    AN_CHECK(ctx, options->file || options->text, AN_ERR_ARGUMENT, "an_config_options has neither a file nor a text");
    AN_CHECK(ctx, options->set_count == 0 || options->sets, AN_ERR_ARGUMENT, "set_count is %d, but sets is NULL",
             options->set_count);
    const char *name = options->file ? options->file : "config";
    AN_CHECK(ctx, an_utf8_is_valid(name), AN_ERR_ARGUMENT, "%s: the path of a config must be UTF-8; rename it",
             AN_QUOTE(name));
    AN_TRY(an_alloc(ctx, (void **)&c, 1, sizeof *c));
    c->ctx = ctx;
    c->renames = renames;
    c->stored = options->stored;
    an_arena_init(&c->arena, ctx);
    AN_TRY(an_option_list_get(ctx, &c->options));
    c->texts = &c->arena;
    AN_TRY(an_arena_string(&c->arena, &c->name, name, strlen(name)));
    c->piped = options->file && !options->stored &&
               is_piped(options->file); /* that of a checkpoint is a file, and only rank 0 looks at it */
    AN_TRY(folder_of(c, name, &c->folder));
    AN_TRY(working_folder(c));
    if (!options->text) AN_TRY(an_config_read_file(ctx, c->name, &text, &capacity, &length));
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
    an_config_node *given = NULL;
    AN_TRY_RETURN(an_config_node_copy(config, &given, config->given));
    AN_TRY_RETURN(an_config_merge(config, given, setting));
    return take(config, given);
}

/* Rank 0 reads a config, and every rank gets it. So ranks on hosts with other files, or started with other settings,
 * cannot train with other values. */
#include "run/config.h"

#include <string.h>
#include <unistd.h>

#include "anneal/open.h"
#include "anneal/ranks.h"
#include "base/files/file.h"
#include "base/guard.h"
#include "config/config.h"
#include "config/structs.h"
#include "store/share.h"

/* What an_config_options has, one after another, each with a NUL: the name, the text, and the settings. */
static void pack(an_text *out, const char *file, const char *text, size_t length, const an_config_options *o) {
    char folder[AN_FILE_PATH];
    /* Others may have another working directory; a device or a pipe has no folder. */
    if (file[0] != '/' && getcwd(folder, sizeof folder)) an_text_add(out, "%s/", folder);
    an_text_bytes(out, file, strlen(file) + 1);
    an_text_bytes(out, text, length);
    an_text_bytes(out, "", 1);
    for (int i = 0; i < o->set_count; i++) an_text_bytes(out, o->sets[i], strlen(o->sets[i]) + 1);
}

/* The bytes are rank 0's, of this same library, but they are looked at like any others. */
static an_status unpack(an_config **config, an_context *ctx, const char *bytes, size_t count) {
    enum { MOST_SETS = 1024 };
    static const char broken[] = "the config that rank 0 has sent is not complete";
    const char *sets[MOST_SETS], *end = bytes + count, *at = bytes;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    if (!bytes) return AN_ERROR(ctx, AN_ERR_COMMUNICATION, "%s", broken);
    options.sets = sets;
    options.file = at;
    at += strlen(at) + 1;
    if (at >= end) return AN_ERROR(ctx, AN_ERR_COMMUNICATION, "%s", broken);
    options.text = at;
    options.length = strlen(at);
    for (at += options.length + 1; at < end; at += strlen(at) + 1) {
        if (options.set_count == MOST_SETS)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "there are more than %d settings", MOST_SETS);
        sets[options.set_count++] = at;
    }
    return an_config_create(config, ctx, &options);
}

/* Rank 0 has the config already when the others get it: what is wrong with it is said once, by its own name. */
an_status an_config_read(an_config **config, an_context *ctx, const an_config_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, config, given);
    an_status status = AN_OK;
    an_config_options options;
    an_text packed;
    char *text = NULL, *bytes = NULL;
    size_t capacity = 0, length = 0, count = 0;
    const bool is_first = an_context_rank(ctx) == 0;
    *config = NULL;
    if (an_context_ranks(ctx) == 1) return an_config_create(config, ctx, given);
    an_text_init(&packed, ctx);
    if (is_first) {
        status = an_config_options_read(ctx, &options, given);
        if (status == AN_OK && !options.text && options.file)
            status = an_config_read_file(ctx, options.file, &text, &capacity, &length);
        if (status == AN_OK && text) {
            options.text = text;
            options.length = length;
        }
        if (status == AN_OK) status = an_config_create(config, ctx, &options);
        if (status == AN_OK)
            pack(&packed, options.file ? options.file : "config", options.text, options.length, &options);
        if (status == AN_OK) status = packed.status;
        bytes = packed.bytes;
        count = packed.length;
    }
    AN_TRY(an_share_bytes(ctx, status, &bytes, &count));
    status = is_first ? AN_OK : unpack(config, ctx, bytes, count);
    AN_TRY(an_ranks_agree(ctx, status));
    status = AN_OK;
fail:
    if (!is_first) an_release(ctx, (void **)&bytes, count + 1, 1);
    an_text_destroy(&packed);
    an_release(ctx, (void **)&text, capacity, 1);
    if (status != AN_OK) an_config_destroy(config);
    return status;
}

/* ---- whether all have it ---- */

/* Lines of both up to the first that differs, which they then begin with. */
static void find_difference(const char **a, const char **b) {
    const char *line_a = *a, *line_b = *b;
    while (*line_a && *line_b) {
        const size_t length = strcspn(line_a, "\n");
        if (length != strcspn(line_b, "\n") || strncmp(line_a, line_b, length) != 0) break;
        line_a += length + (line_a[length] == '\n');
        line_b += length + (line_b[length] == '\n');
    }
    *a = line_a + strspn(line_a, " ");
    *b = line_b + strspn(line_b, " ");
}

an_status an_run_compare_configs(an_context *ctx, an_config *config) {
    an_status status;
    char *own = NULL, *first = NULL;
    size_t length = 0;
    if (an_context_ranks(ctx) == 1) return AN_OK;
    status = an_config_write(config, &own);
    if (an_context_rank(ctx) == 0 && status == AN_OK) {
        first = own;
        length = strlen(own);
    }
    AN_TRY(an_share_bytes(ctx, status, &first, &length));
    status = AN_OK;
    if (own && first && strcmp(own, first) != 0) {
        const char *here = own, *there = first;
        find_difference(&here, &there);
        status =
            AN_ERROR(ctx, AN_ERR_ARGUMENT,
                     "the config here is not that of rank 0: '%.*s' here, '%.*s' there; read it with an_config_read, "
                     "which gives every rank the config of rank 0",
                     (int)strcspn(here, "\n"), here, (int)strcspn(there, "\n"), there);
    }
    AN_TRY(an_ranks_agree(ctx, status));
    status = AN_OK;
fail:
    if (an_context_rank(ctx) > 0) an_release(ctx, (void **)&first, length + 1, 1);
    an_string_release(ctx, &own);
    return status;
}

/* Whether the run in a folder is the one that a config asks for, where there is no checkpoint yet to decide it. */
#include <errno.h>
#include <sys/stat.h>

#include "anneal/run.h"
#include "base/guard.h"
#include "base/text/text.h"
#include "config/compare.h"
#include "run/folder.h"

enum { MOST_SAID = 3 };

/* A change that a resumed run may make without being asked keeps every bit. Of another path nothing is known: no
 * checkpoint says what was in the file. */
static an_status describe(const an_config_changes *changes, char **text) {
    an_context *ctx = changes->ctx;
    an_status status;
    an_text out;
    int said = 0, more = 0;
    an_text_init(&out, ctx);
    for (size_t i = 0; i < changes->count; i++) {
        const an_config_change *c = &changes->items[i];
        if (c->kind == AN_CHANGE_FREE) continue;
        if (said < MOST_SAID)
            an_text_add(&out, "%s%s is %s, was %s", said > 0 ? "; " : "", c->path, c->after, c->before);
        *(said < MOST_SAID ? &said : &more) += 1;
    }
    if (more > 0) an_text_add(&out, "; and %d more", more);
    if (said > 0) AN_TRY(an_text_take(&out, text));
    status = out.status;
fail:
    an_text_destroy(&out);
    return status;
}

static an_status read_config(const char *path, an_context *ctx, an_config **config) {
    an_status status;
    char *text = NULL;
    size_t bytes = 0;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    AN_TRY(an_file_read(ctx, path, AN_CONFIG_MOST_BYTES, &text, &bytes));
    options.file = path;
    options.text = text;
    options.length = bytes;
    options.stored = true;
    status = an_config_create(config, ctx, &options);
fail:
    an_release(ctx, (void **)&text, bytes + 1, 1);
    return status;
}

an_status an_folder_compare(const char *path, an_config *config, char **changes) {
    AN_GUARD;
    AN_NEED(config, path, changes);
    an_status status;
    an_context *ctx = config->ctx;
    an_config *before = NULL;
    an_config_changes found = {0};
    char file[AN_FILE_PATH];
    struct stat there;
    *changes = NULL;
    AN_CHECK(ctx, an_path_join(file, path, "config.yaml"), AN_ERR_ARGUMENT,
             "the path of the run folder is too long: %.100s…", path);
    if (stat(file, &there) != 0 && errno == ENOENT) return AN_OK; /* it had no time to begin */
    status = read_config(file, ctx, &before);
    if (status == AN_ERR_PARSE) { /* by no version that this one understands */
        an_text reason;
        an_text_init(&reason, ctx);
        an_text_add(&reason, "%s", an_last_error(ctx));
        return an_text_take(&reason, changes);
    }
    if (status != AN_OK) goto fail;
    AN_TRY(an_config_compare(&found, before, config, NULL, 0));
    AN_TRY(describe(&found, changes));
fail:
    an_config_changes_destroy(&found);
    an_config_destroy(&before);
    return status;
}

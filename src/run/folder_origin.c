/* origin.json: what the run in a folder began with, if that was the state of another one. It is there before the first
 * checkpoint, so that a launch without --restart does not begin the run anew with other weights. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "run/folder.h"
#include "run/origin.h"

static const char name[] = "origin.json";
enum { MOST_BYTES = 1 << 16 };

static void describe(an_text *text, const an_saved_origin *origin) {
    an_json_writer json = an_text_json(text, AN_JSON_FLAT);
    an_json_write_object(&json, NULL);
    an_origin_write(&json, origin);
    an_json_write_finish(&json);
}

an_status an_folder_check_origin(const an_folder *f) {
    an_status status;
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH], *there = NULL;
    size_t bytes = 0;
    struct stat found;
    an_text text;
    const an_saved_origin origin = an_origin_of(f->trainer);
    an_text_init(&text, ctx);
    AN_TRY(an_folder_join(f, name, path));
    if (stat(path, &found) == 0) AN_TRY(an_file_read(ctx, path, MOST_BYTES, &there, &bytes));
    if (origin.path) describe(&text, &origin);
    AN_TRY(text.status);
    const bool same = there && text.bytes ? !strcmp(there, text.bytes) : !there && !origin.path;
    if (!same && there)
        AN_FAIL(ctx, AN_ERR_FILE,
                "%s: the run in this folder has no checkpoint yet and began with the state of another run: %.*s Repeat "
                "the command that started it (--resume and --restart schedule), or add --fresh to start a new run "
                "beside it",
                f->path, (int)strcspn(there, "\n"), there);
    if (!same)
        AN_FAIL(ctx, AN_ERR_FILE,
                "%s: this folder already has a run, which did not begin with the state of another one; set run.dir to "
                "another name",
                f->path);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&there, bytes + 1, 1);
    an_text_destroy(&text);
    return status;
}

an_status an_folder_write_origin(const an_folder *f) {
    an_status status;
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH];
    an_text text;
    const an_saved_origin origin = an_origin_of(f->trainer);
    an_text_init(&text, ctx);
    AN_TRY(an_folder_join(f, name, path));
    if (origin.path) {
        describe(&text, &origin);
        AN_TRY(text.status);
        AN_TRY(an_folder_replace_file(f, name, text.bytes));
    } else if (unlink(path) != 0 && errno != ENOENT) {
        AN_FAIL(ctx, AN_ERR_FILE, "%s: cannot be removed: %s", path, strerror(errno));
    }
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

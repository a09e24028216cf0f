#define _GNU_SOURCE /* realpath; NOLINT(bugprone-reserved-identifier) */
#include "run/origin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "base/files/file.h"
#include "base/guard.h"
#include "base/text/text.h"
#include "base/text/utf8.h"

/* The whole path, without links where it exists: `best` will name another checkpoint later. A manifest is UTF-8. */
static void find_whole(const char *path, char whole[AN_FILE_PATH]) {
    char working[AN_FILE_PATH] = "", *real = realpath(path, NULL);
    if (!real && *path != '/' && !getcwd(working, sizeof working)) working[0] = 0;
    if (snprintf(whole, AN_FILE_PATH, "%s%s%s", working, *working ? "/" : "", real ? real : path) >= AN_FILE_PATH)
        whole[0] = 0;
    free(real); /* realpath's own memory */
    for (size_t length = strlen(whole); length > 1 && whole[length - 1] == '/'; length--) whole[length - 1] = 0;
    if (an_utf8_is_valid(whole)) return;
    for (char *at = whole; *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
}

bool an_origin_is(const an_manifest *manifest, const char *requested) {
    char whole[AN_FILE_PATH];
    const char *path = manifest->origin.path;
    if (!path) return false;
    find_whole(requested, whole);
    const size_t length = strlen(whole);
    return length > 0 && !strncmp(path, whole, length) && (path[length] == 0 || path[length] == '/');
}

static an_status keep(an_trainer *t, const an_saved_origin *origin) {
    an_status status;
    an_context *ctx = t->ctx;
    an_text text;
    char digits[AN_HASH_DIGITS + 1] = "";
    an_text_init(&text, ctx);
    an_hash_write(digits, origin->hash);
    an_text_add(&text, "%s, after step %lld, hash %s", origin->path, (long long)origin->step, digits);
    AN_TRY(text.status);
    AN_TRY(an_trainer_keep_text(t, &t->run->origin_path, origin->path));
    AN_TRY(an_trainer_keep_text(t, &t->run->origin_text, text.bytes));
    t->run->origin = *origin;
    t->run->origin.path = t->run->origin_path;
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

an_status an_origin_begin(an_trainer *t, const an_manifest *manifest, const char *folder) {
    char whole[AN_FILE_PATH];
    find_whole(folder, whole);
    const an_saved_origin origin = {
        .path = whole, .step = manifest->step, .hash = {manifest->hash[0], manifest->hash[1]}};
    return keep(t, &origin);
}

an_status an_origin_continue(an_trainer *t, const an_manifest *manifest) {
    return manifest->origin.path ? keep(t, &manifest->origin) : AN_OK;
}

an_saved_origin an_origin_of(const an_trainer *t) {
    return t->run ? t->run->origin : (an_saved_origin){0};
}

const char *an_trainer_origin(const an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->run ? trainer->run->origin_text : NULL;
}

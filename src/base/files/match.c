#include "base/files/match.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"

static int compare(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static an_status keep(an_arena *arena, char *const *found, size_t count, const char ***paths) {
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)paths, count, sizeof **paths));
    for (size_t i = 0; i < count; i++) AN_TRY_RETURN(an_arena_string(arena, &(*paths)[i], found[i], strlen(found[i])));
    qsort(*paths, count, sizeof **paths, compare); /* glob sorts by the host's locale */
    return AN_OK;
}

an_status an_files_match(an_arena *arena, const char *path, const char ***paths, size_t *count) {
    an_context *ctx = arena->ctx;
    glob_t found = {0};
    char *const itself[] = {(char *)(uintptr_t)path};
    *count = 1;
    if (!strpbrk(path, "*?[") || an_file_exists(path)) return keep(arena, itself, 1, paths);
    const int failed = glob(path, GLOB_ERR | GLOB_NOSORT, NULL, &found);
    if (failed) {
        globfree(&found);
        return AN_ERROR(ctx, AN_ERR_FILE, "%s: %s", path,
                        failed == GLOB_NOMATCH   ? "no file fits this pattern"
                        : failed == GLOB_NOSPACE ? "not enough memory to find files"
                                                 : "a folder of this pattern cannot be read");
    }
    *count = found.gl_pathc;
    const an_status status = keep(arena, found.gl_pathv, *count, paths);
    globfree(&found);
    return status;
}

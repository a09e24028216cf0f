/* Files whose path fits a pattern. */
#ifndef AN_BASE_FILES_MATCH_H
#define AN_BASE_FILES_MATCH_H

#include "base/memory.h"

/* The files that a path with wildcards stands for, sorted by the bytes of their paths; the path itself if it has none,
 * or if there is a file of this very name. All lies in the arena. */
an_status an_files_match(an_arena *arena, const char *path, const char ***paths, size_t *count);

#endif

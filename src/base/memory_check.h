/* Whether there is memory for what a file claims to contain. */
#ifndef AN_BASE_MEMORY_CHECK_H
#define AN_BASE_MEMORY_CHECK_H

#include "base/context.h"

/* Refuses what the machine or a limit of this process has no memory for, beside what the context holds. Called before
 * a file is uncompressed. `path` is the file's. */
an_status an_memory_check(an_context *ctx, size_t bytes, const char *path);

#endif

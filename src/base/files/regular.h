/* Opens regular files only. A run folder may contain anything: opening a pipe would block, and a device may have no
 * end. This file uses nothing else of the library, so the command can compile its own copy. */
#ifndef AN_BASE_REGULAR_H
#define AN_BASE_REGULAR_H

#include <stdio.h>

enum { AN_NOT_REGULAR = -2 };

/* A descriptor; -1, with errno; or AN_NOT_REGULAR for a pipe, a device or a folder. Never waits. Links are followed
 * unless `flags` have O_NOFOLLOW. A file that is made has mode 0666. */
int an_regular_open(const char *path, int flags);

/* The same for reading by lines; NULL, with errno (EINVAL: it is no regular file). */
FILE *an_regular_read(const char *path);

#endif

/* Files that must survive a power cut. These functions may be called on any thread; errors are reported
 * in a note. Errors of fsync and close are final: nobody knows what the system has kept, and a second
 * call would report success. */
#ifndef AN_BASE_FILE_H
#define AN_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/note.h"

enum { AN_FILE_PATH = 4096 };

/* folder/name; false: too long. */
bool an_path_join(char path[AN_FILE_PATH], const char *folder, const char *name);

bool an_file_exists(const char *path); /* also a link that leads nowhere, and what cannot be looked at */

/* "PATH: what: the reason that errno has". */
an_status an_file_failed(const char *path, const char *what, an_note note);

/* Opens a regular file, as an_regular_open does; anything else is refused with the path and what to do. */
an_status an_file_open(int *file, const char *path, int flags, an_note note);
/* All of the bytes, however many calls it takes. */
an_status an_file_write(int file, const void *bytes, size_t length, const char *path, an_note note);
an_status an_file_sync(int file, const char *path, an_note note);
/* Sets *file to -1. */
an_status an_file_close(int *file, const char *path, an_note note);

/* Where a shared file system tries again what it has done already, the second try says that there is no such file: if
 * the old name is gone and the new one there, it is done. */
an_status an_file_rename(const char *from, const char *to, an_note note);

/* A new file, written and synced; one that is there already is an error. One that cannot be written whole is
 * removed. */
an_status an_file_put(const char *path, const void *bytes, size_t length, an_note note);
/* A whole file in the place of another, if there is one: nobody ever reads half of it. Synced, its folder too. */
an_status an_file_replace(const char *path, const void *bytes, size_t length, an_note note);
/* The same in the blocks that the file has, for a disk that is full: more than they hold is refused. Whoever reads it
 * meanwhile may read half. */
an_status an_file_overwrite(const char *path, const void *bytes, size_t length, an_note note);

/* The next entry of a folder; NULL after the last. A folder that cannot be read to its end is an error: what is not
 * seen is not therefore absent. */
an_status an_folder_next(DIR *stream, const char *path, const struct dirent **entry, an_note note);
/* The entries of a folder. */
an_status an_folder_sync(const char *path, an_note note);
/* The folder that a path lies in. */
an_status an_parent_sync(const char *path, an_note note);
/* Every folder of a path that is not there, each synced into its parent. */
an_status an_folders_make(const char *path, an_note note);

/* Reads a regular file of at most `most` bytes, which the caller releases (*bytes + 1: a NUL follows them). A file that
 * changes its length meanwhile is an error. */
an_status an_file_read(an_context *ctx, const char *path, size_t maximum, char **text, size_t *bytes);

#endif

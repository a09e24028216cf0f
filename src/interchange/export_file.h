/* A new file for other programs, with the weights of a checkpoint in it. Weights are read and written in pieces of
 * constant size, so nothing is ever gathered. */
#ifndef AN_INTERCHANGE_EXPORT_FILE_H
#define AN_INTERCHANGE_EXPORT_FILE_H

#include "store/inspect.h"

/* The weights, in the order of their names. */
typedef struct an_export_list {
    const an_checkpoint *checkpoint;
    int64_t *indices;       /* of each, the tensor of the checkpoint that has its values */
    an_safetensor *entries; /* `begin` is the place of its bytes if all of them stand one behind the other */
    size_t count, capacity;
    int64_t bytes; /* of all */
} an_export_list;

/* `names` may be NULL. What is exported is held against its hashes first: a damaged weight must not get into a file
 * in which nobody can see it. */
an_status an_export_list_create(an_export_list *list, const an_checkpoint *checkpoint, const an_export_names *names);
void an_export_list_destroy(an_export_list *list);

/* A file that is written under another name, and has its own only when it is complete and on the disk. */
typedef struct an_export_file {
    an_context *ctx;
    const char *path;
    char *piece;
    int file; /* -1: not open */
    char beside[AN_FILE_PATH];
} an_export_file;

an_status an_export_file_open(an_export_file *f, an_context *ctx, const char *path);
an_status an_export_file_bytes(an_export_file *f, const void *bytes, size_t length);
an_status an_export_file_tensor(an_export_file *f, const an_export_list *list, size_t which);
an_status an_export_file_finish(an_export_file *f);
void an_export_file_close(an_export_file *f); /* and removes what was not finished */

/* The adapter of a checkpoint in PEFT's format, in a folder. */
an_status an_export_adapter(const an_checkpoint *checkpoint, const char *folder);

#endif

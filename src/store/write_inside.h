/* What the files that write a save share. */
#ifndef AN_STORE_WRITE_INSIDE_H
#define AN_STORE_WRITE_INSIDE_H

#include "base/files/file.h"
#include "store/write.h"

/* Small: each thread that writes a part has a copy, on the stack of the one that starts them. */
typedef struct an_writing {
    an_save_job *job;
    int slot;         /* of the heartbeat */
    const char *base; /* folder of checkpoints */
    const char *unfinished, *finished;
    an_note note;
} an_writing;

/* A part that is being written, past the system's cache as long as the system allows it. */
typedef struct an_part_file {
    int file; /* -1: not open */
    bool direct, padded;
    size_t bytes; /* so far */
    char path[AN_FILE_PATH];
} an_part_file;

an_status an_save_part_open(an_part_file *out, const an_writing *writing, size_t part);
/* The memory has room behind the bytes, up to the next AN_SAVE_ALIGNMENT. Only the last call may have a number of bytes
 * that is not a multiple of that. */
an_status an_save_part_put(an_part_file *out, const an_writing *writing, const char *bytes, size_t length);
/* Syncs and closes it, or closes it after an error. */
an_status an_save_part_close(an_part_file *out, const an_writing *writing, an_status status);

/* Writes, hashes and syncs the parts of the job, several at the same time. */
an_status an_save_write_parts(const an_writing *writing);

#endif

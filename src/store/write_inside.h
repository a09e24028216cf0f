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

/* Writes, hashes and syncs the parts of the job, several at the same time. */
an_status an_save_write_parts(const an_writing *writing);

#endif

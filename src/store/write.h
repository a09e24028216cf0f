/* Writes a checkpoint: one job on its own thread.
 *
 * Where ranks write together, each has a job with its own files, and it goes in three steps, each on every rank before
 * the next: rank 0 makes the folder (an_save_job_begin), all write and sync their parts (an_save_job_write), and rank
 * 0, which has got the hash of every part, writes the manifest and renames the folder (an_save_job_end). Until then
 * the checkpoint does not exist. Nobody looks at another rank's files. */
#ifndef AN_STORE_WRITE_H
#define AN_STORE_WRITE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/copy.h"
#include "store/layout.h"
#include "store/manifest.h"
#include "store/places.h"

enum { AN_SAVE_NOTE = 1024 };

/* A small file that is written as it is. */
typedef struct an_save_extra {
    const char *name;
    char *text; /* NULL: there is none */
} an_save_extra;
enum { AN_SAVE_CONFIG, AN_SAVE_ENCODING, AN_SAVE_GRAPH, AN_SAVE_METRICS, AN_SAVE_EXTRAS }; /* sorted by name */

/* What the writing thread works on; nobody else touches it between start and end. */
typedef struct an_save_job {
    const an_context *ctx; /* for its heartbeat only */
    const char *folder;    /* of the run */
    const char *stage;     /* a fast folder that is written to first; NULL: none */
    bool staging;          /* … in steps: these are for the fast folder */
    int64_t generation;
    an_save_layout *layout;
    an_file_range files; /* that this job writes; rank 0's has the others' hashes too */
    char *image; /* where each of them begins, in turn, on AN_SAVE_ALIGNMENT; or a chunk of one (store/stream.h) */
    const an_params *params; /* what files are written from, a chunk at a time; NULL: from a copy of it, the image */
    an_route *route;         /* … on its way into the files */
    uint64_t (*hashes)[2];   /* of all files of the layout */
    an_save_extra extras[AN_SAVE_EXTRAS];
    an_manifest_text manifest;
    size_t first_part; /* the number of the first part among the manifest's files */
    bool hashed;       /* all hashes are known */
    an_checkpoint_place place;
    bool best;                       /* the link is to point to it */
    bool is_linked;                  /* and does */
    char linked[AN_CHECKPOINT_NAME]; /* what it pointed to before; "": nothing */
    an_checkpoint_place *removals;   /* once it is safe */
    size_t removal_count;
    _Atomic long long work; /* nanoseconds that threads beside the first have worked */
    atomic_bool done;
    bool safe; /* the checkpoint is; what followed may have failed */
    an_status status;
    char note[AN_SAVE_NOTE]; /* of an error */
    double begin, seconds,
        cpu_seconds; /* when it began, which the caller sets; until it was safe; that this process worked for it */
} an_save_job;

/* Makes `best` of a run's folder point to this checkpoint. */
an_status an_save_link_best(const char *folder, const char *name, an_note note);

/* These run on a thread of their own, unless there is no copy of the state, and leave in `job` what became of it. */

/* Writes the checkpoint, links, removes. The job has all files. */
void an_save_job_run(an_save_job *job);

/* The same in three steps, for the fast folder (job->staging) and then for the run's own. `done` is set after
 * each; `safe` after the last. */
void an_save_job_begin(an_save_job *job);
void an_save_job_write(an_save_job *job);
void an_save_job_end(an_save_job *job);
/* Removes what was begun and will not be ended. */
void an_save_job_drop(an_save_job *job);

#endif

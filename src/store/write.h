/* Writes a checkpoint: one job on its own thread. */
#ifndef AN_STORE_WRITE_H
#define AN_STORE_WRITE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/layout.h"
#include "store/manifest.h"
#include "store/places.h"

enum { AN_SAVE_NOTE = 1024 };

/* A small file that is written as it is. */
typedef struct an_save_extra {
    const char *name;
    char *text; /* NULL: there is none */
} an_save_extra;
enum { AN_SAVE_CONFIG, AN_SAVE_GRAPH, AN_SAVE_METRICS, AN_SAVE_EXTRAS };

/* What the writing thread works on; nobody else touches it between start and end. */
typedef struct an_save_job {
    const an_context *ctx; /* for its heartbeat only */
    const char *folder;    /* of the run */
    const char *stage;     /* a fast folder that is written to first; NULL: none */
    int64_t generation;
    an_save_layout *layout;
    char *image; /* where each file begins, in turn, on AN_SAVE_ALIGNMENT */
    an_save_extra extras[AN_SAVE_EXTRAS];
    an_manifest_text manifest;
    size_t first_part; /* the number of the first part among the manifest's files */
    bool hashed;       /* the manifest has all hashes */
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
    char note[AN_SAVE_NOTE];            /* of an error */
    double begin, seconds, cpu_seconds; /* when it began; until it was safe; that this machine worked for it */
} an_save_job;

/* Makes `best` of a run's folder point to this checkpoint. */
an_status an_save_link_best(const char *folder, const char *name, an_note note);

/* Runs on a thread of its own: writes the checkpoint, links, removes. */
void an_save_job_run(an_save_job *job);

#endif

/* Saves a run: the training thread copies its state, and everything else happens in the background.
 *
 *     run/saver.c        what is saved when, and what may be removed once the save is durable
 *     run/save_phases.c  which rank does what of it when
 *     store/layout.c     which bytes are where
 *     store/route.c      which rank has them
 *     store/copy.c       the copy
 *     store/stream.c     files without a copy, where there is no memory for one: training waits
 *     store/write.c      files: written to a temporary folder, synced, renamed
 *
 * The copy is the image of the files, so nothing is gathered or copied a second time. There is one save at a time:
 * the next begins when the last one is durable.
 *
 * Every rank has a saver, with the files that it writes. Rank 0 alone knows what else is in the folder, and tells the
 * others where it is.
 */
#ifndef AN_RUN_SAVER_H
#define AN_RUN_SAVER_H

#include "run/run.h"
#include "run/save_phases.h"

/* A checkpoint that is there and good, as far as its manifest and the lengths of its files tell. */
typedef struct an_known {
    an_checkpoint_place place;
    bool kept; /* the host program named it */
} an_known;

typedef struct an_saver {
    an_context *ctx;
    an_trainer *trainer;
    char folder[AN_FILE_PATH], stage[AN_FILE_PATH], checkpoints[AN_FILE_PATH];
    int64_t keep_last, keep_named; /* 0: all */
    an_interval keep_every;
    an_known *known; /* oldest first */
    size_t known_count, known_capacity, removal_capacity;
    char best[AN_CHECKPOINT_NAME]; /* what the link points to; "": nothing */
    void *memory;                  /* that the image lies in */
    size_t memory_bytes;
    an_route *route; /* of the copy */
    an_save_job job;
    an_save_phases phases;
    bool kept;               /* the host program named it */
    double copy_seconds;     /* of the last one */
    char path[AN_FILE_PATH]; /* of the last one */
} an_saver;

typedef struct an_saver_options {
    const char *folder, *stage; /* of rank 0; stage NULL: none */
    int64_t generation, writers, keep_last, keep_named;
    an_interval keep_every;
    const char *config; /* text; NULL: none */
} an_saver_options;

/* Where a run's checkpoints lie in a fast folder; false: the path is too long. */
bool an_stage_path(char path[AN_FILE_PATH], const char *stage, const char *folder);

/* Claims nothing: the generation is the caller's. */
an_status an_saver_create(an_saver **saver, an_trainer *trainer, const an_saver_options *options);
/* Waits for what this rank is doing; its result is lost. */
void an_saver_destroy(an_saver **saver);

typedef struct an_save_request {
    bool best;
    const int64_t *user_step; /* NULL: nobody named it */
} an_save_request;

/* The newest checkpoint of this user step; NULL: there is none. */
const an_checkpoint_place *an_saver_find(const an_saver *saver, int64_t user_step);

/* Copies the state and starts to write it; no save is under way. Others of its user step are removed once it is safe.
 * `status` is what this rank has found wrong already. Collective: all ranks return the same error. */
an_status an_saver_start(an_saver *saver, an_status status, const an_save_request *request);
bool an_saver_is_saving(const an_saver *saver);
/* Phases of saves that this rank has ended. `agreed` is the least of all ranks. */
int64_t an_saver_count(const an_saver *saver);
/* Goes on with the save that is under way, if all ranks have come so far: whether it has ended, and how. Collective. */
bool an_saver_poll(an_saver *saver, int64_t agreed, an_status *status);
/* Waits for the save that is under way, if there is one. Collective. */
an_status an_saver_wait(an_saver *saver);

#endif

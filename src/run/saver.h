/* Saves a run: the training thread copies its state, and everything else happens in the background.
 *
 *     run/saver.c     what is saved when, and what may be removed once the save is durable
 *     store/layout.c  which bytes are where
 *     store/route.c   which rank has them
 *     store/copy.c    the copy
 *     store/write.c   files: written to a temporary folder, synced, renamed
 *
 * The copy is the image of the files, so nothing is gathered or copied a second time. There is one save at a time:
 * the next begins when the last one is durable.
 */
#ifndef AN_RUN_SAVER_H
#define AN_RUN_SAVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "run/run.h"
#include "store/copy.h"
#include "store/write.h"

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
    pthread_t thread;
    bool is_started, is_running; /* a save is under way; on a thread that is to be joined */
    bool kept;                   /* the host program named it */
    double copy_seconds;         /* of the last one */
    char path[AN_FILE_PATH];     /* of the last one */
} an_saver;

typedef struct an_saver_options {
    const char *folder, *stage; /* stage NULL: none */
    int64_t generation, writers, keep_last, keep_named;
    an_interval keep_every;
    const char *config; /* text; NULL: none */
} an_saver_options;

/* Where a run's checkpoints lie in a fast folder; false: the path is too long. */
bool an_stage_path(char path[AN_FILE_PATH], const char *stage, const char *folder);

/* Claims nothing: the generation is the caller's. */
an_status an_saver_create(an_saver **saver, an_trainer *trainer, const an_saver_options *options);
/* Waits for what is under way; its result is lost. */
void an_saver_destroy(an_saver **saver);

typedef struct an_save_request {
    bool best;
    const int64_t *user_step; /* NULL: nobody named it */
} an_save_request;

/* The newest checkpoint of this user step; NULL: there is none. */
const an_checkpoint_place *an_saver_find(const an_saver *saver, int64_t user_step);

/* Waits until the last save is safe (its error is returned, and nothing begun), copies the state, and starts to write it. Others of its
 * user step are removed once it is safe. */
an_status an_saver_start(an_saver *saver, const an_save_request *request);
/* Waits for the save that is under way, if there is one. */
an_status an_saver_wait(an_saver *saver);
/* Whether the save that is under way has come to its end, so that nobody waits for it. */
bool an_saver_is_done(const an_saver *saver);

#endif

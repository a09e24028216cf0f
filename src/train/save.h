/* Saving a run: a copy of its state on the thread that trains, everything else behind its back.
 *
 *     save.c         what is saved when, and what may go once it is safe
 *     save_layout.c  which bytes are where
 *     save_write.c   files: written beside, synced, renamed
 *
 * The copy is the image of the files, so that nothing is gathered or copied a second time. One save at a time: the next begins when
 * the last is safe. */
#ifndef AN_TRAIN_SAVE_H
#define AN_TRAIN_SAVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "train/checkpoints.h"
#include "train/save_layout.h"
#include "train/trainer.h"

enum { AN_SAVE_NOTE = 1024 };

/* A checkpoint that is there and good, as far as its manifest and the lengths of its files tell. */
typedef struct an_known {
    an_checkpoint_place place;
    bool kept; /* the host program named it */
} an_known;

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
    bool best;                     /* the link is to point to it */
    an_checkpoint_place *removals; /* once it is safe */
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
    an_save_job job;
    pthread_t thread;
    bool is_started, is_running; /* a save is under way; on a thread that is to be joined */
    bool kept;                   /* the host program named it */
    int64_t saved;               /* the step of the last save that was started; -1: none */
    uint64_t saved_chain;        /* and how the run stood then: an evaluation changes it too */
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
/* Whether the run as it stands is saved, or being saved. */
bool an_saver_has(const an_saver *saver);

#endif

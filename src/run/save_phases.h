/* A save after its copy, in phases. Each is on a thread of its own, and all ranks have ended one before any
 * begins the next: rank 0 makes the folder, every rank writes and syncs its files, rank 0 writes the manifest
 * and renames. Alone, a process does all of it in one.
 *
 * Where there is no memory for a copy of the state (store/stream.h), training waits until the files are
 * written.
 *
 * That all ranks have ended a phase is seen in the records of steps (an_run_facts): training goes on
 * meanwhile. Who cannot go on without the save waits. What fails on one rank is the error of all; then rank
 * 0 removes what there is. */
#ifndef AN_RUN_SAVE_PHASES_H
#define AN_RUN_SAVE_PHASES_H

#include <pthread.h>

#include "store/copy.h"
#include "store/write.h"
#include "train/trainer.h"

typedef struct an_save_phases {
    an_trainer *trainer;
    an_save_job *job;
    const an_route *route;
    int phase;     /* 0: no save is under way */
    int64_t ended; /* of all saves so far: phases that all ranks have ended */
    pthread_t thread;
    bool is_running;                /* there is a thread, which is to be joined */
    an_status status;               /* of the last save */
    char message[AN_MESSAGE_BYTES]; /* of its error */
} an_save_phases;

/* The error of a rank that has one, on all of them with the same message. Collective. */
an_status an_save_agree(an_trainer *trainer, an_status status);

/* Begins the first phase. The job and its image are ready on every rank. Without a copy of the state, all phases that
 * need the state run at once. Collective. */
void an_save_phases_start(an_save_phases *phases);
/* Phases that this rank has ended, with the one that may be under way. Other ranks need not have. */
int64_t an_save_phases_count(const an_save_phases *phases);
/* Begins the next phase, once this one has ended here and on all others. Whether that was the last. Collective. */
bool an_save_phases_next(an_save_phases *phases);
/* Waits for the thread only, where other ranks may be gone. */
void an_save_phases_leave(an_save_phases *phases);

#endif

/* A whole run: where it is stored, when it is saved, evaluated and logged, and how it began. A trainer gets one at
 * the first call that needs it. */
#ifndef AN_RUN_RUN_H
#define AN_RUN_RUN_H

#include "anneal/run.h"
#include "store/origin_record.h"
#include "train/trainer.h"

struct an_saver;

typedef struct an_run {
    an_run_options options; /* those of an_trainer_set_run_options; size 0: there are none. Without callbacks */
    an_log_options log;
    char *folder;           /* NULL: the run is kept nowhere */
    char *stage;            /* written to first; NULL: none */
    char *config;           /* what a checkpoint says of it; NULL: nothing */
    int64_t generation;     /* of this launch; 0: nothing was written yet */
    an_interval every;      /* from one save to the next; none: only the last */
    int64_t keep_last;      /* 0: all */
    int64_t keep_named;     /* saves at user steps; 0: all */
    an_interval keep_every; /* saves that stay; none: none for this reason */
    /* the step of the last save, or of the checkpoint of this folder that the run began with; -1: none */
    int64_t saved;
    uint64_t saved_chain;   /* and how the run stood then: an evaluation changes it too */
    bool lost;              /* that save failed */
    struct an_saver *saver; /* NULL: nothing was saved yet */
    an_save_report report;  /* of the last save */
    bool tells;             /* the callback after a save is under way, which may ask for the report */
    bool has_room;          /* the disk was looked at */
    int requests;           /* to stop, of `anneal stop`, that were seen */
    double looked;          /* when they were last looked for */
    char *resumed;          /* the checkpoint's path; NULL: the run began anew */
    /* that a new run began with; its path is origin_path, and origin_text says all of it. NULL: none */
    an_saved_origin origin;
    char *origin_path, *origin_text;
} an_run;

/* Makes t->run, if there is none yet. */
an_status an_run_attach(an_trainer *t);

/* ---- saves; all of these need a run ----
 *
 * Every rank calls them at the same places, and all return the same, as what fails on one of them is an error of
 * all. */

/* AN_ERR_STATE: the run's folder has the checkpoints of another run, which saves of this one would remove. Rank 0
 * looks, before the first save. */
an_status an_run_check_folder(an_trainer *t);
/* Takes a generation, if this launch has none yet. Of rank 0 only. */
an_status an_run_claim(an_trainer *t);
/* Starts a save of the run as it stands; the first time, everything that it needs is made. No other is under way. */
an_status an_run_save(an_trainer *t, bool best, const int64_t *user_step);
an_status an_run_wait(an_trainer *t); /* until it is durable */
bool an_run_is_saving(const an_trainer *t);
/* What this rank's facts say of its saves; and, with those of all: whether one has ended since, and how. */
int64_t an_run_saving(const an_trainer *t);
bool an_run_poll(an_trainer *t, int64_t saving, an_status *status);
/* The run as it stands is saved, or being saved. */
bool an_run_has(const an_trainer *t);

#endif

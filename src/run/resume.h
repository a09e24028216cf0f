/* Carrying on: which checkpoint, whether the config asks for the same run, and what of it may have changed. */
#ifndef AN_RUN_RESUME_H
#define AN_RUN_RESUME_H

#include "config/config.h"
#include "run/restore.h"
#include "run/run.h"
#include "store/places.h"

/* Checkpoints to carry on from, best first. */
typedef struct an_candidates {
    an_context *ctx;
    char (*paths)[AN_FILE_PATH];
    size_t count, capacity;
} an_candidates;

/* Those that the options and the config name; none if the run begins anew. */
an_status an_candidates_find(an_candidates *candidates, an_config *config, an_context *ctx,
                             const an_open_options *options);
void an_candidates_destroy(an_candidates *candidates);

/* A checkpoint that a run is being opened from. */
typedef struct an_resume {
    an_context *ctx;
    an_config *config; /* that is wanted now */
    const an_open_options *options;
    const char *path;
    an_manifest *manifest;
    an_config *before; /* that it was saved with; NULL: it was made without */
    an_config_node
        *root; /* the config's tree as it was given, put back if this checkpoint is not the one; NULL: it stays */
    bool allows_new_bits, has_new_bits; /* the user does; there are some */
    an_text notes;
} an_resume;

/* Reads the manifest and the config in it, and compares that with the one that is wanted. To be destroyed whatever it returns. */
an_status an_resume_begin(an_resume *resume, an_config *config, an_context *ctx, const char *path,
                          const an_open_options *options);
/* Makes the schedule of a run of so many steps; what it points to lies in the arena. */
typedef an_status (*an_schedule_maker)(void *user, an_schedule_options *schedule, an_arena *arena, int64_t steps,
                                       double *rate);
/* How many steps the schedule is made for, where the run is to have `steps`: refused, kept or stretched. */
an_status an_resume_schedule(an_resume *resume, an_schedule_maker make, void *user, int64_t steps,
                             int64_t *schedule_steps);
/* Fills a trainer that has everything else. */
an_status an_resume_end(an_resume *resume, an_trainer *t);
void an_resume_destroy(an_resume *resume);

#endif

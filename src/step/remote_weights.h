/* Weights that other ranks have updated, for what reads them on this one (comm/gather.h).
 *
 * Where every rank has room for all weights, each gathers what its ops read once after an update, unit by unit, and
 * instructions wait for the units that they read. Where weights are in pieces, a program gathers a region
 * (pass/shard.h) at a time into its own memory, in every run. */
#ifndef AN_STEP_REMOTE_WEIGHTS_H
#define AN_STEP_REMOTE_WEIGHTS_H

#include "comm/gather.h"
#include "comm/reduce.h"
#include "exec/program.h"

typedef struct an_remote_weights {
    an_context *ctx;
    an_params *params;
    an_weight_exchange *exchange; /* the program's, which has joined */
    an_gathering *gathering;      /* NULL: every rank has all weights */
    bool has_regions;             /* what is gathered are those of each form, one form after another; else units */
    int first[AN_FORMS];          /* region of each form */
    an_gather_unit *units;
    an_gather_run *runs;
    size_t unit_count, run_count;
    uint64_t version; /* of the weights that were gathered last */
} an_remote_weights;

/* Adds what it takes, and what it moves in a step of so many runs of the training program. */
an_status an_remote_weights_predict(const an_plan *plan, const an_params_pieces *pieces, int64_t runs, size_t *bytes,
                                    an_reduction_cost *cost);
/* For a store in pieces; else it does nothing. */
an_status an_remote_weights_make(an_remote_weights *w, an_program *program);
void an_remote_weights_destroy(an_remote_weights *w);

/* Programs that run until an_remote_weights_finish have the weights that they read. If they have changed since the
 * last time, all units begin to come. Collective. */
an_status an_remote_weights_start(an_remote_weights *w);
/* Until all that was begun is here, and the other ranks have what they need from this one: then weights may change. */
an_status an_remote_weights_finish(an_remote_weights *w);

#endif

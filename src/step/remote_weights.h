/* Weights that other ranks have updated: after the update of its own pieces, each rank gathers those of the others that its ops read, unit by unit (comm/gather.h). */
#ifndef AN_STEP_REMOTE_WEIGHTS_H
#define AN_STEP_REMOTE_WEIGHTS_H

#include "comm/gather.h"
#include "comm/reduce.h"
#include "exec/params.h"

typedef struct an_remote_weights {
    an_context *ctx;
    an_params *params;
    an_gathering *gathering; /* NULL: every rank has all weights */
    an_gather_unit *units;
    an_gather_run *runs;
    size_t run_count;
    uint64_t version; /* of the weights that were gathered last */
} an_remote_weights;

/* Adds what it takes of a store in these pieces, and what it moves in a step. */
an_status an_remote_weights_predict(an_context *ctx, const an_params_pieces *pieces, const an_flat_sizes *sizes,
                                    an_dtype low, size_t *bytes, an_reduction_cost *cost);
/* For a store in pieces whose readable weights are whole; else it does nothing. */
an_status an_remote_weights_make(an_remote_weights *w, an_params *params, an_comm *comm);
void an_remote_weights_destroy(an_remote_weights *w);

/* If weights have changed since the last time: begins to gather all units. Programs wait for each of them before they read it. Collective. */
an_status an_remote_weights_start(an_remote_weights *w);
/* Until all weights are here, and the other ranks have those of this one: then they may change. */
an_status an_remote_weights_finish(an_remote_weights *w);

#endif

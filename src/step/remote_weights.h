/* Weights that other ranks have updated: after the update of its own pieces, each rank gathers those of the others that its ops read, unit by unit (comm/gather.h). */
#ifndef AN_STEP_REMOTE_WEIGHTS_H
#define AN_STEP_REMOTE_WEIGHTS_H

#include "comm/gather.h"
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

/* For a store in pieces whose readable weights are whole; else it does nothing. */
an_status an_remote_weights_make(an_remote_weights *w, an_params *params, an_comm *comm);
void an_remote_weights_destroy(an_remote_weights *w);

/* If weights have changed since the last time: makes the low copies of its own, and gathers all units. Collective. */
an_status an_remote_weights_bring(an_remote_weights *w);
/* After the own pieces have changed: begins to gather all units. */
an_status an_remote_weights_start(an_remote_weights *w);
an_status an_remote_weights_progress(const an_remote_weights *w);
/* Until a unit is here, or all of them are. */
an_status an_remote_weights_wait(const an_remote_weights *w, int unit);
an_status an_remote_weights_finish(const an_remote_weights *w);
void an_remote_weights_cancel(const an_remote_weights *w);

#endif

#ifndef AN_STEP_OPTIMIZER_H
#define AN_STEP_OPTIMIZER_H

#include "exec/params.h"
#include "kernels/update/update.h"
#include "step/groups.h"
#include "step/page_sums.h"

struct an_optimizer {
    an_context *ctx;
    an_params *params;
    const an_groups *groups;
    const an_optimizer_record *record;
    an_optimizer_options options; /* with defaults filled in */
    an_update_run *runs;
    int *run_groups; /* the group of each run */
    int64_t run_count, updates;
    an_page_sums sums;       /* squares of the gradients */
    const an_kernel *update; /* the device's; NULL without pages */
    bool has_norm;           /* of the gradients that the next update will use */
    double norm, scale;      /* after unscaling, and by what */
};

/* Adds what an optimizer takes, of a store of which this rank owns so many pages. */
bool an_optimizer_bytes(int64_t own_pages, size_t parameters, size_t *bytes);

/* The norm in two halves, for a store in pieces: the squares of this rank's pages, and the sum of those of
 * all, which becomes the norm. */
an_status an_optimizer_square(an_optimizer *o, double scale);
double an_optimizer_take_squares(an_optimizer *o, double sum);

/* The sum of squares of a trainable parameter's gradients, by its number in the store, as
 * an_optimizer_norm found it last. */
double an_optimizer_squares(const an_optimizer *optimizer, size_t parameter);

#endif

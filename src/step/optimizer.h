#ifndef AN_STEP_OPTIMIZER_H
#define AN_STEP_OPTIMIZER_H

#include "exec/params.h"
#include "kernels/update/update.h"
#include "step/groups.h"

struct an_optimizer {
    an_context *ctx;
    an_params *params;
    const an_groups *groups;
    const an_optimizer_record *record;
    an_optimizer_options options; /* with defaults filled in */
    an_update_run *runs;
    int *run_groups; /* the group of each run */
    int64_t run_count, pages, updates;
    double *page_sums, *tree;              /* squares of the gradients of each page; room for adding them */
    void *device_sums;                     /* … where the device writes them: 20 bytes a page in all */
    const an_kernel *square_sums, *update; /* the device's; NULL without pages */
    bool has_norm;                         /* of the gradients that the next update will use */
    double norm, scale;                    /* after unscaling, and by what */
};

/* Adds what an optimizer of parameters laid out so takes. */
bool an_optimizer_bytes(const an_flat_sizes *sizes, size_t parameters, size_t *bytes);

/* The sum of squares of a trainable parameter's gradients, by its number in the store, as an_optimizer_norm found it last. */
double an_optimizer_squares(const an_optimizer *optimizer, size_t parameter);

#endif

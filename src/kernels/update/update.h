/* Kernels of a step's end: the norm of the gradients, and the optimizers. They work on the flat buffers of a parameter
 * store, whose parameters begin on pages, so no page holds two groups. They belong to no op: train/ launches them. */
#ifndef AN_KERNELS_UPDATE_UPDATE_H
#define AN_KERNELS_UPDATE_UPDATE_H

#include "anneal/optimizer.h"
#include "kernels/common/list.h"

/* Pages that share a rate and a decay. */
typedef struct an_update_run {
    int64_t end; /* the page after the last; the run begins where the one before it ends */
    double rate, weight_decay;
} an_update_run;

typedef struct an_update_attributes an_update_attributes;

/* How the AN_PAGE weights of a page follow from their gradients, which are unscaled and clipped and may be overwritten.
 * The optimizers are above this layer: step/optimizers/. Moments that one does without are NULL. */
typedef struct an_update_rule {
    void (*page_f32)(const an_update_attributes *a, const an_update_run *run, float *g, float *w,
                     float *const *moments);
    void (*page_f64)(const an_update_attributes *a, const an_update_run *run, double *g, double *w,
                     double *const *moments);
} an_update_rule;

struct an_update_attributes {
    const an_update_rule *rule;
    const an_optimizer_record *record; /* of the optimizer; a device may know it by its name */
    int64_t update;                    /* its number, from 1 */
    double factor;                     /* on every gradient: unscaling and clipping */
    double clip_value;                 /* then every element is limited to ± this; 0: not */
    double beta_1, beta_2, epsilon;
    double correction_1, correction_2; /* 1 - beta^t */
    double momentum, dampening;
    const an_optimizer_options *options; /* for what is not above */
    bool first;                          /* the first update: SGD's momentum starts as the gradient */
    const an_update_run *runs;
    int64_t run_count;
    int64_t begin; /* the page of the store that the tensors begin at, for the runs */
};

/* (gradients) → weights, moment 1, moment 2, copy of low precision; all but gradients are read and written where they
 * are, and those that a rule or a store does without are absent. One pass: every element is read and written once. */
AN_DECLARE_KERNELS(update);

/* (gradients) → for each page the sum of its squares, f64: 16 lanes by index mod 16, then the lanes in order. Squares
 * of f32 cannot overflow there, so a sum is finite if and only if all elements are. */
AN_DECLARE_KERNELS(square_sums);

#endif

/* Kernels of a step's end: the norm of the gradients, and the optimizers. They work on the flat buffers of a parameter
 * store, whose parameters begin on pages, so no page holds two groups. They belong to no op: train/ launches them. */
#ifndef AN_KERNELS_UPDATE_UPDATE_H
#define AN_KERNELS_UPDATE_UPDATE_H

#include "kernels/common/list.h"

/* The first three are written out here, for speed; RECORD is the function of a record. */
typedef enum an_update_rule { AN_UPDATE_ADAMW, AN_UPDATE_ADAM, AN_UPDATE_SGD, AN_UPDATE_RECORD } an_update_rule;

/* Pages that share a rate and a decay. */
typedef struct an_update_run {
    int64_t end; /* the page after the last; the run begins where the one before it ends */
    double rate, weight_decay;
} an_update_run;

typedef struct an_update_attributes {
    an_update_rule rule;
    const an_optimizer_record *record; /* whose functions RECORD calls */
    int64_t update;                    /* its number, from 1 */
    double factor;                     /* on every gradient: unscaling and clipping */
    double clip_value;                 /* then every element is limited to ± this; 0: not */
    double beta_1, beta_2, epsilon;
    double correction_1, correction_2; /* 1 - beta^t */
    double momentum, dampening;        /* of SGD */
    bool nesterov;
    bool first; /* SGD's momentum starts as the gradient */
    const an_update_run *runs;
    int64_t run_count;
    int64_t begin; /* the page of the store that the tensors begin at, for the runs */
} an_update_attributes;

/* Optimizers that are records alone, once a level of instructions. */
#if defined(__x86_64__)
#define AN_DECLARE_OPTIMIZER(name) \
    extern const an_optimizer_record an_optimizer_##name, an_optimizer_##name##_avx2, an_optimizer_##name##_avx512
#define AN_OPTIMIZER_LEVELS(name) \
    { &an_optimizer_##name, &an_optimizer_##name##_avx2, &an_optimizer_##name##_avx512 }
#else
#define AN_DECLARE_OPTIMIZER(name) extern const an_optimizer_record an_optimizer_##name
#define AN_OPTIMIZER_LEVELS(name) \
    { &an_optimizer_##name }
#endif
AN_DECLARE_OPTIMIZER(lion);

/* (gradients) → weights, moment 1, moment 2, copy of low precision; all but gradients are read and written where they
 * are, and those that a rule or a store does without are absent. One pass: every element is read and written once. */
AN_DECLARE_KERNELS(update);

/* (gradients) → for each page the sum of its squares, f64: 16 lanes by index mod 16, then the lanes in order. Squares
 * of f32 cannot overflow there, so a sum is finite if and only if all elements are. */
AN_DECLARE_KERNELS(square_sums);

#endif

/* A training step, part by part, for programs that drive training themselves. A trainer makes the same calls. One step
 * is
 *
 *     an_step_begin                 the number of targets of the whole step, over all its micro-batches
 *     an_step_micro_batch …         forward and backward; gradients are accumulated
 *     an_step_reduce                adds the gradients of the leaves
 *     an_step_unscale               the norm; with f16, whether the step is skipped
 *     an_step_clip                  optional
 *     an_step_update                the optimizer
 *     an_step_schedule              the next learning rate
 *     an_step_end                   the gradients are dropped
 *
 * Any other order is refused with AN_ERR_ORDER and the reason. A call that fails changes no weight.
 *
 * With several ranks, an_step_begin, an_step_reduce and an_step_unscale are collective: every rank calls them in every
 * step, with its own targets and micro-batches of its own leaves (an_stepper_leaves), of which there may be none. If a
 * rank fails in between, the next of them returns its error on all ranks. A rank that gives up by an_step_cancel
 * instead ends the training of all.
 */
#ifndef ANNEAL_STEP_H
#define ANNEAL_STEP_H

#include "anneal/anneal.h"
#include "anneal/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

typedef struct an_stepper an_stepper;

typedef struct an_stepper_options {
    size_t size;
    double rate;       /* peak learning rate; 1e-4 by default */
    double clip_norm;  /* maximum norm of all gradients; 1 by default; 0: no limit */
    double clip_value; /* maximum absolute value of an element of a gradient; 0: no limit */
    /* parts of a step whose gradients are added in a tree; 0: 1. Up to this many ranks give the same bits
     * (docs/bits.md). A rank whose leaves are n micro-batches has log2(n) more gradient buffers */
    int64_t leaves;
    uint64_t seed;           /* of dropout */
    const an_scaler *scaler; /* how the loss scale starts; NULL: defaults */
    /* decay of an exponential moving average of the weights, above 0 and below 1; 0: none. The parameters need room for
     * the average (an_params_options.average). The first update copies the weights. Each later one that is not skipped
     * adds (1 - ema_decay)·(weight - average) to the average. AN_PART_AVERAGE reads it */
    double ema_decay;
    bool scales; /* use a loss scale, for f16 */
    bool skips;  /* skip a step whose gradients are not finite; otherwise it is an error */
    /* the gradients of each leaf are rounded to bf16 before they are added in f32. Ranks that divide gradients then
     * send half as many bytes. The bits are the same on any number of ranks (docs/bits.md), but not those of f32 */
    bool reduces_bf16;
    uint8_t reserved[5];
} an_stepper_options;
AN_API void an_stepper_options_init(an_stepper_options *options, size_t size);

/* Creates a stepper. The program must have the training form. Program, optimizer and schedule must outlive the stepper.
 * `schedule` may be NULL: the rate is constant. `options` may be NULL. */
AN_API an_status an_stepper_create(an_stepper **stepper, an_program *program, an_optimizer *optimizer,
                                   const an_schedule *schedule, const an_stepper_options *options);
AN_API void an_stepper_destroy(an_stepper **stepper);

/* Begins a step with this number of targets, over all its micro-batches. Collective. */
AN_API an_status an_step_begin(an_stepper *stepper, int64_t targets);
/* Runs the program on the inputs that are set. Pass leaves in ascending order, each with one or more micro-batches.
 * `samples` is the number of samples in this micro-batch. */
AN_API an_status an_step_micro_batch(an_stepper *stepper, int64_t leaf, int64_t samples);
/* Adds the gradients of the leaves. Collective. */
AN_API an_status an_step_reduce(an_stepper *stepper);
/* Computes the norm, and whether the step is skipped. Collective. */
AN_API an_status an_step_unscale(an_stepper *stepper);
/* Clip the gradients (optional), update the weights, and set the next learning rate. */
AN_API an_status an_step_clip(an_stepper *stepper);
AN_API an_status an_step_update(an_stepper *stepper);
AN_API an_status an_step_schedule(an_stepper *stepper);
/* Ends the step and drops the gradients. `metrics` may be NULL. */
AN_API an_status an_step_end(an_stepper *stepper, an_step_metrics *metrics);

/* ==== details ==== the rest of the interface */

/* The leaves of this rank: first … end - 1. */
AN_API void an_stepper_leaves(const an_stepper *stepper, int64_t *first, int64_t *end);

/* Cancels the step in progress. Weights and schedule stay as they are. */
AN_API void an_step_cancel(an_stepper *stepper);
/* The learning rate of the next step. */
AN_API double an_stepper_rate(const an_stepper *stepper);

#ifdef __cplusplus
}
#endif
#endif

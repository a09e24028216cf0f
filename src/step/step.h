/* One step of the optimizer, part by part. */
#ifndef AN_STEP_STEP_H
#define AN_STEP_STEP_H

#include "exec/program.h"
#include "step/agree.h"
#include "step/extras.h"
#include "step/leaves.h"
#include "step/optimizer.h"
#include "step/remote_weights.h"
#include "step/rounds.h"
#include "step/schedule.h"

/* Where a step stands. The calls of train.h lead from one to the next. */
typedef enum an_step_place {
    AN_STEP_IDLE,
    AN_STEP_BEGUN,       /* the number of targets is known */
    AN_STEP_ACCUMULATED, /* at least one micro-batch has run */
    AN_STEP_REDUCED,
    AN_STEP_UNSCALED, /* the norm is known */
    AN_STEP_CLIPPED,
    AN_STEP_UPDATED,
    AN_STEP_SCHEDULED,
    AN_STEP_PLACES
} an_step_place;

/* A failure of one rank, in a leaf or in none (-1). */
typedef struct an_step_failure {
    an_status status;
    int64_t leaf;
    char message[AN_MESSAGE_BYTES];
} an_step_failure;

struct an_stepper {
    an_context *ctx;
    an_program *program;
    an_params *params;
    an_optimizer *optimizer;
    const an_schedule *schedule; /* NULL: constant */
    an_stepper_options options;
    an_step_place place;

    /* the step that is under way */
    int64_t targets, samples;
    int64_t divisor;                /* of the loss: the targets, or what an_step_divide says */
    double each;                    /* what the loss of the step is divided by first */
    bool skipped, clipped, is_last; /* is_last: the next micro-batch is the last of this rank */
    double norm, loss;              /* of the whole step; the loss is a sum */
    an_statistics statistics;
    an_leaves leaves; /* … or they run in rounds */
    an_leaf_rounds rounds;
    an_extras extras;
    const double *sums;        /* numbers of the whole step, after an_step_unscale */
    an_remote_weights weights; /* that other ranks update */

    /* ranks */
    char *record; /* two of them: this rank's, an an_agreement and the numbers of the leaves, and room for another's */
    size_t record_bytes;
    int leaf_forests;        /* in the record: one, or one for each round */
    an_forest *page_forests; /* in this rank's record; NULL: every rank has all gradients, and so their norm */
    an_step_failure failed;  /* of this rank: what the next record tells the others */
    bool compared;           /* all weights were, at the first step */
    bool replicas_compared;  /* … and in a hybrid those of all hosts */
    bool settled;            /* the step has ended, or fails, on all ranks alike */
    bool broken;             /* an exchange failed, so ranks may differ */
    an_run_facts facts;      /* of this rank; after an_step_unscale: of all */

    /* the run */
    an_scaler scaler;
    int64_t step; /* of the schedule: steps that were not skipped */
    int64_t steps, skips;
    int64_t skips_in_row; /* up to the last step */
};

/* What the memory and the messages of a stepper follow from, beside the model. */
typedef struct an_stepper_shape {
    const an_borders *borders;
    int rank, host_ranks;
    bool norms; /* of each parameter, too */
    bool is_bf16;
} an_stepper_shape;

/* Adds what a stepper of this model takes, but for the gradients of leaves, which the plan counts, and what a
 * step moves between ranks. */
an_status an_stepper_predict(const an_plan *plan, const an_params_pieces *pieces, const an_stepper_shape *options,
                             size_t *bytes, an_reduction_cost *cost);

/* ---- ranks ---- */

static inline bool an_step_is_alone(const an_stepper *s) {
    return an_axis_ranks(s->ctx, AN_AXIS_DATA) == 1;
}

static inline bool an_step_has_rounds(const an_stepper *s) {
    return s->rounds.ctx != NULL;
}

/* The forests of the numbers of leaves: one, or one for each round. */
int an_step_leaf_forests(const an_params_pieces *pieces, int64_t leaves);
/* What ranks agree on, with the numbers of their leaves behind it; and behind those, the squares of the
 * pages of a store in pieces. */
size_t an_step_record_bytes(const an_graph *model, int64_t leaves, int forests);
/* Agrees with the other ranks on `a`, which an_agreement_begin has made, and on so many forests behind it; this
 * rank's failure goes with it. */
an_status an_step_agree(an_stepper *s, an_agreement *a, int forests);
/* Weights that one rank alone has loaded, or that ranks update otherwise, would be a run that nothing can repeat. */
an_status an_step_compare_weights(an_stepper *s, an_agreement *a);

/* What a step has: of this rank, and after an_step_begin_all of all ranks. */
typedef struct an_step_counts {
    int64_t targets, samples;
    int64_t counted, maximum; /* samples that have targets, or the weights of all; the most targets of a sample */
} an_step_counts;
/* Begins a step. The first record: if a rank has failed, all return its error. Collective. */
an_status an_step_begin_all(an_stepper *stepper, an_step_counts *counts);
/* A failure of this rank, in a leaf or in none (-1). With one rank it is returned; with several, AN_OK is, and the
 * step goes on to the next record, where all ranks return the error. */
an_status an_step_fail(an_stepper *stepper, an_status status, int64_t leaf);
/* Runs the program on the inputs that are set: a micro-batch of `count` leaves from `leaf` on, a node of the tree, or
 * of a part of one leaf. The last sample of each is ends[i] - 1. */
an_status an_step_run_leaves(an_stepper *stepper, int64_t leaf, int64_t count, const int64_t *ends);
/* The next micro-batch is the last of this rank. */
void an_step_expect_last(an_stepper *stepper);

/* Between these calls, programs that run outside of a step have the weights of other ranks that they read.
 * Collective. */
an_status an_step_begin_reading(an_stepper *stepper);
an_status an_step_end_reading(an_stepper *stepper);

/* For means with weights: the loss of the step that has begun is divided by divisor × each instead of its targets. */
an_status an_step_divide(an_stepper *stepper, int64_t divisor, double each);

#endif

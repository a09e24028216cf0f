/* One step of the optimizer, part by part. */
#ifndef AN_TRAIN_STEP_H
#define AN_TRAIN_STEP_H

#include "comm/tree.h"
#include "exec/program.h"
#include "train/optimizer.h"
#include "train/schedule.h"

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

/* A running statistic: the weighted mean of a step's micro-batches, then one update with the op's momentum. */
typedef struct an_step_state {
    const char *name;
    const an_stored *stored;
    double momentum;
    double *sum; /* of a statistic times its samples, for the nodes of the tree that wait: elements each */
} an_step_state;

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
    int64_t divisor;            /* of the loss: the targets, or what an_step_divide says */
    int64_t each;               /* what the loss of a micro-batch is divided by first */
    int64_t leaf, leaf_samples; /* the one under way; -1: none */
    double leaf_loss;
    bool skipped, clipped;
    double norm;

    /* leaves: buffers[i] holds the gradients of node i of the tree; the rest are free */
    an_tree tree;
    void **buffers;
    int buffer_count;
    const an_kernel *add;  /* the device's, for two of them; NULL: there is one */
    double *losses;        /* of the nodes, and of the leaf under way */
    int64_t *node_samples; /* the same */

    an_step_state *states;
    int state_count;
    double *staging; /* one statistic */
    int64_t staging_elements;

    /* the run */
    an_scaler scaler;
    int64_t step; /* of the schedule: steps that were not skipped */
    int64_t steps, skips;
    int64_t skips_in_row; /* up to the last step */
};

/* Adds what a stepper of this model takes, but for the gradients of leaves, which the plan counts. */
bool an_stepper_bytes(const an_graph *model, int64_t leaves, size_t *bytes);

/* For means over samples: the loss of the step that has begun is divided by divisor × each instead of its targets. */
an_status an_step_divide(an_stepper *stepper, int64_t divisor, int64_t each);

#endif

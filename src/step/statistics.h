/* Running statistics of a model, such as those of batch norm: the weighted mean of a step's micro-batches, then one
 * update with the op's momentum. */
#ifndef AN_STEP_STATISTICS_H
#define AN_STEP_STATISTICS_H

#include "exec/program.h"

/* The numbers of a leaf, or of a node of the tree over leaves: its loss, its samples, then the
 * statistics, each times its samples. */
enum { AN_LEAF_LOSS, AN_LEAF_SAMPLES, AN_LEAF_STATES };

typedef struct an_statistic {
    const char *name;
    const an_stored *stored;
    double momentum;
    int64_t first; /* of its sums among the numbers of a node */
} an_statistic;

typedef struct an_statistics {
    an_context *ctx;
    an_program *program;
    an_statistic *states;
    int count;
    double *staging; /* one statistic */
    int64_t staging_elements;
} an_statistics;

/* How many numbers a leaf of this model has. */
int64_t an_leaf_width(const an_graph *model);
/* How many of them, from the first on, are f32: the loss, if the model computes in f32. */
int an_leaf_narrow(const an_graph *model);

/* Adds what they take. */
bool an_statistics_bytes(const an_graph *model, size_t *bytes);
an_status an_statistics_make(an_statistics *s, an_program *program);
void an_statistics_destroy(an_statistics *s);

/* Adds those of the micro-batch that has run, times its samples, to the numbers of its leaf. */
an_status an_statistics_add(an_statistics *s, int64_t samples, double *sums);
/* running ← (1 - momentum)·running + momentum·mean, in f64, rounded once; `sums` are the numbers of the whole step. */
an_status an_statistics_update(an_statistics *s, const double *sums);

#endif

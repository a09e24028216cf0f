/* Leaves in rounds, for ranks that divide gradients: in round j, rank r of P runs leaf j·P + r as one micro-batch, and the gradients of each unit go to the owners of its pieces while backward
 * still computes (comm/scatter.h). No rank ever holds the gradients of a whole leaf.
 *
 * In a hybrid every host has the whole state, and a run of neighbouring leaves of its own. Its ranks run these in rounds, and then the owners of a piece on all hosts add what their hosts have of it
 * (comm/reduce.h): across hosts, each gradient goes once a step.
 *
 * All ranks take part in all rounds, because owners wait for every rank. One whose leaf has no samples, or that has no leaf in the last round, runs only what the program exchanges. */
#ifndef AN_STEP_ROUNDS_H
#define AN_STEP_ROUNDS_H

#include "comm/scatter.h"
#include "exec/program.h"
#include "step/statistics.h"

typedef struct an_leaf_rounds {
    an_context *ctx; /* NULL: leaves do not run in rounds */
    an_program *program;
    an_params *params;
    an_scatter_options options;
    an_reduction_unit *units; /* in the options, and behind them `pieces` */
    size_t unit_records;
    int rank, ranks;     /* that run the leaves of options.leaves */
    int64_t count, next; /* rounds of a step, and the one that comes next */
    bool is_absent;      /* in the round under way */
    an_forest *forests;  /* the numbers of this rank's leaf of each round, one after another: the caller's memory */
    int64_t width;
    an_scattering *scattering;
    an_reduction *hosts;       /* adds this rank's pieces of all hosts; NULL: there is one */
    an_reduction_unit *pieces; /* of this rank, that are not empty */
    int piece_count;
} an_leaf_rounds;

/* How many rounds so many leaves are; 0: there are none. */
int64_t an_leaf_rounds_count(const an_params_pieces *pieces, int64_t leaves);
/* The leaves of the ranks that run them together: all, or in a hybrid those of this host. */
an_leaf_range an_leaf_rounds_range(const an_shards *shards, int64_t leaves);
/* Adds what they take, with the gradients that wait to be added, and what a step moves. */
an_status an_leaf_rounds_predict(const an_plan *plan, const an_params_pieces *pieces, int64_t leaves, bool is_bf16,
                                 size_t *bytes, an_reduction_cost *cost);
/* Of these bytes, the gradients that wait to be added. */
an_status an_leaf_rounds_waiting(const an_plan *plan, const an_params_pieces *pieces, int64_t leaves, bool is_bf16,
                                 size_t *bytes);
/* `forests` has one forest of all leaves, an_leaf_width wide, for each round. */
an_status an_leaf_rounds_make(an_leaf_rounds *r, an_program *program, int64_t leaves, bool is_bf16, an_forest *forests);
void an_leaf_rounds_destroy(an_leaf_rounds *r);

an_status an_leaf_rounds_start(an_leaf_rounds *r);
/* Before the leaf runs: the rounds up to it, in which this rank had nothing to run. Leaves come in increasing order, each once. */
an_status an_leaf_rounds_enter(an_leaf_rounds *r, int64_t leaf);
/* The numbers of the leaf that was entered last. */
double *an_leaf_rounds_sums(an_leaf_rounds *r);
/* After the last leaf: what is left of the rounds. The parameters' gradients are then the sums of this rank's pieces. With a status other than AN_OK, this rank has failed, and the others do not wait
 * for it. */
an_status an_leaf_rounds_reduce(an_leaf_rounds *r, an_status status);
/* The forests of all rounds in one, once those of all ranks are merged. */
void an_leaf_rounds_join(an_leaf_rounds *r);
/* The numbers of the whole step, once that has those of all leaves. */
an_status an_leaf_rounds_close(an_leaf_rounds *r, const double **sums);
void an_leaf_rounds_cancel(an_leaf_rounds *r);

#endif

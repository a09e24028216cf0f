/* Leaves in rounds, for ranks that divide gradients. Neighbouring leaves, a power of two of them, are one node of the
 * tree: in round j, rank r of P makes node j·P + r, and the gradients of each unit go to the owners of its pieces
 * (comm/scatter.h).
 *
 * If the node is one micro-batch, they go while backward still computes, and no rank ever holds the gradients of a
 * whole node. If it is several, which are leaves or parts of one, the rank adds them in buffers of its own
 * (step/leaves.h), and they go while the last one computes: it sends once where it would send in each micro-batch.
 *
 * In a hybrid every host has the whole state, and a run of neighbouring leaves of its own. Its ranks run these in
 * rounds, and then the owners of a piece on all hosts add what their hosts have of it (comm/reduce.h): across hosts,
 * each gradient goes once a step.
 *
 * All ranks take part in all rounds, and in all micro-batches of a round, because owners wait for every rank. One that
 * has no samples left, or no node in the last round, runs only what the program exchanges. */
#ifndef AN_STEP_ROUNDS_H
#define AN_STEP_ROUNDS_H

#include "comm/scatter.h"
#include "exec/program.h"
#include "step/leaves.h"

typedef struct an_leaf_rounds {
    an_context *ctx; /* NULL: leaves do not run in rounds */
    an_program *program;
    an_params *params;
    an_scatter_options options;
    an_reduction_unit *units; /* in the options, and behind them `pieces` */
    size_t unit_records;
    int rank, ranks;      /* that make the nodes of options.leaves */
    int64_t leaves, each; /* of the step, and of a node */
    int64_t count;        /* rounds of a step */
    int64_t passes, next; /* micro-batches of a round, and the one of the step that comes next */
    bool is_absent;       /* in the one under way */
    an_forest *forests;   /* the numbers of this rank's node of each round, one after another: the caller's memory */
    int64_t width;
    int narrow;
    an_leaves own; /* where a round has several micro-batches: the node that is being made */
    an_scattering *scattering;
    an_reduction *hosts;       /* adds this rank's pieces of all hosts; NULL: there is one */
    an_reduction_unit *pieces; /* of this rank, that are not empty */
    int piece_count;
} an_leaf_rounds;

/* How many rounds so many leaves are; 0: there are none. */
int64_t an_leaf_rounds_count(const an_params_pieces *pieces, int64_t leaves);
/* … and how many micro-batches each has, on every rank. */
static inline int64_t an_leaf_rounds_passes(const an_params_pieces *pieces) {
    return pieces->round_passes > 1 ? pieces->round_passes : 1;
}
/* The nodes, of so many leaves each, of the ranks that make them together: all, or in a hybrid those of one of the
 * hosts. */
an_leaf_range an_leaf_rounds_range(int64_t leaves, int64_t each, int groups, int group);
/* The most leaves that a node may have so that no rank has more to compute than with nodes of one leaf: a power of two.
 * `ranks` are those of a group. O(groups). */
int64_t an_leaf_rounds_most(int64_t leaves, int ranks, int groups);
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
/* Before a micro-batch of `count` leaves from `leaf` on runs: those up to its round, in which this rank had nothing to
 * run. Leaves come in increasing order. */
an_status an_leaf_rounds_enter(an_leaf_rounds *r, int64_t leaf, int64_t count, an_leaf_entry *entry);
/* After the last leaf: what is left of the rounds. The parameters' gradients are then the sums of this rank's pieces.
 * With a status other than AN_OK, this rank has failed, and the others do not wait for it. */
an_status an_leaf_rounds_reduce(an_leaf_rounds *r, an_status status);
/* The forests of all rounds in one, once those of all ranks are merged. Nothing happens if there are no rounds. */
void an_leaf_rounds_join(an_leaf_rounds *r);
void an_leaf_rounds_cancel(an_leaf_rounds *r);

#endif

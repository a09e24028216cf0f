/* The leaves of a step that this rank has: their gradients and numbers, how they are added, and how the sums meet those
 * of other ranks.
 *
 * Leaves are added in the tree of base/tree.h as far as the rank's own range allows (comm/forest.h). Node i of the list
 * has buffer i for its gradients; the leaf under way has the first free one. With several ranks, what is left is
 * exchanged unit by unit: while the last backward still computes, or afterwards. */
#ifndef AN_STEP_LEAVES_H
#define AN_STEP_LEAVES_H

#include "comm/forest.h"
#include "comm/reduce.h"
#include "exec/program.h"
#include "pass/units.h"
#include "step/statistics.h"

/* Begins to send a unit to other ranks. nodes: the gradients of this rank's nodes, from left to right; NULL: it has
 * none, or has failed, and others wait for it all the same. */
typedef an_status (*an_leaves_send)(void *user, int unit, void *const *nodes);

/* What a micro-batch adds to. */
typedef struct an_leaf_entry {
    bool first;   /* nothing was added yet to the gradients that it makes */
    double *sums; /* the numbers of its node */
} an_leaf_entry;

typedef struct an_leaves {
    an_context *ctx;
    an_program *program;
    an_params *params;
    an_leaf_range range; /* of this rank */
    an_forest *forest;   /* the caller's memory */
    int64_t width;       /* numbers of a node */
    int64_t leaf, end;   /* under way: leaves from this one to `end`, a node of the tree; -1: none */
    int narrow;          /* an_forest.narrow */
    bool is_bf16;        /* of each leaf, before it is added */
    void **buffers;
    size_t buffer_room;
    int buffer_count, first_own; /* those before `first_own` are the parameters' or the reduction's */
    const an_kernel *add;        /* the device's, for two buffers; NULL: there is one */

    /* several ranks */
    an_leaves_send send; /* NULL: one rank */
    void *send_user;
    an_reduction *reduction;       /* which sends; NULL: something else does. The parameters' own, if `borrows` */
    bool borrows;                  /* the parameters have their gradients from it */
    an_unit *units;                /* NULL: not its own */
    an_reduction_unit *exchanged;  /* the same, for the reduction */
    const an_reduction_unit *sent; /* what is sent: the same, or the caller's */
    int unit_count, unit_capacity;
    int node_count;              /* maximal nodes of the range */
    void *nodes[AN_FOREST_MOST]; /* their gradients, in the step under way */
    int started;                 /* units of the step that are being exchanged, or were */
} an_leaves;

/* Adds what they take, without the gradients that the plan counts, and what a step moves between ranks. A pure
 * function: no rank is asked. */
an_status an_leaves_predict(const an_plan *plan, const an_borders *borders, bool scatters, int rank, int host_ranks,
                            size_t *bytes, an_reduction_cost *cost);

/* Collective if there are several ranks, as many as the borders say. Ranks of one host have their gradients in
 * memory that they share (an_host_ranks), also after an_leaves_destroy. `forest` has an_forest_bytes(leaves,
 * an_leaf_width(model)) and stays the caller's. `is_bf16`: the gradients of each leaf, which are f32 then, are
 * rounded to bf16 before they are added. */
an_status an_leaves_make(an_leaves *l, an_program *program, const an_borders *borders, bool is_bf16, an_forest *forest);
void an_leaves_destroy(an_leaves *l);

/* Those of one node of the tree, `range`, that a rank makes in several micro-batches and then sends with `send`:
 * an_leaves_regroup says which node comes next. All of its buffers are its own. `units` stay the caller's. */
typedef struct an_leaf_group {
    an_leaf_range range;
    const an_reduction_unit *units;
    int unit_count;
    an_leaves_send send;
    void *send_user;
} an_leaf_group;
an_status an_leaves_make_group(an_leaves *l, an_program *program, const an_leaf_group *group);
/* What that takes, without the gradients. */
size_t an_leaves_group_bytes(int64_t leaves);
/* Begins a node with as many leaves, or fewer if there are no more. The gradients of the node before it are
 * overwritten. */
void an_leaves_regroup(an_leaves *l, const an_leaf_range *range, an_forest *forest);

void an_leaves_start(an_leaves *l);
/* Before a micro-batch of `count` leaves from `leaf` on; `is_last`: of this rank. Several leaves are a whole node of
 * the tree (leaves that do not exist do not count), and one micro-batch. In the last one, the gradients of units are
 * exchanged as soon as they are complete. */
an_status an_leaves_enter(an_leaves *l, int64_t leaf, int64_t count, bool is_last, an_leaf_entry *entry);
/* Whether the run that comes next, which has no samples of this rank, sends what the micro-batches before
 * it have made. Of a group. */
void an_leaves_send_next(an_leaves *l, bool on);
/* No more micro-batches come: adds what is left to be added on this rank. */
an_status an_leaves_complete(an_leaves *l);
/* All micro-batches of this rank have run: its numbers are the list of its nodes, and the parameters' gradients are
 * those of the whole step, of all ranks. With a status other than AN_OK, gradients are exchanged as they are,
 * because other ranks wait for them. */
an_status an_leaves_reduce(an_leaves *l, an_status status);
/* Gives the step up. */
void an_leaves_cancel(an_leaves *l);

#endif

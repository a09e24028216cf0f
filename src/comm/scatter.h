/* The sum of all leaves' gradients, of which each rank gets its own pieces: the gradients of a leaf go to their owners
 * as soon as they are made, and nobody holds a whole sum.
 *
 * In round j, rank r of P makes the gradients of leaf j·P + r, unit by unit, and sends every other rank its piece of
 * each unit (comm/pieces.h). An owner adds what comes to what it has, in the order of the tree (base/tree.h): nodes
 * that wait for their right neighbour lie in a stack of buffers, of which the lowest becomes the sum. So the sum has
 * the bits of one process for every number of ranks. There are as many buffers as j·P has one-bits at most, because the
 * leaves of one round are added as they lie in the staging.
 *
 * All ranks take part in all rounds. Who has an absent leaf sends -0.0 (comm/forest.h). In the last round there may be
 * fewer leaves than ranks: those that have none send nothing. So what is moved is known before, whatever the data are.
 *
 * A unit is cut into buckets. A bucket is the same slice of every rank's piece, and all leaves of the round come
 * together: the staging has a few MiB, however large a unit is and however many ranks there are, and each sum is read
 * and written once a round.
 *
 * A step: an_scattering_begin; in each round an_scattering_start for each unit, in the same order on all ranks, and
 * an_scattering_wait before its gradients are overwritten; an_scattering_finish. */
#ifndef AN_COMM_SCATTER_H
#define AN_COMM_SCATTER_H

#include "comm/forest.h"
#include "comm/pieces.h"
#include "comm/reduce.h"

typedef struct an_scattering an_scattering;

typedef struct an_scatter_options {
    an_leaf_range leaves; /* whose gradients are added: all leaves of the step, or those of one host; not empty */
    an_dtype dtype;       /* AN_DTYPE_F32 or AN_DTYPE_F64 */
    /* of f32: each number of a leaf is rounded to bf16 once, on all ranks alike, travels as that, and is added in
     * f32 */
    bool is_bf16;
    int64_t pages;                  /* of a flat gradient: AN_PAGE elements each */
    const an_reduction_unit *units; /* in the order of their pages, none of which is in two of them */
    int unit_count;
    size_t bucket_bytes; /* of all slices of a bucket together, at most; 0: AN_BUCKET_BYTES, or more with many ranks */
    int in_flight;       /* buckets on their way at a time, 1 to AN_MOST_IN_FLIGHT; 0: AN_BUCKETS_IN_FLIGHT */
} an_scatter_options;

/* The leaf of a rank in round 0 … an_scatter_rounds - 1; -1: it has none. */
int64_t an_scatter_rounds(const an_scatter_options *options, int ranks);
int64_t an_scatter_leaf(const an_scatter_options *options, int rank, int ranks, int64_t round);

/* What it takes, to the byte, and what it moves in a step. A pure function: no rank is asked. */
typedef struct an_scatter_cost {
    size_t bytes;       /* allocated through the context: tables and staging */
    size_t stack_bytes; /* of the pieces that wait, without dst: memory of the system that the context counts */
    int64_t sent, received, messages; /* bytes, and how many messages were sent */
} an_scatter_cost;
an_scatter_cost an_scatter_predict(const an_scatter_options *options, int rank, int ranks);

/* Not collective, but every rank must have the same options. One scattering at a time may have units under way on a
 * communicator. The context must have the host's memory. */
an_status an_scattering_create(an_scattering **scattering, an_context *ctx, an_comm *comm,
                               const an_scatter_options *options);
void an_scattering_destroy(an_scattering **scattering);

/* What was moved so far, as it was counted when it was; the memory is that of an_scatter_predict. */
an_scatter_cost an_scattering_count(const an_scattering *scattering);

/* Begins a step. dst: where the sum goes, a flat gradient of which only this rank's pieces are touched. It belongs
 * to the scattering until an_scattering_finish. */
an_status an_scattering_begin(an_scattering *scattering, void *dst);
/* Begins to send and to add one unit of one round. src: all pages of the unit, of this rank's leaf; they stay as they
 * are until an_scattering_wait. NULL: nothing is read, and -0.0 is sent. So it is where the leaf is absent, where the
 * round has no leaf for this rank, and where this rank has failed and the others must not wait for it. Returns at
 * once. Rounds of a unit are started in their order, each after the one before it was waited for; the order of units
 * is the same on all ranks. */
an_status an_scattering_start(an_scattering *scattering, int unit, int64_t round, const void *src);
/* Until this unit, as it was started last, is sent and added: then src may change. Returns at once for a
 * unit that is not under way. */
an_status an_scattering_wait(an_scattering *scattering, int unit);
/* Until all rounds of all units are added. */
an_status an_scattering_finish(an_scattering *scattering);
/* Gives up what is under way. Other ranks must be told (an_comm_abort): they wait for it. If a step was begun, the
 * scattering cannot be used any more. */
void an_scattering_cancel(an_scattering *scattering);

/* After an_scattering_finish: the maximal tree nodes of options.leaves, from left to right, which is one sum if these
 * are all leaves of the step. Each is a flat gradient of which only this rank's pieces are there; the first is dst.
 * The others stay until the next an_scattering_begin. */
int an_scattering_nodes(const an_scattering *scattering);
void *an_scattering_node(const an_scattering *scattering, int index);

#endif

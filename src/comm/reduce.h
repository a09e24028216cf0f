/* The sum of all ranks' gradients, with the bits of one process: runs the exchanges of comm/schedule.h and never
 * blocks. Every rank gets all of it, or each the pieces that it owns.
 *
 * A unit is a run of pages that is reduced as soon as its gradients are complete, such as those of a block. It is cut
 * into buckets of a few MiB, of which some are on their way at a time: while one waits for messages, another is added.
 * All ranks start the same units in the same order.
 *
 * Ranks of one host can share memory: if the reduction has allocated the gradients (`buffers`), owners read their pages
 * where the other ranks of the host have computed them, and write the sum where it belongs. Then nothing is copied
 * and nothing is staged; the ranks tell each other by counters how far they are. */
#ifndef AN_COMM_REDUCE_H
#define AN_COMM_REDUCE_H

#include "base/integer.h"
#include "comm/comm.h"
#include "comm/schedule.h"

typedef struct an_reduction an_reduction;

typedef struct an_reduction_unit {
    an_page_range pages; /* not empty */
    const char *name;    /* "blocks.3", for messages and for who asks why nothing moves; must outlive the reduction */
    int turn;            /* if owners keep the sums: as in comm/pieces.h */
} an_reduction_unit;

typedef struct an_reduction_options {
    an_borders borders; /* the leaves of every rank */
    an_dtype dtype;     /* AN_DTYPE_F32 or AN_DTYPE_F64 */
    int64_t pages;      /* of a flat gradient: AN_PAGE elements each */
    const an_reduction_unit *units;
    int unit_count;
    /* flat gradients that the reduction allocates (an_reduction_buffer); 0: the caller has its own, and no memory is
     * shared */
    int buffers;
    /* each rank keeps the sums of its own pieces of the units, and nothing is returned. One round: O(ranks) messages
     * for each bucket */
    bool scatters;
    bool uses_window;    /* share them between the ranks of a host, if the communicator and the system can */
    size_t bucket_bytes; /* at most; 0: AN_BUCKET_BYTES, or more with many ranks */
    int in_flight;       /* buckets on their way at a time, 1 to AN_MOST_IN_FLIGHT; 0: AN_BUCKETS_IN_FLIGHT */
    /* of rounds, `rounds` of them; NULL: an_rounds_make's own. With a window, the first round is the host */
    const int *radices;
    int rounds;
} an_reduction_options;

/* Small buckets stay in a core's cache from their arrival until they are added; large ones wait less often for other
 * ranks, which counts where other processes have the cores. With many ranks, messages should not cost more than
 * their bytes. docs/evidence/reduce.md has what was measured. */
enum {
    AN_BUCKET_BYTES = 4 << 20,
    AN_BUCKET_BYTES_OF_RANK = 64 << 10, /* with many ranks: so much for each of them */
    AN_MOST_BUCKET_BYTES = 32 << 20,
    AN_BUCKETS_IN_FLIGHT = 2,
    AN_MOST_IN_FLIGHT = 64
};

/* What a bucket has at most: what was given, or if that is 0, what suits so many ranks. */
static inline int64_t an_bucket_most_bytes(size_t given, int ranks) {
    if (given > 0) return (int64_t)given;
    const int64_t maximum = (int64_t)ranks * AN_BUCKET_BYTES_OF_RANK;
    return an_smaller(an_larger(AN_BUCKET_BYTES, maximum), AN_MOST_BUCKET_BYTES);
}

/* What a reduction takes, to the byte, and what it moves if each unit is started once. A pure
 * function: no rank is asked. */
typedef struct an_reduction_cost {
    size_t bytes;                     /* allocated through the context: tables and staging */
    size_t buffer_bytes;              /* of the flat gradients: in the window, or through the context */
    size_t window_bytes;              /* of this rank's part of the window, with the gradients; 0: no window */
    int64_t sent, received, messages; /* bytes by messages, and how many were sent */
    int64_t read, written; /* bytes of other ranks' gradients that this rank has read and written in the window */
} an_reduction_cost;

/* How many of the ranks of a host share a window: 1 if there is none. Sums that their owners keep go through one
 * only if all ranks are on one host. */
int an_reduction_shares(const an_reduction_options *options, int host_ranks);
/* `host_ranks`: the ranks of a host that share a window; 1: none. */
an_reduction_cost an_reduction_predict(const an_reduction_options *options, int rank, int host_ranks);

/* Collective, at the start: ranks agree whether there is a window (an_host_ranks), and may block. If there can be none,
 * that is logged, and messages are used. With one rank there is nothing to do, and the object does nothing. The
 * context must have the host's memory. */
an_status an_reduction_create(an_reduction **reduction, an_context *ctx, an_comm *comm,
                              const an_reduction_options *options);
/* Collective if there is a window and no rank has given up. */
void an_reduction_destroy(an_reduction **reduction);

/* A flat gradient, 0 to options.buffers - 1, which lives as long as the reduction. */
void *an_reduction_buffer(const an_reduction *reduction, int index);
/* The maximal tree nodes of this rank's leaves: so many flat gradients an_reduction_start takes. */
int an_reduction_nodes(const an_reduction *reduction);
/* The ranks of this host that share a window; 1: messages. */
int an_reduction_host_ranks(const an_reduction *reduction);
/* Bytes so far, as they were counted when they were moved; the memory is that of an_reduction_predict. */
an_reduction_cost an_reduction_count(const an_reduction *reduction);

/* Begins to add one unit. nodes[i]: the flat gradient of this rank's i-th tree node; dst: where the sum goes, a
 * flat gradient that may be one of them. Both stay as they are, in the pages of this unit, until
 * an_reduction_finish. If owners keep the sums, only the pages of this rank's piece of the unit are written.
 * With a window they are buffers of the reduction. Returns at once. Each unit is started once before
 * an_reduction_finish, in the same order on all ranks. */
an_status an_reduction_start(an_reduction *reduction, int unit, void *const *nodes, void *dst);
/* Until all units that were started are done. */
an_status an_reduction_finish(an_reduction *reduction);
/* Gives up what is under way. Other ranks must be told (an_comm_abort): they wait for it. */
void an_reduction_cancel(an_reduction *reduction);

#endif

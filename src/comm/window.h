/* Gradients in memory that the ranks of one host share, and counters that say how far each rank is.
 *
 * A rank's part of the window begins with its counters and the places of its gradients for each unit; its gradients
 * follow. Other ranks write to the gradients of a part, and never to the rest. */
#ifndef AN_COMM_WINDOW_H
#define AN_COMM_WINDOW_H

#include "comm/comm.h"

typedef struct an_window {
    an_comm *host;         /* the ranks that share it */
    an_comm_window shared; /* shared.parts[i]: the part of rank i of the host */
    size_t bytes;          /* of this rank's part */
} an_window;

/* What a rank tells the others. Counters have cache lines of their own: another rank reads them again and again. */
typedef struct an_window_counter {
    _Alignas(64) uint64_t count;
} an_window_counter;

typedef struct an_window_head {
    uint64_t bytes;            /* of the part */
    an_window_counter started; /* buckets whose gradients are complete, since the beginning */
    /* By bucket in flight: the number, plus 1, of the last bucket whose pages this rank has added and returned. */
    an_window_counter done[];
} an_window_head;

static inline an_window_head *an_window_part(const an_window *window, int rank) {
    return window->shared.parts[rank];
}

static inline void an_window_publish(an_window_counter *counter, uint64_t count) {
    __atomic_store_n(&counter->count, count, __ATOMIC_RELEASE);
}

static inline uint64_t an_window_read(const an_window_counter *counter) {
    return __atomic_load_n(&counter->count, __ATOMIC_ACQUIRE);
}

/* How many ranks of each host can share a window and want to: all hosts have the same number of ranks, but the last,
 * which may have fewer, and the ranks of a host are neighbours. 1 on all ranks if it is not so. Collective. */
an_status an_window_ranks(an_context *ctx, int *host_ranks);

/* Shares `bytes` of each rank of the host. *opened is false on all ranks of `comm` if one of them cannot: the
 * log says why. Collective. */
an_status an_window_open(an_window *window, an_context *ctx, an_comm *comm, size_t bytes, bool *opened);
/* Collective over the host, unless a rank has given up: then the communicator keeps the memory until it ends, as
 * another rank may still write to it. */
void an_window_close(an_window *window, an_context *ctx);

#endif

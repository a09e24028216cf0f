/* What the files of a gathering share: the ranks, and one unit on its way (gather_slot.c), which each call moves on
 * as far as messages, or versions in the window, have come. */
#ifndef AN_COMM_GATHER_INSIDE_H
#define AN_COMM_GATHER_INSIDE_H

#include "comm/gather.h"

enum { AN_GATHER_COPY_BYTES = 4 << 20 }; /* at most in one call: some hundred microseconds */

/* The ranks of a gathering, and how they are reached. */
typedef struct an_gather_peers {
    an_context *ctx;
    an_comm *comm;
    int rank, ranks;
    size_t page_bytes[AN_GATHER_CHANNELS];
    size_t message_bytes;
    bool is_windowed; /* through the window, else by messages */
    const an_window *window;
    size_t head_at;
    uint64_t *part_bytes; /* of the window, by rank */
    an_gather_cost count; /* what was moved */
} an_gather_peers;

static inline an_gather_head *an_gather_head_of(const an_gather_peers *peers, int rank) {
    return (an_gather_head *)(void *)((char *)an_window_part(peers->window, rank) + peers->head_at);
}

typedef struct an_gather_slot {
    int index; /* which of those in flight, the same for a unit on all ranks: its tag */
    const an_gather_unit *unit;
    uint64_t version; /* of all ranks' pieces: what was published when it was started */
    const char *src[AN_GATHER_CHANNELS];
    char *dst[AN_GATHER_CHANNELS];
    bool has_come; /* all of it is in dst */
    bool is_busy;  /* … or this rank's messages are not gone yet */
    /* What is copied next. Ranks are counted from this one on: 0 is itself, and the others begin with its neighbour,
     * so that they do not all read from the same one. */
    int next_rank, next_run;
    size_t copied;             /* bytes of this run of this rank */
    an_comm_request *requests; /* receives from the front, sends from the back */
    int room, receives, sends;
} an_gather_slot;

/* Whether the ranks share the window that they were given. */
static inline bool an_gather_is_windowed(const an_gather_options *options, const an_comm *comm) {
    const an_window *window = options->window;
    return comm->ranks > 1 && window && window->host && window->host->ranks == comm->ranks;
}

an_status an_gather_check(an_context *ctx, const an_comm *comm, const an_gather_options *options);

/* The requests that a unit needs; its traffic is added to the cost. O(runs). */
int64_t an_gather_slot_measure(const an_gather_peers *peers, const an_gather_unit *unit, an_gather_cost *cost);

/* Unit, version, src and dst are set. */
an_status an_gather_slot_begin(an_gather_peers *peers, an_gather_slot *slot);
/* *moved: whether something has happened. The unit is done when it is not busy. */
an_status an_gather_slot_advance(an_gather_peers *peers, an_gather_slot *slot, bool *moved);
void an_gather_slot_cancel(an_gather_peers *peers, an_gather_slot *slot);

#endif

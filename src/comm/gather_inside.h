/* What the files of a gathering share: the ranks, and one unit on its way (gather_slot.c), which is one parcel of the
 * pipeline: each call moves it on as far as messages, or versions in the window, have come. */
#ifndef AN_COMM_GATHER_INSIDE_H
#define AN_COMM_GATHER_INSIDE_H

#include "comm/gather.h"
#include "comm/pipeline.h"

enum { AN_GATHER_COPY_BYTES = 4 << 20 }; /* at most in one call: some hundred microseconds */

/* What a unit was started with last. */
typedef struct an_gather_start {
    const void *src[AN_GATHER_CHANNELS];
    void *dst[AN_GATHER_CHANNELS];
} an_gather_start;

/* The ranks of a gathering, how they are reached, and the units that come from them. */
typedef struct an_gather_peers {
    an_pipeline pipeline; /* of units: a parcel each */
    int rank, ranks;
    size_t page_bytes[AN_GATHER_CHANNELS];
    size_t message_bytes;
    bool is_windowed; /* through the window, else by messages */
    const an_window *window;
    size_t head_at;
    uint64_t *part_bytes; /* of the window, by rank */
    int64_t read;         /* from the window so far */
    an_gather_unit *units;
    an_gather_start *starts; /* by unit: it is started again only when it has come, so no two of a unit wait */
    uint64_t version;        /* how often pieces were published */
} an_gather_peers;

static inline an_gather_head *an_gather_head_of(const an_gather_peers *peers, int rank) {
    return (an_gather_head *)(void *)((char *)an_window_part(peers->window, rank) + peers->head_at);
}

typedef struct an_gather_slot {
    an_parcel parcel;
    const an_gather_unit *unit;
    uint64_t version; /* of all ranks' pieces: what was published when it was started */
    const char *src[AN_GATHER_CHANNELS];
    char *dst[AN_GATHER_CHANNELS];
    bool has_come; /* all of it is in dst; it is busy until this rank's messages are gone, too */
    /* What is copied next. Ranks are counted from this one on: 0 is itself, and the others begin with its neighbour,
     * so that they do not all read from the same one. */
    int next_rank, next_run;
    size_t copied; /* bytes of this run of this rank */
} an_gather_slot;

/* Whether the ranks share the window that they were given. */
static inline bool an_gather_is_windowed(const an_gather_options *options, const an_comm *comm) {
    const an_window *window = options->window;
    return comm->ranks > 1 && window && window->host && window->host->ranks == comm->ranks;
}

an_status an_gather_check(an_context *ctx, const an_comm *comm, const an_gather_options *options);

/* The requests that a unit needs; its traffic is added to the cost. O(runs). */
int64_t an_gather_slot_measure(const an_gather_peers *peers, const an_gather_unit *unit, an_gather_cost *cost);

/* Of a pipeline whose owner are the peers. */
extern const an_pipeline_kind an_gather_kind;

#endif

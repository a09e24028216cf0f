/* The weights that ranks own, on every rank: pieces go from their owners to all others, unit by unit, and nothing
 * blocks.
 *
 * A unit is a range of pages, such as those of a block. Each rank owns a piece of it (comm/pieces.h). What is gathered
 * of a unit is a list of runs of its pages, in one of several channels: buffers of different element sizes, such as
 * masters and copies of low precision. Of each run, a rank sends what lies in its piece, from where it is to where it
 * goes: nothing is staged.
 *
 * Ranks of one host can share memory: if what they own lies in a window, nobody sends. A rank publishes that its pieces
 * are complete, and the others copy them.
 *
 * A step: an_gathering_publish after the update; an_gathering_start for each unit, in the same order on all ranks;
 * an_gathering_wait before the first reader of each unit; an_gathering_finish before the next update.
 *
 * A unit costs each rank O(ranks) messages, and requests in memory for them. With many hosts, the sharding `hybrid`
 * keeps the ranks of a gathering few. */
#ifndef AN_COMM_GATHER_H
#define AN_COMM_GATHER_H

#include "comm/comm.h"
#include "comm/pieces.h"
#include "comm/window.h"

typedef struct an_gathering an_gathering;

enum {
    AN_GATHER_CHANNELS = 2,
    AN_GATHER_IN_FLIGHT = 2, /* one that is waited for, and the next */
    AN_GATHER_MOST_IN_FLIGHT = 64
};

/* A run of pages of a unit in one channel. */
typedef struct an_gather_run {
    an_page_range pages; /* of the unit's; not empty */
    int channel;
    int64_t src_at, dst_at; /* bytes from the channel's src and dst to the run's first page */
} an_gather_run;

typedef struct an_gather_unit {
    an_page_range pages; /* its pieces are cut from these; not empty */
    int turn;            /* as in comm/pieces.h */
    const an_gather_run *runs;
    int run_count;    /* 0: nothing of it is gathered */
    const char *name; /* "blocks.3", for messages and for who asks why nothing moves; must outlive the gathering */
} an_gather_unit;

typedef struct an_gather_options {
    const an_gather_unit *units;
    int unit_count;
    size_t page_bytes[AN_GATHER_CHANNELS];
    int in_flight;        /* units on their way at a time, 1 to AN_GATHER_MOST_IN_FLIGHT; 0: AN_GATHER_IN_FLIGHT */
    size_t message_bytes; /* of one message, at most: longer ones are cut. 0: AN_COMM_MAX_BYTES */
    /* Of all ranks, and outlives the gathering. NULL, or of several hosts: messages are used. */
    const an_window *window;
    size_t head_at;                       /* an an_gather_head in every rank's part of it, aligned as that */
    size_t window_at[AN_GATHER_CHANNELS]; /* src in this rank's part: multiples of AN_ALIGNMENT */
} an_gather_options;

/* What a rank tells the others in the window. It begins as zeros. A later gathering in the same window goes on with
 * its counters, so that it cannot mistake old ones for its own. */
typedef struct an_gather_head {
    an_window_counter published;         /* how often this rank's pieces were complete */
    an_window_counter read;              /* units that this rank has read from all others */
    uint64_t places[AN_GATHER_CHANNELS]; /* window_at: where in this part src lies */
} an_gather_head;

/* What a gathering takes, to the byte, and what it moves if each unit is started once. A pure
 * function: no rank is asked. */
typedef struct an_gather_cost {
    size_t bytes;                     /* allocated through the context */
    int64_t sent, received, messages; /* bytes by messages, and how many were sent */
    int64_t read;                     /* bytes of other ranks that this rank has copied from the window */
} an_gather_cost;

/* `host_ranks`: the ranks of a host that share a window; it is used if they are all ranks. 1: none. */
an_gather_cost an_gather_predict(const an_gather_options *options, int rank, int ranks, int host_ranks);

/* Not collective, but every rank must have the same options, apart from its places in the window. One gathering at a
 * time may have units under way on a communicator, and in a head. The context must have the host's memory. */
an_status an_gathering_create(an_gathering **gathering, an_context *ctx, an_comm *comm,
                              const an_gather_options *options);
void an_gathering_destroy(an_gathering **gathering);

/* What was moved so far, as it was counted when it was; the memory is that of an_gather_predict. */
an_gather_cost an_gathering_count(const an_gathering *gathering);

/* The pieces of this rank are complete, in src of all channels, and stay as they are until an_gathering_finish. Once
 * after each update, before the first start. */
an_status an_gathering_publish(an_gathering *gathering);
/* Begins to gather one unit: this rank's piece of each run goes from src to every other rank, theirs come to dst.
 * Own pages are copied where src and dst are different places, which must not overlap. src[channel] and
 * dst[channel] are only looked at for channels that the unit uses; with a window, src is in it. dst is the
 * gathering's until the unit has come. Returns at once. Units are started in the same order on all ranks. A
 * unit that has come may be started again. */
an_status an_gathering_start(an_gathering *gathering, int unit, const void *const *src, void *const *dst);
/* Until all of this unit, as it was started last, is in dst. Returns at once for a unit that was never started. */
an_status an_gathering_wait(an_gathering *gathering, int unit);
/* Until all units that were started have come, and the other ranks have what they need from this one: then src may
 * change. */
an_status an_gathering_finish(an_gathering *gathering);
/* Gives up what is under way. Other ranks must be told (an_comm_abort): they wait for it. If there was something,
 * the gathering cannot be used any more. */
void an_gathering_cancel(an_gathering *gathering);

#endif

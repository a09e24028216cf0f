/* Messages between the ranks of a context: waits that have a place, a time limit and an end.
 *
 * After start-up nothing here blocks in MPI. Every wait is the loop of an_comm_wait, so a rank that waits can always be
 * asked what for, moves other messages on, and learns within a millisecond that another rank has given up
 * (an_comm_abort).
 *
 * Ranks form a mesh. Code asks for the communicator of an axis and never for the size of the world. */
#ifndef AN_COMM_COMM_H
#define AN_COMM_COMM_H

#include "anneal/experimental.h"
#include "base/context.h"

typedef enum an_axis {
    AN_AXIS_DATA,  /* all ranks: each has other samples of a step */
    AN_AXIS_SHARD, /* the ranks of this host, which in a hybrid divide weights, gradients and moments between them */
    /* one rank of each host, all of which have the same pieces then; only where an_group_ranks is above 1 and there
     * are several hosts */
    AN_AXIS_REPLICA,
    AN_AXES
} an_axis;

/* What a message is for. Messages of one tag between two ranks are sent and received in the same order on both. */
enum {
    AN_TAG_ABORT = 1,
    AN_TAG_COLLECTIVE, /* public collectives */
    AN_TAG_EVALUATION,
    AN_TAG_START,
    AN_TAG_CHECKPOINT,     /* parts of the state, between their owners and the files */
    AN_TAG_CHECKPOINT_ALL, /* and what goes from rank to rank, as every one needs it */
    AN_TAG_HASH,           /* of a state that is in pieces */
    AN_TAG_PIECES,         /* of a parameter, for who asks for all of it */
    AN_TAG_REDUCE = 64,    /* and 63 more: reductions that are under way at the same time */
    AN_TAG_GATHER = 128,   /* and 63 more: units that are on their way at the same time */
    AN_TAG_SCATTER = 192,  /* and 63 more: buckets that are on their way at the same time */
    AN_TAG_RECORD = 1024   /* an_comm_merge, and AN_TAG_RECORDS - 1 more */
};

/* Records of different lengths have different tags. So ranks that have taken different branches wait, which is
 * reported with both places, and none takes a record for another. */
enum { AN_TAG_RECORDS = 16384 };

/* The communicator of an axis: never NULL, as one process alone has a communicator with itself. */
an_comm *an_axis_comm(const an_context *ctx, an_axis axis);

static inline int an_axis_rank(const an_context *ctx, an_axis axis) {
    return an_axis_comm(ctx, axis)->rank;
}

static inline int an_axis_ranks(const an_context *ctx, an_axis axis) {
    return an_axis_comm(ctx, axis)->ranks;
}

/* The ranks of this host, which can share memory; never NULL. */
an_comm *an_host_comm(const an_context *ctx);

/* The ranks of every host, if all hosts have as many and those of a host are neighbours; 0: that is not so. */
int an_group_ranks(const an_context *ctx);

/* What a rank of one of the context's communicators is among all ranks. */
int an_comm_rank_of_all(const an_context *ctx, const an_comm *comm, int rank);

/* How many ranks of each host add gradients in memory that they share: the ranks of a host are neighbours, and all
 * hosts but the last have as many. 1: they use messages. */
int an_host_ranks(const an_context *ctx);
/* The same for ranks that are only planned, on so many hosts. */
int an_host_ranks_planned(const an_context *ctx, int ranks, int hosts);

/* Seconds after which a wait for another rank is an error (ranks.timeout). */
#define AN_COMM_TIMEOUT (15 * 60.0)
void an_comm_set_timeout(an_context *ctx, double seconds);

/* Starts a message. An error has the message of the communicator, and every rank is told (an_comm_abort). `bytes` may
 * be more than AN_COMM_MAX_BYTES only in an_comm_send_all and an_comm_receive_all. */
an_status an_comm_send(an_context *ctx, an_comm *comm, const void *bytes, size_t count, int to, int tag,
                       an_comm_request *request);
an_status an_comm_receive(an_context *ctx, an_comm *comm, void *bytes, size_t count, int from, int tag,
                          an_comm_request *request);
/* Whether all of them are done; never waits. Requests of zeros are done. */
an_status an_comm_test(an_context *ctx, an_comm *comm, an_comm_request *requests, int count, bool *done);
/* Waits until all of them are done. `what` is for who asks: "the gradients of blocks.3 from rank 2". On an error
 * the requests are cancelled. */
an_status an_comm_wait(an_context *ctx, an_comm *comm, an_comm_request *requests, int count, const char *what);
void an_comm_cancel(an_comm *comm, an_comm_request *requests, int count);
/* A message of any length, in pieces of AN_COMM_MAX_BYTES, one after another. Both ranks know its length. Waits. */
an_status an_comm_send_all(an_context *ctx, an_comm *comm, const void *bytes, size_t count, int to, int tag,
                           const char *what);
an_status an_comm_receive_all(an_context *ctx, an_comm *comm, void *bytes, size_t count, int from, int tag,
                              const char *what);

/* The bytes of rank `root`, on all ranks, down a tree of messages. Waits. */
an_status an_comm_spread(an_context *ctx, an_comm *comm, void *bytes, size_t count, int root, int tag,
                         const char *what);

/* One turn of the loop of an_comm_wait, for waits on something else than messages: moves on what else is under way
 * (an_context_progress); yields after 50 µs; sleeps after 1 ms where ranks outnumber cores. It is an error that
 * another rank has given up, or that the wait has taken longer than the limit. Begin with a turn of zeros. */
typedef struct an_comm_turn {
    double begin; /* 0: the first turn */
} an_comm_turn;
an_status an_comm_turn_take(an_context *ctx, an_comm_turn *turn, const char *what);

/* Every rank's record in one, on every rank, by messages of one size: first the records of neighbours are merged, ranks
 * 2i and 2i + 1, then groups of four, and so on up to rank 0; then rank 0 calls `decide` (may be NULL) and the result
 * goes back down. `merge` gets the record of ranks a … b - 1 and that of ranks b … c - 1, and leaves theirs in the
 * first. 2·log2(ranks) messages deep. */
typedef struct an_comm_merger {
    size_t bytes;
    void (*merge)(void *user, void *record, const void *next);
    void (*decide)(void *user, void *record);
    void *user;
    void *received; /* room for one record */
    const char *what;
    int tag; /* 0: that of its length */
} an_comm_merger;
an_status an_comm_merge(an_context *ctx, an_comm *comm, const an_comm_merger *merger, void *record);
/* Bytes that this rank sends in one an_comm_merge. */
int64_t an_comm_merge_sends(int rank, int ranks, size_t bytes);

/* This rank cannot go on: all ranks are told, their waits end with this message, and no further message is possible
 * on this context's communicators. O(ranks), once. */
void an_comm_abort(an_context *ctx, an_status status, const char *message);
/* The error of the rank that gave up, if one did. */
an_status an_comm_check(an_context *ctx);
/* From any thread: this rank has died. The next check of this context gives up with that, so that no rank waits for it.
 * `step`, `place`: where it was last heard of; step 0: nowhere. */
void an_comm_lose(an_context *ctx, int rank, int64_t step, const char *place);

/* ---- for who asks why nothing moves ---- */

/* Every rank enters the same collectives of all ranks in the same order. `bytes` is what all ranks agree on,
 * such as the size of a unit, not what this one sends. Collectives of some ranks are only named: other
 * hosts may have more of them. */
void an_comm_enter(an_context *ctx, const an_comm *comm, const char *kind, size_t bytes);

/* What a rank has entered so far, and whether it waits. Any thread may read it at any time: a text that is just
 * being written may be part old and part new. */
typedef struct an_comm_progress {
    uint64_t collectives;              /* entered so far */
    uint64_t hash;                     /* of the kinds and bytes of all of them, in order */
    uint64_t bytes;                    /* of the last */
    uint64_t waits;                    /* 1: this rank waits for others, and its heartbeat stands still */
    char kind[AN_HEARTBEAT_TEXT];      /* of the last: "step record" */
    char waits_for[AN_HEARTBEAT_TEXT]; /* "the gradients of blocks.3 from rank 2" */
} an_comm_progress;
void an_comm_progress_read(const an_context *ctx, an_comm_progress *copy);

#endif

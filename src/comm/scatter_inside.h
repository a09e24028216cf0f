/* What the files of a scattering share: the ranks with the stacks of their pieces, one bucket on its way
 * (scatter_bucket.c), which each call moves on as far as messages have come, and the scattering itself. */
#ifndef AN_COMM_SCATTER_INSIDE_H
#define AN_COMM_SCATTER_INSIDE_H

#include "base/sparse.h"
#include "comm/add.h"
#include "comm/scatter.h"

/* The ranks of a scattering, and what they add. */
typedef struct an_scatter_peers {
    an_context *ctx;
    an_comm *comm;
    int rank, ranks;
    an_leaf_range leaves;
    int64_t rounds;
    an_dtype dtype;
    bool is_bf16;
    size_t page_bytes;   /* of a sum */
    size_t sent_bytes;   /* of a page of a leaf, as it travels */
    int64_t slice_pages; /* of one rank in a bucket, at most */
    const an_reduction_unit *units;
    int level_count;
    void **levels; /* the stack, flat gradients: dst is the lowest */
    char *absent;  /* the longest slice of an absent leaf, as it travels */
    /* Room for what one addition has: the nodes that wait, and the leaves of a round. */
    const void **src;
    an_addend *addends;
    int *joins;
    void **dst;
    an_scatter_cost count; /* what was moved */
} an_scatter_peers;

typedef struct an_scatter_bucket {
    int slot; /* which of those in flight, the same for a bucket on all ranks: its tag */
    int unit;
    int64_t round, index; /* of the unit's buckets */
    const char *src;      /* all pages of the unit; NULL: the leaf is absent */
    bool is_busy, is_added;
    char *incoming;            /* slices of other ranks' leaves, in their order */
    char *outgoing;            /* in bf16, the slices of this rank's leaf that others get */
    an_comm_request *requests; /* receives from the front, sends from the back */
    int room, receives, sends;
} an_scatter_bucket;

/* How far a unit is in a step. */
typedef struct an_scatter_state {
    int64_t rounds;  /* that were started */
    uint64_t end;    /* the number of the bucket behind its last */
    const void *src; /* of the last start */
    int64_t begun;   /* buckets of it */
} an_scatter_state;

struct an_scattering {
    an_scatter_peers peers;
    int unit_count, in_flight;
    int64_t longest_slice; /* of all units */
    an_reduction_unit *units;
    an_scatter_state *states;
    int *queue;                       /* [unit_count], a ring: units that were started and have buckets left */
    uint64_t started, first;          /* of the queue: units so far, and the first that has buckets left */
    uint64_t number, done, announced; /* buckets so far: begun, done in order, and of all units that were started */
    an_scatter_bucket *buckets;
    an_comm_request *requests;
    char *incoming, *outgoing;
    an_page_range *pieces; /* of this rank */
    an_sparse stack;       /* one buffer of it */
    bool is_begun;         /* a step is under way */
    bool is_lost;          /* something was given up */
    bool is_moving;        /* adding opens a parallel region, and who waits for one calls an_scattering_progress */
    an_scatter_cost cost;  /* what was predicted */
};

an_status an_scatter_check(an_context *ctx, const an_comm *comm, const an_scatter_options *options);

/* How many leaves a round has: they are those of the first ranks. */
int an_scatter_leaves(const an_scatter_peers *peers, int64_t round);
/* The nodes that wait before a round; behind the last round, what is left. */
int an_scatter_waiting(const an_scatter_peers *peers, int64_t round, an_tree_node nodes[AN_FOREST_MOST]);
/* How many buckets a unit has in a round, the same on all ranks; and the pages of a rank in one of them, at most. */
int64_t an_scatter_buckets(const an_scatter_peers *peers, int unit);
int64_t an_scatter_longest_slice(const an_scatter_peers *peers, int unit);
/* The traffic of one unit in all rounds is added to the cost. O(ranks). */
void an_scatter_measure(const an_scatter_peers *peers, int unit, an_scatter_cost *cost);

/* Unit, round, index and src are set. */
an_status an_scatter_bucket_begin(an_scatter_peers *peers, an_scatter_bucket *bucket);
/* *moved: whether something has happened. The bucket is done when it is not busy. */
an_status an_scatter_bucket_advance(an_scatter_peers *peers, an_scatter_bucket *bucket, bool *moved);
void an_scatter_bucket_cancel(an_scatter_peers *peers, an_scatter_bucket *bucket);

#endif

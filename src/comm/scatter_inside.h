/* What the files of a scattering share: the ranks with the stacks of their pieces, one bucket on its way
 * (scatter_bucket.c), which each call moves on as far as messages have come, and the scattering itself. A bucket is a
 * parcel of the pipeline. */
#ifndef AN_COMM_SCATTER_INSIDE_H
#define AN_COMM_SCATTER_INSIDE_H

#include "base/system/sparse.h"
#include "comm/add.h"
#include "comm/pipeline.h"
#include "comm/scatter.h"

/* How far a unit is in a step. */
typedef struct an_scatter_state {
    int64_t rounds;  /* that were started */
    const void *src; /* of the last start */
} an_scatter_state;

/* The ranks of a scattering, and what they add. */
typedef struct an_scatter_peers {
    an_pipeline pipeline;
    int rank, ranks;
    an_leaf_range leaves;
    int64_t rounds;
    an_dtype dtype;
    bool is_bf16;
    size_t page_bytes;   /* of a sum */
    size_t sent_bytes;   /* of a page of a leaf, as it travels */
    int64_t slice_pages; /* of one rank in a bucket, at most */
    const an_reduction_unit *units;
    an_scatter_state *states; /* by unit */
    int level_count;
    void **levels; /* the stack, flat gradients: dst is the lowest */
    char *absent;  /* the longest slice of an absent leaf, as it travels */
    /* Room for what one addition has: the nodes that wait, and the leaves of a round. */
    const void **src;
    an_addend *addends;
    int *joins;
    void **dst;
} an_scatter_peers;

typedef struct an_scatter_bucket {
    an_parcel parcel;
    int64_t round, index; /* of the unit's buckets */
    const char *src;      /* all pages of the unit; NULL: the leaf is absent */
    bool is_added;
    char *incoming; /* slices of other ranks' leaves, in their order */
    char *outgoing; /* in bf16, the slices of this rank's leaf that others get */
} an_scatter_bucket;

struct an_scattering {
    an_scatter_peers peers;
    int64_t longest_slice; /* of all units */
    an_reduction_unit *units;
    an_scatter_bucket *buckets;
    an_comm_request *requests;
    char *incoming, *outgoing;
    an_page_range *pieces; /* of this rank */
    an_sparse stack;       /* one buffer of it */
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

/* Of a pipeline whose owner are the peers. */
extern const an_pipeline_kind an_scatter_kind;

#endif

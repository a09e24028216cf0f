/* One bucket of a reduction on its way through the rounds of its schedule: each call moves it on as
 * far as messages have come. It is a parcel of the pipeline. */
#ifndef AN_COMM_BUCKET_H
#define AN_COMM_BUCKET_H

#include "comm/pipeline.h"
#include "comm/reduce.h"
#include "comm/window.h"

typedef struct an_reduction_round {
    int groups, mine;
    int *starts; /* [groups + 1]: the first tree node of each group among those of all groups */
    int *joins;  /* an_rounds_joins */
    int nodes;   /* of this rank's group, before the round */
    int all;     /* of all groups, before it */
    int outputs; /* of all groups together, after it */
} an_reduction_round;

/* What all buckets of a reduction have in common. O(radix · nodes) for each round. */
typedef struct an_reduction_peers {
    an_pipeline pipeline;
    int rank;
    bool scatters; /* owners keep the sums */
    an_dtype dtype;
    size_t page_bytes;
    an_rounds schedule;
    an_reduction_round rounds[AN_MOST_ROUNDS];
    const void **src; /* room for the operands of one addition */
    void **dst;
    int host_ranks; /* 1: no window */
    an_window window;
    size_t places_at;      /* where in a part the places of the gradients begin: [units][nodes + 1], the last is dst */
    uint64_t *part_bytes;  /* by rank of the host */
    int64_t read, written; /* in the window so far */
} an_reduction_peers;

typedef struct an_bucket {
    an_parcel parcel;
    bool is_returning, is_added;
    int round;
    an_page_range pages; /* of the bucket; of the whole unit if owners keep the sums, */
    an_part part;        /* and then this slice of every rank's piece is the bucket */
    void *const *nodes;  /* flat gradients: [nodes], then dst */
    char *staging;
    int64_t held[AN_MOST_ROUNDS + 1];    /* pages that this rank holds before each round */
    int64_t received_at[AN_MOST_ROUNDS]; /* where in the staging, in pages, the nodes of others lie */
    int64_t outputs_at[AN_MOST_ROUNDS];  /* and the nodes after the round */
} an_bucket;

/* The staging, in pages, and the requests that a bucket of these pages needs at most; its traffic is added to the
 * cost. */
void an_bucket_measure(const an_reduction_peers *peers, const an_page_range *pages, const an_part *part,
                       int64_t *staging, int *requests, an_reduction_cost *cost);

/* Its pages, part and nodes are set. */
an_status an_bucket_begin(an_reduction_peers *peers, an_bucket *bucket);
an_status an_bucket_advance(an_reduction_peers *peers, an_bucket *bucket, bool *moved);

#endif

/* What ranks divide among themselves (an_shard): as the options say, or by what fits in memory and costs least.
 *
 * A strategy is planned before it is chosen, and what it needs on each rank is compared with the limits of that rank.
 * Ranks of a host need its memory together. All ranks choose the same: the one that has the least room and the one that
 * is slowest decide. Leaves are settled before, so that no limit of a machine can change the bits of a run: a
 * strategy that these leaves do not allow is left out. */
#ifndef AN_TRAIN_SHARDING_H
#define AN_TRAIN_SHARDING_H

#include "base/system/limits.h"
#include "comm/borders.h"
#include "exec/params.h"
#include "exec/shards.h"

enum { AN_SHARDING_TEXT = 512 };

/* What one strategy takes, of all ranks that were looked at. Moved as bytes, between processes of one binary. */
typedef struct an_assessment {
    int32_t is_known;            /* it was looked at */
    int32_t is_possible;         /* these leaves and options allow it */
    int32_t fit;                 /* an_limits_fit, on the rank with the least room */
    int32_t rank;                /* that needs most */
    an_plan_memory memory;       /* of that one */
    int64_t sent;                /* in a step, by the rank that sends most */
    int64_t shared;              /* bytes of others' gradients in shared memory, the same */
    double seconds;              /* of a step of the slowest rank (sharding_cost.h) */
    char text[AN_SHARDING_TEXT]; /* why it is not possible, or whether it fits: a sentence without its full stop */
} an_assessment;

typedef struct an_sharding {
    an_assessment of[AN_SHARD_COUNT];
    /* What other ranks need of the memory of this host, and of this rank's cgroup. */
    int64_t others[AN_SHARD_COUNT], group_others[AN_SHARD_COUNT];
    int64_t counted;    /* bytes of the trainer, when that was found out: what is counted later comes on top */
    an_shard automatic; /* what AN_SHARD_AUTO takes, if all were looked at */
    char reason[2 * AN_SHARDING_TEXT]; /* why, as a sentence without its full stop; "": not all were looked at */
} an_sharding;

/* What the ranks of a trainer divide. */
typedef struct an_division {
    an_shard asked;          /* of the options */
    an_sharding choice;      /* how they could */
    an_params_pieces pieces; /* how the store is divided */
    an_shards *shards;       /* who owns what; NULL: every rank has everything */
    int host_ranks;          /* an_host_ranks */
    int group_ranks;         /* that divide the state: all, or those of a host, which are neighbours */
    bool reduces_bf16;
    bool accumulates; /* where gradients are divided: those of several micro-batches are added before they are sent */
    an_border_survey borders;      /* which leaves each rank has */
    struct an_save_layout *layout; /* of checkpoints, while ranks are counted; else NULL */
} an_division;

struct an_trainer;
struct an_trainer_options;

/* Chooses, and makes the trainer's plan. Where ranks choose together it is collective, for ranks that have compared
 * their options. *settled is false where another rank has failed: an_ranks_compare then has the error. */
an_status an_sharding_settle(struct an_trainer *t, const struct an_trainer_options *options, bool *settled);

#endif

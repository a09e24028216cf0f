/* Parameter groups, as the optimizer sees them. */
#ifndef AN_STEP_GROUPS_H
#define AN_STEP_GROUPS_H

#include "anneal/train.h"
#include "base/memory.h"
#include "ir/graph.h"

typedef struct an_group {
    const char *match, *first;
    int64_t tensors, elements, tied;
    double lr_scale, weight_decay;
    bool frozen;
} an_group;

typedef struct an_grouped {
    const char *name;
    int group;
} an_grouped;

struct an_groups {
    an_context *ctx;
    an_arena arena;
    an_group *groups;
    int count;
    an_grouped *members; /* in the order of the graph's parameters, which is the store's */
    size_t member_count;
};

/* Whether any parameter is not frozen. */
bool an_groups_train(const an_groups *groups);

#endif

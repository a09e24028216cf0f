/* Ranks compare the calls that they make, before a collective moves data. So a mistake on one rank is an error of
 * all, at the same call, and leaves nothing under way. */
#ifndef AN_COMM_AGREE_H
#define AN_COMM_AGREE_H

#include "anneal/ranks.h"
#include "comm/comm.h"

/* A collective call. 0 where it has no such argument. */
typedef struct an_collective {
    char name[32]; /* "an_ranks_all_reduce" */
    int64_t count;
    int32_t dtype, kind, root;
} an_collective;

/* Collective over the context's ranks. `status` is what this rank found wrong with its own arguments, with its message
 * on the context. AN_OK: all ranks make this call; else all ranks return the same error. A barrier, as nobody is
 * told before all have come. */
an_status an_collective_agree(an_context *ctx, const an_collective *call, an_status status);

#endif

#include "comm/agree.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "comm/mesh.h"

enum { TEXT_BYTES = 256, DESCRIPTION_BYTES = 128 };

/* What neighbouring ranks know of each other. */
typedef struct {
    an_collective call; /* of the first of them */
    int32_t rank;       /* of that one */
    int32_t status;     /* what the first of them that failed found wrong; AN_OK: none did */
    int32_t failed;     /* which one that is */
    int32_t differing;  /* the first of them with another call; -1: none */
    an_collective other;
    char text[TEXT_BYTES];
} agreement;

static bool is_same(const an_collective *a, const an_collective *b) {
    return !strncmp(a->name, b->name, sizeof a->name) && a->count == b->count && a->dtype == b->dtype &&
           a->kind == b->kind && a->root == b->root;
}

static void merge(void *user, void *record, const void *next) {
    agreement *a = record;
    const agreement *b = next;
    (void)user;
    if (a->status == AN_OK && b->status != AN_OK) {
        a->status = b->status;
        a->failed = b->failed;
        memcpy(a->text, b->text, sizeof a->text);
    }
    if (a->differing >= 0) return;
    if (!is_same(&a->call, &b->call)) {
        a->differing = b->rank;
        a->other = b->call;
    } else if (b->differing >= 0) {
        a->differing = b->differing;
        a->other = b->other;
    }
}

/* "an_ranks_all_reduce of 4 f32, sum" */
static void describe(const an_collective *call, char text[DESCRIPTION_BYTES]) {
    static const char *const kinds[] = {"?", "sum", "min", "max"};
    int length = snprintf(text, DESCRIPTION_BYTES, "%.*s", (int)sizeof call->name - 1, call->name);
    if (call->dtype)
        length += snprintf(text + length, DESCRIPTION_BYTES - (size_t)length, " of %lld %s", (long long)call->count,
                           an_dtype_name((an_dtype)call->dtype));
    if (call->kind)
        length += snprintf(text + length, DESCRIPTION_BYTES - (size_t)length, ", %s",
                           kinds[call->kind > 0 && call->kind <= AN_REDUCE_MAX ? call->kind : 0]);
    if (call->root) snprintf(text + length, DESCRIPTION_BYTES - (size_t)length, " with root %d", (int)call->root);
}

/* The message of what all ranks found; it may have come from another process, so its texts are ended here. */
static an_status conclude(an_context *ctx, agreement *a) {
    char mine[DESCRIPTION_BYTES], theirs[DESCRIPTION_BYTES];
    a->text[sizeof a->text - 1] = a->call.name[sizeof a->call.name - 1] = a->other.name[sizeof a->other.name - 1] = 0;
    if (a->differing >= 0) {
        describe(&a->call, mine);
        describe(&a->other, theirs);
        return AN_ERROR(
            ctx, AN_ERR_ORDER,
            "rank %d called %s, but rank %d called %s: all ranks make the same collective calls in the same "
            "order, and none of them may stand behind a condition that not all ranks meet",
            (int)a->rank, mine, (int)a->differing, theirs);
    }
    if (a->status == AN_OK) return AN_OK;
    const an_status status = an_status_is_error(a->status) ? (an_status)a->status : AN_ERR_COMMUNICATION;
    return ctx->mesh->comm->ranks == 1 ? AN_ERROR(ctx, status, "%s", a->text)
                                       : AN_ERROR(ctx, status, "rank %d: %s", (int)a->failed, a->text);
}

an_status an_collective_agree(an_context *ctx, const an_collective *call, an_status status) {
    an_comm *comm = ctx->mesh->comm;
    char what[AN_HEARTBEAT_TEXT];
    agreement mine, received;
    memset(&mine, 0, sizeof mine);
    mine.call = *call;
    mine.rank = mine.failed = comm->rank;
    mine.status = (int32_t)status;
    mine.differing = -1;
    if (status != AN_OK) snprintf(mine.text, sizeof mine.text, "%.*s", TEXT_BYTES - 1, an_last_error(ctx));
    snprintf(what, sizeof what, "all ranks to call %s", call->name);
    const an_comm_merger merger = {
        .bytes = sizeof mine, .merge = merge, .received = &received, .what = what, .tag = AN_TAG_COLLECTIVE};
    AN_TRY_RETURN(an_comm_merge(ctx, comm, &merger, &mine));
    AN_TRY_RETURN(conclude(ctx, &mine));
    return AN_OK;
}

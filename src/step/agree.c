#include "step/agree.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "comm/comm.h"

static const char *const place_names[AN_AGREE_PLACES] = {
    "nowhere",
    "at the beginning of step",
    "at the end of step",
    "looking for a value that is not finite in step",
    "in the evaluation after step",
    "between steps, after step",
    "in the save after step",
};

void an_agreement_begin(an_agreement *a, const an_context *ctx, an_agree_place place, int64_t step, an_status status) {
    memset(a, 0, sizeof *a); /* sent as bytes */
    a->place = (int32_t)place;
    a->status = (int32_t)status;
    a->rank = an_axis_rank(ctx, AN_AXIS_DATA);
    a->step = step;
    a->leaf = -1;
    if (status != AN_OK) snprintf(a->message, sizeof a->message, "%s", ctx->error.message);
}

static const char *name_of(const an_agreement *a) {
    return place_names[a->place > 0 && a->place < AN_AGREE_PLACES ? a->place : 0];
}

/* A status that is none, from a rank that is not what this one takes it for, is still an error. */
static void take_error(an_agreement *a, const an_agreement *next) {
    const bool is_first = a->status == AN_OK || (next->leaf >= 0 && (a->leaf < 0 || next->leaf < a->leaf));
    if (next->status == AN_OK || !is_first) return;
    a->status = next->status;
    a->rank = next->rank;
    a->leaf = next->leaf;
    memcpy(a->message, next->message, sizeof a->message);
    a->message[sizeof a->message - 1] = 0;
}

static void fail(an_agreement *a, int32_t status, const char *text) {
    a->status = status;
    snprintf(a->message, sizeof a->message, "%s", text);
}

/* Two ranks that cannot be in one step: no other error counts any more. */
static void part(an_agreement *a, int32_t status, const char *text) {
    fail(a, status, text);
    a->rank = -1;
}

/* Whether the ranks are together: at the same place, with the same weights. */
static bool is_together(an_agreement *a, const an_agreement *b) {
    char text[256];
    if (a->rank < 0) return false;
    if (b->rank < 0) {
        snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, b->message);
        part(a, b->status == AN_OK ? AN_ERR_COMMUNICATION : b->status, text);
        return false;
    }
    if (a->place != b->place || a->step != b->step) {
        snprintf(text, sizeof text,
                 "rank %d is %s %lld, but rank %d is %s %lld: all ranks must make the same calls in the same order",
                 a->rank, name_of(a), (long long)a->step, b->rank, name_of(b), (long long)b->step);
        part(a, AN_ERR_ORDER, text);
        return false;
    }
    if (a->weights != b->weights && a->status == AN_OK && b->status == AN_OK) {
        snprintf(text, sizeof text,
                 "rank %d has other weights than rank %d %s %lld: whatever sets weights, or decides how they are "
                 "updated, must be the same on all ranks",
                 b->rank, a->rank, name_of(a), (long long)a->step);
        part(a, AN_ERR_STATE, text);
        return false;
    }
    return true;
}

/* Those of this rank say what the other's must be. */
static void merge_forests(an_agreement *a, const an_agreement *b, int count) {
    an_forest *forest = (an_forest *)(void *)(a + 1);
    for (int i = 0; i < count; i++, forest = an_forest_next(forest)) {
        const an_forest *other = (const an_forest *)(const void *)((const char *)b + ((char *)forest - (char *)a));
        if (!an_forest_is_valid(other, forest->range.leaves, forest->width) ||
            other->range.begin != forest->range.end) {
            fail(a, AN_ERR_STATE, "a rank sent numbers that do not belong to its leaves or pages");
            return;
        }
        an_forest_merge(forest, other);
    }
}

static void merge(void *user, void *record, const void *next) {
    an_agreement *a = record;
    const an_agreement *b = next;
    if (!is_together(a, b)) return;
    take_error(a, b);
    a->targets += b->targets;
    a->samples += b->samples;
    a->counted += b->counted;
    a->pieces += b->pieces;
    if (b->maximum > a->maximum) a->maximum = b->maximum;
    a->facts.stop = a->facts.stop || b->facts.stop; /* spent and reserve are rank 0's, which comes first */
    if (b->facts.saving < a->facts.saving) a->facts.saving = b->facts.saving;
    if (a->status == AN_OK) merge_forests(a, b, *(const int *)user);
}

an_status an_agreement_result(an_agreement *a, an_context *ctx) {
    if (a->status == AN_OK) return AN_OK;
    a->message[sizeof a->message - 1] = 0;
    if (a->rank < 0) return AN_ERROR(ctx, (an_status)a->status, "%s", a->message);
    return AN_ERROR(ctx, (an_status)a->status, "rank %d: %s", a->rank, a->message);
}

an_status an_agree_among(an_context *ctx, an_comm *comm, an_agreement *a, int forests, void *received) {
    char what[96];
    snprintf(what, sizeof what, "the other ranks %s %lld", name_of(a), (long long)a->step);
    an_forest *end = (an_forest *)(void *)(a + 1);
    for (int i = 0; i < forests; i++) end = an_forest_next(end);
    const an_comm_merger merger = {.bytes = (size_t)((char *)end - (char *)a),
                                   .merge = merge,
                                   .user = &forests,
                                   .received = received,
                                   .what = what};
    return an_comm_merge(ctx, comm, &merger, a);
}

an_status an_agree(an_context *ctx, an_agreement *a, int forests, void *received) {
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    if (comm->ranks == 1) return (an_status)a->status;
    AN_TRY_RETURN(an_agree_among(ctx, comm, a, forests, received));
    return an_agreement_result(a, ctx);
}

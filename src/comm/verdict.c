/* One rank's error is everyone's: what ranks say to each other when they open something together. */
#include "comm/verdict.h"

#include <sched.h>
#include <stdio.h>

#include "anneal/ranks.h"
#include "base/guard.h"
#include "base/status.h"
#include "comm/mesh.h"
#include "comm/structs.h"

/* Moved as bytes, between processes of one binary. */
typedef struct {
    int32_t status, rank;
    char message[AN_MESSAGE_BYTES];
} verdict;

/* The first error counts, but that a file is damaged gives way to any other: for that there is a next try. */
static void merge(void *user, void *record, const void *next) {
    verdict *a = record;
    const verdict *b = next;
    (void)user;
    if (b->status != AN_OK && (a->status == AN_OK || (a->status == AN_ERR_DAMAGED && b->status != AN_ERR_DAMAGED)))
        *a = *b;
}

/* The error of all. Rank 0's has no number, as it speaks for all. */
static an_status conclude(an_context *ctx, verdict *all) {
    if (all->status == AN_OK) return AN_OK;
    const an_status found = an_status_is_error(all->status) ? (an_status)all->status : AN_ERR_COMMUNICATION;
    all->message[sizeof all->message - 1] = 0;
    return all->rank == 0 ? AN_ERROR(ctx, found, "%s", all->message)
                          : AN_ERROR(ctx, found, "rank %d: %s", (int)all->rank, all->message);
}

an_status an_ranks_agree(an_context *ctx, an_status status) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx);
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    verdict all = {.status = (int32_t)status, .rank = comm->rank}, received;
    const an_comm_merger merger = {
        .bytes = sizeof all, .merge = merge, .received = &received, .what = "the other ranks to agree"};
    if (comm->ranks == 1) return status;
    if (status != AN_OK) snprintf(all.message, sizeof all.message, "%s", an_last_error(ctx));
    AN_TRY_RETURN(an_comm_merge(ctx, comm, &merger, &all));
    if (all.rank == 0 && comm->rank == 0) return status; /* with its own message and trail */
    return conclude(ctx, &all);
}

/* ---- without a context ---- */

static an_status finish(an_comm *comm, an_status started, an_comm_request *request) {
    bool done = false;
    while (started == AN_OK && !done) {
        started = comm->test(comm, request, &done);
        if (!done) sched_yield();
    }
    return started == AN_OK ? AN_OK : AN_ERROR(NULL, started, "%s: %s", comm->name, comm->note);
}

static an_status send(an_comm *comm, const verdict *v, int to) {
    an_comm_request request = {0};
    return finish(comm, comm->send(comm, v, sizeof *v, to, AN_TAG_START, &request), &request);
}

static an_status receive(an_comm *comm, verdict *v, int from) {
    an_comm_request request = {0};
    return finish(comm, comm->receive(comm, v, sizeof *v, from, AN_TAG_START, &request), &request);
}

/* The tree of an_comm_merge: up to rank 0, and down again. */
an_status an_comm_vote(an_comm *comm, an_status status) {
    verdict all = {.status = (int32_t)status, .rank = comm->rank}, other;
    int64_t top = 1;
    if (status != AN_OK) snprintf(all.message, sizeof all.message, "%s", an_last_error(NULL));
    for (; top < comm->ranks && !(comm->rank & top); top *= 2) {
        if (comm->rank + top >= comm->ranks) continue;
        AN_TRY_RETURN(receive(comm, &other, comm->rank + (int)top));
        merge(NULL, &all, &other);
    }
    if (comm->rank > 0) {
        AN_TRY_RETURN(send(comm, &all, comm->rank & (comm->rank - 1)));
        AN_TRY_RETURN(receive(comm, &all, comm->rank & (comm->rank - 1)));
    }
    for (top /= 2; top > 0; top /= 2)
        if (comm->rank + top < comm->ranks) AN_TRY_RETURN(send(comm, &all, comm->rank + (int)top));
    return conclude(NULL, &all);
}

/* ---- what there is ---- */

an_status an_context_ranks_info(const an_context *context, an_ranks_info *info) {
    AN_NEED_IN(NULL, context, info);
    const an_mesh *mesh = context->mesh;
    const an_ranks_info own = {.mpi = context->communicator ? mesh->comm->name : "",
                               .rank = mesh->comm->rank,
                               .ranks = mesh->comm->ranks,
                               .hosts = mesh->hosts,
                               .host_ranks = mesh->host->ranks,
                               .host_threads = mesh->host_threads,
                               .host_processors = mesh->host_processors};
    return an_ranks_info_write(NULL, info, &own);
}

#define _GNU_SOURCE /* sched_getaffinity; NOLINT(bugprone-reserved-identifier) */
#include "comm/mesh.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "anneal/ranks.h"
#include "base/integer.h"
#include "base/memory.h"

an_comm *an_axis_comm(const an_context *ctx, an_axis axis) {
    return ctx->mesh->axes[axis];
}

an_comm *an_host_comm(const an_context *ctx) {
    return ctx->mesh->host;
}

int an_group_ranks(const an_context *ctx) {
    return ctx->mesh->group_ranks;
}

int an_host_ranks(const an_context *ctx) {
    return ctx->mesh->host_ranks;
}

int an_host_ranks_planned(const an_context *ctx, int ranks, int hosts) {
    return ctx->shares_memory ? (int)an_divide_up(ranks, hosts > 0 ? hosts : 1) : 1;
}

void an_comm_set_timeout(an_context *ctx, double seconds) {
    ctx->mesh->timeout = seconds;
}

void an_mesh_own(an_context *ctx) {
    ctx->mesh->owned = true;
}

const char *an_comm_mistake(const an_comm *comm) {
    const struct {
        bool is_wrong;
        const char *what;
    } rows[] = {
        {comm->size != sizeof *comm,
         "has another size than this version's: compile it anew, and set size to sizeof(an_comm)"},
        {!comm->name || !*comm->name, "has no name"},
        {comm->ranks < 1 || comm->rank < 0 || comm->rank >= comm->ranks, "has a rank that is not one of its ranks"},
        {!comm->send || !comm->receive, "lacks send or receive"},
        {!comm->test || !comm->cancel, "lacks test or cancel"},
        {!comm->split || !comm->split_hosts, "lacks split or split_hosts"},
        {!comm->share != !comm->unshare, "has one of share and unshare without the other"},
        {!comm->destroy, "lacks destroy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) /* size first: of another size, the rest means nothing */
        if (rows[i].is_wrong) return rows[i].what;
    return NULL;
}

static void merge_processors(void *user, void *record, const void *next) {
    (void)user;
    CPU_OR((cpu_set_t *)record, (cpu_set_t *)record, (const cpu_set_t *)next);
}

/* Ranks may be bound to a core each, or all to the same few: what counts is how many there are for all of them
 * together. */
static an_status count_processors(an_context *ctx) {
    an_mesh *mesh = ctx->mesh;
    cpu_set_t processors, received;
    const an_comm_merger merger = {.bytes = sizeof processors,
                                   .merge = merge_processors,
                                   .received = &received,
                                   .what = "start: the processors of this host's ranks"};
    if (sched_getaffinity(0, sizeof processors, &processors) != 0) CPU_ZERO(&processors); /* more than a set has */
    AN_TRY_RETURN(an_comm_merge(ctx, mesh->host, &merger, &processors));
    const int count = CPU_COUNT(&processors);
    mesh->crowded = count > 0 && mesh->host->ranks > count;
    return AN_OK;
}

/* In a child of the process that made it only memory is released: messages are the parent's. */
static void release(an_context *ctx) {
    an_mesh *mesh = ctx->mesh;
    const bool is_self = !ctx->communicator;
    const size_t ranks = is_self ? 1 : (size_t)ctx->communicator->ranks; /* before it goes */
    if (is_self || !an_context_is_forked(ctx)) {
        an_abort_end(ctx);
        if (mesh->failed != AN_OK) mesh->comm->broken = true;
        an_comm **const parts[] = {&mesh->replicas, &mesh->host};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            if (!*parts[i]) continue;
            if (mesh->failed != AN_OK) (*parts[i])->broken = true;
            (*parts[i])->destroy(parts[i]);
        }
        if (mesh->comm && (is_self || mesh->owned)) mesh->comm->destroy(&mesh->comm);
    }
    an_release(ctx, (void **)&mesh->departures, ranks, sizeof *mesh->departures);
    an_release(ctx, (void **)&ctx->mesh, 1, sizeof *mesh);
}

an_status an_mesh_begin(an_context *ctx) {
    const char *mistake = ctx->communicator ? an_comm_mistake(ctx->communicator) : NULL;
    an_status status;
    if (mistake) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the communicator record %s", mistake);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&ctx->mesh, 1, sizeof *ctx->mesh));
    an_mesh *mesh = ctx->mesh;
    ctx->mesh_release = release;
    mesh->timeout = AN_COMM_TIMEOUT;
    mesh->piece = AN_COMM_MAX_BYTES;
    mesh->comm = ctx->communicator;
    if (!mesh->comm) AN_TRY_RETURN(an_self_create(ctx, &mesh->comm));
    for (int axis = 0; axis < AN_AXES; axis++) mesh->axes[axis] = mesh->comm;
    status = mesh->comm->split_hosts(mesh->comm, &mesh->host);
    if (status == AN_OK && !mesh->host) {
        status = AN_ERR_ARGUMENT;
        snprintf(mesh->comm->note, sizeof mesh->comm->note, "split_hosts gave no communicator");
    }
    if (status != AN_OK)
        return AN_ERROR(ctx, status, "ranks of one host could not be found: %s (%s)", mesh->comm->note,
                        mesh->comm->name);
    mesh->axes[AN_AXIS_SHARD] = mesh->host;
    AN_TRY_RETURN(an_abort_listen(ctx));
    return count_processors(ctx);
}

/* ---- what programs ask ---- */

int an_context_rank(const an_context *ctx) {
    AN_NEED_OR(0, ctx);
    return ctx->mesh->comm->rank;
}

int an_context_ranks(const an_context *ctx) {
    AN_NEED_OR(0, ctx);
    return ctx->mesh->comm->ranks;
}

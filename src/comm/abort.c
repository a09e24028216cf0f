/* One rank gives up, and all know. Every context keeps a receive posted for that, from any rank, and every wait
 * looks at it. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/system/clock.h"
#include "comm/mesh.h"

static const double seconds_to_leave = 0.1; /* far more than a kilobyte takes, to ranks that are there */

an_status an_abort_listen(an_context *ctx) {
    an_mesh *mesh = ctx->mesh;
    an_comm *comm = mesh->comm;
    if (comm->ranks == 1) return AN_OK;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&mesh->departures, (size_t)comm->ranks, sizeof *mesh->departures));
    const an_status status =
        comm->receive(comm, &mesh->arriving, sizeof mesh->arriving, AN_COMM_ANY, AN_TAG_ABORT, &mesh->arrival);
    return status == AN_OK ? AN_OK : AN_ERROR(ctx, status, "the first receive failed: %s", comm->note);
}

void an_abort_end(an_context *ctx) {
    an_mesh *mesh = ctx->mesh;
    if (!mesh->departures) return;
    if (an_comm_is_pending(&mesh->arrival)) mesh->comm->cancel(mesh->comm, &mesh->arrival);
    for (int i = 0; i < mesh->comm->ranks; i++)
        if (an_comm_is_pending(&mesh->departures[i])) mesh->comm->cancel(mesh->comm, &mesh->departures[i]);
}

/* Tests what is still on its way; how many that is. A rank that cannot be reached is given up: it is no news
 * that something is wrong. */
static int departing(an_mesh *mesh) {
    int count = 0;
    for (int i = 0; i < mesh->comm->ranks; i++) {
        bool done = true;
        if (!an_comm_is_pending(&mesh->departures[i])) continue;
        if (mesh->comm->test(mesh->comm, &mesh->departures[i], &done) == AN_OK && !done) count++;
    }
    return count;
}

void an_comm_abort(an_context *ctx, an_status status, const char *message) {
    an_mesh *mesh = ctx->mesh;
    an_comm *comm = mesh->comm;
    if (mesh->failed != AN_OK) return;
    mesh->failed = status;
    snprintf(mesh->failure, sizeof mesh->failure, "%s", message);
    if (comm->ranks == 1) return;
    mesh->leaving = (an_abort_message){.status = (int32_t)status, .rank = comm->rank};
    snprintf(mesh->leaving.text, sizeof mesh->leaving.text, "%s", message);
    for (int i = 0; i < comm->ranks; i++)
        if (i != comm->rank)
            (void)comm->send(comm, &mesh->leaving, sizeof mesh->leaving, i, AN_TAG_ABORT, &mesh->departures[i]);
    for (const double end = an_clock_seconds() + seconds_to_leave; departing(mesh) && an_clock_seconds() < end;)
        sched_yield();
}

/* The message comes from another process, so nothing in it is taken on trust. */
static void take_arrival(an_mesh *mesh) {
    an_abort_message *m = &mesh->arriving;
    char from[sizeof "rank 2147483647"] = "another rank";
    m->text[sizeof m->text - 1] = 0;
    for (char *c = m->text; *c; c++)
        if ((unsigned char)*c < ' ' && *c != '\n') *c = '?';
    if (m->rank >= 0 && m->rank < mesh->comm->ranks) snprintf(from, sizeof from, "rank %d", (int)m->rank);
    mesh->failed = an_status_is_error(m->status) ? (an_status)m->status : AN_ERR_COMMUNICATION;
    snprintf(mesh->failure, sizeof mesh->failure, "%s: %.*s", from, (int)(sizeof mesh->failure - sizeof from - 2),
             m->text);
}

void an_comm_lose(an_context *ctx, int rank, int64_t step, const char *place) {
    an_mesh *mesh = ctx->mesh;
    if (__atomic_load_n(&mesh->lost, __ATOMIC_RELAXED)) return; /* the place of the first is being read */
    if (step > 0)
        snprintf(mesh->lost_at, sizeof mesh->lost_at, "; it was last heard of at step %lld, while \"%s\"",
                 (long long)step, place);
    __atomic_store_n(&mesh->lost, rank + 1, __ATOMIC_RELEASE);
}

an_status an_comm_check(an_context *ctx) {
    an_mesh *mesh = ctx->mesh;
    bool done = false;
    const int lost = __atomic_load_n(&mesh->lost, __ATOMIC_ACQUIRE);
    if (lost > 0 && mesh->failed == AN_OK) {
        char message[AN_COMM_NOTE];
        snprintf(message, sizeof message, "rank %d has died: its process is gone%s", lost - 1, mesh->lost_at);
        an_comm_abort(ctx, AN_ERR_COMMUNICATION, message);
    }
    if (mesh->failed == AN_OK && mesh->departures) {
        const an_status status = mesh->comm->test(mesh->comm, &mesh->arrival, &done);
        if (status != AN_OK)
            an_comm_abort(ctx, status, mesh->comm->note);
        else if (done)
            take_arrival(mesh);
    }
    return mesh->failed == AN_OK ? AN_OK : AN_ERROR(ctx, mesh->failed, "%s", mesh->failure);
}

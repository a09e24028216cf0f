#include "comm/comm.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/heartbeat.h"
#include "base/integer.h"
#include "base/status.h"
#include "base/system/clock.h"
#include "comm/binomial.h"
#include "comm/mesh.h"

/* A wait spins for as long as a message between caches takes, then lets others have the core. Where ranks outnumber
 * cores it then sleeps, as the system may give a core that was yielded back to who yielded it. */
static const double seconds_to_spin = 50e-6, seconds_to_yield = 1e-3;
enum { NANOSECONDS_OF_SLEEP = 50000 };

/* Sets the error, and tells it to all ranks. */
AN_PRINTF(3, 4) static an_status give_up(an_context *ctx, an_status status, const char *format, ...) {
    char message[AN_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    an_comm_abort(ctx, status, message);
    return AN_ERROR(ctx, status, "%s", message);
}

/* ---- messages ---- */

/* After a rank has given up, messages are refused with its error. */
static an_status check_message(an_context *ctx, const an_comm *comm, size_t count, int tag) {
    if (ctx->mesh->failed != AN_OK) return an_comm_check(ctx);
    if (count > AN_COMM_MAX_BYTES || tag < 0 || tag > AN_COMM_MAX_TAG)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: a message of %zu bytes with tag %d; it may have %zu bytes, and tag %d", comm->name, count,
                        tag, AN_COMM_MAX_BYTES, AN_COMM_MAX_TAG);
    return AN_OK;
}

int an_comm_rank_of_all(const an_context *ctx, const an_comm *comm, int rank) {
    const an_mesh *mesh = ctx->mesh;
    if (rank < 0 || comm == mesh->comm) return rank;
    if (comm == mesh->replicas) return rank * mesh->host->ranks + mesh->host->rank;
    return mesh->comm->rank - comm->rank + rank; /* those of a host are neighbours wherever it matters */
}

static int own_rank(const an_context *ctx) {
    return ctx->mesh->comm->rank;
}

an_status an_comm_send(an_context *ctx, an_comm *comm, const void *bytes, size_t count, int to, int tag,
                       an_comm_request *request) {
    memset(request, 0, sizeof *request);
    AN_TRY_RETURN(check_message(ctx, comm, count, tag));
    const an_status status = comm->send(comm, bytes, count, to, tag, request);
    if (status == AN_OK) return AN_OK;
    return give_up(ctx, status, "rank %d could not send %zu bytes to rank %d: %s (%s)", own_rank(ctx), count,
                   an_comm_rank_of_all(ctx, comm, to), comm->note, comm->name);
}

an_status an_comm_receive(an_context *ctx, an_comm *comm, void *bytes, size_t count, int from, int tag,
                          an_comm_request *request) {
    memset(request, 0, sizeof *request);
    AN_TRY_RETURN(check_message(ctx, comm, count, tag));
    const an_status status = comm->receive(comm, bytes, count, from, tag, request);
    if (status == AN_OK) return AN_OK;
    return give_up(ctx, status, "rank %d could not begin to receive %zu bytes from rank %d: %s (%s)", own_rank(ctx),
                   count, an_comm_rank_of_all(ctx, comm, from), comm->note, comm->name);
}

/* Stops at the first that is not done: a test of one moves the others on as well. `what` is waited for (NULL:
 * nothing is). */
static an_status test(an_context *ctx, an_comm *comm, an_comm_request *requests, int count, bool *done,
                      const char *what) {
    *done = true;
    for (int i = 0; i < count && *done; i++) {
        if (!an_comm_is_pending(&requests[i])) continue;
        if (ctx->mesh->failed != AN_OK) return an_comm_check(ctx);
        const an_status status = comm->test(comm, &requests[i], done);
        if (status != AN_OK)
            return give_up(ctx, status, "a message of rank %d failed%s%s: %s (%s)", own_rank(ctx),
                           what ? " while it waited for " : "", what ? what : "", comm->note, comm->name);
    }
    return AN_OK;
}

an_status an_comm_test(an_context *ctx, an_comm *comm, an_comm_request *requests, int count, bool *done) {
    return test(ctx, comm, requests, count, done, NULL);
}

void an_comm_cancel(an_comm *comm, an_comm_request *requests, int count) {
    for (int i = 0; i < count; i++)
        if (an_comm_is_pending(&requests[i])) comm->cancel(comm, &requests[i]);
}

/* ---- waits ---- */

/* The last byte of a text stays zero, so that whatever is seen of it ends. */
static void write_text(char text[AN_HEARTBEAT_TEXT], const char *from) {
    const size_t length = strnlen(from, AN_HEARTBEAT_TEXT - 1);
    memcpy(text, from, length);
    text[length] = 0;
}

static int64_t beats_of(const an_context *ctx) {
    if (!ctx->heartbeat) return 0;
    return __atomic_load_n(&ctx->heartbeat->slots[AN_HEARTBEAT_OWNER].beats, __ATOMIC_RELAXED);
}

/* The heartbeat says what is waited for and then stands still: a rank that waits is not one that gets on. */
static void begin_to_wait(an_context *ctx, const char *what) {
    an_mesh *mesh = ctx->mesh;
    an_heartbeat_say(ctx, AN_HEARTBEAT_OWNER, "waits for %s", what);
    write_text(mesh->progress.waits_for, what);
    __atomic_store_n(&mesh->waits_since, beats_of(ctx), __ATOMIC_RELAXED);
    __atomic_store_n(&mesh->progress.waits, 1, __ATOMIC_RELEASE);
}

static void end_to_wait(an_context *ctx) {
    if (!ctx->mesh->progress.waits) return;
    __atomic_store_n(&ctx->mesh->progress.waits, 0, __ATOMIC_RELEASE);
    an_heartbeat_beat(ctx, AN_HEARTBEAT_OWNER);
}

an_status an_comm_turn_take(an_context *ctx, an_comm_turn *turn, const char *what) {
    an_mesh *mesh = ctx->mesh;
    const double now = an_clock_seconds();
    AN_TRY_RETURN(an_comm_check(ctx));
    an_context_progress(
        ctx); /* another rank may wait for what this one has begun to send, and this one for that rank */
    if (turn->begin == 0) {
        turn->begin = now;
        end_to_wait(ctx); /* of a wait before this one, whose turns ended without a word */
        return AN_OK;
    }
    const double waited = now - turn->begin;
    if (waited < seconds_to_spin) return AN_OK;
    if (!mesh->progress.waits) begin_to_wait(ctx, what);
    if (waited > mesh->timeout)
        return give_up(ctx, AN_ERR_COMMUNICATION,
                       "rank %d has waited %.0f s for %s, which is the limit (ranks.timeout)", own_rank(ctx), waited,
                       what);
    if (waited < seconds_to_yield || !mesh->crowded) {
        sched_yield();
    } else {
        const struct timespec nap = {.tv_nsec = NANOSECONDS_OF_SLEEP};
        nanosleep(&nap, NULL); /* a signal may cut it short */
    }
    return AN_OK;
}

an_status an_comm_wait(an_context *ctx, an_comm *comm, an_comm_request *requests, int count, const char *what) {
    an_comm_turn turn = {0};
    an_status status = AN_OK;
    bool done;
    for (;;) {
        AN_TRY(test(ctx, comm, requests, count, &done, what));
        if (done) break;
        AN_TRY(an_comm_turn_take(ctx, &turn, what));
    }
fail:
    if (turn.begin != 0) end_to_wait(ctx);
    if (status != AN_OK) an_comm_cancel(comm, requests, count);
    return status;
}

an_status an_comm_send_all(an_context *ctx, an_comm *comm, const void *bytes, size_t count, int to, int tag,
                           const char *what) {
    size_t at = 0, piece;
    do {
        an_comm_request request;
        piece = count - at < ctx->mesh->piece ? count - at : ctx->mesh->piece;
        AN_TRY_RETURN(an_comm_send(ctx, comm, (const char *)bytes + at, piece, to, tag, &request));
        AN_TRY_RETURN(an_comm_wait(ctx, comm, &request, 1, what));
        at += piece;
    } while (at < count);
    return AN_OK;
}

an_status an_comm_receive_all(an_context *ctx, an_comm *comm, void *bytes, size_t count, int from, int tag,
                              const char *what) {
    size_t at = 0, piece;
    do {
        an_comm_request request;
        piece = count - at < ctx->mesh->piece ? count - at : ctx->mesh->piece;
        AN_TRY_RETURN(an_comm_receive(ctx, comm, (char *)bytes + at, piece, from, tag, &request));
        AN_TRY_RETURN(an_comm_wait(ctx, comm, &request, 1, what));
        at += piece;
    } while (at < count);
    return AN_OK;
}

/* Ranks are counted from the root on. */
an_status an_comm_spread(an_context *ctx, an_comm *comm, void *bytes, size_t count, int root, int tag,
                         const char *what) {
    int children[AN_BINOMIAL_CHILDREN];
    const int ranks = comm->ranks, place = (comm->rank - root + ranks) % ranks;
    const int child_count = an_binomial_children(place, ranks, children);
    if (place > 0)
        AN_TRY_RETURN(
            an_comm_receive_all(ctx, comm, bytes, count, (an_binomial_parent(place) + root) % ranks, tag, what));
    for (int i = child_count - 1; i >= 0; i--) /* farthest first: it has the most ranks below it */
        AN_TRY_RETURN(
            an_comm_send_all(ctx, comm, bytes, count, (int)(((int64_t)children[i] + root) % ranks), tag, what));
    return AN_OK;
}

/* ---- what is known about them ---- */

/* FNV-1a */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count) {
    static const uint64_t prime = 0x100000001b3;
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * prime;
    return hash;
}

void an_comm_enter(an_context *ctx, const an_comm *comm, const char *kind, size_t bytes) {
    an_comm_progress *p = &ctx->mesh->progress;
    const uint64_t count = bytes;
    const uint64_t hash = hash_bytes(hash_bytes(p->hash, kind, strlen(kind)), &count, sizeof count);
    write_text(p->kind, kind);
    __atomic_store_n(&p->bytes, count, __ATOMIC_RELAXED);
    if (comm->ranks < ctx->mesh->comm->ranks) return;
    __atomic_store_n(&p->hash, hash, __ATOMIC_RELAXED);
    __atomic_store_n(&p->collectives, p->collectives + 1, __ATOMIC_RELEASE);
}

void an_comm_progress_read(const an_context *ctx, an_comm_progress *copy) {
    const an_mesh *mesh = ctx->mesh;
    const an_comm_progress *p = &mesh->progress;
    copy->collectives = __atomic_load_n(&p->collectives, __ATOMIC_ACQUIRE);
    copy->hash = __atomic_load_n(&p->hash, __ATOMIC_RELAXED);
    copy->bytes = __atomic_load_n(&p->bytes, __ATOMIC_RELAXED);
    /* A rank that has beaten since does not wait any more, whether or not it said so. */
    copy->waits = __atomic_load_n(&p->waits, __ATOMIC_ACQUIRE) &&
                  __atomic_load_n(&mesh->waits_since, __ATOMIC_RELAXED) == beats_of(ctx);
    memcpy(copy->kind, p->kind, sizeof copy->kind);
    memcpy(copy->waits_for, p->waits_for, sizeof copy->waits_for);
    copy->kind[sizeof copy->kind - 1] = copy->waits_for[sizeof copy->waits_for - 1] = 0;
}

/* What the library makes of a communicator: waits that end, ranks that give up, records of all ranks (comm/comm.h). */
#ifndef TESTS_COMM_CONFORMANCE_LAYER_H
#define TESTS_COMM_CONFORMANCE_LAYER_H

#include <pthread.h>

#include "base/heartbeat.h"
#include "comm/ranks.h"
#include "support/faulty_comm.h"

/* ---- pieces ---- */

static void test_pieces(an_comm *comm) {
    static const size_t counts[] = {0, 1, 999, 1000, 1001, 2000, 10001};
    unsigned char out[10001], in[10001];
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    ctx->mesh->piece = 1000;
    for (size_t i = 0; comm->ranks > 1 && i < sizeof counts / sizeof *counts; i++) {
        fill(out, counts[i], 1, (int)i);
        memset(in, 0, sizeof in);
        if (comm->rank == 1) OK(ctx, an_comm_send_all(ctx, part, out, counts[i], 0, 3, "pieces"));
        if (comm->rank == 0) OK(ctx, an_comm_receive_all(ctx, part, in, counts[i], 1, 3, "pieces"));
        if (comm->rank == 0) CHECK(is_filled(in, counts[i], 1, (int)i));
    }
    FAILS(ctx, an_comm_send(ctx, part, out, AN_COMM_MAX_BYTES + 1, 0, 3, &(an_comm_request){0}), AN_ERR_ARGUMENT,
          "bytes");
    end_context(&ctx, &part);
}

/* More than one message can carry, between ranks 0 and 1. */
static void test_huge(an_comm *comm) {
    const size_t count = AN_COMM_MAX_BYTES + ((size_t)100 << 20);
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    unsigned char *bytes = comm->rank < 2 ? malloc(count) : NULL;
    if (comm->rank == 1) {
        fill(bytes, count, 1, 1);
        OK(ctx, an_comm_send_all(ctx, part, bytes, count, 0, 3, "a huge message"));
    } else if (comm->rank == 0 && comm->ranks > 1) {
        OK(ctx, an_comm_receive_all(ctx, part, bytes, count, 1, 3, "a huge message"));
        CHECK(is_filled(bytes, count, 1, 1));
    }
    free(bytes);
    end_context(&ctx, &part);
}

/* ---- merge ---- */

/* Which ranks are in it, and how they were added. */
typedef struct {
    int first, end, decided;
    double sum;
} range;

static void merge_ranges(void *user, void *record, const void *next) {
    range *a = record;
    const range *b = next;
    ++*(int *)user;
    CHECK(a->end == b->first);
    a->end = b->end;
    a->sum += b->sum;
}

static void decide_range(void *user, void *record) {
    (void)user;
    ((range *)record)->decided = 77;
}

/* The number of a rank, which no other order of additions leaves as it is. */
static double number_of(int rank) {
    return 1.0 / (rank + 3) + (rank % 2 ? 1e10 : 0);
}

static double tree_sum(int first, int end) {
    int half = 1;
    if (end - first == 1) return number_of(first);
    while (half * 2 < end - first) half *= 2;
    return tree_sum(first, first + half) + tree_sum(first + half, end);
}

static void test_merge(an_comm *comm) {
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    for (int round = 0; round < 20; round++) {
        range mine = {comm->rank, comm->rank + 1, 0, number_of(comm->rank)}, received;
        int merged = 0;
        const an_comm_merger merger = {.bytes = sizeof mine,
                                       .merge = merge_ranges,
                                       .decide = decide_range,
                                       .user = &merged,
                                       .received = &received,
                                       .what = "ranges"};
        OK(ctx, an_comm_merge(ctx, part, &merger, &mine));
        CHECK(mine.first == 0 && mine.end == comm->ranks && mine.decided == 77);
        CHECK(mine.sum == tree_sum(0, comm->ranks));
    }
    end_context(&ctx, &part);
}

/* What a merge sends is known before. */
static void test_merge_sends(an_comm *comm) {
    an_context *ctx = NULL;
    an_context_options options;
    faulty_comm counted;
    range mine = {comm->rank, comm->rank + 1, 0, 0}, received;
    int merged = 0;
    an_comm *part;
    DONE(comm, comm->split(comm, 0, &part));
    faulty_comm_wrap(&counted, part);
    an_context_options_init(&options, sizeof options);
    options.communicator = &counted.comm;
    OK(NULL, an_context_create(&ctx, &options));
    const an_comm_merger merger = {
        .bytes = sizeof mine, .merge = merge_ranges, .user = &merged, .received = &received, .what = "ranges"};
    const int64_t before = counted.sent;
    OK(ctx, an_comm_merge(ctx, &counted.comm, &merger, &mine));
    CHECK(counted.sent - before == an_comm_merge_sends(comm->rank, comm->ranks, sizeof mine));
    an_context_destroy(&ctx);
    faulty_comm_unwrap(&counted);
    CHECK(!part->broken);
    part->destroy(&part);
}

/* ---- ranks that give up ---- */

/* How long ago the last rank gave up, which it says in its message: all ranks have one clock. */
static double since(const char *message) {
    const char *at = strstr(message, " at ");
    CHECK(at);
    return an_clock_seconds() - strtod(at + 4, NULL);
}

static void give_up(an_context *ctx) {
    char text[64];
    pause_for(0.1);
    snprintf(text, sizeof text, "planted at %.6f", an_clock_seconds());
    an_comm_abort(ctx, AN_ERR_KERNEL, text);
    FAILS(ctx, an_comm_check(ctx), AN_ERR_KERNEL, "planted");
}

typedef enum { WAITS_TO_RECEIVE, WAITS_TO_SEND, MERGES, TAKES_TURNS, MEETS, REDUCES, GATHERS, WAITS } wait_kind;

static an_status wait_for_last(an_context *ctx, an_comm *part, wait_kind kind, void *room, size_t bytes) {
    const int last = part->ranks - 1;
    an_comm_request request = {0};
    an_comm_turn turn = {0};
    an_status status = AN_OK;
    range mine = {part->rank, part->rank + 1, 0, 0}, received;
    const an_comm_merger merger = {
        .bytes = sizeof mine, .merge = merge_ranges, .user = &(int){0}, .received = &received, .what = "ranges"};
    switch (kind) {
    case WAITS_TO_RECEIVE:
        OK(ctx, an_comm_receive(ctx, part, room, bytes, last, 3, &request));
        return an_comm_wait(ctx, part, &request, 1, "a message that never comes");
    case WAITS_TO_SEND:
        OK(ctx, an_comm_send(ctx, part, room, bytes, last, 3, &request));
        return an_comm_wait(ctx, part, &request, 1, "a message that nobody takes");
    case MERGES: return an_comm_merge(ctx, part, &merger, &mine);
    case TAKES_TURNS:
        while (status == AN_OK) status = an_comm_turn_take(ctx, &turn, "nothing");
        return status;
    case MEETS: return an_ranks_barrier(ctx);
    case REDUCES: return an_ranks_all_reduce(ctx, room, 1000, AN_DTYPE_F32, AN_REDUCE_SUM);
    case GATHERS: return an_ranks_gather(ctx, room, (char *)room + 100, 1, AN_DTYPE_I32, 0);
    case WAITS: break;
    }
    return AN_OK;
}

/* Whatever they wait for, the others know within a second, with the status and the message. */
static void test_abort(an_comm *comm) {
    enum { BYTES = 3 << 20 };
    void *room = calloc(1, BYTES);
    CHECK(room);
    for (wait_kind kind = 0; comm->ranks > 1 && kind < WAITS; kind++) {
        char from[32];
        an_comm *part;
        an_context *ctx = context_on(comm, &part, NULL);
        snprintf(from, sizeof from, "rank %d: planted", comm->ranks - 1);
        meet(comm);
        if (comm->rank == comm->ranks - 1) {
            give_up(ctx);
        } else {
            FAILS(ctx, wait_for_last(ctx, part, kind, room, BYTES), AN_ERR_KERNEL, from);
            CHECK(since(an_last_error(ctx)) < 1);
        }
        an_comm_request request;
        FAILS(ctx, an_comm_send(ctx, part, room, 1, 0, 3, &request), AN_ERR_KERNEL, "planted");
        CHECK(!an_comm_is_pending(&request));
        FAILS(ctx, an_ranks_barrier(ctx), AN_ERR_KERNEL, "planted");
        end_context(&ctx, &part);
    }
    free(room);
}

/* Every rank gives up at the same time: each has its own error or another's, and none hangs. */
static void test_abort_together(an_comm *comm) {
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    meet(comm);
    an_comm_abort(ctx, AN_ERR_MEMORY, "mine");
    FAILS(ctx, an_ranks_barrier(ctx), AN_ERR_MEMORY, "mine");
    end_context(&ctx, &part);
}

/* Bytes of a peer are not trusted. */
static void test_abort_hostile(an_comm *comm) {
    an_abort_message bad = {.status = 12345, .rank = -7};
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    memset(bad.text, 'x', sizeof bad.text);
    bad.text[0] = '\033';
    meet(comm); /* no rank is still at the start */
    if (comm->ranks > 1) {
        if (comm->rank == 0) send_now(part, &bad, sizeof bad, 1, AN_TAG_ABORT);
        if (comm->rank == 1) {
            an_comm_turn turn = {0};
            an_status status = AN_OK;
            while (status == AN_OK) status = an_comm_turn_take(ctx, &turn, "nothing");
            CHECK(status == AN_ERR_COMMUNICATION && !strncmp(an_last_error(ctx), "another rank: ?xxx", 18));
        }
    }
    meet(comm);
    end_context(&ctx, &part);
}

/* The n-th message of a rank fails: every rank has an error, and the first of them is that one. */
static void test_faults(an_comm *comm) {
    for (faulty_call call = 0; comm->ranks > 1 && call < FAULTY_CALLS; call++) {
        an_context *ctx = NULL;
        an_context_options options;
        faulty_comm faulty;
        an_comm *part;
        an_status status = AN_OK;
        DONE(comm, comm->split(comm, 0, &part));
        faulty_comm_wrap(&faulty, part);
        an_context_options_init(&options, sizeof options);
        options.communicator = &faulty.comm;
        OK(NULL, an_context_create(&ctx, &options));
        meet(comm); /* no rank is still at the start */
        if (comm->rank == 1) faulty.fail_at[call] = faulty.calls[call] + 4;
        for (int i = 0; status == AN_OK && i < 1000; i++) status = an_ranks_barrier(ctx);
        CHECK(status == AN_ERR_COMMUNICATION && strstr(an_last_error(ctx), "planted failure"));
        CHECK(comm->rank == 1 || strstr(an_last_error(ctx), "rank 1: "));
        an_context_destroy(&ctx);
        faulty_comm_unwrap(&faulty);
        CHECK(part->broken);
        part->destroy(&part);
    }
}

/* ---- waits ---- */

typedef struct {
    an_context *ctx;
    an_comm_progress seen;
    int64_t beats[2];
} observer;

static int64_t beats_of_owner(const an_context *ctx) {
    return __atomic_load_n(&ctx->heartbeat->slots[AN_HEARTBEAT_OWNER].beats, __ATOMIC_ACQUIRE);
}

static void *observe(void *given) {
    observer *o = given;
    const double end = an_clock_seconds() + SECONDS_OF_A_TEST;
    do {
        pause_for(0.01);
        an_comm_progress_read(o->ctx, &o->seen);
    } while (!o->seen.waits && an_clock_seconds() < end);
    o->beats[0] = beats_of_owner(o->ctx);
    pause_for(0.1);
    o->beats[1] = beats_of_owner(o->ctx);
    return NULL;
}

/* A rank that waits says for what, and its heartbeat stands still. */
static void test_progress(an_comm *comm) {
    static an_heartbeat heartbeat;
    an_comm_progress after;
    an_comm *part;
    an_comm_request request;
    pthread_t thread;
    char byte = 0;
    an_heartbeat_init(&heartbeat, sizeof heartbeat);
    an_context *ctx = context_on(comm, &part, &heartbeat);
    observer o = {.ctx = ctx};
    an_comm_progress_read(ctx, &after);
    const uint64_t entered = after.collectives;
    an_comm_enter(ctx, an_axis_comm(ctx, AN_AXIS_DATA), "test", 12);
    meet(comm);
    if (comm->rank == 0 && comm->ranks > 1) {
        CHECK(pthread_create(&thread, NULL, observe, &o) == 0);
        OK(ctx, an_comm_receive(ctx, part, &byte, 1, 1, 3, &request));
        OK(ctx, an_comm_wait(ctx, part, &request, 1, "a byte from rank 1"));
        pthread_join(thread, NULL);
        CHECK(o.seen.waits == 1 && !strcmp(o.seen.waits_for, "a byte from rank 1"));
        CHECK(o.beats[0] == o.beats[1] && !strcmp(heartbeat.slots[0].text, "waits for a byte from rank 1"));
        CHECK(beats_of_owner(ctx) > o.beats[1]);
    } else if (comm->rank == 1) {
        pause_for(0.4);
        OK(ctx, an_comm_send(ctx, part, &byte, 1, 0, 3, &request));
        OK(ctx, an_comm_wait(ctx, part, &request, 1, "the byte to go"));
    }
    an_comm_progress_read(ctx, &after);
    CHECK(!after.waits && after.collectives == entered + 1 && after.bytes == 12 && !strcmp(after.kind, "test"));
    an_comm_enter(ctx, an_axis_comm(ctx, AN_AXIS_DATA), "test", 13);
    const uint64_t hash = after.hash;
    an_comm_progress_read(ctx, &after);
    CHECK(after.hash != hash);
    end_context(&ctx, &part);
}

/* A wait has a limit, and all ranks hear what it was for. */
static void test_timeout(an_comm *comm) {
    an_comm *part;
    an_context *ctx = context_on(comm, &part, NULL);
    an_comm_request request;
    char byte;
    if (comm->ranks > 1) {
        if (comm->rank == 0) {
            an_comm_set_timeout(ctx, 0.2);
            OK(ctx, an_comm_receive(ctx, part, &byte, 1, 1, 3, &request));
            FAILS(ctx, an_comm_wait(ctx, part, &request, 1, "godot"), AN_ERR_COMMUNICATION, "for godot");
            CHECK(!an_comm_is_pending(&request));
        } else {
            OK(ctx, an_comm_receive(ctx, part, &byte, 1, 0, 3, &request));
            FAILS(ctx, an_comm_wait(ctx, part, &request, 1, "rank 0"), AN_ERR_COMMUNICATION,
                  "rank 0: rank 0 has waited");
        }
    }
    end_context(&ctx, &part);
}

/* ---- contexts ---- */

/* Records that cannot be one are refused before anything is done with them, and nothing is lost. */
static void test_mistakes(an_comm *comm) {
    an_comm bad = *comm;
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.communicator = &bad;
    bad.size--;
    FAILS(NULL, an_context_create(&ctx, &options), AN_ERR_ARGUMENT, "size");
    bad.size++;
    bad.rank = bad.ranks;
    FAILS(NULL, an_context_create(&ctx, &options), AN_ERR_ARGUMENT, "rank");
    bad.rank = comm->rank;
    bad.cancel = NULL;
    FAILS(NULL, an_context_create(&ctx, &options), AN_ERR_ARGUMENT, "cancel");
    CHECK(!ctx);
}

static size_t held; /* by counting allocators */
static void *count_allocate(void *user, size_t bytes, size_t alignment) {
    (void)user;
    held += bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void count_release(void *user, void *memory, size_t bytes) {
    (void)user;
    held -= bytes;
    free(memory);
}

/* Everything is given back, also what was under way. */
static void test_leaks(an_comm *comm) {
    const an_allocator allocator = {.size = sizeof allocator, .allocate = count_allocate, .release = count_release};
    an_context *ctx = NULL;
    an_context_options options;
    an_comm *part;
    float numbers[100] = {0};
    an_context_options_init(&options, sizeof options);
    DONE(comm, comm->split(comm, 0, &part));
    options.communicator = part;
    options.allocator = &allocator;
    OK(NULL, an_context_create(&ctx, &options));
    const size_t bytes = an_context_bytes(ctx);
    CHECK(bytes == held);
    OK(ctx, an_ranks_all_reduce(ctx, numbers, 100, AN_DTYPE_F32, AN_REDUCE_SUM));
    CHECK(an_context_bytes(ctx) == bytes);
    an_context_destroy(&ctx);
    CHECK(held == 0);
    part->destroy(&part);
}

#endif

/* Several ranks in one process: a thread each, with a context of its own on tests/support/thread_comm.h. */
#ifndef AN_TESTS_RANKS_THREADS_H
#define AN_TESTS_RANKS_THREADS_H

#include <pthread.h>

#include "anneal/train.h"
#include "support/support.h"
#include "support/thread_comm.h"

enum { MOST_RANKS = 8, HASH_TEXT = AN_HASH_TEXT };

/* What a rank is given and what became of it. A thread must not assert: it says what failed in `error`. */
typedef struct one_rank {
    an_comm comm;
    thread_rank messages;
    an_context *ctx;
    ledger memory;
    void (*body)(struct one_rank *rank);
    void *user;
    an_heartbeat *heartbeat; /* NULL: none */
    pthread_t thread;
    char error[1024];
    char hash[HASH_TEXT];
    int64_t planned, allocated, shared;
} one_rank;

static inline bool rank_failed(one_rank *r, const char *what, an_status status) {
    if (status == AN_OK) return false;
    if (!*r->error) snprintf(r->error, sizeof r->error, "rank %d: %s: %s", r->comm.rank, what, an_last_error(r->ctx));
    return true;
}

static void *rank_thread(void *user) {
    one_rank *r = user;
    an_allocator allocator = {sizeof allocator, ledger_allocate, ledger_release, &r->memory};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.allocator = &allocator;
    options.threads = 1;
    options.communicator = &r->comm;
    options.heartbeat = r->heartbeat;
    options.alone = true;
    const bool failed = rank_failed(r, "context", an_context_create(&r->ctx, &options));
    thread_hub_meet(r->messages.hub);
    if (!failed) r->body(r);
    an_context_destroy(&r->ctx);
    if (!*r->error && (r->memory.held || r->memory.mismatch))
        snprintf(r->error, sizeof r->error, "rank %d: %zu bytes were not released", r->comm.rank, r->memory.held);
    return NULL;
}

/* Runs the body on so many ranks, `host_ranks` of which share memory, and waits for all; `plant` (NULL: nothing)
 * changes a rank before it starts. */
static inline void run_ranks_on(one_rank *ranks, int count, int host_ranks, void (*body)(one_rank *rank), void *user,
                                void (*plant)(one_rank *rank)) {
    thread_hub hub;
    thread_hub_init(&hub, count, host_ranks);
    for (int i = 0; i < count; i++) {
        ranks[i] = (one_rank){.body = body, .user = user};
        thread_comm_init(&ranks[i].comm, &ranks[i].messages, &hub, i);
        if (plant) plant(&ranks[i]);
    }
    for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_thread, &ranks[i]), 0);
    for (int i = 0; i < count; i++) pthread_join(ranks[i].thread, NULL);
    thread_hub_destroy(&hub);
}

/* … every one on a host of its own. */
static inline void run_ranks(one_rank *ranks, int count, void (*body)(one_rank *rank), void *user,
                             void (*plant)(one_rank *rank)) {
    run_ranks_on(ranks, count, 1, body, user, plant);
}

#endif

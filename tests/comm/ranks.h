/* What programs of this folder share: checks that end the program of one rank, and so of all, with the place. */
#ifndef TESTS_COMM_RANKS_H
#define TESTS_COMM_RANKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "comm/mesh.h"

static int this_rank; /* for messages */

/* The launcher ends the other ranks. */
#define CHECK(condition)                                                                                  \
    do {                                                                                                  \
        if (!(condition)) {                                                                               \
            fprintf(stderr, "rank %d: %s:%d: not true: %s\n", this_rank, __FILE__, __LINE__, #condition); \
            _exit(1);                                                                                     \
        }                                                                                                 \
    } while (0)

/* A call of the library. */
#define OK(ctx, call)                                                                                           \
    do {                                                                                                        \
        const an_status status_ = (call);                                                                       \
        if (status_ != AN_OK) {                                                                                 \
            fprintf(stderr, "rank %d: %s:%d: %s: %s\n", this_rank, __FILE__, __LINE__, an_status_name(status_), \
                    an_last_error(ctx));                                                                        \
            _exit(1);                                                                                           \
        }                                                                                                       \
    } while (0)

#define FAILS(ctx, call, code, words)                                                                           \
    do {                                                                                                        \
        const an_status status_ = (call);                                                                       \
        if (status_ != (code) || !strstr(an_last_error(ctx), words)) {                                          \
            fprintf(stderr, "rank %d: %s:%d: %s, not " #code " with '%s': %s\n", this_rank, __FILE__, __LINE__, \
                    an_status_name(status_), words, an_last_error(ctx));                                        \
            _exit(1);                                                                                           \
        }                                                                                                       \
    } while (0)

/* A call of a communicator's record. */
#define DONE(comm, call)                                                                                        \
    do {                                                                                                        \
        const an_status status_ = (call);                                                                       \
        if (status_ != AN_OK) {                                                                                 \
            fprintf(stderr, "rank %d: %s:%d: %s: %s\n", this_rank, __FILE__, __LINE__, an_status_name(status_), \
                    (comm)->note);                                                                              \
            _exit(1);                                                                                           \
        }                                                                                                       \
    } while (0)

enum { SECONDS_OF_A_TEST = 60 }; /* for what hangs: nothing here takes a second */

static inline void pause_for(double seconds) {
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* Until a message is done. */
static inline an_status finish(an_comm *comm, an_comm_request *request) {
    const double end = an_clock_seconds() + SECONDS_OF_A_TEST;
    for (bool done = false;;) {
        const an_status status = comm->test(comm, request, &done);
        if (status != AN_OK || done) return status;
        CHECK(an_clock_seconds() < end);
        sched_yield();
    }
}

static inline void send_now(an_comm *comm, const void *bytes, size_t count, int to, int tag) {
    an_comm_request request;
    DONE(comm, comm->send(comm, bytes, count, to, tag, &request));
    DONE(comm, finish(comm, &request));
}

static inline void receive_now(an_comm *comm, void *bytes, size_t count, int from, int tag) {
    an_comm_request request;
    DONE(comm, comm->receive(comm, bytes, count, from, tag, &request));
    DONE(comm, finish(comm, &request));
}

/* All ranks are here, by messages of the record: a circle, twice. */
static inline void meet(an_comm *comm) {
    enum { TAG = 9000 };
    char token = 0;
    const int next = (comm->rank + 1) % comm->ranks, before = (comm->rank + comm->ranks - 1) % comm->ranks;
    for (int round = 0; comm->ranks > 1 && round < 2; round++) {
        if (comm->rank > 0) receive_now(comm, &token, 1, before, TAG);
        send_now(comm, &token, 1, next, TAG);
        if (comm->rank == 0) receive_now(comm, &token, 1, before, TAG);
    }
}

/* A part of the communicator with all of its ranks, and a context on it. */
static inline an_context *context_on(an_comm *comm, an_comm **part, an_heartbeat *heartbeat) {
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    DONE(comm, comm->split(comm, 0, part));
    options.communicator = *part;
    options.threads = 1;
    options.heartbeat = heartbeat;
    OK(NULL, an_context_create(&ctx, &options));
    return ctx;
}

static inline void end_context(an_context **ctx, an_comm **part) {
    an_context_destroy(ctx);
    (*part)->destroy(part);
    CHECK(!*part);
}

#endif

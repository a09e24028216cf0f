/* What every communicator must do, by the functions of its record alone. */
#ifndef TESTS_COMM_CONFORMANCE_RECORD_H
#define TESTS_COMM_CONFORMANCE_RECORD_H

#include "comm/ranks.h"

/* Byte `at` of message `number` from rank `from`. */
static unsigned char byte_of(int from, int number, size_t at) {
    return (unsigned char)(from * 31 + number * 7 + (int)(at % 251));
}

static void fill(unsigned char *bytes, size_t count, int from, int number) {
    for (size_t i = 0; i < count; i++) bytes[i] = byte_of(from, number, i);
}

static bool is_filled(const unsigned char *bytes, size_t count, int from, int number) {
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != byte_of(from, number, i)) return false;
    return true;
}

/* Messages of one sender and tag arrive in order, whatever their sizes; other tags do not disturb them. A rank
 * is also its own neighbour. */
static void test_order(an_comm *comm) {
    enum { MESSAGES = 12, MOST = 70000, TAG = 5 };
    static const size_t sizes[] = {1, 0, 40, 4096, 9000, 65537};
    static unsigned char out[MESSAGES][MOST], in[MOST];
    an_comm_request requests[MESSAGES], late;
    char other = 0, mine = (char)comm->rank;
    const int next = (comm->rank + 1) % comm->ranks, before = (comm->rank + comm->ranks - 1) % comm->ranks;
    DONE(comm, comm->receive(comm, &other, 1, before, TAG + 1, &late));
    for (int i = 0; i < MESSAGES; i++) {
        const size_t count = sizes[i % 6];
        fill(out[i], count, comm->rank, i);
        DONE(comm, comm->send(comm, out[i], count, next, TAG, &requests[i]));
    }
    for (int i = 0; i < MESSAGES; i++) {
        memset(in, 0, sizeof in);
        receive_now(comm, in, sizes[i % 6], before, TAG);
        CHECK(is_filled(in, sizes[i % 6], before, i));
    }
    for (int i = 0; i < MESSAGES; i++) DONE(comm, finish(comm, &requests[i]));
    CHECK(!an_comm_is_pending(&requests[0]));
    send_now(comm, &mine, 1, next, TAG + 1);
    DONE(comm, finish(comm, &late));
    CHECK(other == (char)before);
}

/* Rank 0 hears from everyone, in any order. */
static void test_any(an_comm *comm) {
    enum { TAG = AN_COMM_MAX_TAG };
    int seen = 0, sum = 0, value = comm->rank + 1;
    an_comm_request request;
    DONE(comm, comm->send(comm, &value, sizeof value, 0, TAG, &request));
    for (int i = 0; comm->rank == 0 && i < comm->ranks; i++) {
        receive_now(comm, &seen, sizeof seen, AN_COMM_ANY, TAG);
        sum += seen;
    }
    DONE(comm, finish(comm, &request));
    if (comm->rank == 0) CHECK(sum == comm->ranks * (comm->ranks + 1) / 2);
}

/* Long messages in both directions at once. */
static void test_long(an_comm *comm) {
    enum { COUNT = 3 << 20, TAG = 6 };
    unsigned char *out = malloc(COUNT), *in = calloc(1, COUNT);
    an_comm_request requests[2];
    const int next = (comm->rank + 1) % comm->ranks, before = (comm->rank + comm->ranks - 1) % comm->ranks;
    CHECK(out && in);
    fill(out, COUNT, comm->rank, 0);
    DONE(comm, comm->receive(comm, in, COUNT, before, TAG, &requests[0]));
    DONE(comm, comm->send(comm, out, COUNT, next, TAG, &requests[1]));
    DONE(comm, finish(comm, &requests[1]));
    DONE(comm, finish(comm, &requests[0]));
    CHECK(is_filled(in, COUNT, before, 0));
    free(out);
    free(in);
}

/* A message that is too long is an error of its receiver, with a reason. A shorter one than the buffer is none.
 * The communicator goes on. */
static void test_too_long(an_comm *comm) {
    enum { TAG = 7, COUNT = 64 };
    unsigned char out[COUNT], in[COUNT] = {0};
    an_comm_request requests[2];
    const int next = (comm->rank + 1) % comm->ranks, before = (comm->rank + comm->ranks - 1) % comm->ranks;
    fill(out, COUNT, comm->rank, 3);
    comm->note[0] = 0;
    DONE(comm, comm->receive(comm, in, COUNT / 2, before, TAG, &requests[0]));
    DONE(comm, comm->send(comm, out, COUNT, next, TAG, &requests[1]));
    CHECK(finish(comm, &requests[0]) == AN_ERR_COMMUNICATION);
    CHECK(*comm->note && !an_comm_is_pending(&requests[0]) && in[COUNT / 2] == 0);
    DONE(comm, finish(comm, &requests[1]));
    DONE(comm, comm->receive(comm, in, COUNT, before, TAG, &requests[0]));
    DONE(comm, comm->send(comm, out, COUNT / 2, next, TAG, &requests[1]));
    DONE(comm, finish(comm, &requests[0]));
    DONE(comm, finish(comm, &requests[1]));
    CHECK(is_filled(in, COUNT / 2, before, 3) && in[COUNT / 2] == 0);
}

static void test_no_such_rank(an_comm *comm) {
    an_comm_request request;
    char byte = 0;
    comm->note[0] = 0;
    CHECK(comm->send(comm, &byte, 1, comm->ranks, 1, &request) != AN_OK);
    CHECK(*comm->note && !an_comm_is_pending(&request));
}

/* A receive that was given up takes nothing: the next one gets the message. */
static void test_cancel(an_comm *comm) {
    enum { TAG = 8 };
    an_comm_request request = {0}, receive;
    int given_up = -1, value = comm->rank, got = -1;
    bool done = false;
    const int next = (comm->rank + 1) % comm->ranks, before = (comm->rank + comm->ranks - 1) % comm->ranks;
    comm->cancel(comm, &request); /* of nothing */
    DONE(comm, comm->test(comm, &request, &done));
    CHECK(done);
    DONE(comm, comm->receive(comm, &given_up, sizeof given_up, AN_COMM_ANY, TAG, &receive));
    DONE(comm, comm->test(comm, &receive, &done));
    CHECK(!done && an_comm_is_pending(&receive));
    const double begin = an_clock_seconds();
    comm->cancel(comm, &receive);
    CHECK(!an_comm_is_pending(&receive) && an_clock_seconds() - begin < 1);
    meet(comm);
    DONE(comm, comm->receive(comm, &got, sizeof got, before, TAG, &receive));
    DONE(comm, comm->send(comm, &value, sizeof value, next, TAG, &request));
    DONE(comm, finish(comm, &receive));
    DONE(comm, finish(comm, &request));
    CHECK(got == before && given_up == -1);
}

static void test_split(an_comm *comm) {
    an_comm *part = NULL, *none = NULL;
    DONE(comm, comm->split(comm, comm->rank % 2, &part));
    CHECK(part && part->size == sizeof *part && part->rank == comm->rank / 2);
    CHECK(part->ranks == (comm->ranks + (comm->rank % 2 == 0)) / 2);
    test_order(part);
    DONE(comm, comm->split(comm, comm->rank == 0 ? 3 : -1, &none));
    CHECK((none != NULL) == (comm->rank == 0));
    if (none) {
        CHECK(none->ranks == 1);
        none->destroy(&none);
    }
    part->destroy(&part);
    CHECK(!part);
}

/* Tests run on one host. */
static void test_share(an_comm *comm) {
    enum { COUNT = 10000 };
    an_comm *host = NULL;
    an_comm_window window;
    DONE(comm, comm->split_hosts(comm, &host));
    CHECK(host && host->ranks == comm->ranks && host->rank == comm->rank);
    if (host->share) {
        for (int round = 0; round < 3; round++) {
            DONE(host, host->share(host, COUNT, &window));
            for (size_t i = 0; i < COUNT; i++) CHECK(((unsigned char *)window.parts[host->rank])[i] == 0);
            fill(window.parts[host->rank], COUNT, host->rank, round);
            __atomic_thread_fence(__ATOMIC_SEQ_CST);
            meet(host);
            for (int i = 0; i < host->ranks; i++) CHECK(is_filled(window.parts[i], COUNT, i, round));
            meet(host);
            host->unshare(host, &window);
        }
    }
    host->destroy(&host);
}

/* A rank that is done does not wait for others, neither with a communicator nor with a window. */
static void test_leaves(an_comm *comm) {
    const double late = 2.5;
    an_comm *part = NULL;
    an_comm_window window;
    DONE(comm, comm->split_hosts(comm, &part));
    if (part->share) DONE(part, part->share(part, 100, &window));
    meet(comm);
    const double begin = an_clock_seconds();
    if (comm->rank == comm->ranks - 1 && comm->ranks > 1) pause_for(late);
    if (part->share) part->unshare(part, &window);
    part->destroy(&part);
    if (comm->rank != comm->ranks - 1) CHECK(an_clock_seconds() - begin < late - 0.5);
    meet(comm);
}

#endif

/* A communicator around another one that fails the n-th call of a kind, and counts what it sends.
 *
 *     faulty_comm faulty;
 *     faulty_comm_wrap(&faulty, inner);
 *     options.communicator = &faulty.comm;
 *     …
 *     faulty.fail_at[FAULTY_SEND] = faulty.calls[FAULTY_SEND] + 3; the third send from now on fails
 */
#ifndef TESTS_FAULTY_COMM_H
#define TESTS_FAULTY_COMM_H

#include <stdio.h>
#include <string.h>

#include "anneal/experimental.h"

typedef enum { FAULTY_SEND, FAULTY_RECEIVE, FAULTY_TEST, FAULTY_CALLS } faulty_call;

typedef struct faulty_comm {
    an_comm comm;
    an_comm *inner;
    long calls[FAULTY_CALLS];   /* so far */
    long fail_at[FAULTY_CALLS]; /* the number of the call that fails, from 1; 0: none */
    bool forever;               /* and all that follow it */
    int64_t sent;               /* bytes */
} faulty_comm;

static inline bool faulty_fails(faulty_comm *f, faulty_call call) {
    const long number = ++f->calls[call], at = f->fail_at[call];
    if (!at || (f->forever ? number < at : number != at)) return false;
    snprintf(f->comm.note, sizeof f->comm.note, "planted failure of %s %ld",
             call == FAULTY_SEND      ? "send"
             : call == FAULTY_RECEIVE ? "receive"
                                      : "test",
             number);
    return true;
}

static inline an_status faulty_passed(faulty_comm *f, an_status status) {
    if (status != AN_OK) memcpy(f->comm.note, f->inner->note, sizeof f->comm.note);
    return status;
}

static inline an_status faulty_send(an_comm *comm, const void *bytes, size_t count, int to, int tag,
                                    an_comm_request *request) {
    faulty_comm *f = comm->data;
    memset(request, 0, sizeof *request);
    if (faulty_fails(f, FAULTY_SEND)) return AN_ERR_COMMUNICATION;
    f->sent += (int64_t)count;
    return faulty_passed(f, f->inner->send(f->inner, bytes, count, to, tag, request));
}

static inline an_status faulty_receive(an_comm *comm, void *bytes, size_t count, int from, int tag,
                                       an_comm_request *request) {
    faulty_comm *f = comm->data;
    memset(request, 0, sizeof *request);
    if (faulty_fails(f, FAULTY_RECEIVE)) return AN_ERR_COMMUNICATION;
    return faulty_passed(f, f->inner->receive(f->inner, bytes, count, from, tag, request));
}

static inline an_status faulty_test(an_comm *comm, an_comm_request *request, bool *done) {
    faulty_comm *f = comm->data;
    if (!faulty_fails(f, FAULTY_TEST)) return faulty_passed(f, f->inner->test(f->inner, request, done));
    f->inner->cancel(f->inner, request);
    *done = false;
    return AN_ERR_COMMUNICATION;
}

static inline void faulty_cancel(an_comm *comm, an_comm_request *request) {
    faulty_comm *f = comm->data;
    f->inner->cancel(f->inner, request);
}

/* Parts of it do not fail. */
static inline an_status faulty_split(an_comm *comm, int color, an_comm **part) {
    faulty_comm *f = comm->data;
    return faulty_passed(f, f->inner->split(f->inner, color, part));
}

static inline an_status faulty_split_hosts(an_comm *comm, an_comm **part) {
    faulty_comm *f = comm->data;
    return faulty_passed(f, f->inner->split_hosts(f->inner, part));
}

static inline an_status faulty_share(an_comm *comm, size_t bytes, an_comm_window *window) {
    faulty_comm *f = comm->data;
    return faulty_passed(f, f->inner->share(f->inner, bytes, window));
}

static inline void faulty_unshare(an_comm *comm, an_comm_window *window) {
    faulty_comm *f = comm->data;
    f->inner->unshare(f->inner, window);
}

/* The inner one stays the caller's. */
static inline void faulty_destroy(an_comm **comm) {
    *comm = NULL;
}

static inline void faulty_comm_wrap(faulty_comm *f, an_comm *inner) {
    *f = (faulty_comm){.inner = inner};
    f->comm = (an_comm){.size = sizeof f->comm,
                        .name = inner->name,
                        .rank = inner->rank,
                        .ranks = inner->ranks,
                        .data = f,
                        .send = faulty_send,
                        .receive = faulty_receive,
                        .test = faulty_test,
                        .cancel = faulty_cancel,
                        .split = faulty_split,
                        .split_hosts = faulty_split_hosts,
                        .share = inner->share ? faulty_share : NULL,
                        .unshare = inner->unshare ? faulty_unshare : NULL,
                        .destroy = faulty_destroy};
}

/* After the context: the inner one hears whether a rank gave up, and is the caller's to destroy. */
static inline void faulty_comm_unwrap(faulty_comm *f) {
    if (f->comm.broken) f->inner->broken = true;
}

#endif

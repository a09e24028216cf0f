/* A communicator whose ranks are threads of one process: a second implementation of the record an_comm, beside
 * MPI's, with which a test can run several ranks, stop one at any message and look at all of them. Messages are
 * copied when they are sent, so a send is done at once. Ranks divide into hosts of `host_ranks` each, which share
 * memory if there are several. */
#ifndef AN_TESTS_SUPPORT_THREAD_COMM_H
#define AN_TESTS_SUPPORT_THREAD_COMM_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/experimental.h"

enum { THREAD_RANKS_MOST = 64, THREAD_PART = 4096 };

typedef struct thread_message {
    struct thread_message *next;
    /* Of the channels, 0 has all ranks, 1 + i those of the host that begins with rank i, and 1 + ranks + i those that
     * are rank i of their host. */
    int channel, from, to, tag;
    size_t bytes;
    char data[];
} thread_message;

/* What the ranks have in common. */
typedef struct thread_hub {
    pthread_mutex_t mutex;
    pthread_cond_t shared;
    thread_message *first, **last; /* in the order in which they were sent */
    int ranks, host_ranks;
    void *parts[THREAD_RANKS_MOST]; /* of memory that ranks share */
    int users[THREAD_RANKS_MOST]; /* … by the first rank of the host: those that came to share it and have not left */
    int met;                      /* calls of thread_hub_meet */
} thread_hub;

typedef struct thread_rank {
    thread_hub *hub;
    int channel;
    /* The call of this number fails, counted from 1 over sends, receives and tests that find something; 0: none. */
    int64_t fails_at, calls;
    int64_t sent;              /* bytes */
    struct thread_rank *whole; /* of a part of the ranks: what it sends and where it fails is counted here */
} thread_rank;

typedef struct thread_receive {
    void *bytes;
    size_t count;
    int from, tag;
} thread_receive;

static inline void thread_hub_init(thread_hub *hub, int ranks, int host_ranks) {
    *hub = (thread_hub){.ranks = ranks, .host_ranks = host_ranks};
    hub->last = &hub->first;
    pthread_mutex_init(&hub->mutex, NULL);
    pthread_cond_init(&hub->shared, NULL);
}

static inline void thread_hub_destroy(thread_hub *hub) {
    for (thread_message *m = hub->first, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    for (int i = 0; i < hub->ranks; i++) free(hub->parts[i]); /* of ranks that gave up */
    pthread_cond_destroy(&hub->shared);
    pthread_mutex_destroy(&hub->mutex);
}

/* Returns when every rank has called it as often as this one, without a message. Before a planted failure it is
 * necessary: a rank whose context is complete may fail while another still creates its own. */
static inline void thread_hub_meet(thread_hub *hub) {
    pthread_mutex_lock(&hub->mutex);
    const int complete = hub->met / hub->ranks * hub->ranks + hub->ranks;
    hub->met++;
    pthread_cond_broadcast(&hub->shared);
    while (hub->met < complete) pthread_cond_wait(&hub->shared, &hub->mutex);
    pthread_mutex_unlock(&hub->mutex);
}

static inline thread_rank *thread_whole(thread_rank *r) {
    return r->whole ? r->whole : r;
}

static inline bool thread_comm_fails(an_comm *comm, const char *what) {
    thread_rank *r = thread_whole(comm->data);
    if (++r->calls != r->fails_at) return false;
    strncpy(comm->note, what, sizeof comm->note - 1);
    return true;
}

static inline an_status thread_comm_send(an_comm *comm, const void *bytes, size_t count, int to, int tag,
                                         an_comm_request *request) {
    thread_rank *r = comm->data;
    memset(request, 0, sizeof *request);
    if (thread_comm_fails(comm, "the planted send failed")) return AN_ERR_DEVICE;
    thread_message *m = malloc(sizeof *m + count);
    if (!m) return AN_ERR_MEMORY;
    *m = (thread_message){.channel = r->channel, .from = comm->rank, .to = to, .tag = tag, .bytes = count};
    if (count) memcpy(m->data, bytes, count);
    thread_whole(r)->sent += (int64_t)count;
    pthread_mutex_lock(&r->hub->mutex);
    *r->hub->last = m;
    r->hub->last = &m->next;
    pthread_mutex_unlock(&r->hub->mutex);
    return AN_OK;
}

static inline an_status thread_comm_receive(an_comm *comm, void *bytes, size_t count, int from, int tag,
                                            an_comm_request *request) {
    memset(request, 0, sizeof *request);
    if (thread_comm_fails(comm, "the planted receive failed")) return AN_ERR_DEVICE;
    thread_receive *w = malloc(sizeof *w);
    if (!w) return AN_ERR_MEMORY;
    *w = (thread_receive){bytes, count, from, tag};
    request->words[0] = (uint64_t)(uintptr_t)w;
    return AN_OK;
}

static inline void thread_comm_cancel(an_comm *comm, an_comm_request *request) {
    (void)comm;
    free((void *)(uintptr_t)request->words[0]);
    memset(request, 0, sizeof *request);
}

static inline an_status thread_comm_test(an_comm *comm, an_comm_request *request, bool *done) {
    thread_rank *r = comm->data;
    const thread_receive *w = (const void *)(uintptr_t)request->words[0];
    an_status status = AN_OK;
    *done = !w;
    if (!w) return AN_OK;
    pthread_mutex_lock(&r->hub->mutex);
    for (thread_message **at = &r->hub->first, *m; (m = *at); at = &m->next) {
        if (m->channel != r->channel || m->to != comm->rank || m->tag != w->tag ||
            (w->from != AN_COMM_ANY && w->from != m->from))
            continue;
        *done = true;
        *at = m->next;
        if (r->hub->last == &m->next) r->hub->last = at;
        if (m->bytes > w->count) {
            strncpy(comm->note, "the message is longer than was expected", sizeof comm->note - 1);
            status = AN_ERR_DEVICE;
        } else if (thread_comm_fails(comm, "the planted message was lost"))
            status = AN_ERR_DEVICE;
        else if (m->bytes)
            memcpy(w->bytes, m->data, m->bytes);
        free(m);
        break;
    }
    pthread_mutex_unlock(&r->hub->mutex);
    if (*done) thread_comm_cancel(comm, request);
    return status;
}

static inline void thread_comm_init(an_comm *comm, thread_rank *own, thread_hub *hub, int rank);

/* ---- hosts ---- */

typedef struct thread_host {
    an_comm comm;
    thread_rank own;
} thread_host;

static inline void thread_host_destroy(an_comm **comm) {
    free(*comm); /* the first member of a thread_host */
    *comm = NULL;
}

/* Waits for all ranks of the host. */
static inline an_status thread_host_share(an_comm *comm, size_t bytes, an_comm_window *window) {
    thread_rank *r = comm->data;
    thread_hub *hub = r->hub;
    const int first = r->channel - 1;
    pthread_mutex_lock(&hub->mutex);
    hub->parts[first + comm->rank] = aligned_alloc(THREAD_PART, (bytes + THREAD_PART - 1) / THREAD_PART * THREAD_PART);
    hub->users[first]++;
    pthread_cond_broadcast(&hub->shared);
    while (hub->users[first] < comm->ranks) pthread_cond_wait(&hub->shared, &hub->mutex);
    pthread_mutex_unlock(&hub->mutex);
    window->parts = hub->parts + first;
    return AN_OK;
}

/* Others may still read it: the last one releases all of it. */
static inline void thread_host_unshare(an_comm *comm, an_comm_window *window) {
    thread_rank *r = comm->data;
    thread_hub *hub = r->hub;
    const int first = r->channel - 1;
    pthread_mutex_lock(&hub->mutex);
    if (--hub->users[first] == 0)
        for (int i = 0; i < comm->ranks; i++) {
            free(hub->parts[first + i]);
            hub->parts[first + i] = NULL;
        }
    pthread_mutex_unlock(&hub->mutex);
    memset(window, 0, sizeof *window);
}

static inline an_status thread_comm_split_hosts(an_comm *comm, an_comm **part) {
    thread_rank *r = comm->data;
    thread_hub *hub = r->hub;
    thread_host *host = malloc(sizeof *host);
    *part = NULL;
    if (!host) return AN_ERR_MEMORY;
    const int size = hub->host_ranks, first = comm->rank / size * size;
    thread_comm_init(&host->comm, &host->own, hub, comm->rank - first);
    host->own.channel = 1 + first;
    host->own.whole = thread_whole(r);
    host->comm.ranks = hub->ranks - first < size ? hub->ranks - first : size;
    host->comm.destroy = thread_host_destroy;
    if (size > 1) {
        host->comm.share = thread_host_share;
        host->comm.unshare = thread_host_unshare;
    }
    *part = &host->comm;
    return AN_OK;
}

/* Into those with the same place on their hosts, which is the only division that is asked for. */
static inline an_status thread_comm_split(an_comm *comm, int color, an_comm **part) {
    thread_rank *r = comm->data;
    thread_hub *hub = r->hub;
    const int size = hub->host_ranks;
    *part = NULL;
    strncpy(comm->note, "threads are divided by their place on a host", sizeof comm->note - 1);
    if (color != comm->rank % size || hub->ranks % size) return AN_ERR_UNSUPPORTED;
    thread_host *column = malloc(sizeof *column);
    if (!column) return AN_ERR_MEMORY;
    thread_comm_init(&column->comm, &column->own, hub, comm->rank / size);
    column->own.channel = 1 + hub->ranks + color;
    column->own.whole = thread_whole(r);
    column->comm.ranks = hub->ranks / size;
    column->comm.destroy = thread_host_destroy;
    *part = &column->comm;
    return AN_OK;
}

static inline void thread_comm_destroy(an_comm **comm) {
    *comm = NULL; /* the test's */
}

static inline void thread_comm_init(an_comm *comm, thread_rank *own, thread_hub *hub, int rank) {
    *own = (thread_rank){.hub = hub};
    *comm = (an_comm){.size = sizeof *comm,
                      .name = "threads",
                      .rank = rank,
                      .ranks = hub->ranks,
                      .data = own,
                      .send = thread_comm_send,
                      .receive = thread_comm_receive,
                      .test = thread_comm_test,
                      .cancel = thread_comm_cancel,
                      .split = thread_comm_split,
                      .split_hosts = thread_comm_split_hosts,
                      .destroy = thread_comm_destroy};
}

#endif

/* Ranks as threads of one process: an implementation of the record an_comm with which a test runs several ranks without
 * MPI.
 *
 * Messages are matched as MPI does it, in the order in which they were posted, and are copied only when both sides are
 * there: a send is not done before that, so who changes its bytes too early is found. Ranks divide into hosts of
 * `host_ranks` each, which share memory. */
#ifndef TESTS_RANK_THREADS_H
#define TESTS_RANK_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/experimental.h"

enum { RANK_THREADS_MOST = 64 };

typedef struct rank_message {
    struct rank_message *next;
    bool is_send, is_done, is_too_long;
    int channel, from, to, tag; /* ranks of the world */
    size_t bytes;
    const void *src;
    void *dst;
} rank_message;

typedef struct rank_hub {
    pthread_mutex_t mutex;
    pthread_cond_t all_came;
    int ranks, host_ranks;
    bool cannot_share;
    int came; /* to a barrier, and how often all came */
    long rounds;
    rank_message *first; /* those without a partner, in the order in which they were posted */
    void *parts[RANK_THREADS_MOST];
    int64_t sent[RANK_THREADS_MOST]; /* bytes, by rank of the world */
} rank_hub;

/* One communicator of one rank: channel 0 is the world, 1 the host, 2 those with the same place on their hosts. */
typedef struct rank_end {
    an_comm comm;
    rank_hub *hub;
    int channel, first, stride; /* the rank of the world that is rank 0 here, and how far the next one is */
} rank_end;

static inline void rank_hub_init(rank_hub *hub, int ranks, int host_ranks) {
    *hub = (rank_hub){.ranks = ranks, .host_ranks = host_ranks};
    pthread_mutex_init(&hub->mutex, NULL);
    pthread_cond_init(&hub->all_came, NULL);
}

/* How many messages never found their partner. */
static inline int rank_hub_destroy(rank_hub *hub) {
    int left = 0;
    for (rank_message *m = hub->first; m; m = m->next) left++;
    pthread_mutex_destroy(&hub->mutex);
    pthread_cond_destroy(&hub->all_came);
    return left;
}

static inline void rank_barrier(rank_hub *hub) {
    pthread_mutex_lock(&hub->mutex);
    const long round = hub->rounds;
    if (++hub->came == hub->ranks) {
        hub->came = 0;
        hub->rounds++;
        pthread_cond_broadcast(&hub->all_came);
    }
    while (round == hub->rounds) pthread_cond_wait(&hub->all_came, &hub->mutex);
    pthread_mutex_unlock(&hub->mutex);
}

static inline bool rank_fits(const rank_message *a, const rank_message *b) {
    const rank_message *receive = a->is_send ? b : a, *send = a->is_send ? a : b;
    return a->is_send != b->is_send && a->channel == b->channel && a->tag == b->tag && receive->to == send->to &&
           (receive->from == AN_COMM_ANY || receive->from == send->from);
}

static inline an_status rank_post(rank_end *end, rank_message m, an_comm_request *request) {
    rank_message *mine = malloc(sizeof *mine), **at = &end->hub->first;
    if (!mine) return AN_ERR_MEMORY;
    *mine = m;
    pthread_mutex_lock(&end->hub->mutex);
    while (*at && !rank_fits(*at, mine)) at = &(*at)->next;
    rank_message *other = *at;
    if (other) {
        rank_message *receive = m.is_send ? other : mine, *send = m.is_send ? mine : other;
        receive->is_too_long = send->bytes > receive->bytes;
        if (!receive->is_too_long && send->bytes > 0) memcpy(receive->dst, send->src, send->bytes);
        *at = other->next;
        mine->is_done = other->is_done = true;
    } else {
        *at = mine;
    }
    pthread_mutex_unlock(&end->hub->mutex);
    request->words[0] = (uint64_t)(uintptr_t)mine;
    return AN_OK;
}

static inline int rank_of_all(const rank_end *end, int rank) {
    return end->first + rank * end->stride;
}

static inline an_status rank_send(an_comm *comm, const void *bytes, size_t count, int to, int tag,
                                  an_comm_request *request) {
    rank_end *end = comm->data;
    const int from = rank_of_all(end, comm->rank);
    end->hub->sent[from] += (int64_t)count;
    return rank_post(end,
                     (rank_message){.is_send = true,
                                    .channel = end->channel,
                                    .from = from,
                                    .to = rank_of_all(end, to),
                                    .tag = tag,
                                    .bytes = count,
                                    .src = bytes},
                     request);
}

static inline an_status rank_receive(an_comm *comm, void *bytes, size_t count, int from, int tag,
                                     an_comm_request *request) {
    rank_end *end = comm->data;
    return rank_post(end,
                     (rank_message){.channel = end->channel,
                                    .from = from == AN_COMM_ANY ? from : rank_of_all(end, from),
                                    .to = rank_of_all(end, comm->rank),
                                    .tag = tag,
                                    .bytes = count,
                                    .dst = bytes},
                     request);
}

static inline an_status rank_test(an_comm *comm, an_comm_request *request, bool *done) {
    rank_end *end = comm->data;
    rank_message *m = (rank_message *)(uintptr_t)request->words[0];
    an_status status = AN_OK;
    pthread_mutex_lock(&end->hub->mutex);
    *done = m->is_done;
    pthread_mutex_unlock(&end->hub->mutex);
    if (!*done) return AN_OK;
    if (m->is_too_long) {
        snprintf(comm->note, sizeof comm->note, "the message is longer than its receiver's buffer");
        status = AN_ERR_COMMUNICATION;
    }
    free(m);
    memset(request, 0, sizeof *request);
    return status;
}

static inline void rank_cancel(an_comm *comm, an_comm_request *request) {
    rank_end *end = comm->data;
    rank_message *m = (rank_message *)(uintptr_t)request->words[0];
    pthread_mutex_lock(&end->hub->mutex);
    for (rank_message **at = &end->hub->first; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    pthread_mutex_unlock(&end->hub->mutex);
    free(m);
    memset(request, 0, sizeof *request);
}

static inline an_status rank_split(an_comm *comm, int color, an_comm **part);

/* All ranks come, of all hosts, as there is one barrier. */
static inline an_status rank_share(an_comm *comm, size_t bytes, an_comm_window *window) {
    rank_end *end = comm->data;
    rank_hub *hub = end->hub;
    const size_t whole = (bytes + 4095) / 4096 * 4096;
    if (!hub->cannot_share) hub->parts[end->first + comm->rank] = aligned_alloc(4096, whole);
    rank_barrier(hub);
    snprintf(comm->note, sizeof comm->note, "these threads share nothing");
    if (hub->cannot_share) return AN_ERR_UNSUPPORTED;
    window->parts = hub->parts + end->first;
    return AN_OK;
}

static inline void rank_unshare(an_comm *comm, an_comm_window *window) {
    rank_end *end = comm->data;
    rank_barrier(end->hub);
    free(end->hub->parts[end->first + comm->rank]);
    memset(window, 0, sizeof *window);
}

static inline void rank_end_destroy(an_comm **comm) {
    if (*comm) free((*comm)->data);
    *comm = NULL;
}

static inline an_status rank_split_hosts(an_comm *comm, an_comm **part);

static inline an_comm *rank_end_create(rank_hub *hub, int channel, int first, int rank, int ranks) {
    rank_end *end = calloc(1, sizeof *end);
    if (!end) return NULL;
    *end = (rank_end){.comm = {.size = sizeof end->comm,
                               .name = "threads",
                               .rank = rank,
                               .ranks = ranks,
                               .data = end,
                               .send = rank_send,
                               .receive = rank_receive,
                               .test = rank_test,
                               .cancel = rank_cancel,
                               .split = rank_split,
                               .split_hosts = rank_split_hosts,
                               .share = rank_share,
                               .unshare = rank_unshare,
                               .destroy = rank_end_destroy},
                      .hub = hub,
                      .channel = channel,
                      .first = first,
                      .stride = 1};
    return &end->comm;
}

static inline an_status rank_split_hosts(an_comm *comm, an_comm **part) {
    const rank_end *end = comm->data;
    const int size = end->hub->host_ranks, first = comm->rank / size * size;
    const int ranks = comm->ranks - first < size ? comm->ranks - first : size;
    *part = rank_end_create(end->hub, 1, first, comm->rank - first, ranks);
    return *part ? AN_OK : AN_ERR_MEMORY;
}

/* Into those with the same place on their hosts, which is the only division that is asked for. */
static inline an_status rank_split(an_comm *comm, int color, an_comm **part) {
    const rank_end *end = comm->data;
    const int size = end->hub->host_ranks;
    *part = NULL;
    snprintf(comm->note, sizeof comm->note, "threads are divided by their place on a host");
    if (color != comm->rank % size || comm->ranks % size) return AN_ERR_UNSUPPORTED;
    *part = rank_end_create(end->hub, 2, color, comm->rank / size, comm->ranks / size);
    if (*part) ((rank_end *)(*part)->data)->stride = size;
    return *part ? AN_OK : AN_ERR_MEMORY;
}

/* The communicator of all ranks, for one of them. */
static inline an_comm *rank_world(rank_hub *hub, int rank) {
    return rank_end_create(hub, 0, 0, rank, hub->ranks);
}

#endif

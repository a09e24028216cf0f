/* The communicator of one process with itself. Code above it is the same for one rank and for many, and what a rank
 * sends to itself arrives. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "comm/mesh.h"

enum { MESSAGES = 32 }; /* on their way at once */

typedef enum { FREE, SENDING, RECEIVING, DONE, TOO_LONG } message_state;

typedef struct {
    message_state state;
    int tag;
    uint64_t number; /* the order in which they began */
    const void *src;
    void *dst;
    size_t count;
} message;

typedef struct {
    an_comm comm;
    an_context *ctx;
    uint64_t begun;
    message messages[MESSAGES];
} self;

#define SELF(comm) ((self *)(comm)->data)

/* A request has the index of its message, from 1. */
static message *message_of(an_comm *comm, const an_comm_request *request) {
    const uint64_t index = request->words[0];
    return index > 0 && index <= MESSAGES ? &SELF(comm)->messages[index - 1] : NULL;
}

/* The oldest message of this state and tag. */
static message *oldest(self *s, message_state state, int tag) {
    message *found = NULL;
    for (message *m = s->messages; m < s->messages + MESSAGES; m++)
        if (m->state == state && m->tag == tag && (!found || m->number < found->number)) found = m;
    return found;
}

static void deliver(message *from, message *to) {
    const bool fits = from->count <= to->count;
    if (fits && from->count) memcpy(to->dst, from->src, from->count);
    to->state = fits ? DONE : TOO_LONG;
    from->state = DONE;
}

static an_status begin(an_comm *comm, message_state state, const message *given, int peer, an_comm_request *request) {
    self *s = comm->data;
    message *m = s->messages;
    memset(request, 0, sizeof *request);
    while (m < s->messages + MESSAGES && m->state != FREE) m++;
    if (peer != 0 && !(peer == AN_COMM_ANY && state == RECEIVING)) {
        snprintf(comm->note, sizeof comm->note, "there is no rank %d: this process is alone", peer);
        return AN_ERR_ARGUMENT;
    }
    if (m == s->messages + MESSAGES) {
        snprintf(comm->note, sizeof comm->note, "%d messages of a process to itself are on their way already",
                 MESSAGES);
        return AN_ERR_OVERFLOW;
    }
    message *other = oldest(s, state == SENDING ? RECEIVING : SENDING, given->tag);
    *m = *given;
    m->state = state;
    m->number = ++s->begun;
    if (other && state == SENDING) deliver(m, other);
    if (other && state == RECEIVING) deliver(other, m);
    request->words[0] = (uint64_t)(m - s->messages) + 1;
    return AN_OK;
}

static an_status self_send(an_comm *comm, const void *bytes, size_t count, int to, int tag, an_comm_request *request) {
    const message m = {.tag = tag, .src = bytes, .count = count};
    return begin(comm, SENDING, &m, to, request);
}

static an_status self_receive(an_comm *comm, void *bytes, size_t count, int from, int tag, an_comm_request *request) {
    const message m = {.tag = tag, .dst = bytes, .count = count};
    return begin(comm, RECEIVING, &m, from, request);
}

static void self_cancel(an_comm *comm, an_comm_request *request) {
    message *m = message_of(comm, request);
    if (m) m->state = FREE;
    memset(request, 0, sizeof *request);
}

static an_status self_test(an_comm *comm, an_comm_request *request, bool *done) {
    const message *m = message_of(comm, request);
    const message_state state = m ? m->state : DONE;
    *done = state == DONE;
    if (state == SENDING || state == RECEIVING) return AN_OK;
    self_cancel(comm, request);
    if (state != TOO_LONG) return AN_OK;
    snprintf(comm->note, sizeof comm->note, "a message is longer than the buffer for it");
    return AN_ERR_COMMUNICATION;
}

static an_status self_split(an_comm *comm, int color, an_comm **part) {
    *part = NULL;
    if (color < 0) return AN_OK;
    const an_status status = an_self_create(SELF(comm)->ctx, part);
    if (status != AN_OK) snprintf(comm->note, sizeof comm->note, "%s", an_status_text(status));
    return status;
}

static an_status self_split_hosts(an_comm *comm, an_comm **part) {
    return self_split(comm, 0, part);
}

/* The window's words: how many bytes. Its one part and the list of parts are one piece of memory. */
static an_status self_share(an_comm *comm, size_t bytes, an_comm_window *window) {
    char *memory = NULL;
    memset(window, 0, sizeof *window);
    const an_status status = an_alloc(SELF(comm)->ctx, (void **)&memory, 1, AN_ALIGNMENT + bytes);
    if (status != AN_OK) {
        snprintf(comm->note, sizeof comm->note, "%s", an_status_text(status));
        return status;
    }
    window->parts = (void **)(void *)memory;
    window->parts[0] = memory + AN_ALIGNMENT;
    window->words[0] = bytes;
    return AN_OK;
}

static void self_unshare(an_comm *comm, an_comm_window *window) {
    an_release(SELF(comm)->ctx, (void **)&window->parts, 1, AN_ALIGNMENT + window->words[0]);
}

static void self_destroy(an_comm **comm) {
    if (!*comm) return;
    self *s = (*comm)->data;
    *comm = NULL;
    an_release(s->ctx, (void **)&s, 1, sizeof *s);
}

an_status an_self_create(an_context *ctx, an_comm **comm) {
    self *s = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    s->comm = (an_comm){.size = sizeof s->comm,
                        .name = "one process",
                        .rank = 0,
                        .ranks = 1,
                        .data = s,
                        .send = self_send,
                        .receive = self_receive,
                        .test = self_test,
                        .cancel = self_cancel,
                        .split = self_split,
                        .split_hosts = self_split_hosts,
                        .share = self_share,
                        .unshare = self_unshare,
                        .destroy = self_destroy};
    *comm = &s->comm;
    return AN_OK;
}

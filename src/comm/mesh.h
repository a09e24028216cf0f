/* The ranks of a context: its communicators, and what is known about messages between them. It hangs off the context,
 * so contexts of one process have nothing in common. */
#ifndef AN_COMM_MESH_H
#define AN_COMM_MESH_H

#include "comm/comm.h"

/* What one rank tells all others when it gives up. Moved as bytes, between processes of one binary. */
typedef struct an_abort_message {
    int32_t status, rank;
    char text[AN_MESSAGE_BYTES];
} an_abort_message;

typedef struct an_mesh {
    an_comm *comm; /* all ranks; the others below divide it */
    bool owned;    /* by the context, else by the caller */
    an_comm *axes[AN_AXES];
    an_comm *host;                     /* the ranks of this host */
    an_comm *replicas;                 /* the ranks with this one's place on their hosts; NULL: there are none */
    int hosts;                         /* that the ranks are on; known after an_start_agree, as the next four are */
    int group_ranks;                   /* an_group_ranks */
    int host_ranks;                    /* an_host_ranks */
    int host_threads, host_processors; /* of all ranks of this host together */
    bool crowded;                      /* this host has more ranks than processors for them */
    double timeout;                    /* seconds that a wait may take */
    size_t piece;                      /* bytes of one message, at most; smaller in tests only */
    an_comm_progress progress;
    int64_t waits_since;            /* beats of the owner's heartbeat when the wait began */
    int lost;                       /* 1 + the rank that has died, as another thread has found out; 0: none */
    char lost_at[AN_COMM_NOTE / 2]; /* where that was, as the end of a sentence */
    /* Who gave up, if one did: AN_OK and "" until then. */
    an_status failed;
    char failure[AN_MESSAGE_BYTES];
    an_abort_message arriving, leaving;
    an_comm_request arrival;
    an_comm_request *departures; /* by rank. O(ranks), made at the start: memory may be what ran out */
} an_mesh;

/* What a communicator record lacks to be used; NULL: nothing. */
const char *an_comm_mistake(const an_comm *comm);
/* The ranks of ctx->communicator; NULL: of this process alone. Collective over them, and may block. */
an_status an_mesh_begin(an_context *ctx);
/* What the ranks settle before their contexts compute anything: the instruction level, which is the lowest of
 * all ranks where it is automatic, the threads of each (launch/rank_threads.h), and whether those of a host
 * share memory. Collective. */
an_status an_start_agree(an_context *ctx, const an_context_options *given);
/* The context owns its communicator from now on. */
void an_mesh_own(an_context *ctx);

/* Whether a message is on its way. */
static inline bool an_comm_is_pending(const an_comm_request *request) {
    return (request->words[0] | request->words[1] | request->words[2] | request->words[3]) != 0;
}

/* Begins and ends to listen for a rank that gives up. */
an_status an_abort_listen(an_context *ctx);
void an_abort_end(an_context *ctx);

/* A communicator of this process with itself, in memory of the context. */
an_status an_self_create(an_context *ctx, an_comm **comm);

#endif

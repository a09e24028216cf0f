/* Why nothing moves: ranks watch each other over TCP, beside MPI, which says nothing about a rank that hangs.
 *
 * A thread in each rank looks at the rank's heartbeat and at its collectives about once a second. It sends what it
 * finds to the first rank of its host; these send what stands still to rank 0, and rank 0 decides who is to blame
 * (comm/watch/blame.h) and reports it once, on its own thread, to the caller and to a supervisor if there is one. If
 * the rank above does not answer, a rank turns to another one; if none below it answers, it reports itself. So rank 0
 * may hang as well.
 *
 * What it costs: a first rank has a socket for each rank of its host, rank 0 one for each host too. Every rank holds
 * the addresses of all (32 bytes a rank), and rank 0 looks through the states of all ranks once a second (500 bytes
 * a rank, in memory that others never touch). Messages to rank 0 are O(hosts) a second while a run moves,
 * O(ranks) while it hangs. */
#ifndef AN_COMM_WATCH_WATCH_H
#define AN_COMM_WATCH_WATCH_H

#include "base/context.h"
#include "launch/rank_state.h"

enum { AN_WATCH_PLACES = 4 };

/* Where a rank listens. Ranks of one host talk over the loopback; the addresses are for others. */
typedef struct an_watch_address {
    int32_t leader; /* the first rank of its host */
    uint16_t port;  /* in network byte order, as the addresses are */
    uint16_t count;
    uint32_t places[AN_WATCH_PLACES]; /* IPv4 */
} an_watch_address;

typedef struct an_watch_setup {
    int32_t rank, ranks;
    const an_watch_address *addresses; /* by rank; copied */
    an_siphash_key key;                /* which only ranks of this run have */
    int listener;                 /* that the rank's address belongs to; an_watch_start takes it, even if it fails */
    double report_after, timeout; /* seconds; 0: never */
    /* Reads what the rank is doing now: both beats, step, collectives, hash, bytes, waits and the texts but `host`.
     * Called on the watching thread. */
    void (*look)(const void *user, an_rank_state *state);
    const void *look_user;
    /* STALL, GOES_ON or TIMEOUT, on the watching thread of the rank that decides. `is_told`: a supervisor has it
     * too. */
    void (*report)(void *user, an_rank_message_kind kind, const char *text, bool is_told);
    /* A rank of this host has died, as of this state. Once, on the watching thread, in the first rank of the host;
     * if that one died, in all others. NULL: nobody asks. */
    void (*died)(void *user, const an_rank_state *state);
    void *report_user;
    struct sockaddr_in supervisor; /* sin_port 0: there is none */
    an_siphash_key supervisor_key;
} an_watch_setup;

typedef struct an_watch_thread an_watch_thread;

/* A listening socket and its port; on the loopback only, or for other hosts too. Its messages are
 * authenticated, so anybody may connect. */
an_status an_watch_listen(an_context *ctx, bool other_hosts, int *listener, uint16_t *port);
an_status an_watch_start(an_watch_thread **watch, an_context *ctx, const an_watch_setup *setup);
/* Tells the others that this rank has ended its run. Never waits for them. */
void an_watch_stop(an_watch_thread **watch);

#endif

/* The inside of a watch: what its thread (watch.c), its connections (watch_peers.c) and its report (watch_report.c)
 * share. */
#ifndef AN_COMM_WATCH_WATCH_INSIDE_H
#define AN_COMM_WATCH_WATCH_INSIDE_H

#include <poll.h>
#include <pthread.h>

#include "comm/watch/blame.h"
#include "comm/watch/watch.h"

enum { AN_WATCH_MILLISECONDS = 1000, AN_WATCH_CANDIDATES = 16 };

/* A rank as it is known here. */
typedef struct {
    an_rank_state state;
    double heard;      /* when the state came */
    int32_t via;       /* the rank that it came through: its own, or one that passes on what it hears */
    uint32_t passed;   /* milliseconds for which that one had not heard of it */
    bool known, below; /* `below`: it came from a rank that sends its states here */
    bool was_of_interest;
    bool is_closed; /* its connection was closed, and it did not say that it leaves */
} an_watch_entry;

typedef struct {
    an_channel channel;
    double since, heard;
} an_watch_connection;

typedef struct {
    int32_t rank;
    struct sockaddr_in address;
} an_watch_candidate;

struct an_watch_thread {
    an_watch_setup setup;
    size_t bytes; /* of the block that all of this is in */
    pid_t process;
    pthread_t thread;
    int ending; /* an eventfd */
    double interval, patience;
    double now, looked; /* time that was watched, and the clock at the last look */

    an_watch_entry *entries; /* by rank */
    int32_t *known;          /* the ranks in it, in order */
    int known_count;
    const an_rank_state **listed;

    an_watch_connection *below; /* ranks that send their states here, and who wants to */
    int below_count, most_below;
    struct pollfd *polled;

    an_watch_candidate candidates[AN_WATCH_CANDIDATES]; /* the best first */
    int candidate_count;
    int chosen, tried; /* the candidate that `above` and `trial` are connections to */
    bool is_alone;     /* no candidate has answered: this rank decides */
    double next_round; /* when they are asked again */
    an_watch_connection above, trial, supervisor;

    bool found_dead; /* a rank, and that was told */
    an_blame blame, reported;
    int agreed; /* looks in a row with the same blame */
    double begin;
    bool timed_out;
};

/* The entry of a rank, which is known from now on. */
an_watch_entry *an_watch_note(an_watch_thread *w, int32_t rank);
/* Milliseconds since a rank was heard of. */
uint32_t an_watch_silence(const an_watch_thread *w, const an_watch_entry *e);
static inline uint32_t an_watch_milliseconds(double seconds) {
    return seconds > 0 ? (uint32_t)(seconds * AN_WATCH_MILLISECONDS) : 0;
}

/* Whom to turn to; known once the addresses are. */
void an_watch_find_candidates(an_watch_thread *w);
/* Takes connections, reads what has come, and turns to another rank if the one above does not answer. */
void an_watch_look_at_peers(an_watch_thread *w);
/* Sends the state of this rank to all it is connected to, and what stands still below to the rank above. */
void an_watch_send_states(an_watch_thread *w);
void an_watch_close(an_watch_thread *w);

/* Tells, once, that a rank of this host has died. */
void an_watch_find_dead(an_watch_thread *w);
/* If this rank decides: finds who is to blame, and reports what is new. */
void an_watch_decide(an_watch_thread *w);

#endif

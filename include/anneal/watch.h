/* Watching ranks: which one the others wait for, and where it is.
 *
 * A rank that hangs stops all others, and MPI says nothing about it. A watch is a thread in each rank that reads the
 * rank's heartbeat and talks to the watches of the others over TCP. Rank 0, or the lowest rank that still answers,
 * reports a rank that is stopped, unreachable, stuck, or in another collective call than the others. A report does not
 * affect the run: a rank that goes on was only slow.
 */
#ifndef ANNEAL_WATCH_H
#define ANNEAL_WATCH_H

#include "anneal/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum an_watch_event {
    AN_WATCH_STALL = 1,   /* ranks wait for another one */
    AN_WATCH_GOES_ON = 2, /* the stall that was reported has ended */
    /* the stall has lasted as long as the timeout; the waits of the other ranks end with an error at about this time */
    AN_WATCH_TIMEOUT = 3,
    AN_WATCH_LIMIT = 0x7fffffff
} an_watch_event;

typedef struct an_watch_options {
    size_t size;
    double report_after; /* seconds without progress until a stall is reported; 10 by default; 0: never */
    double timeout;      /* … until AN_WATCH_TIMEOUT and an error of the ranks that wait; 900 by default; 0: never */
    /* called on the thread of the watch, in the rank that reports: it must not call the library. `text` names the rank,
     * its host and process, its place in the graph, the duration of the stall, and the ranks that wait for it.
     * `is_told`: a supervisor has printed it already */
    void (*report)(void *user, an_watch_event event, const char *text, bool is_told);
    void *user;
    /* address of an `anneal train --supervise`, from its variable ANNEAL_SUPERVISOR; NULL: none */
    const char *supervisor;
} an_watch_options;
AN_API void an_watch_options_init(an_watch_options *options, size_t size);

typedef struct an_watch an_watch;

/* Starts a watch. The context must have a heartbeat (an_context_options.heartbeat) and must outlive the watch.
 * Collective. */
AN_API an_status an_watch_create(an_watch **watch, an_context *ctx, const an_watch_options *options);
/* Ends a watch. Not collective: the other ranks learn that this rank has ended its run. */
AN_API void an_watch_destroy(an_watch **watch);

#ifdef __cplusplus
}
#endif
#endif

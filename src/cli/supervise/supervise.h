/* `anneal train --supervise`: a process that starts the training process, watches its heartbeat, and restarts it. */
#ifndef AN_CLI_SUPERVISE_SUPERVISE_H
#define AN_CLI_SUPERVISE_SUPERVISE_H

#include <signal.h>
#include <sys/types.h>

#include "anneal/config.h"
#include "anneal/heartbeat.h"
#include "cli/main/cli.h"

enum { CLI_RESTARTS = 100 }; /* unless --restarts says another number */

/* Runs the same command without the options that are for the supervisor, as often as needed; its exit code. `ranks`
 * 0: in one process; else so many, started by a launcher, and again with fewer after one was lost, but never with
 * fewer than `least_ranks`. */
int cli_supervise(const cli_call *call, int64_t restarts, int64_t ranks, int64_t least_ranks);

/* In the training process: the heartbeat that it shares with its supervisor; NULL: it has none. */
an_heartbeat *cli_heartbeat(void);

/* ---- parts of the supervisor ---- */

/* Reads the config of the call, of which `read` takes what it needs; an exit code, after a message. */
int supervise_config(const cli_call *call, an_status (*read)(void *user, an_context *ctx, an_config *config),
                     void *user);
/* ranks.report_after and ranks.timeout of the config, in seconds. */
int supervise_limits(const cli_call *call, double *report_after, double *timeout);

/* What the run was doing: "while "backward fc (matmul)"", and before that what a save behind it was, if there was
 * one. */
enum { SUPERVISE_PLACE = 2 * AN_HEARTBEAT_TEXT + 32 };
void supervise_place(const an_heartbeat *heartbeat, char place[SUPERVISE_PLACE]);

/* "anneal supervise: …" on standard error; plain `anneal train -n` gives its own name. */
extern const char *supervise_name;
void supervise_say(const char *format, ...) AN_PRINTF(1, 2);

/* The training process. */
typedef struct supervise_child {
    pid_t pid;
    an_heartbeat *heartbeat; /* shared with it */
} supervise_child;
/* Starts it with these arguments (the last is NULL); false, after a message, if the system refuses. */
bool supervise_start(supervise_child *child, char **arguments);
void supervise_forget(supervise_child *child); /* it has ended: releases what is left of it here */

/* Signals to the supervisor, which are blocked and asked for, and what they came to so far. */
typedef struct supervise_signals {
    sigset_t set;
    int interrupts;
    bool stopping; /* somebody asked for it */
    bool is_plain; /* nothing is restarted: a second request of any kind ends all at once */
    int ended_by;  /* the request that did; 0: none */
} supervise_signals;
void supervise_block(supervise_signals *signals);
/* Waits so many seconds at most; the signal that came, a child's left out, or 0. */
int supervise_wait(const supervise_signals *signals, double seconds);

/* How a training process ended. */
typedef struct supervise_end {
    int signal, code; /* the code: if the signal is 0 */
    bool hung;        /* and was killed for it */
    an_heartbeat heartbeat;
} supervise_end;
/* Watches it to its end, passes signals on, reports stalls (seconds; 0: never), and ends it after a hang. */
void supervise_watch(supervise_child *child, supervise_signals *signals, double report_after, double timeout,
                     supervise_end *end);

/* "one of 2 ranks crashed (signal 11) at step 120, while "forward fc (matmul)""; `ranks` 0: it was one process. */
void supervise_describe(const supervise_end *end, int64_t ranks, char *text, size_t capacity);
/* Writes that the run has failed to outcome.json of its folder, if that still says of this process that it is
 * running. */
void supervise_outcome_write(const char *folder, pid_t process, const supervise_end *end, double seconds,
                             const char *error);

/* What each of its threads is doing, in lines on standard error: what it last said, where the kernel has it, its
 * stack. */
void supervise_report(pid_t pid, const an_heartbeat *heartbeat);
/* The stacks alone, if they can be had in so many seconds; a line says why not. */
void supervise_stacks(pid_t pid, double seconds);

#endif

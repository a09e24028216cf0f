/* A supervisor's job of several ranks: a launcher, the ranks that it started, and what these say over TCP. Each rank
 * has a connection of its own from its start on (link.h); the rank that speaks for all has another one for its watch
 * (comm/watch/watch.h). Plain `anneal train -n` runs its ranks as such a job too. */
#ifndef AN_CLI_SUPERVISE_RANKS_H
#define AN_CLI_SUPERVISE_RANKS_H

#include <poll.h>

#include "cli/supervise/board.h"
#include "cli/supervise/supervise.h"
#include "launch/rank_state.h"

typedef struct supervise_connection {
    an_channel channel;
    int32_t rank; /* whose link it is; -1: it is none, or nothing was said yet */
    bool is_told; /* the request to stop */
} supervise_connection;

/* A rank as its link describes it. */
typedef struct supervise_seat {
    int32_t process; /* 0: nothing was heard of it */
    an_rank_stage stage;
    double silent;   /* seconds since it was heard of */
    bool left, died; /* it said that it ends; its connection was closed without that */
    bool failed;     /* it said so, with an exit code that makes a launcher kill the others */
    int ended;       /* its process, as the first, second, … of them; 0: it is not known to have ended */
} supervise_seat;

typedef struct supervise_job {
    pid_t launcher;
    int ranks;
    int listener;
    an_siphash_key key;
    supervise_connection *connections;
    int connection_count;
    struct pollfd *files;
    supervise_seat *seats; /* by rank */
    double still;          /* seconds since a rank last got further in its start */
    double died;           /* when a rank was first found dead; 0: none */
    int stop;              /* the signal that asks the ranks to stop; 0: none */
    an_rank_state state;   /* of the rank that speaks for all, as last heard */
    double heard;          /* when; 0: never. From then on the ranks watch each other */
    double failed;         /* when a rank first said that it ends with a failure; 0: none did */
    double exited;         /* when rank 0 said that it ends, with this code; 0: it did not */
    int code;
    supervise_board board;
    int ended;      /* processes of ranks */
    int32_t first;  /* the rank that died first; -1: none, or nobody knows */
    int32_t leader; /* the process of rank 0; 0: nothing was heard of it */
    bool timed_out; /* a rank said that the job hangs */
    bool is_killed; /* by this process */
} supervise_job;

/* Starts the launcher at `path` in a session of its own; false, after a message, if the system refuses. Everything that
 * it starts becomes a child of this process when its parent dies, and can be ended. */
bool supervise_job_start(supervise_job *job, const char *path, char **arguments, int ranks);
/* Ends the launcher and all that is left of what it started. */
void supervise_job_kill(supervise_job *job);
/* Kills what is left, and releases the rest. */
void supervise_job_forget(supervise_job *job);

/* Reads what ranks have sent, says what they report, and passes a request to stop on. */
void supervise_job_listen(supervise_job *job);
/* Waits until a rank says something, a connection is closed or a signal comes, but so many seconds at most. `signals`:
 * a signalfd. */
void supervise_job_sleep(const supervise_job *job, int signals, double seconds);
/* Asks the ranks to stop with a checkpoint, as signal `number` would; those that have not started yet, as soon as they
 * have. */
void supervise_job_stop(supervise_job *job, int number);

/* Describes a start without progress: the ranks that have died, do not answer or have not started. */
enum { SUPERVISE_START = 1024 };
void supervise_start_describe(const supervise_job *job, char text[SUPERVISE_START]);
/* Names, once, the ranks that have died, and in the start those that had not started then. `has_ended`: the launcher
 * has. */
void supervise_name_dead(supervise_job *job, bool has_ended);

/* Watches it to its end, as supervise_watch does. `folder`: of the run, whose outcome.json says how it ended, or NULL:
 * what rank 0 says has to do; `launch`: the last launch before this job. `may_stop`: asked every few seconds; true: the
 * job is to stop with a checkpoint, because it can go on with more ranks. */
typedef struct supervise_job_watch {
    const char *folder;
    int64_t launch;
    double report_after, timeout;
    bool (*may_stop)(void *user);
    void *user;
} supervise_job_watch;
void supervise_job_wait(supervise_job *job, supervise_signals *signals, const supervise_job_watch *watch,
                        supervise_end *end);

/* How a launch of a run ended, from outcome.json; false: there is none after launch `after`, or it
 * says that it is under way. */
bool supervise_outcome(const char *folder, int64_t after, int *code);

#endif

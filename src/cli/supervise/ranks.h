/* A supervisor's job of several ranks: a launcher, the ranks that it started, and what these say over TCP (comm/watch.h). */
#ifndef AN_CLI_SUPERVISE_RANKS_H
#define AN_CLI_SUPERVISE_RANKS_H

#include "cli/supervise/supervise.h"
#include "launch/rank_state.h"

enum { SUPERVISE_CONNECTIONS = 8 };

typedef struct supervise_job {
    pid_t launcher;
    int ranks;
    int listener;
    an_siphash_key key;
    an_channel channels[SUPERVISE_CONNECTIONS];
    an_rank_state state; /* of the rank that speaks for all, as last heard */
    double heard;        /* when; 0: never */
    double exited;       /* when rank 0 said that it ends, with this code; 0: it did not */
    int code;
    bool timed_out; /* a rank said that the job hangs */
} supervise_job;

/* Starts the launcher at `path` in a session of its own; false, after a message, if the system refuses. Everything that it starts becomes a child of this process when its parent
 * dies, and can be ended. */
bool supervise_job_start(supervise_job *job, const char *path, char **arguments, int ranks);
/* Ends the launcher and all that is left of what it started. */
void supervise_job_kill(supervise_job *job);
/* Kills what is left, and releases the rest. */
void supervise_job_forget(supervise_job *job);

/* Reads what ranks have sent, and says what they report. */
void supervise_job_listen(supervise_job *job);

/* Watches it to its end, as supervise_watch does. `folder`: of the run, whose outcome.json says how it ended; `launch`: the last launch before this job.
 * `may_stop`: asked every few seconds; true: the job is to stop with a checkpoint, because it can go on with more ranks. */
typedef struct supervise_job_watch {
    const char *folder;
    int64_t launch;
    double report_after, timeout;
    bool (*may_stop)(void *user);
    void *user;
} supervise_job_watch;
void supervise_job_wait(supervise_job *job, supervise_signals *signals, const supervise_job_watch *watch,
                        supervise_end *end);

/* How a launch of a run ended, from outcome.json; false: there is none after launch `after`, or it says that it is under way. */
bool supervise_outcome(const char *folder, int64_t after, int *code);

#endif

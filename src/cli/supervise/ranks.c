/* Watches a job of several ranks from outside: what its ranks report, the signals meant for it, and its end. */
#include "cli/supervise/ranks.h"

#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "cli/supervise/folder.h"

static const double interval = 0.1;   /* seconds from look to look */
static const double lingering = 20;   /* seconds in which a launcher should end after its ranks */
static const double asking_every = 5; /* seconds */
static const double mourning = 5; /* seconds in which a launcher should end ranks that start without one that died */

/* ---- how it ended ---- */

static const struct {
    const char *name;
    int code;
} ends[] = {{"done", CLI_DONE},
            {"stopped early", CLI_DONE},
            {"stopped on request", CLI_AGAIN},
            {"time limit", CLI_AGAIN},
            {"failed", CLI_FAILED}};

static bool code_of_end(const char *name, int *code) {
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!strcmp(ends[i].name, name)) {
            *code = ends[i].code;
            return true;
        }
    return false; /* it is "running" */
}

bool supervise_outcome(const char *folder, int64_t after, int *code) {
    cli_run_end end;
    return cli_run_outcome(folder, &end) && end.launch > after && code_of_end(end.name, code);
}

/* Whether a launcher's exit code may be that of a rank. */
static bool is_ours(int code) {
    return code == CLI_DONE || code == CLI_FAILED || code == CLI_MISUSED || code == CLI_AGAIN;
}

/* The signal that ended a rank or the launcher; 0: the launcher does not say. Open MPI's adds 128, as shells do;
 * MPICH's gives the number itself, which no rank exits with. Other codes are a launcher's own. */
static int signal_of(int status) {
    enum { KILLED = 128, SIGNALS = 64 };
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    if (WIFSIGNALED(status)) return WTERMSIG(status);
    const int number = code > KILLED ? code - KILLED : code;
    return is_ours(code) || number > SIGNALS ? 0 : number;
}

/* What the rank was doing that died first, or rank 0. */
static void find_place(const supervise_job *job, an_heartbeat *heartbeat) {
    if (supervise_board_read(&job->board, job->first < 0 ? 0 : job->first, heartbeat)) return;
    heartbeat->step = job->state.step;
    memcpy(heartbeat->slots[0].text, job->state.place, sizeof heartbeat->slots[0].text);
}

/* What the run says of its end counts; then what rank 0 said, which may have had no folder yet; else its ranks have
 * died. Where a rank was killed, the others may have had time to say that they failed because of it. */
static void find_end(const supervise_job *job, const supervise_job_watch *watch, int status, supervise_end *end) {
    *end = (supervise_end){.hung = job->timed_out, .code = CLI_FAILED};
    find_place(job, &end->heartbeat);
    bool is_told = watch->folder && supervise_outcome(watch->folder, watch->launch, &end->code);
    if (job->timed_out && is_told && end->code == CLI_DONE) end->hung = false; /* in MPI_Finalize, with all done */
    if (end->hung) {
        end->code = CLI_FAILED;
        end->signal = SIGKILL;
        return;
    }
    if (!is_told && job->exited > 0) {
        end->code = job->code;
        is_told = true;
    }
    const int signal = signal_of(status);
    if (is_told && !(end->code == CLI_FAILED && (signal || job->first >= 0))) return;
    const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == CLI_DONE; /* MPICH's, after ranks that died */
    if (signal || ended || job->first >= 0)
        end->signal = signal ? signal : SIGKILL;
    else if (!is_ours(WEXITSTATUS(status)))
        supervise_say("the launcher failed (exit code %d)", WEXITSTATUS(status));
    else if (watch->folder)
        end->signal = SIGABRT;
    else
        end->code = WEXITSTATUS(status);
}

/* Nobody starts plain ranks again, and those that were killed, or lost their launcher, could not say how the run
 * ended. */
static void settle(const supervise_job *job, const supervise_signals *signals, const supervise_end *end,
                   double seconds) {
    char text[SUPERVISE_PLACE + 256], folder[BOARD_PATH];
    if (!end->signal && end->code != CLI_FAILED) return;
    supervise_describe(end, job->ranks, text, sizeof text);
    if (end->signal && !signals->ended_by)
        supervise_say("%s; the same command resumes from the newest checkpoint", text);
    if (supervise_board_folder(&job->board, folder)) supervise_outcome_write(folder, job->leader, end, seconds, text);
}

/* ---- until then ---- */

/* Not through the launcher: that of Open MPI kills its ranks within a second of TERM or INT, and passes no signal on
 * while a library of its own is in the way. */
static void pass_on(supervise_job *job, supervise_signals *signals, int number) {
    if (number == SIGTSTP) { /* ranks may be on other hosts, and there is no way to let all of them rest */
        supervise_say("a job of several ranks cannot be suspended");
        return;
    }
    const bool is_interrupt = number == SIGINT && signals->interrupts++ > 0;
    if (is_interrupt || (signals->is_plain && signals->stopping)) {
        signals->ended_by = number;
        supervise_job_kill(job);
        return;
    }
    if (!signals->stopping) supervise_say("asked to stop (signal %d): the ranks save a checkpoint and exit", number);
    signals->stopping = true;
    supervise_job_stop(job, number);
}

typedef struct {
    double looked, silent; /* the clock, and seconds in which no rank said anything */
    double heard;          /* when one last did, as of the last look */
    double asked;
    bool reported, stops;
} looking;

/* Until the ranks watch each other, each of them is watched from here. */
static void look_at_start(supervise_job *job, const supervise_job_watch *watch, looking *l, double passed) {
    char text[SUPERVISE_START];
    job->still += passed;
    for (int rank = 0; rank < job->ranks; rank++) job->seats[rank].silent += passed;
    if (l->reported && job->still <= passed) {
        supervise_say("the ranks go on starting");
        l->reported = false;
    }
    const bool hangs = watch->timeout > 0 && job->still >= watch->timeout && !job->timed_out;
    const bool is_new = watch->report_after > 0 && job->still >= watch->report_after && !l->reported;
    if (!hangs && !is_new) return;
    supervise_start_describe(job, text);
    supervise_say("%s%s", text, hangs ? " (ranks.timeout): it hangs" : "");
    l->reported = true;
    job->timed_out = hangs;
}

/* Ranks report each other. If none says anything, all of them are stopped. */
static void look_at_run(supervise_job *job, const supervise_job_watch *watch, looking *l, double passed) {
    l->silent += passed;
    if (job->heard != l->heard) {
        if (l->reported) supervise_say("the ranks answer again");
        l->heard = job->heard;
        l->silent = 0;
        l->reported = false;
    }
    if (watch->report_after > 0 && l->silent >= watch->report_after && !l->reported) {
        supervise_say("no rank has answered for %.3g s; rank %d (process %d) was last at step %lld, \"%s\"", l->silent,
                      job->state.rank, job->state.process, (long long)job->state.step, job->state.place);
        l->reported = true;
    }
    if (watch->timeout > 0 && l->silent >= watch->timeout && !job->timed_out) {
        supervise_say("no rank has answered for %.3g s (ranks.timeout): it hangs", l->silent);
        job->timed_out = true;
    }
}

/* Time in which this process itself was stopped does not count. */
static void look(supervise_job *job, const supervise_job_watch *watch, looking *l) {
    enum { LATE = 5 };
    const double now = an_clock_seconds(), gap = now - l->looked;
    l->looked = now;
    (job->heard > 0 ? look_at_run : look_at_start)(job, watch, l, gap < LATE * interval ? gap : interval);
    supervise_name_dead(job, false);
    if (watch->may_stop && !l->stops && now - l->asked >= asking_every) {
        l->asked = now;
        l->stops = watch->may_stop(watch->user);
        if (l->stops) supervise_job_stop(job, SIGUSR1);
    }
}

/* Ranks whose waits have lasted too long end by themselves; one that is stopped does not, and may be the one that would
 * tell. */
static void look_at_failed(supervise_job *job) {
    if (job->failed > 0 && job->exited == 0 && an_clock_seconds() - job->failed > lingering) job->timed_out = true;
}

/* Whether the launcher has had its time to end what cannot go on. */
static bool is_overdue(const supervise_job *job) {
    const double now = an_clock_seconds();
    return job->timed_out || (job->exited > 0 && now - job->exited > lingering) ||
           (job->died > 0 && job->heard == 0 && now - job->died > mourning);
}

void supervise_job_wait(supervise_job *job, supervise_signals *signals, const supervise_job_watch *watch,
                        supervise_end *end) {
    const double begin = an_clock_seconds();
    looking l = {.looked = begin, .asked = begin};
    const int file = signalfd(-1, &signals->set, SFD_CLOEXEC | SFD_NONBLOCK); /* tells when one is there; -1: later */
    int status = 0;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) != job->launcher;) {
        if (ended > 0) continue; /* one of its processes that lost its parent */
        if (ended < 0) break;
        supervise_job_sleep(job, file, interval);
        const int number = supervise_wait(signals, 0);
        if (number) pass_on(job, signals, number);
        supervise_job_listen(job);
        look(job, watch, &l);
        look_at_failed(job);
        if (is_overdue(job)) {
            supervise_job_kill(job);
            break;
        }
    }
    supervise_job_listen(job); /* what was said at the end */
    supervise_name_dead(job, true);
    if (file >= 0) close(file);
    find_end(job, watch, status, end);
    if (!watch->folder) settle(job, signals, end, an_clock_seconds() - begin);
    supervise_job_forget(job);
}

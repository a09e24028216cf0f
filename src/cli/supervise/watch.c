/* Watches a training process from outside: its heartbeat, the signals meant for it, and its end. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/system/clock.h"
#include "cli/supervise/supervise.h"

static const double interval = 0.1; /* seconds from look to look */
static const double undying = 10;   /* seconds in which a process that was killed should be gone */

typedef struct {
    supervise_child *child;
    double report_after, timeout;
    int64_t beats;
    double stalled; /* seconds without a beat */
    double looked;  /* when that was last counted */
    double killed;  /* when it was killed for a hang; 0: it was not */
    bool reported;  /* the stall, or that it does not die */
} watching;

/* ---- signals ---- */

void supervise_block(supervise_signals *signals) {
    static const int asked[] = {SIGTERM, SIGINT, SIGUSR1, SIGTSTP, SIGCHLD};
    const struct sigaction standard = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    *signals = (supervise_signals){.interrupts = 0};
    sigaction(SIGCHLD, &standard, NULL); /* who started us may have ignored it, and then nobody could be waited for */
    sigaction(SIGPIPE, &ignored, NULL);  /* the training process hears of a closed pipe, and stops with a checkpoint */
    sigemptyset(&signals->set);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) sigaddset(&signals->set, asked[i]);
    sigprocmask(SIG_BLOCK, &signals->set, NULL);
}

int supervise_wait(const supervise_signals *signals, double seconds) {
    enum { NANOSECONDS = 1000000000 };
    const time_t whole = (time_t)seconds;
    const struct timespec time = {whole, (long)((seconds - (double)whole) * NANOSECONDS)};
    const int number = sigtimedwait(&signals->set, NULL, &time);
    return number > 0 && number != SIGCHLD ? number : 0;
}

static void pass_on(supervise_signals *signals, int number, pid_t pid) {
    if (number == SIGTSTP) { /* the terminal's Ctrl-Z: both rest until it goes on */
        kill(pid, SIGSTOP);
        raise(SIGSTOP);
        kill(pid, SIGCONT);
        return;
    }
    if (number == SIGINT && signals->interrupts++ > 0) {
        kill(pid, SIGKILL);
        return;
    }
    if (!signals->stopping)
        supervise_say("asked to stop (signal %d): the training process saves a checkpoint and exits", number);
    signals->stopping = true;
    kill(pid, SIGUSR1);
}

/* ---- the heartbeat ---- */

/* Time in which this process itself was stopped does not count. */
static void count_stall(watching *w, const an_heartbeat *heartbeat) {
    enum { LATE = 5 };
    const double now = an_clock_seconds(), gap = now - w->looked;
    w->looked = now;
    w->stalled += gap < LATE * interval ? gap : interval;
    if (heartbeat->beats == w->beats) return;
    w->beats = heartbeat->beats;
    w->stalled = 0;
    w->reported = false;
}

static void look(watching *w) {
    an_heartbeat heartbeat;
    an_heartbeat_read(w->child->heartbeat, &heartbeat);
    count_stall(w, &heartbeat);
    char place[SUPERVISE_PLACE];
    supervise_place(&heartbeat, place);
    const bool hangs = w->timeout > 0 && w->stalled >= w->timeout;
    if (!hangs && w->report_after > 0 && w->stalled >= w->report_after && !w->reported) {
        supervise_say("no progress for %.3g s at step %lld, %s", w->stalled, (long long)heartbeat.step, place);
        w->reported = true;
    }
    if (!hangs) return;
    supervise_say("no progress for %.3g s (ranks.timeout) at step %lld, %s: it hangs", w->stalled,
                  (long long)heartbeat.step, place);
    supervise_report(w->child->pid, &heartbeat);
    kill(w->child->pid, SIGKILL);
    w->killed = an_clock_seconds();
    w->reported = false;
}

/* One that waits in the kernel, for a file server say, dies when that answers. */
static void look_at_killed(watching *w) {
    if (w->reported || an_clock_seconds() - w->killed < undying) return;
    supervise_say("waiting for the kernel to end the training process");
    w->reported = true;
}

void supervise_watch(supervise_child *child, supervise_signals *signals, double report_after, double timeout,
                     supervise_end *end) {
    watching w = {.child = child, .report_after = report_after, .timeout = timeout, .looked = an_clock_seconds()};
    enum { UNKNOWN = CLI_FAILED << 8 }; /* as waitpid would say it */
    int status = UNKNOWN;
    while (waitpid(child->pid, &status, WNOHANG) == 0) {
        const int number = supervise_wait(signals, interval);
        if (number) pass_on(signals, number, child->pid);
        (w.killed > 0 ? look_at_killed : look)(&w);
    }
    *end = (supervise_end){.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                           .code = WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED};
    end->hung = w.killed > 0 && end->signal == SIGKILL;
    an_heartbeat_read(child->heartbeat, &end->heartbeat);
    supervise_forget(child);
}

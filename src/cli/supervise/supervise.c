/* anneal train --supervise: starts the training process and decides whether to restart it when it ends. */
#include "cli/supervise/supervise.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options/settings.h"
#include "base/system/clock.h"
#include "cli/supervise/folder.h"
#include "cli/supervise/ranks.h"
#include "cli/train/open.h"
#include "cli/train/ranks.h"

enum { KILLED = 128, STOPPED = 75 };          /* exit codes */
enum { REPEATS = 3 };                         /* the same crash so often at one step is no accident */
enum { FIRST_PAUSE = 1, LONGEST_PAUSE = 60 }; /* seconds */
enum { REDUCED = 600 }; /* seconds that a job with fewer ranks runs, at least, until all are tried again */
enum {
    MOST_ARGUMENTS = CLI_LAUNCHER_WORDS + 2 * (CLI_MOST_OPTIONS + CLI_MOST_SETS) + 8,
    PATH_BYTES = 4096,
    SETTING_BYTES = PATH_BYTES + 16
};

typedef struct {
    const cli_call *call;
    char folder[PATH_BYTES];                   /* of the run */
    double report_after, timeout, max_seconds; /* the last: run.max_time; 0: none that counts from a start */
    double begin;
    char first[NAME_MAX + 1]; /* the newest checkpoint at the beginning, … */
    char last[NAME_MAX + 1];  /* … and at the last end; "": none */
    char *arguments[MOST_ARGUMENTS];
    char names[CLI_MOST_OPTIONS][64]; /* "--threads" */
    char setting[SETTING_BYTES];      /* that stands for --fresh … */
    char limit[64];                   /* … and for what is left of run.max_time */

    supervise_signals signals;
    int64_t launch; /* of the run: the last that was there at the beginning, or that was ours */
    pid_t pid;      /* of the training process */
    int64_t restarts, most_restarts;
    supervise_end end;                /* the last one, … */
    char said[SUPERVISE_PLACE + 256]; /* … in words, if it was no good one */
    supervise_end crash;              /* the last that nobody did from outside */
    int repeats;                      /* of it, at the same step */
    int64_t stuck_at, stuck; /* the step of the last end, and how many ends were there without a new checkpoint */
    bool explained;

    int64_t ranks, least_ranks; /* 0: one process, without a launcher */
    int64_t started_ranks;      /* of the last start */
    double started;             /* when that was */
    bool grows;                 /* it was asked to stop, in order to go on with all ranks */
    cli_launcher launcher;
    char self[PATH_BYTES]; /* this program, for the launcher */
} supervisor;

/* ---- what it is told ---- */

/* Whether the training process failed because somebody else has started the run meanwhile. To start it again
 * would be to take it back, and so for ever. A launch that does not say whose it is was ended as it began, by
 * a kill: ours, most likely. */
static bool is_taken_over(supervisor *s) {
    long process;
    const int64_t last = cli_run_launch(s->folder, &process);
    if (process == (long)s->pid || process == 0) s->launch = last;
    return !s->end.signal && last > s->launch;
}

static const char *value_of(const cli_call *call, const char *name) {
    for (int i = 0; call->command->options[i].name; i++)
        if (!strcmp(call->command->options[i].name, name)) return call->values[i];
    return NULL;
}

/* --fresh would begin anew at every start: the folder that it means is found here, once. */
static an_status find_fresh(supervisor *s, an_context *ctx, const char *path) {
    an_folder_state state = AN_FOLDER_EMPTY;
    an_status status = an_folder_look(ctx, s->folder, &state);
    for (int i = 2; status == AN_OK && state != AN_FOLDER_EMPTY; i++) {
        snprintf(s->folder, sizeof s->folder, "%s-%d", path, i);
        status = an_folder_look(ctx, s->folder, &state);
    }
    return status;
}

static an_status read_limits(supervisor *s, an_config *config) {
    static const char *const limit = AN_SETTING(run.max_time);
    an_status status = an_config_seconds(config, AN_SETTING(ranks.report_after), &s->report_after);
    if (status == AN_OK) status = an_config_seconds(config, AN_SETTING(ranks.timeout), &s->timeout);
    if (status != AN_OK || an_config_origin_of(config, limit) == AN_ORIGIN_NONE) return status;
    const bool counts = !an_config_is(config, limit, "off") && !an_config_is(config, limit, "slurm");
    return counts ? an_config_seconds(config, limit, &s->max_seconds) : AN_OK;
}

/* Limits, and the folder. */
static an_status read_all(void *user, an_context *ctx, an_config *config) {
    supervisor *s = user;
    const char *folder = "";
    an_status status = read_limits(s, config);
    if (status == AN_OK) status = an_config_path(config, AN_SETTING(run.dir), &folder);
    snprintf(s->folder, sizeof s->folder, "%s", folder);
    if (status == AN_OK && value_of(s->call, "fresh")) status = find_fresh(s, ctx, folder);
    return status;
}

/* ---- the command that it runs ---- */

/* A checkpoint to begin with is forgotten as soon as the run has one of its own. */
static bool is_passed_on(const supervisor *s, const char *name) {
    static const char *const own[] = {"supervise", "restarts", "fresh", "ranks", "min-ranks"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i], name)) return false;
    return (strcmp(name, "resume") != 0 && strcmp(name, "restart") != 0) || !strcmp(s->first, s->last);
}

static double seconds_left(const supervisor *s) {
    const double left = s->begin + s->max_seconds - an_clock_seconds();
    return left > 0 ? left : 0;
}

/* execve promises not to write to what it is given. */
static char *as_argument(const char *text) {
    return (char *)(uintptr_t)text;
}

static void make_arguments(supervisor *s) {
    const cli_option *options = s->call->command->options;
    char **at = s->arguments;
    for (int i = 0; i < s->launcher.word_count; i++) *at++ = as_argument(s->launcher.words[i]);
    *at++ = s->ranks > 0 ? s->self : as_argument("anneal");
    *at++ = as_argument(s->call->command->name);
    for (int i = 0; options[i].name; i++) {
        if (!s->call->values[i] || !is_passed_on(s, options[i].name)) continue;
        snprintf(s->names[i], sizeof s->names[i], "--%s", options[i].name);
        *at++ = s->names[i];
        if (options[i].argument) *at++ = as_argument(s->call->values[i]);
    }
    if (s->call->verbose) *at++ = as_argument("--verbose");
    for (int i = 0; i < s->call->set_count; i++) {
        *at++ = as_argument("--set");
        *at++ = as_argument(s->call->sets[i]);
    }
    if (value_of(s->call, "fresh")) {
        snprintf(s->setting, sizeof s->setting, "%s=%s", AN_SETTING(run.dir), s->folder);
        *at++ = as_argument("--set");
        *at++ = s->setting;
    }
    if (s->restarts > 0 && s->max_seconds > 0) { /* which is for all starts together */
        snprintf(s->limit, sizeof s->limit, "%s=%.0fs", AN_SETTING(run.max_time), 1 + seconds_left(s));
        *at++ = as_argument("--set");
        *at++ = s->limit;
    }
    *at++ = as_argument("--");
    *at++ = as_argument(s->call->argument);
    *at = NULL;
}

/* ---- after its end ---- */

static bool is_same(const supervise_end *a, const supervise_end *b) {
    return a->signal == b->signal && (a->signal || a->code == b->code) && a->hung == b->hung &&
           a->heartbeat.step == b->heartbeat.step;
}

/* How many ranks the next start has: one fewer after one was lost; all again after a job with fewer has saved
 * something, which shows that the rest is sound. */
static void choose_ranks(supervisor *s, bool has_saved) {
    const int64_t fewer = s->started_ranks - 1 > s->least_ranks ? s->started_ranks - 1 : s->least_ranks;
    s->started_ranks = s->started_ranks < s->ranks && has_saved ? s->ranks : fewer;
}

/* Counts what this end has in common with those before. */
static void count(supervisor *s) {
    char checkpoint[NAME_MAX + 1];
    const bool from_outside = s->end.signal == SIGKILL && !s->end.hung;
    cli_run_checkpoint(s->folder, checkpoint);
    if (s->ranks > 0) choose_ranks(s, strcmp(checkpoint, s->last) != 0);
    const bool stays = s->end.heartbeat.step == s->stuck_at && !strcmp(checkpoint, s->last);
    s->stuck = stays ? s->stuck + 1 : 0;
    s->stuck_at = s->end.heartbeat.step;
    memcpy(s->last, checkpoint, sizeof s->last);
    if (from_outside) return;
    s->repeats = s->repeats > 0 && is_same(&s->end, &s->crash) ? s->repeats + 1 : 1;
    s->crash = s->end;
}

static int code_of(const supervise_end *end) {
    if (end->hung) return CLI_FAILED;
    return end->signal ? KILLED + end->signal : end->code;
}

/* Whether it is to be started again; else the exit code. */
static bool decide(supervisor *s, int *code) {
    char *text = s->said;
    const supervise_end *end = &s->end;
    *code = code_of(end);
    if (s->grows && !end->signal && end->code == STOPPED && !s->signals.stopping) {
        supervise_say("restarting it with all %lld ranks", (long long)s->ranks);
        cli_run_checkpoint(s->folder, s->last);
        s->started_ranks = s->ranks;
        return true;
    }
    if (!end->signal && (end->code == CLI_DONE || end->code == CLI_MISUSED || end->code == STOPPED)) return false;
    supervise_describe(end, s->ranks > 0 ? s->started_ranks : 0, text, sizeof s->said);
    if (is_taken_over(s)) {
        supervise_say("%s; another process has taken over the run, so it is not restarted", text);
        return false;
    }
    if (s->signals.stopping) {
        if (end->signal == SIGUSR1) *code = STOPPED; /* it had not begun to listen, nor to train */
        if (s->signals.interrupts > 1) *code = KILLED + SIGINT;
        if (*code == code_of(end)) supervise_say("%s; it was asked to stop, so it is not restarted", text);
        return false;
    }
    count(s);
    if (s->repeats == REPEATS) {
        supervise_say("%s; this happened %d times in a row at the same step, so it is not restarted", text, REPEATS);
        return false;
    }
    if (s->restarts == s->most_restarts) {
        supervise_say("%s; it was restarted %lld times and has reached the limit (--restarts)", text,
                      (long long)s->most_restarts);
        return false;
    }
    s->restarts++;
    char with[64] = "";
    if (s->ranks > 0)
        snprintf(with, sizeof with, " with %lld of %lld ranks", (long long)s->started_ranks, (long long)s->ranks);
    supervise_say("%s; restarting it%s (restart %lld of %lld)", text, with, (long long)s->restarts,
                  (long long)s->most_restarts);
    if (end->signal == SIGKILL && !end->hung && !s->explained) {
        supervise_say("signal 9 comes from an operator, or from the system when memory runs out");
        s->explained = true;
    }
    return true;
}

/* Before a start: none, unless the last ones came to nothing. Whether it is to be started still. */
static bool pause_before(supervisor *s) {
    int64_t seconds = s->stuck > 0 ? FIRST_PAUSE : 0;
    for (int64_t i = 1; i < s->stuck && seconds < LONGEST_PAUSE; i++) seconds *= 2;
    const double end = an_clock_seconds() + (double)(seconds < LONGEST_PAUSE ? seconds : LONGEST_PAUSE);
    for (double rest; seconds > 0 && (rest = end - an_clock_seconds()) > 0;) {
        const int number = supervise_wait(&s->signals, rest);
        if (number == SIGTSTP)
            raise(SIGSTOP);
        else if (number)
            return false;
    }
    return true;
}

/* ---- one start ---- */

static bool run_process(supervisor *s) {
    supervise_child child;
    make_arguments(s);
    if (!supervise_start(&child, s->arguments)) return false;
    s->pid = child.pid;
    s->started = an_clock_seconds();
    supervise_watch(&child, &s->signals, s->report_after, s->timeout, &s->end);
    return true;
}

/* Whether a job with fewer ranks is to make room for one with all: it has run for some time, and has saved
 * something. */
static bool may_grow(void *user) {
    supervisor *s = user;
    char checkpoint[NAME_MAX + 1];
    if (s->started_ranks >= s->ranks || an_clock_seconds() - s->started < REDUCED) return false;
    cli_run_checkpoint(s->folder, checkpoint);
    s->grows = strcmp(checkpoint, s->last) != 0;
    return s->grows;
}

static bool run_ranks(supervisor *s) {
    supervise_job job;
    long process;
    if (cli_launcher_find(s->call, value_of(s->call, "mpi"), s->started_ranks, &s->launcher) != CLI_DONE) return false;
    make_arguments(s);
    const supervise_job_watch watch = {.folder = s->folder,
                                       .launch = cli_run_launch(s->folder, &process),
                                       .report_after = s->report_after,
                                       .timeout = s->timeout,
                                       .may_stop = may_grow,
                                       .user = s};
    s->grows = false;
    s->started = an_clock_seconds();
    if (!supervise_job_start(&job, s->launcher.path, s->arguments, (int)s->started_ranks)) return false;
    supervise_job_wait(&job, &s->signals, &watch, &s->end);
    s->pid = job.leader;
    return true;
}

static int find_self(supervisor *s) {
    const ssize_t length = readlink("/proc/self/exe", s->self, sizeof s->self - 1);
    if (length <= 0) return cli_fail(s->call, "/proc/self/exe cannot be read");
    s->self[length] = 0;
    return CLI_DONE;
}

int cli_supervise(const cli_call *call, int64_t restarts, int64_t ranks, int64_t least_ranks) {
    supervisor s = {.call = call,
                    .most_restarts = restarts,
                    .stuck_at = -1,
                    .begin = an_clock_seconds(),
                    .ranks = ranks,
                    .least_ranks = least_ranks,
                    .started_ranks = ranks};
    int code = supervise_config(call, read_all, &s);
    if (code == CLI_DONE && ranks > 0) code = find_self(&s);
    if (code != CLI_DONE) return code;
    supervise_block(&s.signals);
    long process;
    s.launch = cli_run_launch(s.folder, &process);
    cli_run_checkpoint(s.folder, s.first);
    memcpy(s.last, s.first, sizeof s.last);
    do {
        if (!pause_before(&s)) return STOPPED;
        if (!(ranks > 0 ? run_ranks : run_process)(&s)) return CLI_FAILED;
    } while (decide(&s, &code));
    /* The process could not say how it ended, and no other one will. */
    if (s.end.signal || s.end.code == CLI_FAILED)
        supervise_outcome_write(s.folder, s.pid, &s.end, an_clock_seconds() - s.started, s.said);
    return code;
}

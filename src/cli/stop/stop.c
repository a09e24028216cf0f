/* anneal stop: asks a run to stop with a checkpoint, wherever it trains.
 *
 * The request is a line in the file of the run's launch, which rank 0 opens a few times a second. So it needs no
 * launcher, no port and no process number; it reaches a run on another host that shares the folder, and who may write
 * to the folder may stop the run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "base/system/clock.h"
#include "base/system/process.h"
#include "cli/main/cli.h"
#include "cli/supervise/folder.h"

enum { TIMEOUT, NO_WAIT };
static const cli_option options[] = {
    [TIMEOUT] = {.name = "timeout",
                 .argument = "SECONDS",
                 .group = 1,
                 .help = "wait at most this long (default: until the run has stopped)"},
    [NO_WAIT] = {.name = "no-wait", .group = 1, .help = "leave the request and return immediately"},
    {0},
};

/* A launch of a run. */
typedef struct {
    const cli_call *call;
    const char *folder;
    int64_t number;
    char path[CLI_RUN_PATH]; /* of its file */
} launch;

static an_process_state look_at_process(const launch *l, long *process) {
    char identity[AN_PROCESS_IDENTITY];
    an_process_read(l->path, identity, sizeof identity);
    return an_process_look(identity, process);
}

/* Whether this launch has said how it ended. */
static bool has_ended(const launch *l, cli_run_end *end) {
    return cli_run_outcome(l->folder, end) && end->launch >= l->number && strcmp(end->name, "running") != 0;
}

static int find(launch *l) {
    long process;
    cli_run_end end;
    l->number = cli_run_launch(l->folder, &process);
    cli_run_launch_path(l->folder, l->number, l->path);
    if (l->number == 0) return cli_misuse(l->call, "'%s' has no run; give a run folder (run.dir)", l->folder);
    if (has_ended(l, &end))
        return cli_fail(l->call, "%s is not running: it ended after step %s (%s)", l->folder, cli_count(end.step).text,
                        end.name);
    const an_process_state state = look_at_process(l, &process);
    if (state == AN_PROCESS_GONE)
        return cli_fail(l->call, "%s is not running: its process was killed; train it again to continue", l->folder);
    if (state == AN_PROCESS_STOPPED)
        cli_tell("note: process %ld of the run is suspended; it stops after it is resumed (kill -CONT %ld)", process,
                 process);
    return CLI_DONE;
}

static int ask(const launch *l) {
    static const char request[] = "stop\n"; /* store/launch.h */
    const int file = an_regular_open(l->path, O_WRONLY | O_APPEND | O_NOFOLLOW);
    const bool is_written = file >= 0 && write(file, request, sizeof request - 1) == (ssize_t)sizeof request - 1;
    const int reason = errno;
    if (file >= 0 && close(file) == 0 && is_written) return CLI_DONE;
    return cli_fail(l->call, "%s: the request cannot be written: %s", l->path,
                    file == AN_NOT_REGULAR ? "it is not a regular file" : strerror(reason));
}

/* The end of the run, once its process is gone too: then it can be started again. */
static int tell_end(const launch *l, const cli_run_end *end) {
    char checkpoint[NAME_MAX + 1];
    if (!strcmp(end->name, "failed"))
        return cli_fail(l->call, "%s failed after step %s instead of stopping: %s/outcome.json says why", l->folder,
                        cli_count(end->step).text, l->folder);
    cli_run_checkpoint(l->folder, checkpoint);
    printf("%s: %s after step %s", l->folder, end->name, cli_count(end->step).text);
    if (*checkpoint) printf(", saved as checkpoints/%s", checkpoint);
    puts("");
    return cli_finish(l->call);
}

static int wait_for(const launch *l, double seconds) {
    static const double to_leave = 15; /* seconds for the process to end, after the run has */
    const double begin = an_clock_seconds();
    double ended = 0;
    for (;;) {
        cli_run_end end;
        long process;
        const an_process_state state =
            look_at_process(l, &process); /* before the end is looked for, which it writes first */
        const bool is_over = has_ended(l, &end), is_gone = state == AN_PROCESS_GONE || state == AN_PROCESS_ELSEWHERE;
        const double now = an_clock_seconds();
        if (is_over && ended == 0) ended = now;
        if (is_over && (is_gone || now - ended > to_leave)) return tell_end(l, &end);
        if (!is_over && state == AN_PROCESS_GONE)
            return cli_fail(l->call, "%s was killed before it could stop; train it again to continue", l->folder);
        if (seconds > 0 && now - begin > seconds) {
            cli_tell("anneal stop: %s has not stopped within %g seconds; the request remains", l->folder, seconds);
            return CLI_AGAIN;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
}

static int run(const cli_call *call) {
    launch l = {.call = call, .folder = call->argument};
    double seconds = 0;
    int code = cli_positive(call, TIMEOUT, &seconds);
    if (code == CLI_DONE) code = find(&l);
    if (code == CLI_DONE) code = ask(&l);
    if (code != CLI_DONE || call->values[NO_WAIT]) return code;
    return wait_for(&l, seconds);
}

const cli_command cli_stop = {
    .name = "stop",
    .argument = "RUN",
    .summary = "stop a run with a checkpoint",
    .text =
        "Asks the run in a run folder to stop with a checkpoint after the current step, as TERM and Ctrl-C do, and "
        "waits "
        "until it has. It works for one process, for ranks that mpirun or srun started, with --supervise, and for a "
        "run on another machine that shares the folder: the request is written to the folder, and the run looks for "
        "it several times a second.\n\nThe exit code is 0 if the run has stopped or has finished by itself, 1 if it is "
        "not running or failed instead, 2 if the folder has no run, and 75 if it was still running after --timeout. "
        "The run itself ends with exit code 75: run its command again to continue.",
    .options = options,
    .run = run,
};

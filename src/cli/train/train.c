/* anneal train: trains from a config, with a banner, progress, and a run folder. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/regular.h"
#include "base/options/settings.h"
#include "cli/plan/report.h"
#include "cli/supervise/board.h"
#include "cli/supervise/rank.h"
#include "cli/supervise/supervise.h"
#include "cli/train/open.h"
#include "cli/train/ranks.h"
#include "cli/train/trace.h"
#include "cli/train/written.h"

enum {
    RESUME,
    RESTART,
    FRESH,
    EXTEND,
    NEW_BITS,
    THREADS,
    ISA,
    KERNEL,
    PROFILE,
    CHECK,
    RANKS,
    MPI,
    SUPERVISE,
    RESTARTS,
    MIN_RANKS,
    SET
};

static const cli_option options[] = {
    [RESUME] = {.name = "resume",
                .argument = "PATH",
                .group = 1,
                .help =
                    "resume from this checkpoint, or from the newest intact one of this run folder (default: run.dir)"},
    [RESTART] = {.name = "restart",
                 .argument = "schedule",
                 .help =
                     "with --resume, start a new run in run.dir, with the weights and moments of that checkpoint and "
                     "the learning rate, schedule and length of the config"},
    [FRESH] = {.name = "fresh",
               .group = 1,
               .help =
                   "start a new run; if run.dir already has a run, create a new folder beside it and delete nothing"},
    [EXTEND] = {.name = "extend",
                .argument = "keep|stretch",
                .help = "extend a run: keep its schedule and continue at its final learning rate, or stretch the "
                        "schedule, which makes the learning rate jump"},
    [NEW_BITS] = {.name = "allow-new-bits",
                  .help = "resume even if the instruction set, the kernels, oneDNN or anneal differ from those of the "
                          "run; results may then differ in the last bits"},
    [THREADS] = {.name = "threads",
                 .argument = "N",
                 .help = "number of threads (default: ranks.threads, or all cores)"},
    [ISA] = {.name = "isa",
             .argument = "base|avx2|avx512|amx",
             .help = "instruction set of the kernels (default: run.isa, or the best that the machine has)"},
    [KERNEL] =
        {.name = "kernel",
         .argument = "OP=NAME,...",
         .help = "use these kernels, as in attention=portable, also for gradients; log.txt lists the kernels in use"},
    [PROFILE] = {.name = "profile",
                 .argument = "FILE",
                 .help = "write a Chrome trace of the run: steps, data, optimizer, evaluations and saves, and every "
                         "node of the last "
                         "step; and print where the time went (default: log.profile)"},
    [CHECK] = {.name = "check",
               .argument = "N",
               .help = "instead of training, compare N steps with plain ones (f32, portable kernels, no fusion) and "
                       "show where they differ"},
    [RANKS] = {.name = "ranks",
               .letter = 'n',
               .argument = "N",
               .help =
                   "start N processes on this machine that train together, through the MPI that is found; on several "
                   "machines, mpirun and srun do that"},
    [MPI] = {.name = "mpi",
             .argument = "openmpi|mpich",
             .help = "MPI library between the ranks (default: that of the launcher that started this process)"},
    [SUPERVISE] = {.name = "supervise",
                   .help =
                       "train in a separate process and restart it after a crash, or after a hang of ranks.timeout"},
    [RESTARTS] = {.name = "restarts",
                  .argument = "K",
                  .help = "with --supervise, restart at most K times (default 100)"},
    [MIN_RANKS] = {.name = "min-ranks",
                   .argument = "N",
                   .help = "with --supervise and -n, go on with fewer ranks after one was lost, but with N at least "
                           "(default: always with all)"},
    [SET] = {.name = "set",
             .argument = "KEY=VALUE",
             .repeats = true,
             .help = "override a key of the config, as in optimizer.lr=1e-3; can be repeated"},
    {0},
};

/* ---- signals ---- A run stops with a checkpoint after the step that is under way; the second Ctrl-C ends it at once.
 * A pipe whose reader has ended (`| head`) is a request to stop as well. */

static an_trainer *volatile running;
static volatile sig_atomic_t signalled; /* the first signal, or Ctrl-C; 0: none */
static volatile sig_atomic_t unread;    /* standard output or error is a pipe that nobody reads any more */
static bool has_terminal;               /* for who pressed Ctrl-C */

static void on_signal(int number) {
    if (number == SIGINT && signalled == SIGINT) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    if (!signalled || number == SIGINT) signalled = number;
    if (number == SIGPIPE) unread = true;
    if (running) an_trainer_request_stop(running);
    /* A step may be long: who pressed it must see that it was heard. */
    static const char heard[] =
        "\nstopping with a checkpoint after this step; press Ctrl-C again to stop immediately\n";
    if (number == SIGINT && has_terminal && write(STDERR_FILENO, heard, sizeof heard - 1) < 0) return;
}

void cli_watch_signals(void) {
    /* A write that is under way is finished: a signal while the reader pauses must not lose output. */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    has_terminal = isatty(STDERR_FILENO);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
}

/* As outcome.json says it. */
static const char *stop_reason(void) {
    switch (signalled) {
    case SIGINT: return "SIGINT (Ctrl-C)";
    case SIGTERM: return "SIGTERM";
    case SIGUSR1: return "SIGUSR1";
    case SIGPIPE: return "SIGPIPE: the program reading the output has exited";
    default: return NULL;
    }
}

static void watch_for(an_trainer *trainer) {
    running = trainer;
    if (signalled && trainer) an_trainer_request_stop(trainer);
}

/* ---- callbacks ---- */

enum { MESSAGE = 4096 };

typedef struct {
    cli_training *training;
    cli_progress progress;
    cli_writer writer;
    char error[MESSAGE]; /* of the folder, which the run's own would cover; "": none */
} watching;

static void keep_error(const cli_training *t, char error[MESSAGE]) {
    snprintf(error, MESSAGE, "%s", an_last_error(t->ctx));
}

static an_status after_step(void *user, an_trainer *trainer) {
    watching *w = user;
    bool logged = false;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_status status = an_trainer_step_metrics(trainer, &metrics);
    if (status == AN_OK) status = an_folder_step(w->training->folder, &metrics, &logged);
    if (status != AN_OK) keep_error(w->training, w->error);
    cli_progress_step(&w->progress, w->training, &metrics, logged);
    return status;
}

static an_status after_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    watching *w = user;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    an_status status = an_trainer_evaluation(trainer, &evaluation);
    if (status == AN_OK) status = an_folder_evaluation(w->training->folder, step, &evaluation);
    if (status != AN_OK) keep_error(w->training, w->error);
    cli_progress_evaluation(&w->progress, w->training, step, &evaluation, best);
    if (status == AN_OK) cli_writer_write(&w->writer, w->training, step);
    return status;
}

/* What is saved goes to the log; that something is not must be seen. */
static an_status after_save(void *user, an_trainer *trainer) {
    watching *w = user;
    char line[MESSAGE];
    an_save_report report;
    an_save_report_init(&report, sizeof report);
    if (an_trainer_save_report(trainer, &report) != AN_OK) return AN_OK;
    if (report.error) {
        cli_progress_end(&w->progress);
        cli_tell("warning: step %s was not saved: %s", cli_count(report.step).text, report.error);
        snprintf(line, sizeof line, "step %lld was not saved: %s", (long long)report.step, report.error);
    } else {
        snprintf(line, sizeof line, "saved step %lld: %s in %s, including %s for the copy", (long long)report.step,
                 cli_bytes((double)report.bytes).text, cli_duration(report.copy_seconds + report.seconds).text,
                 cli_duration(report.copy_seconds).text);
    }
    an_folder_log(w->training->folder, line);
    if (report.warning) {
        cli_progress_end(&w->progress);
        cli_tell("warning: step %s was saved, but %s", cli_count(report.step).text, report.warning);
        snprintf(line, sizeof line, "step %lld was saved, but %s", (long long)report.step, report.warning);
        an_folder_log(w->training->folder, line);
    }
    return AN_OK;
}

/* ---- the run ---- */

/* The exit code of a run that came to an end without an error. */
static int end_code(const an_run_outcome *outcome) {
    return outcome->end == AN_RUN_REQUESTED || outcome->end == AN_RUN_TIME ? CLI_AGAIN : CLI_DONE;
}

static void say_end(cli_training *t, const an_run_outcome *outcome, double seconds) {
    static const char *const ends[] = {[AN_RUN_DONE] = "done",
                                       [AN_RUN_STOPPED_EARLY] = "stopped early: the metric stopped improving",
                                       [AN_RUN_REQUESTED] = "stopped on request",
                                       [AN_RUN_TIME] = "stopped: run.max_time was reached"};
    char hash[AN_HASH_TEXT];
    const char *path = an_folder_path(t->folder);
    cli_say(t, "%s", "");
    cli_say(t, "%s, after %s step%s in %s", ends[outcome->end], cli_count(outcome->steps).text,
            outcome->steps == 1 ? "" : "s", cli_duration(seconds).text);
    if (outcome->best_step) {
        const char *metric = "";
        an_config_string(t->config, AN_SETTING(eval.best.metric), &metric);
        cli_say(t, "best %s %.6g, at step %s", metric, outcome->best_value, cli_count(outcome->best_step).text);
    }
    if (an_trainer_weights_hash(t->trainer, hash) == AN_OK) cli_say(t, "weights %s", hash);
    if (end_code(outcome) == CLI_AGAIN) {
        if (unread)
            cli_tell(
                "anneal train: nothing reads the output any more: stopped with a checkpoint after step %s; run the "
                "same command to continue",
                cli_count(outcome->steps).text);
        cli_say(t, "saved; run the same command to continue");
        return;
    }
    cli_say(t, "see  %s/summary.json, or run: anneal plot %s > curves.svg", path, path);
}

static int run_with(watching *w, FILE *trace) {
    cli_training *t = w->training;
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    an_program_profile(an_trainer_program(t->trainer), trace != NULL);
    an_status status = an_trainer_run_options(t->trainer, &run);
    if (status != AN_OK) return cli_failure(t->call, t->ctx, status);
    callbacks.after_step = after_step;
    callbacks.after_evaluation = after_evaluation;
    callbacks.after_save = after_save;
    callbacks.user = w;
    run.callbacks = &callbacks;
    cli_progress_begin(&w->progress, t);
    status = an_trainer_run(t->trainer, &run, &outcome);
    watch_for(NULL);
    cli_progress_end(&w->progress);
    const double seconds = cli_progress_seconds(&w->progress);
    const int traced = trace ? cli_trace_write(t->trace, t, trace, t->trace_path) : CLI_DONE;
    if (status != AN_OK) {
        if (!*w->error) keep_error(t, w->error);
        an_folder_finish(t->folder, &outcome, w->error); /* a disk that is full says so only once */
        return cli_fail(t->call, "%s", w->error);
    }
    if (stop_reason()) outcome.reason = stop_reason();
    say_end(t, &outcome, seconds);
    if (trace && traced == CLI_DONE) cli_trace_say(t->trace, t, seconds, t->trace_path);
    status = an_folder_finish(t->folder, &outcome, NULL);
    if (status != AN_OK) return cli_refuse(t->call, t->ctx, NULL, status);
    const int code = unread ? CLI_DONE : cli_finish(t->call);
    if (code != CLI_DONE || traced != CLI_DONE) return CLI_FAILED;
    return end_code(&outcome);
}

/* A finished run is no mistake: it says so. Another one that would have its folder is; what came to no checkpoint and
 * has another config is refused as well, as its metrics would be lost. */
static int look_at_folder(cli_training *t, bool fresh, bool *finished) {
    const char *path;
    an_folder_state state = AN_FOLDER_EMPTY;
    an_status status = an_config_path(t->config, AN_SETTING(run.dir), &path);
    if (status == AN_OK) status = an_folder_look(t->ctx, path, &state);
    if (status != AN_OK) return cli_failure(t->call, t->ctx, status);
    *finished = false;
    if (fresh || state == AN_FOLDER_EMPTY) return CLI_DONE;
    const bool resumed = an_trainer_resumed(t->trainer) != NULL;
    char *changes;
    status = an_folder_compare(path, t->config, &changes);
    if (status != AN_OK) return cli_failure(t->call, t->ctx, status);
    const bool same = !changes;
    if (!resumed && !same)
        cli_fail(t->call,
                 "%s: this folder already has a run with a different config; add --fresh to start a new run beside it, "
                 "or set run.dir to another name\n  %s",
                 path, changes);
    an_string_release(t->ctx, &changes);
    if (!resumed && !same) return CLI_MISUSED; /* another start would find the same */
    *finished =
        state == AN_FOLDER_FINISHED && (same || an_trainer_next_step(t->trainer) == an_trainer_steps(t->trainer));
    if (*finished) printf("%s: this run is finished; add --fresh to start a new run beside it\n", path);
    return CLI_DONE;
}

/* What rank 0 has found, on all ranks. */
static int share(cli_training *t, int code, bool *finished) {
    int64_t found[] = {code, finished && *finished};
    const an_status status = an_ranks_broadcast(t->ctx, found, sizeof found / sizeof *found, AN_DTYPE_I64, 0);
    if (status != AN_OK) return cli_failure(t->call, t->ctx, status);
    if (finished) *finished = found[1] != 0;
    return (int)found[0];
}

static int open_folder(cli_training *t, bool fresh) {
    an_folder_options folder;
    an_folder_options_init(&folder, sizeof folder);
    folder.fresh = fresh;
    const an_status status = an_folder_create(&t->folder, t->trainer, t->config, &folder);
    if (status != AN_OK) return cli_refuse(t->call, t->ctx, NULL, status);
    if (t->is_first) cli_board_tell_folder(an_folder_path(t->folder));
    int code = t->is_first ? cli_write_plan_file(t) : CLI_DONE;
    if (code == CLI_DONE && t->is_first) code = cli_banner(t);
    if (code != CLI_DONE) an_folder_finish(t->folder, NULL, "plan.json or the banner could not be written");
    return share(t, code, NULL);
}

/* Before hours are spent on what it will say. */
static int open_trace(cli_training *t, FILE **trace) {
    const char *path = t->trace_path;
    *trace = path ? fopen(path, "w") : NULL;
    if (path && !*trace) return cli_fail(t->call, "%s: cannot be opened: %s", path, strerror(errno));
    return CLI_DONE;
}

int cli_training_run(cli_training *training, bool fresh) {
    cli_training *t = training;
    bool finished = false;
    FILE *trace = NULL;
    if (t->info.samples == 0) {
        cli_tell(
            "%s: the samples of a stream come from a program that calls an_trainer_step_on; with this command, use "
            "data from a file",
            an_config_place(t->config, AN_SETTING(data.train.type)));
        return CLI_MISUSED;
    }
    int code = t->is_first ? look_at_folder(t, fresh, &finished) : CLI_DONE;
    if (code == CLI_DONE && !finished) code = open_trace(t, &trace);
    code = share(t, code, &finished);
    if (code != CLI_DONE || finished) return code;
    watch_for(t->trainer);
    watching w = {.training = t};
    code = share(t, cli_writer_open(&w.writer, t), NULL);
    if (code == CLI_DONE) code = open_folder(t, fresh);
    if (code == CLI_DONE)
        code = run_with(&w, trace);
    else if (trace)
        fclose(trace);
    cli_writer_close(&w.writer);
    return code;
}

static int run(const cli_call *call) {
    static const char *const extensions[] = {"keep", "stretch", NULL}, *const parts[] = {"schedule", NULL};
    static const char *const libraries[] = {"openmpi", "mpich", NULL}, *const starting[] = {"ranks", NULL};
    cli_training training;
    cli_ranks ranks;
    int extend = -1, library = -1, part = -1;
    cli_opening opening = {.file = call->argument, .kernels = call->values[KERNEL]};
    int64_t threads = 0, steps = 0, restarts = CLI_RESTARTS, number = 1, minimum = 0;
    if (cli_number(call, THREADS, 1, &threads) != CLI_DONE || cli_number(call, CHECK, 1, &steps) != CLI_DONE ||
        cli_isa(call, ISA, &opening.isa) != CLI_DONE || cli_choice(call, EXTEND, extensions, &extend) != CLI_DONE ||
        cli_choice(call, RESTART, parts, &part) != CLI_DONE || cli_number(call, RESTARTS, 0, &restarts) != CLI_DONE ||
        cli_number(call, RANKS, 1, &number) != CLI_DONE || cli_number(call, MIN_RANKS, 1, &minimum) != CLI_DONE ||
        cli_choice(call, MPI, libraries, &library) != CLI_DONE)
        return CLI_MISUSED;
    if (part >= 0 && !call->values[RESUME])
        return cli_misuse(call, "--restart needs --resume, which names the checkpoint to start with");
    if (part >= 0 && extend >= 0)
        return cli_misuse(
            call, "--restart and --extend cannot be combined: a restarted schedule has the length of the config");
    const char *mpi = library < 0 ? NULL : libraries[library];
    if (call->values[SUPERVISE] && cli_is_pipe(call->argument))
        return cli_misuse(call, "--supervise reads the config again at each restart, which does not work with a pipe "
                                "or standard input; write the config to a file");
    if (minimum > 0 && (!call->values[SUPERVISE] || minimum > number))
        return cli_misuse(call, minimum > number ? "--min-ranks is more than -n" : "--min-ranks needs --supervise");
    if (call->values[SUPERVISE])
        return cli_supervise(call, restarts, number > 1 ? number : 0, minimum > 0 ? minimum : number);
    if (call->values[RESTARTS]) return cli_misuse(call, "--restarts needs --supervise, which was not given");
    if (number > 1 && steps > 0)
        return cli_misuse(call, "-n and --check, which compares the steps of one process, cannot be combined");
    if (number > 1 && cli_is_pipe(call->argument))
        return cli_misuse(call, "with -n, every rank reads the config, which does not work with a pipe or standard "
                                "input; write the config to a file");
    if (number > 1) return cli_launch(call, mpi, number, starting);
    opening.threads = (int)(threads < INT32_MAX ? threads : INT32_MAX);
    opening.fresh = call->values[FRESH] != NULL;
    opening.resume = call->values[RESUME];
    opening.extend = extend < 0 ? AN_EXTEND_REFUSE : extend == 0 ? AN_EXTEND_KEEP : AN_EXTEND_STRETCH;
    opening.restart = part < 0 ? AN_RESTART_NONE : AN_RESTART_SCHEDULE;
    opening.new_bits = call->values[NEW_BITS] != NULL;
    opening.traces = true;
    opening.profile = call->values[PROFILE];
    cli_watch_signals();
    cli_rank_begin();
    int code = cli_ranks_begin(call, mpi, &ranks);
    if (code == CLI_DONE && steps > 0 && ranks.comm && ranks.comm->ranks > 1)
        code = cli_misuse(call, "--check compares the steps of one process, but a launcher started several");
    if (code != CLI_DONE) return cli_ranks_end(&ranks, code);
    opening.comm = ranks.comm;
    if (steps > 0) return cli_ranks_end(&ranks, cli_check(call, &opening, steps));
    code = cli_training_open(call, &opening, &training);
    if (code == CLI_DONE) code = cli_training_run(&training, opening.fresh);
    cli_training_close(&training);
    return cli_ranks_end(&ranks, code);
}

const cli_command cli_train = {
    .name = "train",
    .argument = "CONFIG",
    .summary = "train a model",
    .text =
        "Trains the model that a config describes. It first prints what it is going to do and then shows its progress, "
        "in one changing line on a terminal and in plain lines elsewhere. The run folder (run.dir) receives "
        "config.yaml, metrics.jsonl, log.txt, plan.json, an event file for TensorBoard, checkpoints, and at the end "
        "summary.json and outcome.json. If CONFIG is -, it is read from standard input; paths in it then start at the "
        "current folder, and run.dir is runs/config unless it is set.\n\nThe same command resumes from the newest "
        "intact checkpoint of the run folder, and the result is bit-identical to an uninterrupted run, at the same "
        "instruction level and with the same version. A finished run is not started again. TERM, "
        "USR1, Ctrl-C and a closed pipe (as in '| head') stop the run with a checkpoint after the current step, and "
        "the exit code is then 75: run the same command again to continue. A second Ctrl-C stops it "
        "immediately.\n\nSeveral "
        "processes train together with -n, or started by mpirun or srun; the result is bit-identical to that of one "
        "process, for any number of ranks up to the number of leaves (batch.leaves; the banner shows how many "
        "there are). -n passes requests to stop on to its ranks itself. mpirun and srun do not pass signals and exit "
        "codes on faithfully: use 'anneal stop RUN' there, and outcome.json says how such a run ended.",
    .options = options,
    .run = run,
};

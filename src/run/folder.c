#include "run/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/config.h"
#include "anneal/ranks.h"
#include "anneal/run.h"
#include "base/clock.h"
#include "base/guard.h"
#include "base/isa.h"
#include "base/structs.h"
#include "base/text/json.h"
#include "run/run.h"
#include "store/launch.h"
#include "store/places.h"
#include "train/kernel_fingerprint.h"
#include "train/metrics.h"

enum { MOST_FRESH = 10000, NAME_BYTES = 256, NOTE_BYTES = 1024 };

/* ---- files ---- */

static an_status join(const an_folder *f, const char *name, char path[AN_FILE_PATH]) {
    if (an_path_join(path, f->path, name)) return AN_OK;
    return AN_ERROR(f->ctx, AN_ERR_ARGUMENT, "the path of the run folder is too long: %s", f->path);
}

/* Calls a function that has a note, with its message on the context. */
#define WITH_NOTE(ctx, call)                               \
    do {                                                   \
        char text_[NOTE_BYTES] = "";                       \
        const an_note note = {text_, sizeof text_};        \
        AN_TRY_RETURN(an_note_raise((ctx), (call), note)); \
    } while (0)

/* A whole file, beside and then renamed: nobody ever reads half of it. */
static an_status replace_file(const an_folder *f, const char *name, const char *text) {
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH];
    AN_TRY_RETURN(join(f, name, path));
    WITH_NOTE(ctx, an_file_replace(path, text, strlen(text), note));
    return AN_OK;
}

static an_status append(an_folder *f, int file, const char *name, const char *text, size_t length) {
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH];
    AN_TRY_RETURN(join(f, name, path));
    WITH_NOTE(ctx, an_file_write(file, text, length, path, note));
    return AN_OK;
}

/* ---- what is there ---- */

static bool exists(const char *folder, const char *name) {
    char path[AN_FILE_PATH];
    struct stat found;
    return an_path_join(path, folder, name) && stat(path, &found) == 0;
}

/* The end of a run is written last, in one piece: whoever finds it finds all of it. */
an_status an_folder_look(an_context *ctx, const char *path, an_folder_state *state) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, path, state);
    an_status status;
    char file[AN_FILE_PATH], text[NAME_BYTES] = "", message[NOTE_BYTES] = "";
    const an_note note = {message, sizeof message};
    AN_CHECK(ctx, an_path_join(file, path, "outcome.json"), AN_ERR_ARGUMENT,
             "the path of the run folder is too long: %.100s…", path);
    *state = exists(path, "metrics.jsonl") || exists(path, AN_CHECKPOINTS) ? AN_FOLDER_UNFINISHED : AN_FOLDER_EMPTY;
    if (!exists(path, "outcome.json")) return AN_OK;
    int opened;
    AN_TRY(an_note_raise(ctx, an_file_open(&opened, file, O_RDONLY, note), note));
    ssize_t length;
    do length = read(opened, text, sizeof text - 1);
    while (length < 0 && errno == EINTR);
    const int reason = errno;
    close(opened);
    AN_CHECK(ctx, length >= 0, AN_ERR_FILE, "%s: cannot be read: %s", file, strerror(reason));
    if (length > 0 && (strstr(text, "\"end\": \"done\"") || strstr(text, "\"end\": \"stopped early\"")))
        *state = AN_FOLDER_FINISHED;
    return AN_OK;
fail:
    return status;
}

/* The first of path, path-2, path-3, … that has no run in it. */
static an_status choose_fresh(an_folder *f, const char *path) {
    an_context *ctx = f->ctx;
    for (int number = 1; number < MOST_FRESH; number++) {
        an_folder_state state;
        char suffix[16] = "";
        if (number > 1) snprintf(suffix, sizeof suffix, "-%d", number);
        if (snprintf(f->path, sizeof f->path, "%s%s", path, suffix) >= (int)sizeof f->path) break;
        AN_TRY_RETURN(an_folder_look(ctx, f->path, &state));
        if (state == AN_FOLDER_EMPTY) return AN_OK;
    }
    return AN_ERROR(ctx, AN_ERR_FILE, "%s: there are too many runs beside it, or its path is too long", path);
}

static an_status write_outcome(an_folder *f, const char *end, int64_t step, const char *reason, const char *error);

/* ---- making one ---- */

/* The step of a line of metrics; -1: it is none. */
static int64_t step_of(const char *line) {
    long long step;
    /* NOLINTNEXTLINE(cert-err34-c): what is out of range was not written by us */
    return sscanf(line, "{\"step\": %lld", &step) == 1 && strchr(line, '}') ? step : -1;
}

/* Whether a line belongs to what the run carries on from. */
static bool is_before(const an_trainer *t, const char *line) {
    const int64_t step = step_of(line);
    if (step < 0 || step > t->next) return false;
    return step < t->next || t->progress.evaluated == t->next || !strstr(line, "\"val_");
}

/* The lines of earlier launches up to where the run stands, in a new file that takes the old one's place: a process that still writes
 * into that one writes where nobody reads. O(lines). */
static an_status copy_metrics(an_folder *f, const char *path, const char *beside) {
    an_status status;
    an_context *ctx = f->ctx;
    char *line = NULL, text[NOTE_BYTES] = "";
    const an_note note = {text, sizeof text};
    size_t capacity = 0;
    FILE *before = NULL;
    if (f->trainer->run->resumed && an_file_exists(path)) {
        int file;
        AN_TRY(an_note_raise(ctx, an_file_open(&file, path, O_RDONLY, note), note));
        before = fdopen(file, "r");
        if (!before) close(file);
        AN_CHECK(ctx, before, AN_ERR_MEMORY, "%s: out of memory", path);
    }
    AN_TRY(an_note_raise(ctx, an_file_open(&f->metrics, beside, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, note), note));
    for (ssize_t length; before && (length = getline(&line, &capacity, before)) > 0;)
        if (is_before(f->trainer, line)) AN_TRY(append(f, f->metrics, "metrics.jsonl", line, (size_t)length));
    AN_CHECK(ctx, !before || !ferror(before), AN_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    AN_TRY(an_note_raise(ctx, an_file_rename(beside, path, note), note));
    status = AN_OK;
fail:
    free(line);
    if (before) fclose(before);
    return status;
}

static an_status open_metrics(an_folder *f) {
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH], beside[AN_FILE_PATH], name[NAME_BYTES];
    snprintf(name, sizeof name, "metrics-%" PRId64 ".new", f->trainer->run->generation);
    AN_TRY_RETURN(join(f, "metrics.jsonl", path));
    AN_TRY_RETURN(join(f, name, beside));
    return copy_metrics(f, path, beside);
}

static an_status open_log(an_folder *f) {
    char path[AN_FILE_PATH];
    an_context *ctx = f->ctx;
    AN_TRY_RETURN(join(f, "log.txt", path));
    WITH_NOTE(ctx, an_file_open(&f->log, path, O_WRONLY | O_CREAT | O_APPEND, note));
    return AN_OK;
}

static an_status write_config(const an_folder *f, const an_config *config) {
    an_status status;
    an_context *ctx = f->ctx;
    char *text = NULL;
    AN_TRY(an_config_write(config, &text));
    AN_TRY(replace_file(f, "config.yaml", text));
    status = AN_OK;
fail:
    an_string_release(ctx, &text);
    return status;
}

static an_status choose_path(an_folder *f, an_config *config, const an_folder_options *given) {
    an_context *ctx = f->ctx;
    an_folder_options options;
    AN_TRY_RETURN(an_folder_options_read(ctx, &options, given));
    const char *path = options.path;
    if (!path) AN_TRY_RETURN(an_config_path(config, "run.dir", &path));
    if (options.fresh) return choose_fresh(f, path);
    if (!*path || strlen(path) >= sizeof f->path)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "run.dir is empty or too long: '%.100s'", path);
    memcpy(f->path, path, strlen(path) + 1);
    return AN_OK;
}

/* A run that begins anew finds nothing of another one: neither a checkpoint nor the end of a run. What a launch left that came to no
 * checkpoint is of no use. */
static an_status check_empty(const an_folder *f) {
    an_context *ctx = f->ctx;
    an_folder_state state;
    an_checkpoint_place *places = NULL;
    size_t count = 0, capacity = 0;
    char path[AN_FILE_PATH];
    if (f->trainer->run->resumed) return AN_OK;
    AN_TRY_RETURN(an_folder_look(ctx, f->path, &state));
    AN_TRY_RETURN(join(f, AN_CHECKPOINTS, path));
    AN_TRY_RETURN(an_checkpoints_list(ctx, path, &places, &count, &capacity));
    an_release(ctx, (void **)&places, capacity, sizeof *places);
    if (state != AN_FOLDER_FINISHED && count == 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_FILE,
                    "%s: this folder already has a run; add --fresh to start a new one beside it (nothing is deleted), "
                    "or set run.dir to another name",
                    f->path);
}

/* Rank 0's part: everything that is written. */
static an_status begin(an_folder *f, an_config *config, const an_folder_options *options) {
    an_status status;
    an_context *ctx = f->ctx;
    an_trainer *trainer = f->trainer;
    AN_TRY(choose_path(f, config, options));
    AN_TRY(check_empty(f));
    AN_TRY(an_trainer_set_folder(trainer, f->path));
    AN_TRY(an_run_attach(trainer));
    AN_TRY(an_run_claim(trainer));
    AN_TRY(write_outcome(f, "running", trainer->next, NULL, NULL));
    AN_TRY(open_metrics(f));
    AN_TRY(write_config(f, config));
    AN_TRY(open_log(f));
    if (trainer->run->log.tensorboard) AN_TRY(an_events_create(&f->events, ctx, f->path, an_clock_of_day()));
    status = AN_OK;
fail:
    return status;
}

/* The other ranks learn the name of the folder and the number of the launch, and write nothing. */
static an_status share(an_folder *f) {
    an_context *ctx = f->ctx;
    AN_TRY_RETURN(an_broadcast(ctx, f->path, sizeof f->path, AN_DTYPE_U8, 0));
    f->path[sizeof f->path - 1] = 0;
    return an_broadcast(ctx, &f->trainer->run->generation, 1, AN_DTYPE_I64, 0);
}

an_status an_folder_create(an_folder **folder, an_trainer *trainer, an_config *config,
                           const an_folder_options *options) {
    AN_GUARD;
    AN_NEED(trainer, folder, config);
    an_status status;
    an_context *ctx = trainer->ctx;
    an_folder *f = NULL;
    *folder = NULL;
    status = an_alloc(ctx, (void **)&f, 1, sizeof *f);
    if (status == AN_OK) {
        f->ctx = ctx;
        f->trainer = trainer;
        f->metrics = f->log = -1;
        f->is_silent = an_rank(ctx) > 0;
        f->begin = f->since = f->logged = an_clock_seconds();
        status = f->is_silent ? an_run_attach(trainer) : begin(f, config, options);
    }
    AN_TRY(an_ranks_agree(ctx, status));
    if (an_ranks(ctx) > 1) AN_TRY(share(f));
    *folder = f;
    return AN_OK;
fail:
    an_folder_destroy(&f);
    return status;
}

void an_folder_destroy(an_folder **folder) {
    an_folder *f = folder ? *folder : NULL;
    if (!f) return;
    an_context *ctx = f->ctx;
    an_events_destroy(&f->events);
    if (f->metrics >= 0) close(f->metrics);
    if (f->log >= 0) close(f->log);
    an_release(ctx, (void **)folder, 1, sizeof *f);
}

const char *an_folder_path(const an_folder *folder) {
    AN_NEED_OR("", folder);
    return folder->path;
}

/* Samples that are not made of tokens are counted themselves. */
static const char *speed_name(const an_folder *f) {
    return an_trainer_tokens(f->trainer) > 1 ? "tokens_per_second" : "samples_per_second";
}

double an_folder_speed(const an_folder *folder) {
    AN_GUARD;
    AN_NEED_OR(0, folder);
    return folder->speed;
}

/* ---- what happens ---- */

static an_status add_line(an_folder *f, const an_text *text) {
    an_context *ctx = f->ctx;
    AN_TRY_RETURN(text->status);
    return append(f, f->metrics, "metrics.jsonl", text->bytes, text->length);
}

static an_status add_event(an_folder *f, int64_t step, const char *tag, double value) {
    return f->events ? an_events_scalar(f->events, an_clock_of_day(), step, tag, value) : AN_OK;
}

/* Norms of parts of the gradients, where log.grad_norms asks for them. */
static an_status add_norms(an_folder *f, an_json_writer *json, int64_t step) {
    an_context *ctx = f->ctx;
    const int count = an_trainer_norm_count(f->trainer);
    if (count == 0) return AN_OK;
    an_json_write_object(json, "grad_norms");
    for (int i = 0; i < count; i++) {
        char tag[NAME_BYTES];
        const char *name;
        double norm;
        AN_TRY_RETURN(an_trainer_norm(f->trainer, i, &name, &norm));
        an_json_write_real(json, name, norm);
        if (snprintf(tag, sizeof tag, "grad_norm/%s", name) < (int)sizeof tag)
            AN_TRY_RETURN(add_event(f, step, tag, norm));
    }
    an_json_write_end(json);
    return AN_OK;
}

/* Whether the metrics of this step are written: the first, the last, and every so many or so often between them. */
static bool is_due(const an_folder *f, int64_t step) {
    const an_interval *every = &f->trainer->run->log.every;
    if (every->seconds > 0) return step == f->trainer->steps || an_clock_seconds() - f->logged >= every->seconds;
    if (an_interval_is_off(every)) return false;
    return step == 1 || step == f->trainer->steps || an_interval_ends(every, &f->trainer->batches, step);
}

an_status an_folder_step(an_folder *folder, const an_step_metrics *given, bool *logged) {
    AN_GUARD;
    AN_NEED(folder, given);
    an_folder *f = folder;
    an_status status;
    an_context *ctx = f->ctx;
    an_text text;
    an_step_metrics own;
    const an_step_metrics *const metrics = &own;
    AN_TRY_RETURN(an_step_metrics_read(ctx, &own, given));
    if (logged) *logged = false;
    if (f->is_silent) return AN_OK;
    f->tokens += metrics->samples * an_trainer_tokens(f->trainer);
    const bool due = is_due(f, metrics->step);
    if (logged) *logged = due;
    if (!due) return AN_OK;
    const double now = an_clock_seconds();
    f->speed = now > f->since ? (double)f->tokens / (now - f->since) : 0;
    f->since = f->logged = now;
    f->tokens = 0;
    an_text_init(&text, ctx);
    an_json_writer json = an_text_json(&text, AN_JSON_FLAT);
    an_json_write_object(&json, NULL);
    an_json_write_integer(&json, "step", metrics->step);
    const struct {
        const char *name;
        double value;
    } members[] = {
        {"loss", metrics->loss}, {"lr", metrics->rate}, {"grad_norm", metrics->norm}, {speed_name(f), f->speed}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        an_json_write_real(&json, members[i].name, members[i].value);
        AN_TRY(add_event(f, metrics->step, members[i].name, members[i].value));
    }
    if (f->trainer->stepper->options.scales) { /* f16 */
        an_json_write_real(&json, "scale", metrics->scale);
        an_json_write_integer(&json, "skips", metrics->skips);
        AN_TRY(add_event(f, metrics->step, "scale", metrics->scale));
        AN_TRY(add_event(f, metrics->step, "skips", (double)metrics->skips));
    }
    AN_TRY(add_norms(f, &json, metrics->step));
    an_json_write_finish(&json);
    AN_TRY(add_line(f, &text));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

an_status an_folder_log(an_folder *folder, const char *line) {
    AN_GUARD;
    AN_NEED(folder, line);
    an_context *ctx = folder->ctx;
    if (folder->is_silent) return AN_OK;
    AN_TRY_RETURN(append(folder, folder->log, "log.txt", line, strlen(line)));
    return append(folder, folder->log, "log.txt", "\n", 1);
}

static an_status add_evaluation(an_folder *f, an_json_writer *json, int64_t step, const an_evaluation *evaluation,
                                const an_own_metrics *own, bool events) {
    an_context *ctx = f->ctx;
    const char *name;
    for (int i = 0; (name = an_trainer_metric(f->trainer, i)); i++) {
        double value;
        if (!an_metric_get(evaluation, own, name, &value)) continue;
        an_json_write_real(json, name, value);
        if (events) AN_TRY_RETURN(add_event(f, step, name, value));
    }
    return AN_OK;
}

/* Called right after an evaluation, whose time does not count in the speed. */
an_status an_folder_evaluation(an_folder *folder, int64_t step, const an_evaluation *given) {
    AN_GUARD;
    AN_NEED(folder, given);
    an_folder *f = folder;
    an_status status;
    an_context *ctx = f->ctx;
    an_text text;
    an_evaluation own;
    const an_evaluation *const evaluation = &own;
    AN_TRY_RETURN(an_evaluation_read(ctx, &own, given));
    if (f->is_silent) return AN_OK;
    an_text_init(&text, ctx);
    an_json_writer json = an_text_json(&text, AN_JSON_FLAT);
    an_json_write_object(&json, NULL);
    an_json_write_integer(&json, "step", step);
    AN_TRY(add_evaluation(f, &json, step, evaluation, &f->trainer->measured, true));
    an_json_write_finish(&json);
    AN_TRY(add_line(f, &text));
    f->since += evaluation->seconds;
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

/* ---- how it ended ---- */

/* The most memory that the process had, in bytes; 0 where nobody says. */
static int64_t process_bytes(void) {
    char line[256];
    long long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %lld kB", &kilobytes) == 1) break; /* NOLINT(cert-err34-c): 0 if it is none */
    if (file) fclose(file);
    return kilobytes * 1024;
}

static const char *const end_names[] = {[AN_RUN_DONE] = "done",
                                        [AN_RUN_STOPPED_EARLY] = "stopped early",
                                        [AN_RUN_REQUESTED] = "stopped on request",
                                        [AN_RUN_TIME] = "time limit"};

static void add_bits(const an_folder *f, const uint64_t kernels[2], an_json_writer *json) {
    const an_context *ctx = f->ctx;
    char fingerprint[AN_HASH_TEXT] = "";
    an_hash_write(fingerprint, kernels);
    an_json_write_object(json, "bits");
    an_json_write_integer(json, "threads", an_context_threads(ctx));
    an_json_write_integer(json, "ranks", an_ranks(ctx));
    an_json_write_string(json, "mpi", ctx->communicator ? ctx->communicator->name : "");
    an_json_write_string(json, "isa", an_isa_name(an_context_isa(ctx)));
    an_json_write_string(json, "onednn", an_onednn_version());
    an_json_write_string(json, "anneal", an_version());
    an_json_write_string(json, "fingerprint", fingerprint);
    an_json_write_end(json);
}

static an_status summarize(an_folder *f, const an_run_outcome *outcome, an_json_writer *json) {
    an_context *ctx = f->ctx;
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    char weights[AN_HASH_TEXT], state[AN_HASH_TEXT];
    uint64_t kernels[2];
    AN_TRY_RETURN(an_plan_memory_get(f->trainer->plan, &memory));
    AN_TRY_RETURN(an_trainer_weights_hash(f->trainer, weights));
    AN_TRY_RETURN(an_trainer_state_hash(f->trainer, state));
    AN_TRY_RETURN(an_kernel_fingerprint(ctx, kernels));
    an_json_write_object(json, NULL);
    an_json_write_integer(json, "steps", outcome->steps);
    an_json_write_object(json, "metrics");
    const an_progress *p = &f->trainer->progress;
    if (p->last.step) an_json_write_real(json, "loss", p->last.loss);
    if (p->evaluation.samples) AN_TRY_RETURN(add_evaluation(f, json, outcome->steps, &p->evaluation, &p->own, false));
    an_json_write_end(json);
    an_json_write_string(json, "weights_hash", weights);
    an_json_write_string(json, "state_hash", state);
    an_json_write_real(json, speed_name(f), f->speed);
    an_json_write_integer(json, "planned_bytes", memory.peak);
    an_json_write_integer(json, "allocated_bytes", (int64_t)an_context_bytes(ctx));
    an_json_write_integer(json, "process_bytes", process_bytes());
    if (outcome->best_step) {
        an_json_write_object(json, "best");
        an_json_write_integer(json, "step", outcome->best_step);
        an_json_write_real(json, "value", outcome->best_value);
        an_json_write_end(json);
    }
    add_bits(f, kernels, json);
    an_json_write_finish(json);
    return AN_OK;
}

static an_status write_summary(an_folder *f, const an_run_outcome *outcome) {
    an_status status;
    an_context *ctx = f->ctx;
    an_text text;
    an_text_init(&text, ctx);
    an_json_writer json = an_text_json(&text, AN_JSON_FLAT);
    AN_TRY(summarize(f, outcome, &json));
    AN_TRY(text.status);
    AN_TRY(replace_file(f, "summary.json", text.bytes));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

/* How the last launch ended, or that it is under way; nothing trusts the exit code that a launcher makes of it. A launch that another
 * one has followed has no say. */
static an_status write_outcome(an_folder *f, const char *end, int64_t step, const char *reason, const char *error) {
    an_status status;
    an_context *ctx = f->ctx;
    an_text text;
    char message[NOTE_BYTES] = "";
    const an_note note = {message, sizeof message};
    an_text_init(&text, ctx);
    AN_TRY(an_note_raise(ctx, an_launch_check(f->path, f->trainer->run->generation, note), note));
    an_json_writer json = an_text_json(&text, AN_JSON_FLAT);
    an_json_write_object(&json, NULL);
    an_json_write_string(&json, "end", end);
    an_json_write_integer(&json, "step", step);
    an_json_write_integer(&json, "generation", f->trainer->run->generation);
    an_json_write_real(&json, "seconds", an_clock_seconds() - f->begin);
    if (reason) an_json_write_string(&json, "reason", reason);
    if (error) an_json_write_string(&json, "error", error);
    an_json_write_finish(&json);
    AN_TRY(text.status);
    AN_TRY(replace_file(f, "outcome.json", text.bytes));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

an_status an_folder_finish(an_folder *folder, const an_run_outcome *outcome, const char *error) {
    AN_GUARD;
    AN_NEED(folder);
    if (!error) AN_NEED(folder, outcome);
    an_context *ctx = folder->ctx;
    an_run_outcome own;
    if (folder->is_silent) return AN_OK;
    if (error) return write_outcome(folder, "failed", folder->trainer->next, NULL, error);
    AN_TRY_RETURN(an_run_outcome_read(ctx, &own, outcome));
    if ((unsigned)own.end >= sizeof end_names / sizeof *end_names)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the end of the run is %d, which is not an an_run_end", (int)own.end);
    AN_TRY_RETURN(write_summary(folder, &own));
    const char *reason = own.end == AN_RUN_REQUESTED ? own.reason : NULL;
    return write_outcome(folder, end_names[own.end], folder->trainer->next, reason, NULL);
}

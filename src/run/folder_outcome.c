/* How a run ended: outcome.json says it in a line, and summary.json has the numbers. */
#include <stdio.h>
#include <string.h>

#include "anneal/ranks.h"
#include "base/guard.h"
#include "base/isa.h"
#include "base/system/clock.h"
#include "base/text/json.h"
#include "run/folder.h"
#include "run/origin.h"
#include "run/run.h"
#include "run/structs.h"
#include "store/launch.h"
#include "train/kernel_fingerprint.h"

enum { NOTE_BYTES = 1024 };

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
    an_json_write_integer(json, "ranks", an_context_ranks(ctx));
    an_json_write_string(json, "mpi", ctx->communicator ? ctx->communicator->name : "");
    an_json_write_string(json, "isa", an_isa_name(an_context_isa(ctx)));
    an_json_write_string(json, "onednn", an_onednn_version());
    an_json_write_string(json, "anneal", an_version());
    an_json_write_string(json, "fingerprint", fingerprint);
    an_json_write_end(json);
}

/* What the run has come to. */
typedef struct {
    char weights[AN_HASH_TEXT], state[AN_HASH_TEXT];
} hashes;

static an_status summarize(an_folder *f, const an_run_outcome *outcome, const hashes *made, an_json_writer *json) {
    an_context *ctx = f->ctx;
    an_plan_memory memory;
    an_plan_memory_init(&memory, sizeof memory);
    uint64_t kernels[2];
    AN_TRY_RETURN(an_plan_memory_get(f->trainer->plan, &memory));
    AN_TRY_RETURN(an_kernel_fingerprint(ctx, kernels));
    an_json_write_object(json, NULL);
    an_json_write_integer(json, "steps", outcome->steps);
    an_json_write_object(json, "metrics");
    const an_progress *p = &f->trainer->record.progress;
    if (p->last.step) an_json_write_real(json, "loss", p->last.loss);
    if (p->evaluation.samples)
        AN_TRY_RETURN(an_folder_add_evaluation(f, json, outcome->steps, &p->evaluation, &p->own, false));
    an_json_write_end(json);
    an_json_write_string(json, "weights_hash", made->weights);
    an_json_write_string(json, "state_hash", made->state);
    an_json_write_real(json, an_folder_speed_name(f), f->speed);
    an_json_write_integer(json, "planned_bytes", memory.peak);
    an_json_write_integer(json, "allocated_bytes", (int64_t)an_context_bytes(ctx));
    an_json_write_integer(json, "process_bytes", process_bytes());
    if (outcome->best_step) {
        an_json_write_object(json, "best");
        an_json_write_integer(json, "step", outcome->best_step);
        an_json_write_real(json, "value", outcome->best_value);
        an_json_write_end(json);
    }
    const an_saved_origin origin = an_origin_of(f->trainer);
    if (origin.path) {
        an_json_write_object(json, "origin");
        an_origin_write(json, &origin);
        an_json_write_end(json);
    }
    add_bits(f, kernels, json);
    an_json_write_finish(json);
    return AN_OK;
}

static an_status write_summary(an_folder *f, const an_run_outcome *outcome, const hashes *made) {
    an_status status;
    an_context *ctx = f->ctx;
    an_text text;
    an_text_init(&text, ctx);
    an_json_writer json = an_text_json(&text, AN_JSON_FLAT);
    AN_TRY(summarize(f, outcome, made, &json));
    AN_TRY(text.status);
    AN_TRY(an_folder_replace_file(f, "summary.json", text.bytes));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

/* Where nothing new can be written, as on a disk that is full, the end of a run still has room in the place of what the
 * file says. */
static an_status write_line(const an_folder *f, const an_text *text, bool is_end) {
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH], message[NOTE_BYTES] = "";
    const an_note note = {message, sizeof message}, none = {NULL, 0};
    AN_TRY_RETURN(an_folder_join(f, "outcome.json", path));
    an_status status = an_file_replace(path, text->bytes, text->length, note);
    if (status != AN_OK && is_end && an_file_overwrite(path, text->bytes, text->length, none) == AN_OK) status = AN_OK;
    return an_note_raise(ctx, status, note);
}

an_status an_folder_write_outcome(an_folder *f, const char *end, int64_t step, const char *reason, const char *error) {
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
    AN_TRY(write_line(f, &text, strcmp(end, "running") != 0));
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

void an_folder_end_failed(an_folder *f) {
    an_context *ctx = f->ctx;
    const an_error own = ctx->error;
    char message[NOTE_BYTES];
    snprintf(message, sizeof message, "%s", an_last_error(ctx));
    an_folder_write_outcome(f, "failed", f->trainer->next, NULL, message);
    ctx->error = own;
}

/* An end without an error. Ranks hash the state together, if it is in pieces; rank 0 writes. */
static an_status finish(an_folder *folder, const an_run_outcome *outcome) {
    an_context *ctx = folder->ctx;
    an_run_outcome own;
    hashes made;
    if (folder->is_silent && !folder->trainer->division.shards) return AN_OK;
    AN_TRY_RETURN(an_trainer_weights_hash(folder->trainer, made.weights));
    AN_TRY_RETURN(an_trainer_state_hash(folder->trainer, made.state));
    if (folder->is_silent) return AN_OK;
    AN_TRY_RETURN(an_run_outcome_read(ctx, &own, outcome));
    if (own.end == AN_RUN_FAILED)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the run failed: an_folder_finish needs its error");
    if ((unsigned)own.end >= sizeof end_names / sizeof *end_names)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the end of the run is %d, which is not an an_run_end", (int)own.end);
    AN_TRY_RETURN(write_summary(folder, &own, &made));
    const char *reason = own.end == AN_RUN_REQUESTED ? own.reason : NULL;
    return an_folder_write_outcome(folder, end_names[own.end], folder->trainer->next, reason, NULL);
}

an_status an_folder_finish(an_folder *folder, const an_run_outcome *outcome, const char *error) {
    AN_GUARD;
    AN_NEED(folder);
    if (!error) AN_NEED(folder, outcome);
    if (error && folder->is_silent) return AN_OK;
    if (error) return an_folder_write_outcome(folder, "failed", folder->trainer->next, NULL, error);
    const an_status status = finish(folder, outcome);
    if (status != AN_OK && !folder->is_silent) an_folder_end_failed(folder);
    return status;
}

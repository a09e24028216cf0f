/* metrics.jsonl and the events of TensorBoard: the numbers of steps and evaluations, as a run goes. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/system/clock.h"
#include "base/text/json.h"
#include "run/folder.h"
#include "run/run.h"
#include "step/structs.h"
#include "train/evaluation/metrics.h"
#include "train/structs.h"

enum { NAME_BYTES = 256, NOTE_BYTES = 1024 };

/* ---- earlier launches ---- */

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
    return step < t->next || t->record.progress.evaluated == t->next || !strstr(line, "\"val_");
}

/* The lines of earlier launches up to where the run stands, in a new file that takes the old one's place: a process
 * that still writes into that one writes where nobody reads. O(lines). */
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
        if (is_before(f->trainer, line)) AN_TRY(an_folder_append(f, f->metrics, "metrics.jsonl", line, (size_t)length));
    AN_CHECK(ctx, !before || !ferror(before), AN_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    AN_TRY(an_note_raise(ctx, an_file_rename(beside, path, note), note));
    status = AN_OK;
fail:
    free(line);
    if (before) fclose(before);
    return status;
}

an_status an_folder_open_metrics(an_folder *f) {
    char path[AN_FILE_PATH], beside[AN_FILE_PATH], name[NAME_BYTES];
    snprintf(name, sizeof name, "metrics-%" PRId64 ".new", f->trainer->run->generation);
    AN_TRY_RETURN(an_folder_join(f, "metrics.jsonl", path));
    AN_TRY_RETURN(an_folder_join(f, name, beside));
    return copy_metrics(f, path, beside);
}

/* ---- this launch ---- */

const char *an_folder_speed_name(const an_folder *f) {
    return an_trainer_tokens(f->trainer) > 1 ? "tokens_per_second" : "samples_per_second";
}

double an_folder_speed(const an_folder *folder) {
    AN_GUARD;
    AN_NEED_OR(0, folder);
    return folder->speed;
}

static an_status add_line(an_folder *f, const an_text *text) {
    AN_TRY_RETURN(text->status);
    return an_folder_append(f, f->metrics, "metrics.jsonl", text->bytes, text->length);
}

static an_status add_event(an_folder *f, int64_t step, const char *tag, double value) {
    return f->events ? an_events_scalar(f->events, an_clock_of_day(), step, tag, value) : AN_OK;
}

/* Norms of parts of the gradients, where log.grad_norms asks for them. */
static an_status add_norms(an_folder *f, an_json_writer *json, int64_t step) {
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

/* Whether the metrics of this step are written: the first, the last, and every so many or so often between them; also
 * the last of an epoch, unless epochs are so short that there would be more lines than the interval asks for. */
static bool is_due(const an_folder *f, const an_step_metrics *metrics) {
    const an_interval *every = &f->trainer->run->log.every;
    const int64_t step = metrics->step;
    if (metrics->ends_epoch && every->steps > 0 &&
        an_batches_at(&f->trainer->samples.batches, step - 1).epoch_step + 1 >= every->steps)
        return true;
    if (every->seconds > 0) return step == f->trainer->steps || an_clock_seconds() - f->logged >= every->seconds;
    if (an_interval_is_off(every)) return false;
    return step == 1 || step == f->trainer->steps || an_interval_ends(every, &f->trainer->samples.batches, step);
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
    const bool due = is_due(f, metrics);
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
    if (metrics->epoch > 0) an_json_write_integer(&json, "epoch", metrics->epoch);
    an_progress *p = &f->trainer->record.progress;
    const struct {
        const char *name;
        double value;
    } members[] = {{"loss", metrics->loss},
                   {"mean_loss", an_epochs_mean(p->line_loss, p->line_targets)},
                   {"lr", metrics->rate},
                   {"grad_norm", metrics->norm},
                   {an_folder_speed_name(f), f->speed}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        an_json_write_real(&json, members[i].name, members[i].value);
        AN_TRY(add_event(f, metrics->step, members[i].name, members[i].value));
    }
    p->line_loss = 0;
    p->line_targets = 0;
    if (metrics->ends_epoch) {
        an_json_write_real(&json, "epoch_loss", metrics->epoch_loss);
        AN_TRY(add_event(f, metrics->step, "epoch_loss", metrics->epoch_loss));
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

an_status an_folder_add_evaluation(an_folder *f, an_json_writer *json, int64_t step, const an_evaluation *evaluation,
                                   const an_own_metrics *own, bool events) {
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
    AN_TRY(an_folder_add_evaluation(f, &json, step, evaluation, &f->trainer->evaluator.measured, true));
    an_json_write_finish(&json);
    AN_TRY(add_line(f, &text));
    f->since += evaluation->seconds;
    status = AN_OK;
fail:
    an_text_destroy(&text);
    return status;
}

/* A whole run: steps, the evaluations between them, the best evaluation, and when to stop. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/context.h"
#include "base/guard.h"
#include "base/structs.h"
#include "run/disk_room.h"
#include "run/run.h"
#include "train/metrics.h"
#include "train/trainer.h"

/* ---- the best ---- */

/* The best value of a metric so far, which lies in the trainer's progress. NaN is never best. */
typedef struct {
    const char *name;
    bool up;
    bool *has;
    double *value;
} record;

static an_status record_make(record *r, const an_trainer *t, const char *name, an_metric_better mode) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_metric_check(t, name, &r->name));
    r->up = mode == AN_METRIC_BETTER_AUTO ? an_metric_rises(t, name) : mode == AN_METRIC_BETTER_HIGHER;
    return AN_OK;
}

/* Whether the last evaluation beats the record by more than `delta`, and is the record from now on. */
static bool record_beat(record *r, const an_progress *p, double delta) {
    double value;
    if (!an_metric_get(&p->evaluation, &p->own, r->name, &value) || value != value) return false;
    if (*r->has && !(r->up ? value > *r->value + delta : value < *r->value - delta)) return false;
    *r->has = true;
    *r->value = value;
    return true;
}

/* ---- the run ---- */

typedef struct {
    an_trainer *trainer;
    const an_run_options *options;
    an_run_callbacks callbacks;
    record best, patient;
    int64_t patience;
    double begin, evaluated, saved; /* when the run began, the last evaluation ended, the last save was begun */
    double step_seconds;            /* of the longest step so far */
    bool saves;                     /* the run has a folder */
} running;

static an_status callback_failed(const running *r, an_status status, const char *where) {
    return AN_ERROR(r->trainer->ctx, status, "the callback %s ended the run at step %lld", where,
                    (long long)r->trainer->next);
}

/* ---- steps ---- */

static an_status take_step(running *r) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    const an_run_callbacks *c = &r->callbacks;
    const double begin = an_clock_seconds();
    an_status status = AN_OK;
    if (c->before_step) AN_HOST(status = c->before_step(c->user, t, t->next + 1));
    if (status != AN_OK) return callback_failed(r, status, "before_step");
    AN_TRY_RETURN(an_trainer_step(t, NULL));
    if (c->after_step) AN_HOST(status = c->after_step(c->user, t));
    const double took = an_clock_seconds() - begin;
    t->progress.seconds += took;
    if (took > r->step_seconds) r->step_seconds = took;
    return status == AN_OK ? AN_OK : callback_failed(r, status, "after_step");
}

/* ---- evaluations ---- */

/* Evaluations are part of what a run was. */
static void chain_evaluation(an_trainer *t) {
    double values[AN_MOST_METRICS];
    const int count = an_metrics_values(&t->progress.evaluation, &t->progress.own, values);
    an_trainer_chain(t, values, count);
}

/* Whether an evaluation belongs to where the run stands. One that a stop kept from being made is made by the next launch. */
static bool is_evaluation_due(const running *r) {
    const an_trainer *t = r->trainer;
    const an_interval every = {r->options->evaluate_every, r->options->evaluate_epochs, r->options->evaluate_seconds};
    if (!t->evaluation || t->progress.evaluated == t->next) return false;
    if (t->next == 0) return r->options->evaluate_at_start;
    if (t->next == t->steps) return true;
    if (every.seconds > 0) return an_clock_seconds() - r->evaluated >= every.seconds;
    return an_interval_ends(&every, &t->batches, t->next);
}

static an_status evaluate(running *r) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    an_progress *p = &t->progress;
    const an_run_callbacks *c = &r->callbacks;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    bool stopped;
    AN_TRY_RETURN(an_evaluate_until(t, &evaluation, &stopped));
    if (stopped) return AN_OK;
    p->evaluation = evaluation;
    p->own = t->measured;
    p->evaluated = t->next;
    chain_evaluation(t);
    r->evaluated = an_clock_seconds();
    const bool best = record_beat(&r->best, p, 0);
    if (best) p->best_step = t->next;
    if (r->patient.name) p->without = record_beat(&r->patient, p, r->options->min_delta) ? 0 : p->without + 1;
    if (!c->after_evaluation) return AN_OK;
    an_status status;
    AN_HOST(status = c->after_evaluation(c->user, t, t->next, best));
    return status == AN_OK ? AN_OK : callback_failed(r, status, "after_evaluation");
}

/* ---- saves ---- */

/* The run goes on without a save that failed, but not if it is no longer this launch's run. */
static an_status tell_save(running *r, an_status status) {
    const an_run_callbacks *c = &r->callbacks;
    if (status == AN_ERR_TAKEN_OVER) return status;
    status = AN_OK;
    r->trainer->run->tells = true;
    if (c->after_save) AN_HOST(status = c->after_save(c->user, r->trainer));
    r->trainer->run->tells = false;
    return status == AN_OK ? AN_OK : callback_failed(r, status, "after_save");
}

/* Whether the run as it stands is the best so far. */
static bool is_best(const an_trainer *t) {
    return t->progress.has_best && t->progress.best_step == t->next;
}

/* Whether a save belongs to where the run stands. */
static bool is_save_due(const running *r) {
    const an_trainer *t = r->trainer;
    const an_interval *every = &t->run->every;
    if (!r->saves || an_interval_is_off(every) || an_run_has(t)) return false;
    if (is_best(t)) return true;
    if (every->seconds > 0) return an_clock_seconds() - r->saved >= every->seconds;
    return an_interval_ends(every, &t->batches, t->next);
}

static an_status wait_for_save(running *r) {
    an_context *ctx = r->trainer->ctx;
    if (!an_run_is_saving(r->trainer)) return AN_OK;
    AN_TRY_RETURN(tell_save(r, an_run_wait(r->trainer)));
    return AN_OK;
}

static an_status save(running *r) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(wait_for_save(r)); /* the next never starts before the last is safe */
    const an_status status = an_run_save(t, is_best(t), NULL);
    r->saved = an_clock_seconds();
    if (status != AN_OK) {
        char message[AN_MESSAGE_BYTES]; /* the callback may cause another */
        snprintf(message, sizeof message, "%s", an_last_error(ctx));
        t->run->report = (an_save_report){.size = sizeof t->run->report, .step = t->next, .error = message};
        const an_status told = tell_save(r, status);
        t->run->report.error = NULL;
        return told;
    }
    return AN_OK;
}

/* The last save is the one that counts: that it failed is the run's failure. */
static an_status save_last(running *r) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(wait_for_save(r));
    if (!r->saves || an_run_has(t)) return AN_OK;
    AN_TRY_RETURN(an_run_save(t, is_best(t), NULL));
    AN_TRY_RETURN(an_run_wait(t));
    return tell_save(r, AN_OK);
}

/* ---- all of it ---- */

/* What belongs to where the run stands, before the next step: evaluation, then save, so that it has the evaluation in it. */
static an_status settle(running *r) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    an_status status;
    if (is_evaluation_due(r) && !t->stop) AN_TRY_RETURN(evaluate(r));
    if (is_save_due(r) && !t->stop) AN_TRY_RETURN(save(r));
    if (an_run_poll(t, &status)) AN_TRY_RETURN(tell_save(r, status));
    return AN_OK;
}

/* A step and a save more must still fit. */
static bool is_time_over(const running *r) {
    const an_save_report *last = &r->trainer->run->report;
    const double most = r->options->most_seconds, spent = an_clock_seconds() - r->begin;
    return most > 0 && spent + r->step_seconds + last->copy_seconds + last->seconds >= most;
}

static an_run_end find_end(const running *r) {
    const an_trainer *t = r->trainer;
    if (t->progress.without >= r->patience) return AN_RUN_STOPPED_EARLY;
    if (t->next == t->steps && (!t->evaluation || t->progress.evaluated == t->next)) return AN_RUN_DONE;
    return t->stop ? AN_RUN_REQUESTED : AN_RUN_TIME;
}

static an_status run_steps(running *r, an_run_end *end) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    bool in_time = true;
    AN_TRY_RETURN(settle(r));
    while (t->next < t->steps && !t->stop && in_time && t->progress.without < r->patience) {
        AN_TRY_RETURN(take_step(r));
        AN_TRY_RETURN(settle(r));
        in_time = !is_time_over(r);
    }
    *end = find_end(r);
    return save_last(r);
}

static an_status check_options(an_context *ctx, const an_trainer *t, const an_run_options *o) {
    an_status status;
    AN_CHECK(ctx, o->evaluate_every >= 0 && o->patience > 0 && o->min_delta >= 0, AN_ERR_ARGUMENT,
             "evaluate_every is %lld, patience %lld and min_delta %g; patience must be 1 or more, the others 0 or more",
             (long long)o->evaluate_every, (long long)o->patience, o->min_delta);
    AN_CHECK(ctx, o->evaluate_seconds >= 0 && o->most_seconds >= 0, AN_ERR_ARGUMENT,
             "evaluate_seconds %g, most_seconds %g: a time must be positive, or 0 for none", o->evaluate_seconds,
             o->most_seconds);
    AN_CHECK(ctx, o->best_mode >= AN_METRIC_BETTER_AUTO && o->best_mode <= AN_METRIC_BETTER_HIGHER, AN_ERR_ARGUMENT,
             "best_mode is %d, which is no value of an_metric_better", (int)o->best_mode);
    AN_CHECK(ctx, o->evaluate_epochs >= 0, AN_ERR_ARGUMENT, "evaluate_epochs is %g: it must be 0 or more",
             o->evaluate_epochs);
    AN_CHECK(ctx, o->evaluate_epochs == 0 || (o->evaluate_every == 0 && o->evaluate_seconds == 0), AN_ERR_ARGUMENT,
             "evaluate_epochs is %g, evaluate_every %lld and evaluate_seconds %g: set only one of them",
             o->evaluate_epochs, (long long)o->evaluate_every, o->evaluate_seconds);
    AN_CHECK(ctx, !t->streams || o->evaluate_epochs == 0, AN_ERR_ARGUMENT,
             "evaluate_epochs is %g, but a stream has no epochs: set evaluate_every instead", o->evaluate_epochs);
    AN_CHECK(ctx, t->evaluation || !o->early_stop, AN_ERR_ARGUMENT,
             "early stopping needs evaluation data, but the trainer was created without it");
    AN_CHECK(ctx, !o->early_stop || o->evaluate_every > 0 || o->evaluate_epochs > 0 || o->evaluate_seconds > 0,
             AN_ERR_ARGUMENT, "early stopping needs evaluations during the run: set evaluate_every or evaluate_epochs");
    return AN_OK;
fail:
    return status;
}

an_status an_trainer_run(an_trainer *trainer, const an_run_options *options, an_run_outcome *outcome) {
    AN_GUARD;
    AN_NEED(trainer);
    an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_progress *p = &t->progress;
    const double now = an_clock_seconds();
    an_run_options own;
    an_run_end end = AN_RUN_DONE;
    AN_TRY_RETURN(an_run_attach(t));
    if (outcome) AN_TRY_RETURN(an_run_outcome_check(ctx, outcome));
    if (options || !t->run->options.size)
        AN_TRY_RETURN(an_run_options_read(ctx, &own, options));
    else
        own = t->run->options;
    running r = {.trainer = t,
                 .options = &own,
                 .best = {.has = &p->has_best, .value = &p->best_value},
                 .patient = {.has = &p->has_patient, .value = &p->patient_value},
                 .patience = INT64_MAX,
                 .begin = now,
                 .evaluated = now,
                 .saved = now,
                 .saves = t->run->folder != NULL};
    AN_TRY_RETURN(an_context_check_process(ctx));
    AN_TRY_RETURN(an_trainer_check_idle(t, "run"));
    if (outcome) AN_TRY_RETURN(an_run_outcome_write(ctx, outcome, &(an_run_outcome){.size = 0}));
    AN_TRY_RETURN(an_run_callbacks_read(ctx, &r.callbacks, own.callbacks));
    AN_TRY_RETURN(check_options(ctx, t, r.options));
    AN_TRY_RETURN(record_make(&r.best, t, r.options->best ? r.options->best : "val_loss", r.options->best_mode));
    if (r.options->early_stop) {
        AN_TRY_RETURN(record_make(&r.patient, t, r.options->early_stop, AN_METRIC_BETTER_AUTO));
        r.patience = r.options->patience;
    }
    if (r.saves && !t->run->has_room) AN_TRY_RETURN(an_disk_room_check(t));
    const an_status status = run_steps(&r, &end);
    const an_run_outcome came = {
        .end = end, .steps = t->next, .best_step = p->has_best ? p->best_step : 0, .best_value = p->best_value};
    t->stop = false;
    if (outcome) an_run_outcome_write(ctx, outcome, &came); /* checked above, so that it leaves no error of its own */
    return status;
}

void an_trainer_request_stop(an_trainer *trainer) {
    if (trainer) trainer->stop = true; /* a signal handler may be here: no message */
}

an_status an_save_report_get(const an_trainer *trainer, an_save_report *report) {
    AN_GUARD;
    AN_NEED(trainer, report);
    if (!trainer->run || !trainer->run->tells)
        return AN_ERROR(trainer->ctx, AN_ERR_STATE, "a save is reported to the callback after_save only");
    return an_save_report_write(trainer->ctx, report, &trainer->run->report);
}

/* A whole run: steps, the evaluations between them, the best evaluation, and when to stop. */
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/guard.h"
#include "base/system/clock.h"
#include "run/disk_room.h"
#include "run/run.h"
#include "run/structs.h"
#include "store/launch.h"
#include "train/evaluation/metrics.h"
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
    an_run_options options;
    an_run_callbacks callbacks;
    record best, patient;
    int64_t patience;
    an_run_facts facts;      /* the last that all ranks have agreed on */
    double evaluated, saved; /* when the last evaluation ended and the last save was begun, in facts.spent */
    double begin;            /* of this process */
    double step_seconds;     /* of its longest step so far */
    bool saves;              /* the run has a folder */
    int64_t told_epoch;      /* the last epoch whose end the caller was told */
    an_status failed;        /* what failed on this rank and the others do not know yet; AN_OK: nothing */
    char failure[AN_MESSAGE_BYTES];
} running;

static an_status callback_failed(const running *r, an_status status, const char *where) {
    return AN_ERROR(r->trainer->ctx, status, "the callback %s ended the run at step %lld", where,
                    (long long)r->trainer->next);
}

/* ---- what all ranks agree on ----
 *
 * What may fail on one rank alone (a callback, a save) waits for the next record that all ranks take part in. Then
 * all of them go on, or none. */

static void fail_later(running *r, an_status status) {
    if (status == AN_OK || r->failed != AN_OK) return;
    r->failed = status;
    snprintf(r->failure, sizeof r->failure, "%s", r->trainer->ctx->error.message);
}

/* The status of this rank, for the next record. */
static an_status take_failure(running *r) {
    const an_status status = r->failed;
    r->failed = AN_OK;
    return status == AN_OK ? AN_OK : AN_ERROR(r->trainer->ctx, status, "%s", r->failure);
}

static an_status agree_on(running *r, an_run_facts *facts) {
    an_trainer *t = r->trainer;
    an_agreement records[2];
    an_status status = take_failure(r);
    if (t->ranks == 1) return status;
    an_agreement_begin(&records[0], t->ctx, AN_AGREE_RUN, t->next, status);
    records[0].facts = *facts;
    status = an_agree(t->ctx, &records[0], 0, &records[1]);
    *facts = records[0].facts;
    return status;
}

/* The error of a rank that has one, on all of them. */
static an_status agree(running *r) {
    an_run_facts facts = {0};
    return agree_on(r, &facts);
}

/* Whether `anneal stop` asks for it. To look takes a system call or, on a shared file system, a message: fast steps do
 * not look each time. */
static void look_for_request(an_trainer *t) {
    static const double interval = 0.2; /* seconds */
    an_run *run = t->run;
    const double now = an_clock_seconds();
    if (t->rank > 0 || !run->folder || run->generation == 0 || now - run->looked < interval) return;
    run->looked = now;
    const int requests = an_launch_requests(run->folder, run->generation);
    if (requests > run->requests) t->request.stop = true;
    run->requests = requests;
}

/* What this rank knows: the only place that reads clocks and flags. Once a step, and again after an evaluation or a
 * save, which may take long. A request to stop that comes later waits for the next. */
static an_run_facts look_here(const running *r) {
    const an_run *run = r->trainer->run;
    look_for_request(r->trainer);
    return (an_run_facts){.spent = an_clock_seconds() - r->begin,
                          .reserve = r->step_seconds + run->report.copy_seconds + run->report.seconds,
                          .stop = r->trainer->request.stop,
                          .saving = an_run_saving(r->trainer)};
}

static an_status look(running *r) {
    r->facts = look_here(r);
    return agree_on(r, &r->facts);
}

/* ---- steps ---- */

/* If this rank has failed since the last one, the step tells it to the others and is not taken. */
static an_status take_step(running *r) {
    an_trainer *t = r->trainer;
    const an_run_callbacks *c = &r->callbacks;
    const double begin = an_clock_seconds();
    an_status status = take_failure(r);
    if (status == AN_OK && c->before_step) {
        AN_HOST(status = c->before_step(c->user, t, t->next + 1));
        if (status != AN_OK) status = callback_failed(r, status, "before_step");
    }
    t->record.facts = look_here(r);
    AN_TRY_RETURN(an_trainer_step_or_fail(t, status, NULL)); /* its second record carries the facts */
    if (c->after_step) AN_HOST(status = c->after_step(c->user, t));
    if (status != AN_OK) fail_later(r, callback_failed(r, status, "after_step"));
    const double took = an_clock_seconds() - begin;
    t->record.progress.seconds += took;
    if (took > r->step_seconds) r->step_seconds = took;
    if (t->ranks == 1) t->record.facts = look_here(r); /* alone, it is asked at once */
    r->facts = t->record.facts;
    return AN_OK;
}

/* ---- evaluations ---- */

/* Evaluations are part of what a run was. */
static void chain_evaluation(an_trainer *t) {
    double values[AN_MOST_METRICS];
    const int count = an_metrics_chained(t, values);
    t->record.progress.chains_right = an_metrics_chain_right(t);
    an_trainer_chain(t, values, count);
}

/* Whether an evaluation belongs to where the run stands. One that a stop kept from being made is made by the next
 * launch. */
static bool is_evaluation_due(const running *r) {
    const an_trainer *t = r->trainer;
    const an_interval every = {r->options.evaluate_every, r->options.evaluate_epochs, r->options.evaluate_seconds};
    if (!t->evaluator.data || t->record.progress.evaluated == t->next || r->facts.stop) return false;
    if (t->next == 0) return r->options.evaluate_at_start;
    if (t->next == t->steps) return true;
    if (every.seconds > 0) return r->facts.spent - r->evaluated >= every.seconds;
    return an_interval_ends(&every, &t->samples.batches, t->next);
}

static an_status evaluate(running *r) {
    an_trainer *t = r->trainer;
    an_progress *p = &t->record.progress;
    const an_run_callbacks *c = &r->callbacks;
    an_evaluation evaluation;
    an_evaluation_init(&evaluation, sizeof evaluation);
    bool stopped;
    AN_TRY_RETURN(an_evaluate_until(t, &evaluation, &stopped));
    if (stopped) return AN_OK;
    p->evaluation = evaluation;
    p->own = t->evaluator.measured;
    p->evaluated = t->next;
    chain_evaluation(t);
    const bool best = record_beat(&r->best, p, 0);
    if (best) p->best_step = t->next;
    if (r->patient.name) p->without = record_beat(&r->patient, p, r->options.min_delta) ? 0 : p->without + 1;
    if (!c->after_evaluation) return AN_OK;
    an_status status;
    AN_HOST(status = c->after_evaluation(c->user, t, t->next, best));
    if (status != AN_OK) fail_later(r, callback_failed(r, status, "after_evaluation"));
    return AN_OK;
}

/* ---- saves ---- */

/* The run goes on without a save that failed, but not if it is no longer this launch's run. Rank 0 alone is told. */
static an_status tell_save(running *r, an_status status) {
    const an_run_callbacks *c = &r->callbacks;
    if (status == AN_ERR_TAKEN_OVER) return status;
    if (!c->after_save || r->trainer->rank > 0) return AN_OK;
    r->trainer->run->tells = true;
    AN_HOST(status = c->after_save(c->user, r->trainer));
    r->trainer->run->tells = false;
    if (status != AN_OK) fail_later(r, callback_failed(r, status, "after_save"));
    return AN_OK;
}

/* Whether the run as it stands is the best so far. */
static bool is_best(const an_trainer *t) {
    return t->record.progress.has_best && t->record.progress.best_step == t->next;
}

/* Whether a save belongs to where the run stands. */
static bool is_save_due(const running *r) {
    const an_trainer *t = r->trainer;
    const an_interval *every = &t->run->every;
    if (!r->saves || an_interval_is_off(every) || an_run_has(t) || r->facts.stop) return false;
    if (is_best(t)) return true;
    if (every->seconds > 0) return r->facts.spent - r->saved >= every->seconds;
    return an_interval_ends(every, &t->samples.batches, t->next);
}

static an_status wait_for_save(running *r) {
    return an_run_is_saving(r->trainer) ? tell_save(r, an_run_wait(r->trainer)) : AN_OK;
}

static an_status save(running *r) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    const an_status status = an_run_save(t, is_best(t), NULL);
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
    if (!r->saves || an_run_has(t)) return AN_OK;
    AN_TRY_RETURN(an_run_save(t, is_best(t), NULL));
    AN_TRY_RETURN(an_run_wait(t));
    return tell_save(r, AN_OK);
}

/* ---- epochs ---- */

/* Once for each end: a run that is resumed stands where it was saved, behind it. */
static void tell_epoch(running *r) {
    an_trainer *t = r->trainer;
    const an_run_callbacks *c = &r->callbacks;
    const an_step_metrics *last = &t->record.progress.last;
    if (!c->after_epoch || !last->ends_epoch || r->told_epoch == last->epoch) return;
    r->told_epoch = last->epoch;
    an_status status;
    AN_HOST(status = c->after_epoch(c->user, t, last->epoch));
    if (status != AN_OK) fail_later(r, callback_failed(r, status, "after_epoch"));
}

/* ---- all of it ---- */

/* What belongs to where the run stands, before the next step: evaluation, then save, so that it has the evaluation
 * in it. */
static an_status settle(running *r) {
    an_trainer *t = r->trainer;
    an_status status;
    if (is_evaluation_due(r)) {
        AN_TRY_RETURN(agree(r)); /* a rank that has failed does not evaluate */
        AN_TRY_RETURN(evaluate(r));
        AN_TRY_RETURN(look(r));
        r->evaluated = r->facts.spent;
    }
    tell_epoch(r);
    if (is_save_due(r)) {
        AN_TRY_RETURN(wait_for_save(r)); /* the next never starts before the last is safe */
        AN_TRY_RETURN(agree(r));
        AN_TRY_RETURN(save(r));
        AN_TRY_RETURN(look(r));
        r->saved = r->facts.spent;
    }
    return an_run_poll(t, r->facts.saving, &status) ? tell_save(r, status) : AN_OK;
}

/* A step and a save more must still fit. */
static bool is_time_over(const running *r) {
    const double maximum = r->options.max_seconds;
    return maximum > 0 && r->facts.spent + r->facts.reserve >= maximum;
}

static bool goes_on(const running *r) {
    const an_trainer *t = r->trainer;
    return t->next < t->steps && !r->facts.stop && t->record.progress.without < r->patience;
}

static an_run_end find_end(const running *r) {
    const an_trainer *t = r->trainer;
    if (t->record.progress.without >= r->patience) return AN_RUN_STOPPED_EARLY;
    if (t->next == t->steps && (!t->evaluator.data || t->record.progress.evaluated == t->next)) return AN_RUN_DONE;
    return r->facts.stop ? AN_RUN_REQUESTED : AN_RUN_TIME;
}

static an_status run_steps(running *r, an_run_end *end) {
    AN_TRY_RETURN(settle(r));
    for (bool in_time = true; in_time && goes_on(r); in_time = !is_time_over(r)) {
        AN_TRY_RETURN(take_step(r));
        AN_TRY_RETURN(settle(r));
    }
    AN_TRY_RETURN(wait_for_save(r));
    AN_TRY_RETURN(agree(r));
    *end = find_end(r);
    AN_TRY_RETURN(save_last(r));
    return agree(r);
}

static an_status check_options(an_context *ctx, const an_trainer *t, const an_run_options *o) {
    an_status status;
    AN_CHECK(ctx, o->evaluate_every >= 0 && o->patience > 0 && o->min_delta >= 0, AN_ERR_ARGUMENT,
             "evaluate_every is %lld, patience %lld and min_delta %g; patience must be 1 or more, the others 0 or more",
             (long long)o->evaluate_every, (long long)o->patience, o->min_delta);
    AN_CHECK(ctx, o->evaluate_seconds >= 0 && o->max_seconds >= 0, AN_ERR_ARGUMENT,
             "evaluate_seconds %g, max_seconds %g: a time must be positive, or 0 for none", o->evaluate_seconds,
             o->max_seconds);
    AN_CHECK(ctx, o->best_mode >= AN_METRIC_BETTER_AUTO && o->best_mode <= AN_METRIC_BETTER_HIGHER, AN_ERR_ARGUMENT,
             "best_mode is %d, which is no value of an_metric_better", (int)o->best_mode);
    AN_CHECK(ctx, o->evaluate_epochs >= 0, AN_ERR_ARGUMENT, "evaluate_epochs is %g: it must be 0 or more",
             o->evaluate_epochs);
    AN_CHECK(ctx, o->evaluate_epochs == 0 || (o->evaluate_every == 0 && o->evaluate_seconds == 0), AN_ERR_ARGUMENT,
             "evaluate_epochs is %g, evaluate_every %lld and evaluate_seconds %g: set only one of them",
             o->evaluate_epochs, (long long)o->evaluate_every, o->evaluate_seconds);
    AN_CHECK(ctx, !t->samples.streams || o->evaluate_epochs == 0, AN_ERR_ARGUMENT,
             "evaluate_epochs is %g, but a stream has no epochs: set evaluate_every instead", o->evaluate_epochs);
    AN_CHECK(ctx, t->evaluator.data || !o->early_stop, AN_ERR_ARGUMENT,
             "early stopping needs evaluation data, but the trainer was created without it");
    AN_CHECK(ctx, !o->early_stop || o->evaluate_every > 0 || o->evaluate_epochs > 0 || o->evaluate_seconds > 0,
             AN_ERR_ARGUMENT, "early stopping needs evaluations during the run: set evaluate_every or evaluate_epochs");
    return AN_OK;
fail:
    return status;
}

/* What the caller asks for, and whether it is possible; nothing of the run has begun. */
static an_status prepare(running *r, const an_run_options *options, an_run_outcome *outcome) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    an_run_options *o = &r->options;
    if (outcome) AN_TRY_RETURN(an_run_outcome_check(ctx, outcome));
    if (options || !t->run->options.size)
        AN_TRY_RETURN(an_run_options_read(ctx, o, options));
    else
        *o = t->run->options;
    AN_TRY_RETURN(an_trainer_check_idle(t, "run"));
    if (outcome) AN_TRY_RETURN(an_run_outcome_write(ctx, outcome, &(an_run_outcome){.end = AN_RUN_FAILED}));
    AN_TRY_RETURN(an_run_callbacks_read(ctx, &r->callbacks, o->callbacks));
    AN_TRY_RETURN(check_options(ctx, t, o));
    AN_TRY_RETURN(record_make(&r->best, t, o->best ? o->best : "val_loss", o->best_mode));
    if (o->early_stop) {
        AN_TRY_RETURN(record_make(&r->patient, t, o->early_stop, AN_METRIC_BETTER_AUTO));
        r->patience = o->patience;
    }
    if (r->saves) AN_TRY_RETURN(an_run_check_folder(t));
    return r->saves && !t->run->has_room && t->rank == 0 ? an_disk_room_check(t) : AN_OK;
}

/* An error that all ranks have is no reason to lose the checkpoint that they are writing. Alone, a process ends it
 * when its trainer is destroyed. */
static __attribute__((noinline)) void rescue_save(const running *r) { /* 4 kB that a run does not need on its stack */
    an_context *ctx = r->trainer->ctx;
    const an_error error = ctx->error;
    if (r->trainer->ranks == 1 || error.status == AN_ERR_COMMUNICATION) return;
    an_run_wait(r->trainer);
    ctx->error = error;
}

an_status an_trainer_run(an_trainer *trainer, const an_run_options *options, an_run_outcome *outcome) {
    AN_GUARD;
    AN_NEED(trainer);
    an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_progress *p = &t->record.progress;
    an_run_end end = AN_RUN_DONE;
    AN_TRY_RETURN(an_context_check_process(ctx));
    running r = {.trainer = t,
                 .best = {.has = &p->has_best, .value = &p->best_value},
                 .patient = {.has = &p->has_patient, .value = &p->patient_value},
                 .patience = INT64_MAX,
                 .told_epoch = p->last.ends_epoch ? p->last.epoch : 0,
                 .begin = an_clock_seconds()};
    fail_later(&r, an_run_attach(t));
    AN_TRY_RETURN(agree(&r)); /* the others wait for a rank that has no memory for it */
    r.saves = t->run->folder != NULL;
    fail_later(&r, prepare(&r, options, outcome));
    AN_TRY_RETURN(look(&r));
    t->request.poll = look_for_request;
    const an_status status = run_steps(&r, &end);
    if (status != AN_OK) rescue_save(&r);
    const an_run_outcome came = {.end = status == AN_OK ? end : AN_RUN_FAILED,
                                 .steps = t->next,
                                 .best_step = p->has_best ? p->best_step : 0,
                                 .best_value = p->best_value,
                                 .reason = t->run->requests > 0 ? "anneal stop" : NULL};
    t->request.stop = false;
    t->request.poll = NULL;
    if (outcome) an_run_outcome_write(ctx, outcome, &came); /* checked above, so that it leaves no error of its own */
    return status;
}

void an_trainer_request_stop(an_trainer *trainer) {
    if (trainer) trainer->request.stop = true; /* a signal handler may be here: no message */
}

an_status an_trainer_save_report(const an_trainer *trainer, an_save_report *report) {
    AN_GUARD;
    AN_NEED(trainer, report);
    if (!trainer->run || !trainer->run->tells)
        return AN_ERROR(trainer->ctx, AN_ERR_STATE, "a save is reported to the callback after_save only");
    return an_save_report_write(trainer->ctx, report, &trainer->run->report);
}

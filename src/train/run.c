/* A whole run: steps, evaluations between them, the best of these, and when to stop. */
#include <string.h>

#include "base/clock.h"
#include "train/trainer.h"

enum { DEFAULT_PATIENCE = 5 };

/* ---- metrics ---- */

static const struct {
    const char *name;
    size_t offset;
    bool classifies, measures; /* what a model must do to have it */
    bool up;                   /* more is better */
} metrics[] = {
    {"val_loss", offsetof(an_evaluation, loss), false, false, false},
    {"val_perplexity", offsetof(an_evaluation, perplexity), false, false, false},
    {"val_accuracy", offsetof(an_evaluation, accuracy), true, false, true},
    {"val_top5", offsetof(an_evaluation, top5), true, false, true},
    {"val_mae", offsetof(an_evaluation, mean_absolute_error), false, true, false},
    {"val_r2", offsetof(an_evaluation, r2), false, true, true},
};
enum { METRICS = sizeof metrics / sizeof *metrics };

static int find_metric(const char *name) {
    for (int i = 0; i < METRICS; i++)
        if (!strcmp(metrics[i].name, name)) return i;
    return -1;
}

bool an_evaluation_metric(const an_evaluation *evaluation, const char *name, double *value) {
    const int i = find_metric(name);
    if (i < 0 || (metrics[i].classifies && !evaluation->classifies) || (metrics[i].measures && !evaluation->measures))
        return false;
    memcpy(value, (const char *)evaluation + metrics[i].offset, sizeof *value);
    return true;
}

/* ---- which are reported ---- */

an_status an_metrics_choose(an_trainer *t, int count, const char *const *names) {
    an_context *ctx = t->ctx;
    unsigned chosen = 0;
    const char *known;
    for (int i = 0; i < count; i++) {
        AN_TRY_RETURN(an_metric_check(t, names[i], &known));
        chosen |= 1U << find_metric(names[i]);
    }
    t->metrics = chosen;
    return AN_OK;
}

/* The loss; perplexity where there are tokens; what the outputs can be compared by. */
static bool is_useful(const an_trainer *t, int metric) {
    const an_result *targets = an_graph_result(t->graph, t->graph->targets);
    const bool compares = metrics[metric].classifies || metrics[metric].measures;
    if (!strcmp(metrics[metric].name, "val_perplexity"))
        return targets && an_dtype_is_index(targets->dtype) && targets->ndims > 1;
    return !compares || (t->output && t->classifies == metrics[metric].classifies);
}

const char *an_trainer_metric(const an_trainer *trainer, int index) {
    for (int i = 0; i < METRICS && trainer->evaluation; i++) {
        const bool reported = trainer->metrics ? trainer->metrics >> i & 1U : is_useful(trainer, i);
        if (reported && index-- == 0) return metrics[i].name;
    }
    return NULL;
}

/* ---- the best ---- */

/* The best value of a metric so far. NaN is never best. */
typedef struct {
    const char *name;
    bool up, has;
    double value;
} record;

an_status an_metric_check(const an_trainer *t, const char *name, const char **known) {
    const an_evaluation possible = {.classifies = t->output && t->classifies, .measures = t->output && !t->classifies};
    double value;
    const int i = find_metric(name);
    if (i < 0)
        return AN_ERROR(t->ctx, AN_ERR_UNKNOWN,
                        "there is no metric '%s': val_loss, val_perplexity, val_accuracy, val_top5, val_mae, val_r2",
                        name);
    if (!an_evaluation_metric(&possible, name, &value))
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "this model has no '%s': it %s", name,
                        metrics[i].classifies ? "gives no numbers for classes in evaluation"
                                              : "gives no numbers like its targets");
    *known = metrics[i].name;
    return AN_OK;
}

static an_status record_make(record *r, const an_trainer *t, const char *name, an_better mode) {
    an_context *ctx = t->ctx;
    *r = (record){0};
    AN_TRY_RETURN(an_metric_check(t, name, &r->name));
    r->up = mode == AN_BETTER_AUTO ? metrics[find_metric(name)].up : mode == AN_BETTER_MORE;
    return AN_OK;
}

/* Whether an evaluation beats the record by more than `delta`, and is the record from now on. */
static bool record_beat(record *r, const an_evaluation *evaluation, double delta) {
    double value;
    if (!an_evaluation_metric(evaluation, r->name, &value) || value != value) return false;
    if (r->has && !(r->up ? value > r->value + delta : value < r->value - delta)) return false;
    r->has = true;
    r->value = value;
    return true;
}

/* ---- the run ---- */

typedef struct {
    an_trainer *trainer;
    const an_run_options *options;
    an_run_outcome *outcome;
    record best, patient;
    int64_t patience, without; /* evaluations without getting better */
    double begin, evaluated;   /* when the run began, and when the last evaluation ended */
} running;

static an_status callback_failed(const running *r, an_status status, const char *where) {
    return AN_ERROR(r->trainer->ctx, status, "the callback %s ended the run at step %lld", where,
                    (long long)r->trainer->next);
}

/* Evaluations are part of what a run was. */
static void chain_evaluation(an_trainer *t, const an_evaluation *evaluation) {
    double values[METRICS];
    int count = 0;
    for (int i = 0; i < METRICS; i++)
        if (an_evaluation_metric(evaluation, metrics[i].name, &values[count])) count++;
    an_trainer_chain(t, values, count);
}

static an_status evaluate(running *r) {
    an_context *ctx = r->trainer->ctx;
    an_run_outcome *o = r->outcome;
    const an_run_callbacks *c = &r->options->callbacks;
    o->last.size = sizeof o->last;
    AN_TRY_RETURN(an_trainer_evaluate(r->trainer, &o->last));
    chain_evaluation(r->trainer, &o->last);
    r->evaluated = an_clock_seconds();
    const bool best = record_beat(&r->best, &o->last, 0);
    if (best) {
        o->best_step = r->trainer->next;
        o->best_value = r->best.value;
    }
    if (r->patient.name) r->without = record_beat(&r->patient, &o->last, r->options->min_delta) ? 0 : r->without + 1;
    if (!c->after_evaluation) return AN_OK;
    const an_status status = c->after_evaluation(c->user, r->trainer->next, &o->last, best);
    return status == AN_OK ? AN_OK : callback_failed(r, status, "after_evaluation");
}

static an_status take_step(running *r) {
    an_context *ctx = r->trainer->ctx;
    const an_run_callbacks *c = &r->options->callbacks;
    an_status status = c->before_step ? c->before_step(c->user, r->trainer->next + 1) : AN_OK;
    if (status != AN_OK) return callback_failed(r, status, "before_step");
    r->outcome->step.size = sizeof r->outcome->step;
    AN_TRY_RETURN(an_trainer_step(r->trainer, &r->outcome->step));
    status = c->after_step ? c->after_step(c->user, &r->outcome->step) : AN_OK;
    return status == AN_OK ? AN_OK : callback_failed(r, status, "after_step");
}

/* Whether an evaluation is due after the step that was taken. */
static bool is_due(const running *r) {
    const int64_t every = r->options->evaluate_every;
    const double seconds = r->options->evaluate_seconds;
    if (!r->trainer->evaluation) return false;
    if (seconds > 0) return an_clock_seconds() - r->evaluated >= seconds;
    return every > 0 && r->trainer->next % every == 0;
}

static bool is_time_over(const running *r) {
    return r->options->most_seconds > 0 && an_clock_seconds() - r->begin >= r->options->most_seconds;
}

static an_status run_steps(running *r) {
    an_trainer *t = r->trainer;
    an_context *ctx = t->ctx;
    int64_t evaluated = -1; /* the step after which the last evaluation was */
    if (t->evaluation && r->options->evaluate_at_start && t->next == 0) AN_TRY_RETURN(evaluate(r));
    bool in_time = true;
    while (t->next < t->steps && !t->stop && in_time && r->without < r->patience) {
        AN_TRY_RETURN(take_step(r));
        in_time = !is_time_over(r);
        if (!is_due(r)) continue;
        AN_TRY_RETURN(evaluate(r));
        evaluated = t->next;
    }
    r->outcome->end = r->without >= r->patience ? AN_RUN_STOPPED_EARLY
                      : t->next == t->steps     ? AN_RUN_DONE
                      : t->stop                 ? AN_RUN_REQUESTED
                                                : AN_RUN_TIME;
    if (t->evaluation && evaluated != t->next && r->outcome->end == AN_RUN_DONE) AN_TRY_RETURN(evaluate(r));
    return AN_OK;
}

static an_status check_options(an_context *ctx, const an_trainer *t, const an_run_options *o) {
    an_status status;
    AN_CHECK(ctx, o->size >= sizeof *o, AN_ERR_ARGUMENT, "an_run_options has size %zu: set it with AN_INIT", o->size);
    AN_CHECK(ctx, o->evaluate_every >= 0 && o->patience >= 0 && o->min_delta >= 0, AN_ERR_ARGUMENT,
             "evaluate_every %lld, patience %lld, min_delta %g: none is negative", (long long)o->evaluate_every,
             (long long)o->patience, o->min_delta);
    AN_CHECK(ctx, t->evaluation || !o->early_stop, AN_ERR_ARGUMENT,
             "stopping early needs data for evaluation, and the trainer was made without");
    AN_CHECK(ctx, !o->early_stop || o->evaluate_every > 0 || o->evaluate_seconds > 0, AN_ERR_ARGUMENT,
             "stopping early needs evaluations during the run: give evaluate_every");
    return AN_OK;
fail:
    return status;
}

an_status an_trainer_run(an_trainer *trainer, const an_run_options *options, an_run_outcome *outcome) {
    an_context *ctx = trainer->ctx;
    const an_run_options defaults = AN_INIT(defaults);
    an_run_outcome own = AN_INIT(own);
    if (!outcome) outcome = &own;
    running r = {.trainer = trainer,
                 .options = options             ? options
                            : trainer->run.size ? &trainer->run
                                                : &defaults,
                 .outcome = outcome,
                 .patience = INT64_MAX,
                 .begin = an_clock_seconds(),
                 .evaluated = an_clock_seconds()};
    if (outcome->size < sizeof *outcome)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "an_run_outcome has size %zu: set it with AN_INIT", outcome->size);
    *outcome = (an_run_outcome){.size = outcome->size};
    AN_TRY_RETURN(check_options(ctx, trainer, r.options));
    AN_TRY_RETURN(record_make(&r.best, trainer, r.options->best ? r.options->best : "val_loss", r.options->best_mode));
    if (r.options->early_stop) {
        AN_TRY_RETURN(record_make(&r.patient, trainer, r.options->early_stop, AN_BETTER_AUTO));
        r.patience = r.options->patience ? r.options->patience : DEFAULT_PATIENCE;
    }
    const an_status status = run_steps(&r);
    outcome->steps = trainer->next;
    trainer->stop = false;
    return status;
}

an_status an_trainer_run_options(const an_trainer *trainer, an_run_options *options) {
    an_context *ctx = trainer->ctx;
    if (options->size < sizeof *options)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "an_run_options has size %zu: set it with AN_INIT", options->size);
    if (trainer->run.size) *options = trainer->run;
    return AN_OK;
}

void an_trainer_request_stop(an_trainer *trainer) {
    trainer->stop = true;
}

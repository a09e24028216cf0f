/* The settings of a whole run: evaluations, the best one, when it ends, where it is saved, and what is logged. */
#include <stdio.h>
#include <string.h>

#include "anneal/config.h"
#include "anneal/run.h"
#include "base/memory.h"
#include "kinds/keys.h"
#include "open/open.h"

typedef struct {
    const an_lengths *lengths;
    an_config *config;
    an_context *ctx;
    an_trainer *trainer;
} reading;

/* Steps, epochs or seconds; none if it is off. Epochs stay epochs: they need not all have as many steps. Where they
 * have not, samples are a part of an epoch. */
static an_status get_interval(const reading *r, const char *key, const an_length *length, an_interval *interval) {
    const an_lengths *l = r->lengths;
    *interval = (an_interval){0};
    if (!(length->amount > 0)) return AN_OK;
    if (length->unit == AN_LENGTH_TIME) {
        interval->seconds = length->amount;
        return AN_OK;
    }
    AN_TRY_RETURN(an_open_steps(l, key, length, 0, an_trainer_steps(r->trainer), &interval->steps));
    const double each = length->unit == AN_LENGTH_TOKENS ? (double)l->tokens_a_sample : 1;
    const bool changes = an_batches_change(l->batches, 1) > 0;
    if (length->unit == AN_LENGTH_EPOCHS)
        *interval = (an_interval){.epochs = length->amount};
    else if (an_open_counts_samples(length) && changes)
        *interval =
            (an_interval){.epochs = length->amount / each / (double)an_dataset_count(an_trainer_data(r->trainer))};
    else
        interval->steps += interval->steps == 0; /* as often as possible */
    return AN_OK;
}

/* "val_loss, val_mae, val_r2" */
typedef struct {
    char text[512];
} metric_names;

typedef struct {
    char text[64];
} metric_name;

static metric_names list_metrics(const an_trainer *t) {
    metric_names list = {""};
    const char *name;
    for (int i = 0; (name = an_trainer_metric(t, i)); i++) {
        const size_t used = strlen(list.text);
        snprintf(list.text + used, sizeof list.text - used, "%s%s", i ? ", " : "", name);
    }
    return list;
}

/* The metric of an option, which the model must have; a config may leave out the val_ before its name. */
static an_status get_metric(const reading *r, const char *option, const char *text, metric_name *name) {
    snprintf(name->text, sizeof name->text, "%s%s", strncmp(text, "val_", 4) ? "val_" : "", text);
    if (an_trainer_check_metric(r->trainer, name->text) == AN_OK) return AN_OK;
    return AN_ERROR(r->ctx, AN_ERR_ARGUMENT, "%s: %s: this model does not have the metric '%s'; it has %s",
                    an_config_place(r->config, AN_KEY(option, "metric")), option, name->text,
                    list_metrics(r->trainer).text);
}

/* People who count in epochs expect a result after each, unless that is long to wait for. */
static an_interval auto_evaluations(const reading *r) {
    enum { LONG_EPOCH = 2000, STEPS = 500 };
    if (r->config->settings->run.epochs.amount > 0 && an_batches_epoch_steps(r->lengths->batches, 0) <= LONG_EPOCH)
        return (an_interval){.epochs = 1};
    return (an_interval){.steps = STEPS};
}

static an_status get_evaluations(const reading *r, an_run_options *o, metric_name *best, metric_name *early_stop) {
    static const char *const key = AN_SETTING(eval.every);
    const an_settings *s = r->config->settings;
    an_interval every = auto_evaluations(r);
    if (!an_config_is(r->config, key, "auto")) AN_TRY_RETURN(get_interval(r, key, &s->eval.every, &every));
    o->evaluate_every = every.steps;
    o->evaluate_epochs = every.epochs;
    o->evaluate_seconds = every.seconds;
    AN_TRY_RETURN(get_metric(r, AN_SETTING(eval.best), s->eval.best.metric, best));
    o->best = best->text;
    if (!strcmp(s->eval.early_stop.metric, "off")) return AN_OK;
    AN_TRY_RETURN(get_metric(r, AN_SETTING(eval.early_stop), s->eval.early_stop.metric, early_stop));
    o->early_stop = early_stop->text;
    return AN_OK;
}

/* A plan is often made where the job does not run. */
static an_status get_max_time(const reading *r, an_open_purpose purpose, double *seconds) {
    static const char *const key = AN_SETTING(run.max_time);
    if (!an_config_is(r->config, key, "slurm")) return AN_OK;
    const an_status status = purpose == AN_OPEN_PLAN ? AN_OK : an_job_seconds(r->ctx, seconds);
    if (status == AN_OK) return AN_OK;
    return AN_ERROR(r->ctx, status, "%s: run.max_time is slurm, but %s", an_config_place(r->config, key),
                    an_last_error(r->ctx));
}

/* Where the run is kept, and when it is saved. */
static an_status get_saving(const reading *r) {
    an_status status;
    an_config *config = r->config;
    an_context *ctx = r->ctx;
    const an_settings *s = config->settings;
    an_save_options o;
    an_save_options_init(&o, sizeof o);
    char *text = NULL;
    AN_TRY(an_config_fill(config, "", an_save_options, &o));
    AN_TRY(get_interval(r, AN_SETTING(save.every), &s->save.every, &o.every));
    AN_TRY(get_interval(r, AN_SETTING(save.keep_every), &s->save.keep_every, &o.keep_every));
    AN_TRY(an_config_write(config, &text));
    o.config = text;
    AN_TRY(an_trainer_set_saving(r->trainer, &o));
    status = AN_OK;
fail:
    an_string_release(ctx, &text);
    return status;
}

an_status an_open_run(an_trainer *trainer, const an_lengths *lengths, an_open_purpose purpose, bool evaluates) {
    an_context *ctx = lengths->ctx;
    const reading r = {lengths, lengths->config, ctx, trainer};
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_log_options log;
    an_log_options_init(&log, sizeof log);
    metric_name best, early_stop; /* the trainer keeps its own */
    if (purpose != AN_OPEN_PLAIN) AN_TRY_RETURN(get_saving(&r));
    AN_TRY_RETURN(get_interval(&r, AN_SETTING(log.every), &r.config->settings->log.every, &log.every));
    AN_TRY_RETURN(an_config_fill(r.config, AN_SETTING(log), an_log_options, &log));
    AN_TRY_RETURN(an_trainer_set_logging(trainer, &log));
    AN_TRY_RETURN(an_config_fill(r.config, "", an_run_options, &run));
    AN_TRY_RETURN(get_max_time(&r, purpose, &run.max_seconds));
    if (evaluates && purpose != AN_OPEN_PLAN)
        AN_TRY_RETURN(get_evaluations(&r, &run, &best, &early_stop));
    else
        run.evaluate_at_start = false;
    return an_trainer_set_run_options(trainer, &run);
}

/* What a config says of a run as a whole: evaluations, the best of them, when it ends, what is written down. */
#include <stdio.h>
#include <string.h>

#include "open/open.h"
#include "run/limit.h"
#include "train/metrics.h"

/* Steps, epochs or seconds; none if it is off. Epochs stay epochs: they need not all have as many steps. Where they have not, samples are
 * a part of an epoch. */
static an_status get_interval(an_config *config, const an_trainer *t, const char *path, an_interval *interval) {
    an_context *ctx = t->ctx;
    const an_lengths lengths = {config, ctx, &t->batches, an_trainer_tokens(t)};
    an_length length = {0};
    *interval = (an_interval){0};
    if (an_config_is(config, path, "off")) return AN_OK;
    AN_TRY_RETURN(an_config_length(config, path, &length));
    if (length.unit == AN_LENGTH_TIME) {
        interval->seconds = length.amount;
        return AN_OK;
    }
    AN_TRY_RETURN(an_open_steps(&lengths, path, &length, 0, t->steps, &interval->steps));
    const double each = length.unit == AN_LENGTH_TOKENS ? (double)lengths.tokens_a_sample : 1;
    const bool changes = an_batches_change(lengths.batches, 1) > 0;
    if (length.unit == AN_LENGTH_EPOCHS && length.amount > 0)
        *interval = (an_interval){.epochs = length.amount};
    else if (an_open_counts_samples(&length) && changes && length.amount > 0)
        *interval = (an_interval){.epochs = length.amount / each / (double)an_dataset_count(an_trainer_data(t))};
    else
        interval->steps += interval->steps == 0; /* as often as possible */
    return AN_OK;
}

/* "val_loss, val_mae, val_r2" */
typedef struct {
    char text[128];
} metric_names;

static metric_names list_metrics(const an_trainer *t) {
    metric_names list = {""};
    const char *name;
    for (int i = 0; (name = an_trainer_metric(t, i)); i++) {
        const size_t used = strlen(list.text);
        snprintf(list.text + used, sizeof list.text - used, "%s%s", i ? ", " : "", name);
    }
    return list;
}
#define AN_METRICS(t) (list_metrics(t).text)

static an_status get_best(an_config *config, an_trainer *t) {
    an_context *ctx = t->ctx;
    const char *name;
    AN_TRY_RETURN(an_config_string(config, "eval.best.metric", &name));
    if (an_metric_check(t, name, &t->run->options.best) != AN_OK)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: eval.best: this model has no '%s'; it has %s",
                        an_config_place(config, "eval.best.metric"), name, AN_METRICS(t));
    t->run->options.best_mode = an_config_is(config, "eval.best.mode", "min")   ? AN_BETTER_LESS
                                : an_config_is(config, "eval.best.mode", "max") ? AN_BETTER_MORE
                                                                                : AN_BETTER_AUTO;
    return AN_OK;
}

static an_status get_early_stop(an_config *config, an_trainer *t) {
    an_context *ctx = t->ctx;
    const char *name;
    if (an_config_is(config, "eval.early_stop.metric", "off")) return AN_OK;
    AN_TRY_RETURN(an_config_string(config, "eval.early_stop.metric", &name));
    if (an_metric_check(t, name, &t->run->options.early_stop) != AN_OK)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: eval.early_stop: this model has no '%s'; it has %s",
                        an_config_place(config, "eval.early_stop.metric"), name, AN_METRICS(t));
    AN_TRY_RETURN(an_config_count(config, "eval.early_stop.patience", &t->run->options.patience));
    return an_config_real(config, "eval.early_stop.min_delta", &t->run->options.min_delta);
}

/* A plan is often made where the job does not run. */
static an_status get_max_time(an_config *config, const an_trainer *t, double *seconds) {
    if (an_config_origin_of(config, "run.max_time") == AN_ORIGIN_NONE || an_config_is(config, "run.max_time", "off"))
        return AN_OK;
    if (!an_config_is(config, "run.max_time", "slurm")) return an_config_seconds(config, "run.max_time", seconds);
    return t->planned ? AN_OK : an_limit_slurm(t->ctx, an_config_place(config, "run.max_time"), seconds);
}

/* Where the run is kept, and when it is saved. */
static an_status get_home(an_config *config, an_trainer *t) {
    an_status status;
    an_context *ctx = t->ctx;
    an_run *h = t->run;
    const char *path;
    char *text = NULL;
    AN_TRY(an_config_path(config, "run.dir", &path));
    AN_TRY(an_trainer_keep_text(t, &h->folder, path));
    if (an_config_origin_of(config, "save.stage") != AN_ORIGIN_NONE) {
        AN_TRY(an_config_path(config, "save.stage", &path));
        AN_TRY(an_trainer_keep_text(t, &h->stage, path));
    }
    AN_TRY(get_interval(config, t, "save.every", &h->every));
    if (!an_config_is(config, "save.keep_last", "all"))
        AN_TRY(an_config_count(config, "save.keep_last", &h->keep_last));
    if (!an_config_is(config, "save.keep_named", "all"))
        AN_TRY(an_config_count(config, "save.keep_named", &h->keep_named));
    if (an_config_origin_of(config, "save.keep_every") != AN_ORIGIN_NONE)
        AN_TRY(get_interval(config, t, "save.keep_every", &h->keep_every));
    AN_TRY(an_config_write(config, &text));
    AN_TRY(an_trainer_keep_text(t, &h->config, text));
    status = AN_OK;
fail:
    an_string_release(ctx, &text);
    return status;
}

an_status an_open_run(an_trainer *t, an_config *config) {
    an_context *ctx = t->ctx;
    an_run_options *r = &t->run->options;
    an_interval every;
    *r = (an_run_options){.size = sizeof *r};
    if (!t->plain) AN_TRY_RETURN(get_home(config, t));
    AN_TRY_RETURN(get_interval(config, t, "log.every", &t->run->log.every));
    AN_TRY_RETURN(an_config_bool(config, "log.tensorboard", &t->run->log.tensorboard));
    AN_TRY_RETURN(get_max_time(config, t, &r->most_seconds));
    if (!t->evaluation || t->planned) return AN_OK;
    AN_TRY_RETURN(get_interval(config, t, "eval.every", &every));
    r->evaluate_every = every.steps;
    r->evaluate_epochs = every.epochs;
    r->evaluate_seconds = every.seconds;
    AN_TRY_RETURN(an_config_bool(config, "eval.at_start", &r->evaluate_at_start));
    AN_TRY_RETURN(get_best(config, t));
    return get_early_stop(config, t);
}

/* How a run is saved, logged and evaluated, set by a program or a config. */
#include <string.h>

#include "base/guard.h"
#include "exec/plan.h"
#include "run/disk_room.h"
#include "run/run.h"
#include "run/structs.h"
#include "train/evaluation/metrics.h"

/* What is allocated here belongs to the trainer, and so to its plan. */
static an_status count(an_trainer *t, size_t before) {
    const size_t now = t->ctx->bytes;
    return now > before ? an_plan_count_trainer(t->plan, now - before) : AN_OK;
}

static bool is_interval(const an_interval *i) {
    return i->steps >= 0 && i->epochs >= 0 && i->seconds >= 0 &&
           (i->steps > 0) + (i->epochs > 0) + (i->seconds > 0) <= 1;
}

an_status an_trainer_set_saving(an_trainer *trainer, const an_save_options *options) {
    AN_GUARD;
    AN_NEED(trainer, options);
    an_status status;
    an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_save_options own;
    const an_save_options *const o = &own;
    AN_TRY(an_save_options_read(ctx, &own, options));
    AN_CHECK(ctx, o->keep_last >= 0 && o->keep_named >= 0, AN_ERR_ARGUMENT,
             "keep_last is %lld and keep_named %lld; they cannot be negative, and 0 means all", (long long)o->keep_last,
             (long long)o->keep_named);
    AN_CHECK(ctx, is_interval(&o->every) && is_interval(&o->keep_every), AN_ERR_ARGUMENT,
             "an interval must be in steps, epochs or seconds, and not negative");
    const size_t before = ctx->bytes;
    AN_TRY(an_run_attach(t));
    an_run *r = t->run;
    AN_CHECK(ctx, !r->generation, AN_ERR_STATE, "the run is already being written to %s", r->folder);
    AN_TRY(an_trainer_keep_text(t, &r->folder, o->folder));
    AN_TRY(an_trainer_keep_text(t, &r->stage, o->stage));
    AN_TRY(an_trainer_keep_text(t, &r->config, o->config));
    r->every = o->every;
    r->keep_last = o->keep_last;
    r->keep_named = o->keep_named;
    r->keep_every = o->keep_every;
    AN_TRY(count(t, before));
    if (!t->planned && !t->plain) AN_TRY(an_fingerprint_make(t));
    status = AN_OK;
fail:
    return status;
}

an_status an_trainer_set_logging(an_trainer *trainer, const an_log_options *options) {
    AN_GUARD;
    AN_NEED(trainer, options);
    an_status status;
    an_context *ctx = trainer->ctx;
    an_log_options own;
    AN_TRY(an_log_options_read(ctx, &own, options));
    AN_CHECK(ctx, is_interval(&own.every), AN_ERR_ARGUMENT,
             "an interval must be in steps, epochs or seconds, and not negative");
    const size_t before = ctx->bytes;
    AN_TRY(an_run_attach(trainer));
    trainer->run->log = own;
    AN_TRY(count(trainer, before));
    status = AN_OK;
fail:
    return status;
}

an_status an_trainer_set_run_options(an_trainer *trainer, const an_run_options *options) {
    AN_GUARD;
    AN_NEED(trainer, options);
    an_status status;
    an_context *ctx = trainer->ctx;
    an_run_options kept;
    AN_TRY(an_run_options_read(ctx, &kept, options));
    AN_CHECK(ctx, !kept.callbacks, AN_ERR_ARGUMENT,
             "callbacks are given to an_trainer_run, not to an_trainer_set_run_options");
    if (kept.best) AN_TRY(an_metric_check(trainer, kept.best, &kept.best));
    if (kept.early_stop) AN_TRY(an_metric_check(trainer, kept.early_stop, &kept.early_stop));
    const size_t before = ctx->bytes;
    AN_TRY(an_run_attach(trainer));
    trainer->run->options = kept;
    AN_TRY(count(trainer, before));
    status = AN_OK;
fail:
    return status;
}

an_status an_trainer_run_options(const an_trainer *trainer, an_run_options *options) {
    AN_GUARD;
    AN_NEED(trainer, options);
    an_context *ctx = trainer->ctx;
    an_run_options own;
    AN_TRY_RETURN(an_run_options_read(ctx, &own, NULL));
    return an_run_options_write(ctx, options,
                                trainer->run && trainer->run->options.size ? &trainer->run->options : &own);
}

an_status an_trainer_set_folder(an_trainer *trainer, const char *folder) {
    AN_GUARD;
    AN_NEED(trainer);
    an_context *ctx = trainer->ctx;
    AN_TRY_RETURN(an_run_attach(trainer));
    if (trainer->run->generation)
        return AN_ERROR(ctx, AN_ERR_STATE, "the run is already being written to %s", trainer->run->folder);
    AN_TRY_RETURN(an_trainer_keep_text(trainer, &trainer->run->folder, folder));
    return an_disk_room_check(trainer);
}

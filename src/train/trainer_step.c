/* Steps of a trainer: samples from the loader, or from the caller, go through the calls of step.c in order. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/structs.h"
#include "data/loader.h"
#include "train/nonfinite.h"
#include "train/trainer.h"

static an_status run_micro_batches(an_trainer *t, const an_batch *samples) {
    an_context *ctx = t->ctx;
    for (int64_t leaf = 0; leaf < t->batches.leaves; leaf++) {
        const int64_t end = an_leaf_begin(&t->batches, samples->n, leaf + 1);
        for (int64_t at = an_leaf_begin(&t->batches, samples->n, leaf); at < end; at += t->batches.micro) {
            const int64_t count = end - at < t->batches.micro ? end - at : t->batches.micro;
            AN_TRY_RETURN(an_trainer_feed(t, samples, at, count));
            AN_TRY_RETURN(an_step_micro_batch(t->stepper, leaf, count));
        }
    }
    return AN_OK;
}

/* A step that is to be skipped: whether there is hope that a later one is not. Comes before anything of the step is counted. */
static an_status check_skip(an_trainer *t, const an_batch *samples) {
    char reason[256];
    const an_stepper *s = t->stepper;
    const long long skips = (long long)s->skips_in_row + 1;
    an_scaler next = s->scaler;
    if (s->options.scales) an_scaler_update(&next, false);
    if (s->options.scales && next.scale < 1)
        snprintf(reason, sizeof reason,
                 "the loss scale would fall to %g, so these gradients are not finite in f16 at any scale (%lld steps "
                 "in a row were skipped); set train.precision to bf16 or f32, or lower optimizer.lr; ",
                 next.scale, skips);
    else if (skips >= t->max_skips)
        snprintf(reason, sizeof reason,
                 "%lld steps in a row were skipped, and train.max_skips allows no more; lower optimizer.lr, or check "
                 "the data; ",
                 skips);
    else
        return AN_OK;
    return an_nonfinite_explain(t, samples, reason);
}

static an_status run_step(an_trainer *t, const an_batch *samples, an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    int64_t targets;
    AN_TRY_RETURN(an_feed_count(&t->feed, t->program, samples->fields, 0, samples->n, &targets));
    AN_TRY_RETURN(an_step_begin(t->stepper, targets));
    if (t->sample_mean) AN_TRY_RETURN(an_means_begin(t, samples));
    const int64_t first = an_batches_at(&t->batches, t->next).first_sample;
    for (int64_t i = 0; i < samples->n; i++) t->numbers[i] = first + i;
    AN_TRY_RETURN(run_micro_batches(t, samples));
    AN_TRY_RETURN(an_step_reduce(t->stepper));
    const an_status status = an_step_unscale(t->stepper);
    if (status == AN_ERR_NONFINITE) return an_nonfinite_explain(t, samples, "");
    AN_TRY_RETURN(status);
    if (t->stepper->skipped) AN_TRY_RETURN(check_skip(t, samples));
    AN_TRY_RETURN(an_step_clip(t->stepper));
    AN_TRY_RETURN(an_step_update(t->stepper));
    AN_TRY_RETURN(an_step_schedule(t->stepper));
    return an_step_end(t->stepper, metrics);
}

/* Whether there is a step to take, and a place for its numbers: nothing may be found wrong after the update. */
an_status an_trainer_check_step(const an_trainer *t, const an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_context_check_process(ctx)); /* the loader's threads too are the parent's */
    if (metrics) AN_TRY_RETURN(an_step_metrics_check(ctx, metrics));
    AN_TRY_RETURN(an_trainer_check_idle(t, "step"));
    if (t->planned) return AN_ERROR(ctx, AN_ERR_STATE, "this trainer was opened only for its plan");
    if (t->broken)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "the checkpoint loaded into this trainer was damaged, so only part of its weights are set: "
                        "destroy the trainer");
    if (t->next < t->steps) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_STATE, "the run has already taken all of its %lld steps", (long long)t->steps);
}

an_status an_trainer_step(an_trainer *trainer, an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer);
    an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_batch samples;
    AN_TRY_RETURN(an_trainer_check_step(t, metrics));
    if (!t->loader)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "the data is a stream, and nothing was pushed to it; use an_trainer_step_on to train on the "
                        "caller's samples");
    an_status status = an_loader_next(t->loader, &samples);
    if (status == AN_OK) status = an_trainer_take(t, &samples, metrics);
    if (status == AN_OK) return AN_OK;
    an_error_frame(ctx, __func__, __FILE__, __LINE__);
    an_loader_seek(t->loader, t->next); /* the same samples again, if the caller tries again */
    return status;
}

an_status an_trainer_take(an_trainer *t, const an_batch *samples, an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    an_step_metrics own;
    an_step_metrics_init(&own, sizeof own);
    const an_status status = run_step(t, samples, &own);
    if (status != AN_OK) {
        an_error_frame(ctx, __func__, __FILE__, __LINE__);
        an_step_cancel(t->stepper);
        return status;
    }
    t->next++;
    an_trainer_chain(t, (const double[]){own.loss, own.rate, own.norm}, 3);
    t->history[t->history_count++ % AN_HISTORY] = own;
    t->progress.last = own;
    return metrics ? an_step_metrics_write(ctx, metrics, &own) : AN_OK;
}

an_status an_step_metrics_get(const an_trainer *trainer, an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer, metrics);
    if (trainer->progress.last.step == 0)
        return AN_ERROR(trainer->ctx, AN_ERR_STATE, "the run has not taken a step yet");
    return an_step_metrics_write(trainer->ctx, metrics, &trainer->progress.last);
}

/* Steps of a trainer: samples from the loader, or from the caller, go through the calls of step.c in order. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/integer.h"
#include "base/span.h"
#include "data/loader.h"
#include "step/structs.h"
#include "train/loss_weights.h"
#include "train/nonfinite.h"
#include "train/normalize.h"
#include "train/trainer.h"

/* The micro-batches of this rank, one after another: a part of a leaf, or the leaves of a node of the tree. */
typedef struct {
    int64_t together;           /* leaves that a micro-batch of this step may have */
    an_leaf_samples leaf, last; /* the first and the last one */
    int64_t at, count;          /* of the rank's samples */
} micro_batch;

/* A step on the caller's samples may have more of them than batch.global, so fewer leaves are together. */
static int64_t count_together(const an_trainer *t, const an_batch_part *part) {
    const __int128 samples = part->own ? (__int128)part->n : part->total;
    const int64_t leaves = part->own ? t->cut.leaves.count : t->samples.batches.leaves;
    int64_t together = t->cut.together;
    if (part->total <= t->samples.batches.global && !part->own) return together;
    while (together > 1 && (together * samples + leaves - 1) / leaves > t->samples.batches.micro) together /= 2;
    return together;
}

/* Leaves of this rank that are neighbours, the one at `index` among them. */
static an_leaf_range find_neighbours(const an_trainer *t, int64_t index) {
    const an_leaf_set *set = &t->cut.leaves;
    const int64_t before = index / set->each * set->each, first = set->first + index / set->each * set->stride;
    return (an_leaf_range){first, first + an_smaller(set->each, set->count - before), t->samples.batches.leaves};
}

static bool find_next(const an_trainer *t, const an_batch_part *part, micro_batch *m) {
    m->at += m->count;
    while (m->leaf.index < 0 || m->at >= m->last.at + m->last.count) {
        m->leaf = m->last;
        if (!an_leaf_set_next(&t->samples.batches, &t->cut.leaves, part, &m->leaf)) return false;
        m->last = m->leaf;
        const an_leaf_range range = find_neighbours(t, m->leaf.index);
        for (int64_t count = an_forest_block(&range, m->leaf.leaf, m->together); count > 1; count--)
            an_leaf_set_next(&t->samples.batches, &t->cut.leaves, part, &m->last);
    }
    m->count = an_smaller(m->last.at + m->last.count - m->at, t->samples.batches.micro);
    return true;
}

static an_status run_micro_batch(an_trainer *t, const an_batch_part *part, const micro_batch *m) {
    const int64_t count = m->last.leaf - m->leaf.leaf + 1;
    an_leaf_samples l = m->leaf;
    if (count == 1) return an_step_run_leaves(t->stepper, l.leaf, 1, &m->count);
    for (int64_t i = 0; i < count; i++) {
        t->cut.ends[i] = l.at + l.count - m->leaf.at;
        an_leaf_set_next(&t->samples.batches, &t->cut.leaves, part, &l);
    }
    return an_step_run_leaves(t->stepper, m->leaf.leaf, count, t->cut.ends);
}

static an_status run_micro_batches(an_trainer *t, const an_batch *samples) {
    an_context *ctx = t->ctx;
    micro_batch now,
        next = {.together = count_together(t, &samples->part), .leaf = {.index = -1}, .last = {.index = -1}};
    bool more = find_next(t, &samples->part, &next);
    while (more) {
        now = next;
        more = find_next(t, &samples->part, &next);
        const double begin = an_span_begin(ctx);
        AN_TRY_RETURN(an_trainer_feed(t, samples, now.at, now.count));
        if (!more) an_step_expect_last(t->stepper);
        const an_status status = run_micro_batch(t, &samples->part, &now);
        if (status != AN_OK) return an_step_fail(t->stepper, status, now.leaf.leaf);
        an_span_end(ctx, "forward and backward", t->next + 1, begin);
    }
    return AN_OK;
}

/* A step that is to be skipped: whether there is hope that a later one is not. Comes before anything of the step is
 * counted. */
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

static an_status count_targets(an_trainer *t, const an_batch *samples, an_step_counts *counts) {
    *counts = (an_step_counts){.samples = samples->part.n};
    if (samples->part.n > 0)
        AN_TRY_RETURN(
            an_feed_count(&t->samples.feed, t->program, samples->fields, 0, samples->part.n, &counts->targets));
    if (an_loss_weights_are_on(t)) return an_loss_weights_count(t, samples, counts);
    return t->weighing.sample_mean ? an_means_count(t, samples, counts) : AN_OK;
}

/* In the run. */
static void number_samples(an_trainer *t, const an_batch_part *part) {
    const int64_t first = an_batches_at(&t->samples.batches, t->next).first_sample;
    for (an_leaf_samples l = {.index = -1};
         part->n > 0 && an_leaf_set_next(&t->samples.batches, &t->cut.leaves, part, &l);)
        for (int64_t i = 0; i < l.count; i++) t->samples.numbers[l.at + i] = first + l.first + i;
}

/* What is left of a step when its gradients are there. */
static an_status run_optimizer(an_trainer *t, const an_batch *samples, an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    const double begin = an_span_begin(ctx);
    const an_status status = an_step_unscale(t->stepper);
    if (status == AN_ERR_NONFINITE) return an_nonfinite_explain(t, samples, "");
    AN_TRY_RETURN(status);
    an_span_end(ctx, "gradient norm", t->next + 1, begin);
    if (t->stepper->skipped) AN_TRY_RETURN(check_skip(t, samples));
    AN_TRY_RETURN(an_step_clip(t->stepper));
    const double updated = an_span_begin(ctx);
    AN_TRY_RETURN(an_step_update(t->stepper));
    an_span_end(ctx, "update", t->next + 1, updated);
    AN_TRY_RETURN(an_step_schedule(t->stepper));
    AN_TRY_RETURN(an_step_end(t->stepper, metrics));
    an_span_end(ctx, "optimizer", t->next + 1, begin);
    return AN_OK;
}

/* With several ranks, a failure of one of them goes to the next record (an_step_fail), and all return it together.
 * `status`: this rank has failed already. */
static an_status run_step(an_trainer *t, an_status status, const an_batch *samples, an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    an_step_counts counts = {0};
    if (status == AN_OK) status = count_targets(t, samples, &counts);
    AN_TRY_RETURN(an_step_fail(t->stepper, status, -1));
    AN_TRY_RETURN(an_step_begin_all(t->stepper, &counts));
    if (an_loss_weights_are_on(t))
        AN_TRY_RETURN(an_step_fail(t->stepper, an_loss_weights_begin(t, &counts), -1));
    else if (t->weighing.sample_mean)
        AN_TRY_RETURN(an_step_fail(t->stepper, an_means_begin(t, &counts), -1));
    number_samples(t, &samples->part);
    AN_TRY_RETURN(an_step_fail(t->stepper, run_micro_batches(t, samples), -1));
    const double reduced = an_span_begin(ctx);
    AN_TRY_RETURN(an_step_reduce(t->stepper));
    an_span_end(ctx, "reduce", t->next + 1, reduced);
    return run_optimizer(t, samples, metrics);
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
    if (t->next == 0) AN_TRY_RETURN(an_normalization_check(t));
    if (t->next < t->steps) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_STATE, "the run has already taken all of its %lld steps", (long long)t->steps);
}

/* What a step needs before other ranks are asked; samples of a rank that failed are none. */
static an_status load(an_trainer *t, an_step_metrics *metrics, an_batch *samples) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_trainer_check_step(t, metrics));
    if (!t->samples.loader)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "the data is a stream, and nothing was pushed to it; use an_trainer_step_on to train on the "
                        "caller's samples");
    const double begin = an_span_begin(ctx);
    AN_TRY_RETURN(an_loader_next(t->samples.loader, samples));
    an_span_end(ctx, "data", t->next + 1, begin);
    return AN_OK;
}

an_status an_trainer_step_or_fail(an_trainer *t, an_status status, an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    an_batch samples = {0};
    const double begin = an_span_begin(ctx);
    if (status == AN_OK) status = load(t, metrics, &samples);
    if (status != AN_OK && t->ranks == 1) return status;
    const bool loads = t->samples.loader && !t->planned && !an_context_is_forked(ctx);
    status = an_trainer_take(t, status, &samples, metrics);
    if (status == AN_OK) {
        an_span_end(ctx, "step", t->next, begin);
        return AN_OK;
    }
    an_error_frame(__func__, __FILE__, __LINE__);
    if (loads) an_loader_seek(t->samples.loader, t->next); /* the same samples again, if the caller tries again */
    return status;
}

an_status an_trainer_step(an_trainer *trainer, an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer);
    return an_trainer_step_or_fail(trainer, AN_OK, metrics);
}

an_status an_trainer_take(an_trainer *t, an_status status, const an_batch *samples, an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    an_step_metrics own;
    an_step_metrics_init(&own, sizeof own);
    if (!t->stepper) return status; /* opened only for its plan */
    t->stepper->facts = t->record.facts;
    t->stepper->facts.stop = t->request.stop;
    status = run_step(t, status, samples, &own);
    if (status != AN_OK) {
        an_error_frame(__func__, __FILE__, __LINE__);
        an_step_cancel(t->stepper);
        return status;
    }
    t->record.facts = t->stepper->facts;
    t->next++;
    an_trainer_chain(t, (const double[]){own.loss, own.rate, own.norm}, 3);
    an_epochs_count(t, &own);
    t->record.history[t->record.history_count++ % AN_HISTORY] = own;
    t->record.progress.last = own;
    return metrics ? an_step_metrics_write(ctx, metrics, &own) : AN_OK;
}

an_status an_trainer_step_metrics(const an_trainer *trainer, an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer, metrics);
    if (trainer->record.progress.last.step == 0)
        return AN_ERROR(trainer->ctx, AN_ERR_STATE, "the run has not taken a step yet");
    return an_step_metrics_write(trainer->ctx, metrics, &trainer->record.progress.last);
}

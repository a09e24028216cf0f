/* One step of the optimizer. The state machine holds the order; leaves.c adds the leaves, and agree.c
 * what ranks have to agree on. */
#include "step/step.h"

#include <string.h>

#include "base/guard.h"
#include "base/heartbeat.h"
#include "comm/comm.h"
#include "step/structs.h"

/* ---- the order ---- */

typedef enum { BEGIN, MICRO_BATCH, REDUCE, UNSCALE, CLIP, UPDATE, SCHEDULE, END, CALLS } call;

#define AT(place) (1U << AN_STEP_##place)

/* Where each call may be made, where it leads, and what went wrong anywhere else. */
static const struct {
    unsigned from;
    an_step_place to;
    const char *name, *too_early, *too_late;
} calls[CALLS] = {
    [BEGIN] = {AT(IDLE), AN_STEP_BEGUN, "an_step_begin", "",
               "the previous step has not ended: call an_step_end, or an_step_cancel to abandon it"},
    [MICRO_BATCH] = {AT(BEGUN) | AT(ACCUMULATED), AN_STEP_ACCUMULATED, "an_step_micro_batch",
                     "the divisor of the loss must be known before the first micro-batch: call an_step_begin first",
                     "the gradients of this step are already reduced; another micro-batch would not be part of them"},
    [REDUCE] = {AT(ACCUMULATED), AN_STEP_REDUCED, "an_step_reduce",
                "there is no gradient yet, because no micro-batch has run",
                "the gradients of this step are already reduced; reducing them again would count them twice"},
    [UNSCALE] = {AT(REDUCED), AN_STEP_UNSCALED, "an_step_unscale",
                 "the gradients are not complete: call an_step_reduce before unscaling",
                 "the gradients of this step are already unscaled; unscaling them again would make them too small"},
    [CLIP] = {AT(UNSCALED), AN_STEP_CLIPPED, "an_step_clip",
              "clipping scaled gradients would use the wrong norm: call an_step_unscale first",
              "this step is already clipped or updated, so clipping would change nothing"},
    [UPDATE] =
        {AT(UNSCALED) | AT(CLIPPED), AN_STEP_UPDATED, "an_step_update",
         "an update needs gradients that are complete and unscaled: call an_step_reduce and an_step_unscale first",
         "the weights are already updated with this gradient; a second update would take the step twice"},
    [SCHEDULE] = {AT(UPDATED), AN_STEP_SCHEDULED, "an_step_schedule",
                  "the schedule advances after the update; otherwise the first learning rate would never be used",
                  "the schedule has already advanced in this step"},
    [END] = {AT(SCHEDULED), AN_STEP_IDLE, "an_step_end",
             "the step is not complete: update the weights and advance the schedule before ending it, or abandon it "
             "with an_step_cancel",
             ""},
};

static an_status check_order(const an_stepper *s, call c) {
    if (calls[c].from >> s->place & 1U) return AN_OK;
    const bool late = (1U << s->place) > calls[c].from; /* behind every place it may be called from */
    return AN_ERROR(s->ctx, AN_ERR_ORDER, "%s: %s", calls[c].name,
                    late && *calls[c].too_late ? calls[c].too_late : calls[c].too_early);
}

/* ---- making one ---- */

/* Whether there is a leaf for every rank. */
static an_status check_ranks(an_context *ctx, int64_t leaves, int ranks) {
    if (ranks <= leaves) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_ARGUMENT,
        "this run has %lld lea%s, so %lld rank%s at most, but there are %d: start with fewer ranks, or start a "
        "new run with batch.leaves: %d",
        (long long)leaves, leaves == 1 ? "f" : "ves", (long long)leaves, leaves == 1 ? "" : "s", ranks,
        1 << (32 - __builtin_clz((unsigned)ranks - 1)));
}

static an_status check_options(an_context *ctx, const an_program *program, const an_optimizer *optimizer,
                               const an_stepper_options *o) {
    an_status status;
    AN_CHECK(ctx, program->forms[AN_FORM_TRAIN_FIRST].graph, AN_ERR_ARGUMENT,
             "the program cannot train, because its plan was created without AN_PROGRAM_TRAINING");
    AN_CHECK(ctx, program->params == optimizer->params, AN_ERR_ARGUMENT,
             "the program and the optimizer have different parameters");
    AN_CHECK(ctx, !program->exchange.gradients.user && !program->exchange.weights.user, AN_ERR_STATE,
             "these parameters have a stepper, through which their program exchanges with other ranks: destroy it "
             "before another one is created");
    AN_CHECK(ctx, o->rate >= 0, AN_ERR_ARGUMENT, "the rate is %g; it must be 0 or more", o->rate);
    AN_CHECK(ctx, o->clip_norm >= 0 && o->clip_value >= 0, AN_ERR_ARGUMENT,
             "clip_norm is %g and clip_value %g; they must be 0 or more, and 0 means no limit", o->clip_norm,
             o->clip_value);
    AN_CHECK(ctx, o->ema_decay >= 0 && o->ema_decay < 1, AN_ERR_ARGUMENT,
             "ema_decay is %g; it must be above 0 and below 1, or 0 for no average", o->ema_decay);
    AN_CHECK(ctx, o->ema_decay == 0 || program->params->average.flat, AN_ERR_STATE,
             "the parameters have no room for a moving average: create them with an_params_options.average");
    AN_CHECK(ctx, !o->reduces_bf16 || program->params->sizes.trainable_dtype == AN_DTYPE_F32, AN_ERR_DTYPE,
             "gradients cannot be reduced in bf16, because they are %s",
             an_dtype_name(program->params->sizes.trainable_dtype));
    AN_CHECK(ctx, !o->reduces_bf16 || program->device == &an_device_host, AN_ERR_UNSUPPORTED,
             "gradients can be reduced in bf16 only in the host's memory");
    AN_CHECK(ctx, o->leaves >= 0 && o->leaves <= AN_MOST_LEAVES, AN_ERR_ARGUMENT, "leaves is %lld, but must be 1 to %d",
             (long long)o->leaves, AN_MOST_LEAVES);
    return AN_OK;
fail:
    return status;
}

static bool is_scaler(const an_scaler *s) {
    return s->scale > 0 && __builtin_isfinite(s->scale) && s->growth > 0 && s->backoff > 0 && s->interval > 0;
}

/* The numbers of the leaves, in this rank's record; of rounds, the first of several. */
static an_forest *forest_of(const an_stepper *s) {
    return (an_forest *)(void *)(s->record + sizeof(an_agreement));
}

static an_status make_leaves(an_stepper *s, int ranks) {
    if (an_leaf_rounds_count(&s->params->pieces, s->options.leaves) > 0)
        return an_leaf_rounds_make(&s->rounds, s->program, s->options.leaves, s->options.reduces_bf16, forest_of(s));
    const an_borders borders = an_borders_choose(s->options.leaves, ranks);
    return an_leaves_make(&s->leaves, s->program, &borders, s->options.reduces_bf16, forest_of(s));
}

an_status an_stepper_create(an_stepper **stepper, an_program *program, an_optimizer *optimizer,
                            const an_schedule *schedule, const an_stepper_options *given) {
    AN_GUARD;
    AN_NEED(program, stepper, optimizer);
    an_status status;
    an_context *ctx = program->ctx;
    an_stepper *s = NULL;
    an_stepper_options options;
    *stepper = NULL;
    AN_TRY(an_stepper_options_read(ctx, &options, given));
    AN_TRY(check_options(ctx, program, optimizer, &options));
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    s->program = program;
    s->params = program->params;
    s->optimizer = optimizer;
    s->schedule = schedule;
    s->options = options;
    if (options.leaves == 0) s->options.leaves = 1;
    AN_TRY(an_scaler_read(ctx, &s->scaler, options.scaler));
    s->options.scaler = NULL; /* the caller's */
    AN_CHECK(ctx, is_scaler(&s->scaler), AN_ERR_ARGUMENT,
             "the loss scaler has scale %g, growth %g, backoff %g and interval %lld; they must be above 0",
             s->scaler.scale, s->scaler.growth, s->scaler.backoff, (long long)s->scaler.interval);
    if (!options.scales) s->scaler.scale = 0; /* as checkpoints have it */
    const int ranks = an_axis_ranks(ctx, AN_AXIS_DATA);
    s->leaf_forests = an_step_leaf_forests(&s->params->pieces, s->options.leaves);
    s->record_bytes = an_step_record_bytes(program->plan->model, s->options.leaves, s->leaf_forests);
    const size_t page_forests = s->record_bytes;
    if (s->params->pieces.shards)
        s->record_bytes +=
            an_page_sums_record_bytes(s->params->pieces.shards, optimizer->sums.parts ? program->plan->model : NULL);
    AN_TRY(an_alloc(ctx, (void **)&s->record, 2, s->record_bytes));
    if (s->params->pieces.shards) s->page_forests = (an_forest *)(void *)(s->record + page_forests);
    AN_TRY(check_ranks(ctx, s->options.leaves, ranks));
    AN_TRY(make_leaves(s, ranks));
    AN_TRY(an_extras_make(&s->extras, program));
    AN_TRY(an_statistics_make(&s->statistics, program));
    AN_TRY(an_remote_weights_make(&s->weights, program));
    *stepper = s;
    return AN_OK;
fail:
    an_stepper_destroy(&s);
    return status;
}

void an_stepper_destroy(an_stepper **stepper) {
    an_stepper *s = stepper ? *stepper : NULL;
    if (!s) return;
    an_context *ctx = s->ctx;
    an_remote_weights_destroy(&s->weights);
    an_leaf_rounds_destroy(&s->rounds);
    an_leaves_destroy(&s->leaves);
    an_statistics_destroy(&s->statistics);
    an_release(ctx, (void **)&s->record, 2, s->record_bytes);
    an_release(ctx, (void **)stepper, 1, sizeof *s);
}

void an_stepper_leaves(const an_stepper *stepper, int64_t *first, int64_t *end) {
    AN_NEED_OR(, stepper, first, end);
    *first = stepper->leaves.range.begin;
    *end = stepper->leaves.range.end;
}

/* ---- the calls ---- */

/* Models with dropout have these; others do not. */
static bool has_scalar(const an_program *program, const char *name) {
    for (int i = 0; i < program->plan->scalar_count; i++)
        if (!strcmp(program->plan->scalars[i], name)) return true;
    return false;
}

static an_status set_loss_gradient(an_stepper *s) {
    const double scale = s->options.scales ? s->scaler.scale : 1;
    return an_program_set_scalar(s->program, "loss_gradient", scale / ((double)s->divisor * s->each));
}

an_status an_step_divide(an_stepper *stepper, int64_t divisor, double each) {
    stepper->divisor = divisor;
    stepper->each = each;
    return set_loss_gradient(stepper);
}

static an_status set_scalars(an_stepper *s) {
    AN_TRY_RETURN(set_loss_gradient(s));
    if (has_scalar(s->program, "seed"))
        AN_TRY_RETURN(an_program_set_scalar_i64(s->program, "seed", (int64_t)s->options.seed));
    if (has_scalar(s->program, "step")) AN_TRY_RETURN(an_program_set_scalar_i64(s->program, "step", s->steps));
    return AN_OK;
}

an_status an_step_begin_all(an_stepper *s, an_step_counts *counts) {
    an_context *ctx = s->ctx;
    an_agreement *a = (an_agreement *)(void *)s->record;
    if (s->broken)
        return AN_ERROR(
            ctx, AN_ERR_STATE,
            "an exchange with other ranks failed in an earlier step, so they may not have the same weights: "
            "start the run again from its last checkpoint");
    AN_TRY_RETURN(an_step_fail(s, check_order(s, BEGIN), -1));
    an_agreement_begin(a, ctx, AN_AGREE_STEP_BEGIN, s->steps + 1, AN_OK);
    a->targets = counts->targets;
    a->samples = counts->samples;
    a->counted = counts->counted;
    a->maximum = counts->maximum;
    AN_TRY_RETURN(an_step_fail(s, an_step_compare_weights(s, a), -1));
    AN_TRY_RETURN(an_step_agree(s, a, 0));
    s->compared = true;
    AN_TRY_RETURN(an_remote_weights_start(&s->weights)); /* somebody may have set them, or loaded them */
    *counts =
        (an_step_counts){.targets = a->targets, .samples = a->samples, .counted = a->counted, .maximum = a->maximum};
    if (counts->targets < 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the step has %lld targets, because every label of its batch is masked",
                        (long long)counts->targets);
    s->targets = s->divisor = counts->targets;
    s->each = 1;
    s->skipped = s->clipped = false;
    s->settled = false;
    if (an_step_has_rounds(s))
        AN_TRY_RETURN(an_leaf_rounds_start(&s->rounds));
    else
        an_leaves_start(&s->leaves);
    if (s->page_forests) an_page_sums_begin(&s->optimizer->sums, s->page_forests);
    s->place = calls[BEGIN].to;
    return an_step_fail(s, set_scalars(s), -1);
}

an_status an_step_begin(an_stepper *stepper, int64_t targets) {
    AN_GUARD;
    AN_NEED(stepper);
    return an_step_begin_all(stepper, &(an_step_counts){.targets = targets});
}

an_status an_step_begin_reading(an_stepper *s) {
    return an_remote_weights_start(&s->weights);
}

an_status an_step_end_reading(an_stepper *s) {
    return an_remote_weights_finish(&s->weights);
}

void an_step_expect_last(an_stepper *s) {
    s->is_last = true;
}

an_status an_step_run_leaves(an_stepper *s, int64_t leaf, int64_t count, const int64_t *ends) {
    an_context *ctx = s->ctx;
    const int64_t samples = count > 0 ? ends[count - 1] : 0;
    double loss;
    an_leaf_entry entry;
    AN_TRY_RETURN(check_order(s, MICRO_BATCH));
    if (samples < 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "a micro-batch cannot have %lld samples", (long long)samples);
    AN_TRY_RETURN(an_program_cut(s->program, count, ends));
    AN_TRY_RETURN(an_step_has_rounds(s) ? an_leaf_rounds_enter(&s->rounds, leaf, count, &entry)
                                        : an_leaves_enter(&s->leaves, leaf, count, s->is_last, &entry));
    s->is_last = false;
    AN_TRY_RETURN(an_program_run(s->program, entry.first ? AN_FORM_TRAIN_FIRST : AN_FORM_TRAIN_NEXT));
    AN_TRY_RETURN(an_program_loss(s->program, &loss));
    AN_TRY_RETURN(an_statistics_add(&s->statistics, samples, entry.sums));
    entry.sums[AN_LEAF_LOSS] += loss;
    entry.sums[AN_LEAF_SAMPLES] += (double)samples;
    s->place = calls[MICRO_BATCH].to;
    return AN_OK;
}

an_status an_step_micro_batch(an_stepper *stepper, int64_t leaf, int64_t samples) {
    AN_GUARD;
    AN_NEED(stepper);
    return an_step_run_leaves(stepper, leaf, 1, &samples);
}

/* A rank that had nothing to compute has waited for no weights, and others wait for its own. Rounds that
 * are left still gather some. */
static an_status reduce(an_stepper *s) {
    const an_status status = an_step_has_rounds(s) ? an_leaf_rounds_reduce(&s->rounds, s->failed.status)
                                                   : an_leaves_reduce(&s->leaves, s->failed.status);
    const an_status gathered = an_remote_weights_finish(&s->weights);
    return status == AN_OK ? gathered : status;
}

/* The numbers of the whole step, from those of all ranks. */
static an_status close_leaves(an_stepper *s) {
    an_context *ctx = s->ctx;
    an_forest *forest = forest_of(s);
    if (forest->count != 1)
        return AN_ERROR(ctx, AN_ERR_STATE, "the leaves of this step were not added to one: %lld are left",
                        (long long)forest->count);
    s->sums = an_forest_values(forest, 0);
    return AN_OK;
}

an_status an_step_reduce(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    if (an_step_is_alone(s)) { /* with others, this rank may have no samples, or a failure to tell */
        AN_TRY_RETURN(check_order(s, REDUCE));
        AN_TRY_RETURN(an_context_check_threads(ctx));
    }
    an_status status = reduce(s);
    if (status != AN_OK && an_comm_check(ctx) != AN_OK) s->broken = true;
    if (s->broken) return status;
    if (status == AN_OK) status = an_extras_add(&s->extras);
    AN_TRY_RETURN(an_step_fail(s, status, -1));
    s->place = calls[REDUCE].to;
    return AN_OK;
}

/* The norm of the gradients; of those of this rank's pieces only the squares, as what the others have comes with the
 * record. */
static an_status compute_norm(an_stepper *s, double scale) {
    if (!s->page_forests) return an_optimizer_norm(s->optimizer, scale, &s->norm);
    AN_TRY_RETURN(an_optimizer_square(s->optimizer, scale));
    an_page_sums_fill(&s->optimizer->sums, s->page_forests);
    return AN_OK;
}

/* The second record: nothing was updated yet, and afterwards every rank updates. */
static an_status agree_on_end(an_stepper *s) {
    an_context *ctx = s->ctx;
    an_agreement *a = (an_agreement *)(void *)s->record;
    an_agreement_begin(a, ctx, AN_AGREE_STEP_END, s->steps + 1, AN_OK);
    a->facts = s->facts;
    AN_TRY_RETURN(
        an_step_agree(s, a, s->leaf_forests + (s->page_forests ? an_page_sums_forests(&s->optimizer->sums) : 0)));
    s->facts = a->facts;
    AN_TRY_RETURN(close_leaves(s));
    s->loss = s->sums[AN_LEAF_LOSS] / s->each;
    s->samples = (int64_t)s->sums[AN_LEAF_SAMPLES];
    if (!s->page_forests) return AN_OK;
    double squares;
    AN_TRY_RETURN(an_page_sums_close(&s->optimizer->sums, s->page_forests, &squares));
    s->norm = an_optimizer_take_squares(s->optimizer, squares);
    return AN_OK;
}

an_status an_step_unscale(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    const double scale = s->options.scales ? s->scaler.scale : 1;
    AN_TRY_RETURN(check_order(s, UNSCALE));
    if (s->failed.status == AN_OK) AN_TRY_RETURN(an_step_fail(s, compute_norm(s, scale), -1));
    AN_TRY_RETURN(agree_on_end(s));
    const bool finite = __builtin_isfinite(s->norm) && __builtin_isfinite(s->loss);
    if (!finite && !s->options.scales && !s->options.skips)
        return AN_ERROR(ctx, AN_ERR_NONFINITE, "the loss is %g and the gradient norm is %g, so nothing was updated",
                        s->loss / (double)s->divisor, s->norm);
    s->skipped = !finite;
    s->place = calls[UNSCALE].to;
    return AN_OK;
}

an_status an_step_clip(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    AN_TRY_RETURN(check_order(stepper, CLIP));
    stepper->clipped = true;
    stepper->place = calls[CLIP].to;
    return AN_OK;
}

double an_stepper_rate(const an_stepper *stepper) {
    AN_GUARD;
    AN_NEED_OR(0, stepper);
    const double factor = stepper->schedule ? an_schedule_factor(stepper->schedule, stepper->step) : 1;
    return stepper->options.rate * factor;
}

an_status an_step_update(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    an_update update;
    an_update_init(&update, sizeof update);
    AN_TRY_RETURN(check_order(s, UPDATE));
    an_heartbeat_enter(ctx, AN_HEARTBEAT_STEP, "update");
    if (!s->skipped) {
        update.rate = an_stepper_rate(s);
        const double momentum = s->schedule ? an_schedule_momentum(s->schedule, s->step) : 0;
        if (momentum > 0) update.beta_1 = momentum;
        update.scale = s->options.scales ? s->scaler.scale : 1;
        update.clip_norm = s->clipped ? s->options.clip_norm : 0;
        update.clip_value = s->clipped ? s->options.clip_value : 0;
        an_status status = an_optimizer_update(s->optimizer, &update);
        if (status == AN_OK) status = an_statistics_update(&s->statistics, s->sums);
        if (status == AN_OK && s->options.ema_decay > 0)
            status = an_params_update_average(s->params, s->options.ema_decay);
        if (status != AN_OK && !an_step_is_alone(s)) { /* other ranks have updated: there is no way back */
            s->broken = true;
            an_comm_abort(ctx, status, ctx->error.message);
        }
        AN_TRY_RETURN(status);
    }
    s->place = calls[UPDATE].to;
    return AN_OK;
}

an_status an_step_schedule(an_stepper *stepper) {
    AN_GUARD;
    AN_NEED(stepper);
    AN_TRY_RETURN(check_order(stepper, SCHEDULE));
    stepper->place = calls[SCHEDULE].to;
    return AN_OK;
}

an_status an_step_end(an_stepper *stepper, an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(stepper);
    an_stepper *s = stepper;
    an_context *ctx = s->ctx;
    AN_TRY_RETURN(check_order(s, END));
    if (metrics) AN_TRY_RETURN(an_step_metrics_check(ctx, metrics));
    s->steps++;
    const an_step_metrics own = {.step = s->steps,
                                 .loss = s->loss / (double)s->divisor,
                                 .rate = an_stepper_rate(s),
                                 .norm = s->norm,
                                 .scale = s->options.scales ? s->scaler.scale : 1,
                                 .targets = s->targets,
                                 .samples = s->samples,
                                 .skipped = s->skipped,
                                 .skips = s->skips + s->skipped};
    if (metrics) AN_TRY_RETURN(an_step_metrics_write(ctx, metrics, &own));
    s->skips += s->skipped;
    s->step += !s->skipped;
    s->skips_in_row = s->skipped ? s->skips_in_row + 1 : 0;
    if (s->options.scales) an_scaler_update(&s->scaler, !s->skipped);
    s->place = calls[END].to;
    return AN_OK;
}

void an_step_cancel(an_stepper *stepper) {
    AN_NEED_OR(, stepper);
    if (stepper->place != AN_STEP_IDLE && !stepper->settled && !an_step_is_alone(stepper)) {
        stepper->broken = true;
        an_comm_abort(stepper->ctx, AN_ERR_STATE, "this rank has abandoned a step that others wait for");
    }
    an_leaf_rounds_cancel(&stepper->rounds);
    an_leaves_cancel(&stepper->leaves);
    stepper->failed.status = AN_OK;
    stepper->is_last = false;
    stepper->place = AN_STEP_IDLE;
}

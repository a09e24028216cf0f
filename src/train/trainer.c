/* The trainer: makes the parts of a run from a graph, data and options, and takes steps in the order of step.c. */
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/launcher.h"
#include "train/loader.h"
#include "train/nonfinite.h"
#include "train/open.h"
#include "train/permutation.h"
#include "train/room.h"
#include "train/save_layout.h"

enum { DEFAULT_MAX_SKIPS = 100 };

/* ---- which samples ---- */

/* The order of an epoch is a keyed permutation, so that any step is found at once. */
static int64_t step_indices(void *user, int64_t step, int64_t *indices) {
    const an_trainer *t = user;
    if (step >= t->steps) return -1;
    const an_step_batch batch = an_batches_at(&t->batches, step);
    const an_permutation order = an_permutation_make((uint64_t)t->seed, (uint64_t)batch.epoch, t->batches.samples);
    for (int64_t i = 0; i < batch.count; i++) indices[i] = an_permutation_at(&order, batch.begin + i);
    return batch.count;
}

/* ---- making one ---- */

static an_status check_options(an_context *ctx, const an_trainer_options *o) {
    an_status status;
    AN_CHECK(ctx, o && o->size >= sizeof *o, AN_ERR_ARGUMENT, "an_trainer_options has size %zu: set it with AN_INIT",
             o ? o->size : (size_t)0);
    AN_CHECK(ctx, !(o->steps && o->epochs), AN_ERR_ARGUMENT,
             "the length of the run is given in steps or in epochs, not both");
    AN_CHECK(ctx, o->steps >= 0 && o->epochs >= 0, AN_ERR_ARGUMENT, "the length of the run is negative");
    AN_CHECK(ctx, o->loader_threads >= 0, AN_ERR_ARGUMENT, "%d threads to load", o->loader_threads);
    AN_CHECK(ctx, o->max_skips >= 0, AN_ERR_ARGUMENT, "max_skips is %lld: it is 1 or more, and 0 means %d",
             (long long)o->max_skips, DEFAULT_MAX_SKIPS);
    return AN_OK;
fail:
    return status;
}

/* A run that a config describes is saved: the copy that this needs is known from the model. */
static an_status measure_checkpoint(const an_trainer *t, int moments, int64_t *bytes) {
    an_context *ctx = t->ctx;
    an_save_layout *layout;
    *bytes = 0;
    if (!t->owns || t->plain) return AN_OK;
    AN_TRY_RETURN(an_save_layout_create(&layout, ctx, t->graph, moments, t->home.writers));
    *bytes = (int64_t)an_save_layout_bytes(layout);
    an_save_layout_destroy(&layout);
    return AN_OK;
}

an_status an_trainer_make_plan(an_trainer *t, const an_trainer_options *o) {
    an_context *ctx = t->ctx;
    const char *symbols[AN_MAX_FEED_SYMBOLS + 1];
    int64_t maxima[AN_MAX_FEED_SYMBOLS + 1];
    an_plan_options plan = AN_INIT(plan);
    symbols[0] = t->feed.batch;
    maxima[0] = t->batches.micro;
    plan.leaves = t->batches.leaves;
    plan.weighs_samples = t->sample_mean;
    plan.symbol_count = t->feed.symbol_count + 1;
    for (int i = 0; i < t->feed.symbol_count; i++) {
        symbols[i + 1] = t->feed.symbols[i];
        maxima[i + 1] = t->feed.values[i];
        for (int k = 0; t->evaluation && k < t->evaluation_feed.symbol_count; k++)
            if (!strcmp(t->evaluation_feed.symbols[k], symbols[i + 1]) && t->evaluation_feed.values[k] > maxima[i + 1])
                maxima[i + 1] = t->evaluation_feed.values[k];
    }
    plan.symbols = symbols;
    plan.maxima = maxima;
    plan.moments = an_optimizer_moments(o->optimizer);
    AN_TRY_RETURN(measure_checkpoint(t, an_moment_count(plan.moments), &plan.checkpoint));
    plan.precision = o->precision;
    plan.f32_storage = o->f32_storage;
    plan.recompute = o->recompute;
    plan.segments = o->segments;
    plan.budget = o->budget;
    plan.kernels = o->kernels;
    plan.unfused = o->unfused;
    plan.programs = AN_PROGRAM_TRAINING | (t->evaluation ? AN_PROGRAM_EVALUATION : 0U);
    const size_t before = ctx->bytes;
    AN_TRY_RETURN(an_plan_create(&t->plan, ctx, t->graph, &plan));
    t->held += ctx->bytes - before;
    if (t->evaluation) an_evaluation_find(t);
    return an_trainer_count(t);
}

static an_status make_schedule(an_trainer *t, const an_trainer_options *o) {
    if (!o->schedule) return AN_OK;
    an_schedule_options schedule = *o->schedule;
    if (schedule.steps == 0 && t->steps < INT64_MAX) schedule.steps = t->steps;
    return an_schedule_create(&t->schedule, t->ctx, &schedule);
}

static an_status make_stepper(an_trainer *t, const an_trainer_options *o) {
    an_stepper_options step = AN_INIT(step);
    step.rate = o->rate;
    step.clip_norm = o->clip_norm;
    step.clip_value = o->clip_value;
    step.leaves = t->batches.leaves;
    step.scales = o->precision == AN_DTYPE_F16;
    step.scaler.size = sizeof step.scaler;
    step.skips = o->skips;
    step.seed = o->seed;
    return an_stepper_create(&t->stepper, t->program, t->optimizer, t->schedule, &step);
}

an_loader_options an_trainer_loader(an_trainer *t) {
    return (an_loader_options){.dataset = t->training,
                               .threads = t->loader_threads,
                               .most = t->batches.global, /* of a step of the data */
                               .indices = step_indices,
                               .user = t};
}

/* The default weight decay is that of the optimizer. Options of a wrong size are refused where they are read. */
static an_status make_groups(an_trainer *t, const an_trainer_options *o) {
    an_group_options groups = AN_INIT(groups);
    if (o->groups && o->groups->size < sizeof groups) return an_groups_create(&t->groups, t->graph, o->groups);
    if (o->groups) groups = *o->groups;
    if (o->optimizer) groups.optimizer = o->optimizer->type;
    return an_groups_create(&t->groups, t->graph, &groups);
}

/* What needs no plan: it is measured. */
static an_status make_first_parts(an_trainer *t, const an_trainer_options *o) {
    an_context *ctx = t->ctx;
    const size_t before = ctx->bytes;
    if (!t->groups) AN_TRY_RETURN(make_groups(t, o));
    if (!an_groups_train(t->groups))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the groups freeze every parameter: nothing is left to train");
    AN_TRY_RETURN(an_graph_verify(t->graph));
    AN_TRY_RETURN(an_feed_make(&t->feed, t->graph, t->training));
    if (t->evaluation) AN_TRY_RETURN(an_feed_make(&t->evaluation_feed, t->graph, t->evaluation));
    AN_TRY_RETURN(make_schedule(t, o));
    AN_TRY_RETURN(an_norms_make(t, o->norms));
    t->held += ctx->bytes - before;
    return AN_OK;
}

/* Everything but the graph and the data, which are there. */
an_status an_trainer_fill(an_trainer *t, const an_trainer_options *options) {
    an_context *ctx = t->ctx;
    an_params_options params = AN_INIT(params);
    AN_TRY_RETURN(an_context_check_threads(ctx));
    AN_TRY_RETURN(check_options(ctx, options));
    t->progress = an_progress_start();
    t->home.loaded = -1;
    t->seed = options->seed;
    const int64_t samples = t->streams ? AN_STREAM_SAMPLES : an_dataset_count(t->training);
    AN_TRY_RETURN(an_batches_make(&t->batches, ctx, samples, &options->batch));
    t->steps = options->steps ? options->steps
               : t->streams   ? INT64_MAX
                              : an_batches_steps_before(&t->batches, options->epochs ? options->epochs : 1);
    t->sample_mean = options->sample_mean;
    t->max_skips = options->max_skips ? options->max_skips : DEFAULT_MAX_SKIPS;
    t->evaluation_count = options->evaluation_samples;
    t->precision = options->precision;
    t->loader_threads = options->loader_threads;
    AN_TRY_RETURN(make_first_parts(t, options));
    AN_TRY_RETURN(an_trainer_make_plan(t, options));
    AN_TRY_RETURN(an_plan_forced_kernels(t->plan, &t->kernels));
    if (t->kernels) AN_TRY_RETURN(an_plan_count_trainer(t->plan, strlen(t->kernels) + 1));
    AN_TRY_RETURN(an_room_check_memory(t, options));
    if (t->planned) return AN_OK;
    params.moments = an_optimizer_moments(options->optimizer);
    AN_TRY_RETURN(an_params_create(&t->params, ctx, t->graph, &params));
    AN_TRY_RETURN(an_params_init(t->params, (uint64_t)options->seed));
    AN_TRY_RETURN(an_program_create(&t->program, t->plan, t->params));
    AN_TRY_RETURN(an_feed_set_limits(&t->feed, t->program, t->training));
    if (t->evaluation) AN_TRY_RETURN(an_feed_set_limits(&t->evaluation_feed, t->program, t->evaluation));
    AN_TRY_RETURN(an_optimizer_create(&t->optimizer, t->params, t->groups, options->optimizer));
    AN_TRY_RETURN(make_stepper(t, options));
    if (t->evaluation) {
        AN_TRY_RETURN(an_sample_buffer_create(&t->evaluation_samples, ctx, t->evaluation, t->batches.micro));
        AN_TRY_RETURN(an_alloc(ctx, (void **)&t->output_values, t->output_count, sizeof *t->output_values));
    }
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t->numbers, (size_t)t->batches.global, sizeof *t->numbers));
    t->number_count = t->batches.global;
    if (t->sample_mean)
        AN_TRY_RETURN(an_alloc(ctx, (void **)&t->weights, (size_t)t->batches.micro, sizeof *t->weights));
    const an_loader_options loader = an_trainer_loader(t);
    return t->streams ? AN_OK : an_loader_create(&t->loader, ctx, &loader);
}

an_status an_trainer_create(an_trainer **trainer, an_graph *graph, an_dataset *training, an_dataset *evaluation,
                            const an_trainer_options *options) {
    AN_GUARD;
    AN_NEED(graph, trainer, options);
    an_status status;
    an_context *ctx = graph->ctx;
    an_trainer *t = NULL;
    *trainer = NULL;
    AN_TRY(an_launcher_check(ctx));
    AN_TRY(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    t->ctx = ctx;
    t->held = sizeof *t;
    t->graph = graph;
    t->training = training;
    t->evaluation = evaluation;
    AN_TRY(an_trainer_fill(t, options));
    *trainer = t;
    return AN_OK;
fail:
    an_trainer_destroy(&t);
    return status;
}

void an_trainer_destroy(an_trainer **trainer) {
    an_trainer *t = trainer ? *trainer : NULL;
    if (!t) return;
    an_context *ctx = t->ctx;
    an_home_destroy(t);
    an_loader_destroy(&t->loader);
    an_release(ctx, (void **)&t->numbers, (size_t)t->number_count, sizeof *t->numbers);
    an_release(ctx, (void **)&t->weights, (size_t)t->batches.micro, sizeof *t->weights);
    an_handed_destroy(t);
    an_norms_destroy(t);
    an_release(ctx, (void **)&t->output_values, t->output_count, sizeof *t->output_values);
    an_sample_buffer_destroy(&t->evaluation_samples, ctx);
    an_stepper_destroy(&t->stepper);
    an_schedule_destroy(&t->schedule);
    an_optimizer_destroy(&t->optimizer);
    an_program_destroy(&t->program);
    an_params_destroy(&t->params);
    an_plan_destroy(&t->plan);
    an_string_release(ctx, &t->kernels);
    an_groups_destroy(&t->groups);
    if (t->owns) {
        an_graph_destroy(&t->graph);
        an_sources_destroy(&t->sources);
    }
    an_release(ctx, (void **)trainer, 1, sizeof *t);
}

void an_trainer_close(an_trainer **trainer) {
    an_trainer_destroy(trainer);
}

/* ---- a step ---- */

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
        snprintf(
            reason, sizeof reason,
            "the loss scale would fall to %g, so these gradients are not finite in f16 at any scale (%lld steps in a "
            "row were skipped); take train.precision bf16 or f32, or a lower optimizer.lr; ",
            next.scale, skips);
    else if (skips >= t->max_skips)
        snprintf(
            reason, sizeof reason,
            "%lld steps in a row were skipped, and train.max_skips allows no more; take a lower optimizer.lr, or look "
            "at the data; ",
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
    if (metrics && metrics->size < sizeof *metrics)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "an_step_metrics has size %zu: set it with AN_INIT", metrics->size);
    if (t->planned) return AN_ERROR(ctx, AN_ERR_STATE, "this trainer was opened for its plan only");
    if (t->broken)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "a checkpoint was loaded into this trainer that turned out to be damaged: it "
                        "has part of its weights, and is only to be destroyed");
    if (t->next < t->steps) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_STATE, "the run has its %lld steps: it is done", (long long)t->steps);
}

an_status an_trainer_step(an_trainer *trainer, an_step_metrics *metrics) {
    AN_GUARD;
    AN_NEED(trainer);
    an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_batch samples;
    AN_TRY_RETURN(an_trainer_check_step(t, metrics));
    if (!t->loader)
        return AN_ERROR(
            ctx, AN_ERR_STATE,
            "the data is a stream, and nothing was pushed to it; an_trainer_step_on takes a step on samples "
            "of the caller's");
    an_status status = an_loader_next(t->loader, &samples);
    if (status == AN_OK) status = an_trainer_take(t, &samples, metrics);
    if (status == AN_OK) return AN_OK;
    an_error_frame(ctx, __func__, __FILE__, __LINE__);
    an_loader_seek(t->loader, t->next); /* the same samples again, if the caller tries again */
    return status;
}

an_status an_trainer_take(an_trainer *t, const an_batch *samples, an_step_metrics *metrics) {
    an_context *ctx = t->ctx;
    an_step_metrics own = AN_INIT(own);
    if (!metrics) metrics = &own;
    const an_status status = run_step(t, samples, metrics);
    if (status != AN_OK) {
        an_error_frame(ctx, __func__, __FILE__, __LINE__);
        an_step_cancel(t->stepper);
        return status;
    }
    t->next++;
    an_trainer_chain(t, (const double[]){metrics->loss, metrics->rate, metrics->norm}, 3);
    t->history[t->history_count++ % AN_HISTORY] = *metrics;
    t->progress.last = *metrics;
    return AN_OK;
}

/* ---- asking it ---- */

int64_t an_trainer_steps(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->steps;
}

int64_t an_trainer_next_step(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->next;
}

an_params *an_trainer_params(an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->params;
}

an_program *an_trainer_program(an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->program;
}

const an_dataset *an_trainer_data(const an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->training;
}

an_plan *an_trainer_plan(an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->plan;
}

an_graph *an_trainer_graph(an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->graph;
}

int64_t an_trainer_tokens(const an_trainer *t) {
    an_field field = AN_INIT(field);
    if (!t->training || an_dataset_field(t->training, 0, &field) != AN_OK) return 1;
    return field.ndims == 1 && field.dtype == AN_DTYPE_I32 ? field.dims[0] : 1;
}

an_status an_trainer_info_get(const an_trainer *trainer, an_trainer_info *info) {
    AN_GUARD;
    AN_NEED(trainer, info);
    const an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_status status;
    AN_CHECK(ctx, info->size >= sizeof *info, AN_ERR_ARGUMENT, "an_trainer_info has size %zu: set it with AN_INIT",
             info->size);
    *info = (an_trainer_info){
        .size = info->size,
        .parameters = an_graph_parameter_elements(t->graph),
        .samples = t->streams ? 0 : t->batches.samples,
        .evaluation_samples = t->evaluation ? an_evaluation_samples(t) : 0,
        .tokens = an_trainer_tokens(t),
        .steps = t->steps,
        .epoch_steps = t->streams ? 0 : an_batches_steps_in(&t->batches, 0),
        .global = t->batches.global,
        .micro = t->batches.micro,
        .leaves = t->batches.leaves,
        .dtype = t->graph->parameter_count ? t->graph->parameters[0].node->outputs[0].dtype : AN_DTYPE_NONE,
        .precision = t->precision,
        .loader_threads = t->loader_threads,
        .rate = t->stepper ? t->stepper->options.rate : 0,
    };
    if (!t->streams) {
        info->epochs = an_batches_epochs(&t->batches, t->steps);
        an_batches_epoch_steps(&t->batches, t->steps, &info->least_epoch_steps, &info->most_epoch_steps);
    }
    return AN_OK;
fail:
    return status;
}

const an_groups *an_trainer_groups(const an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->groups;
}

const an_schedule *an_trainer_schedule(const an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->schedule;
}

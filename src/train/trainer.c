/* The trainer: creates the parts of a run from a graph, data and options. */
#include "train/trainer.h"

#include <stdio.h>
#include <string.h>

#include "anneal/checkpoint.h"
#include "anneal/ranks.h"
#include "anneal/train.h"
#include "base/guard.h"
#include "base/integer.h"
#include "comm/comm.h"
#include "data/loader.h"
#include "data/permutation.h"
#include "launch/launcher.h"
#include "step/structs.h"
#include "store/route.h"
#include "train/changes.h"
#include "train/default_leaves.h"
#include "train/evaluation/own_metrics.h"
#include "train/loss_weights.h"
#include "train/memory_room.h"
#include "train/nonfinite.h"
#include "train/rank_compare.h"
#include "train/running.h"
#include "train/structs.h"

/* ---- making one ---- */

static an_status check_options(an_context *ctx, const an_trainer_options *o) {
    an_status status;
    AN_CHECK(ctx, !(o->steps && o->epochs), AN_ERR_ARGUMENT,
             "the length of the run must be in steps or in epochs, not both");
    AN_CHECK(ctx, o->steps >= 0 && o->epochs >= 0, AN_ERR_ARGUMENT, "the length of the run is negative");
    AN_CHECK(ctx, o->loader_threads >= 0, AN_ERR_ARGUMENT, "%d loader threads are not possible", o->loader_threads);
    AN_CHECK(ctx, o->writers >= 0 && o->owned_bytes >= 0, AN_ERR_ARGUMENT,
             "writers is %lld and owned_bytes %lld; they cannot be negative", (long long)o->writers,
             (long long)o->owned_bytes);
    AN_CHECK(ctx, o->purpose >= AN_OPEN_RUN && o->purpose <= AN_OPEN_PLAIN, AN_ERR_ARGUMENT,
             "purpose is %d, which is not a value of an_open_purpose", (int)o->purpose);
    AN_CHECK(ctx, o->ranks >= 0 && o->rank >= 0 && (o->ranks == 0 ? o->rank == 0 : o->rank < o->ranks), AN_ERR_ARGUMENT,
             "rank %d of %d ranks does not exist", o->rank, o->ranks);
    AN_CHECK(ctx, o->ranks == 0 || o->purpose == AN_OPEN_PLAN, AN_ERR_ARGUMENT,
             "rank and ranks are for plans: a run has those of its context");
    AN_CHECK(ctx, (unsigned)o->shard <= AN_SHARD_AUTO && o->min_elements >= 0, AN_ERR_ARGUMENT,
             "shard is %d, which must be a value of an_shard, and min_elements %lld, which must be 0 or more",
             (int)o->shard, (long long)o->min_elements);
    AN_CHECK(ctx, (unsigned)o->accumulate <= AN_ACCUMULATE_OFF, AN_ERR_ARGUMENT,
             "accumulate is %d, which is not a value of an_accumulation", (int)o->accumulate);
    AN_CHECK(ctx, o->accumulate != AN_ACCUMULATE_OFF || o->shard == AN_SHARD_AUTO || an_shard_has_rounds(o->shard),
             AN_ERR_ARGUMENT,
             "ranks.accumulate is off, but with ranks.shard %s every rank has all gradients and adds them: omit it, or "
             "set ranks.shard to gradients, full or hybrid",
             an_shard_name(o->shard));
    AN_CHECK(ctx, o->ema_decay >= 0 && o->ema_decay < 1, AN_ERR_ARGUMENT,
             "ema_decay is %g; it must be above 0 and below 1, or 0 for no average", o->ema_decay);
    AN_CHECK(ctx, (unsigned)o->weights <= AN_MODEL_WEIGHTS_AVERAGE, AN_ERR_ARGUMENT,
             "weights is %d, which is not a value of an_model_weights", (int)o->weights);
    AN_CHECK(ctx, o->weights != AN_MODEL_WEIGHTS_AVERAGE || o->ema_decay > 0, AN_ERR_ARGUMENT,
             "the run keeps no moving average of the weights (train.ema), so it cannot be evaluated");
    AN_CHECK(ctx, o->evaluation_micro >= 0, AN_ERR_ARGUMENT,
             "evaluation_micro is %lld; it must be 1 or more, or 0 for the default", (long long)o->evaluation_micro);
    AN_CHECK(ctx, o->max_skips > 0, AN_ERR_ARGUMENT, "max_skips is %lld; it must be 1 or more",
             (long long)o->max_skips);
    return AN_OK;
fail:
    return status;
}

static an_status make_schedule(an_trainer *t, const an_trainer_options *o) {
    if (!o->schedule) return AN_OK;
    an_context *ctx = t->ctx;
    an_schedule_options schedule;
    AN_TRY_RETURN(an_schedule_options_read(ctx, &schedule, o->schedule));
    if (schedule.steps == 0 && t->steps < INT64_MAX) schedule.steps = t->steps;
    return an_schedule_create(&t->schedule, t->ctx, &schedule);
}

static an_status make_stepper(an_trainer *t, const an_trainer_options *o) {
    an_stepper_options step;
    an_stepper_options_init(&step, sizeof step);
    step.rate = o->rate;
    step.clip_norm = o->clip_norm;
    step.clip_value = o->clip_value;
    step.leaves = t->samples.batches.leaves;
    step.scales = o->precision == AN_DTYPE_F16;
    step.skips = o->skips;
    step.reduces_bf16 = o->reduces_bf16;
    step.ema_decay = o->ema_decay;
    step.seed = o->seed;
    return an_stepper_create(&t->stepper, t->program, t->optimizer, t->schedule, &step);
}

/* The default weight decay is that of the optimizer. */
static an_status make_groups(an_trainer *t, const an_trainer_options *o) {
    an_context *ctx = t->ctx;
    an_group_options groups;
    an_optimizer_options optimizer;
    AN_TRY_RETURN(an_group_options_read(ctx, &groups, o->groups));
    AN_TRY_RETURN(an_optimizer_options_read(ctx, &optimizer, o->optimizer));
    groups.optimizer = optimizer.type;
    groups.optimizer_name = optimizer.name;
    return an_groups_create(&t->groups, t->graph, &groups);
}

/* What needs no plan: it is measured. */
static an_status make_first_parts(an_trainer *t, const an_trainer_options *o) {
    an_context *ctx = t->ctx;
    const size_t before = ctx->bytes;
    AN_TRY_RETURN(make_groups(t, o));
    if (!an_groups_train(t->groups))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the groups freeze every parameter, so nothing is left to train");
    AN_TRY_RETURN(an_graph_verify(t->graph));
    AN_TRY_RETURN(an_feed_make(&t->samples.feed, t->graph, t->samples.data));
    if (t->evaluator.data) AN_TRY_RETURN(an_feed_make(&t->evaluator.feed, t->graph, t->evaluator.data));
    AN_TRY_RETURN(make_schedule(t, o));
    AN_TRY_RETURN(an_norms_make(t, o->norms));
    AN_TRY_RETURN(an_loss_weights_make(t, o));
    AN_TRY_RETURN(an_default_leaves_choose(t, o));
    t->room.held += ctx->bytes - before;
    return AN_OK;
}

/* All that stands before the plan. */
static an_status prepare(an_trainer *t, const an_trainer_options *options) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_context_check_threads(ctx));
    t->record.progress = an_progress_start();
    t->evaluator.own_metric_count = t->evaluator.data ? an_own_metrics_count(ctx) : 0;
    t->seed = options->seed;
    const int64_t samples = t->samples.streams ? AN_STREAM_SAMPLES : an_dataset_count(t->samples.data);
    AN_TRY_RETURN(an_batches_make(&t->samples.batches, ctx, samples, options->batch));
    t->steps = options->steps ? options->steps
               : t->samples.streams
                   ? INT64_MAX
                   : an_batches_epoch_begin(&t->samples.batches, options->epochs ? options->epochs : 1);
    t->weighing.sample_mean = options->sample_mean;
    AN_TRY_RETURN(an_changes_check(t, options));
    t->max_skips = options->max_skips;
    t->evaluator.count = options->evaluation_samples;
    t->evaluator.micro = options->evaluation_micro;
    t->evaluator.asked_details = options->details;
    t->evaluator.shows_average = options->ema_decay > 0 && options->weights != AN_MODEL_WEIGHTS_RAW;
    t->precision = options->precision;
    t->samples.threads = options->loader_threads;
    t->room.chooses_recompute = options->recompute == AN_RECOMPUTE_AUTO;
    t->room.recompute = t->room.chooses_recompute ? AN_RECOMPUTE_NONE : options->recompute;
    AN_TRY_RETURN(make_first_parts(t, options));
    return an_ranks_check_leaves(t);
}

/* … and behind it. */
static an_status fill(an_trainer *t, const an_trainer_options *options) {
    an_context *ctx = t->ctx;
    an_params_options params;
    an_params_options_init(&params, sizeof params);
    AN_TRY_RETURN(an_plan_forced_kernels(t->plan, &t->record.kernels));
    if (t->record.kernels) AN_TRY_RETURN(an_plan_count_trainer(t->plan, strlen(t->record.kernels) + 1));
    AN_TRY_RETURN(an_memory_room_check(t, options));
    if (t->planned) return AN_OK;
    AN_TRY_RETURN(an_optimizer_moments_in(ctx, options->optimizer, &params.moments));
    params.average = options->ema_decay > 0;
    AN_TRY_RETURN(
        an_params_create_in(&t->params, ctx, t->graph, &params, t->division.shards ? &t->division.pieces : NULL));
    AN_TRY_RETURN(options->loads_weights ? an_params_defer(t->params, options->seed)
                                         : an_params_reset(t->params, options->seed));
    AN_TRY_RETURN(an_program_create(&t->program, t->plan, t->params));
    AN_TRY_RETURN(an_feed_set_limits(&t->samples.feed, t->program, t->samples.data));
    if (t->evaluator.data) AN_TRY_RETURN(an_feed_set_limits(&t->evaluator.feed, t->program, t->evaluator.data));
    AN_TRY_RETURN(an_optimizer_create(&t->optimizer, t->params, t->groups, options->optimizer));
    if (t->norms.count > 0) AN_TRY_RETURN(an_page_sums_divide(&t->optimizer->sums));
    AN_TRY_RETURN(make_stepper(t, options));
    if (t->evaluator.data) {
        const an_loader_options evaluation = an_evaluation_loader(t);
        AN_TRY_RETURN(an_loader_create(&t->evaluator.loader, ctx, &evaluation));
        AN_TRY_RETURN(an_alloc(ctx, (void **)&t->evaluator.output_values, t->evaluator.output_count,
                               sizeof *t->evaluator.output_values));
        t->evaluator.sums_count = an_evaluation_most_batches(t);
        AN_TRY_RETURN(
            an_alloc(ctx, (void **)&t->evaluator.sums, (size_t)t->evaluator.sums_count, sizeof *t->evaluator.sums));
        AN_TRY_RETURN(an_details_create(t));
    }
    const an_loader_options loader = an_trainer_loader(t);
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t->samples.numbers, (size_t)loader.maximum, sizeof *t->samples.numbers));
    t->samples.number_count = loader.maximum;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t->cut.ends, (size_t)t->cut.together, sizeof *t->cut.ends));
    if (an_trainer_weighs(t))
        AN_TRY_RETURN(
            an_alloc(ctx, (void **)&t->weighing.weights, an_trainer_weight_count(t), sizeof *t->weighing.weights));
    return t->samples.streams ? AN_OK : an_loader_create(&t->samples.loader, ctx, &loader);
}

static void find_rank(an_trainer *t, const an_trainer_options *o) {
    const bool given = o->purpose == AN_OPEN_PLAN && o->ranks > 0;
    t->rank = given ? o->rank : an_axis_rank(t->ctx, AN_AXIS_DATA);
    t->ranks = given ? o->ranks : an_axis_ranks(t->ctx, AN_AXIS_DATA);
    t->division.host_ranks = given ? an_host_ranks_planned(t->ctx, o->ranks, o->hosts) : an_host_ranks(t->ctx);
}

/* Of a checkpoint, where nobody says how many. */
static int64_t default_writers(const an_trainer *t, const an_trainer_options *o) {
    an_ranks_info info;
    an_ranks_info_init(&info, sizeof info);
    const bool given = o->purpose == AN_OPEN_PLAN && o->ranks > 0;
    if (given || an_context_ranks_info(t->ctx, &info) != AN_OK) info.hosts = o->hosts;
    return an_route_writers(t->ranks, info.hosts > 0 ? info.hosts : 1);
}

static void destroy_graph(void *object) {
    an_graph *graph = object;
    an_graph_destroy(&graph);
}

static void destroy_dataset(void *object) {
    an_dataset *dataset = object;
    an_dataset_destroy(&dataset);
}

/* The graph and the data, into a list that has room; the last one is destroyed first. */
static void own_all(an_trainer *t) {
    t->belongings.list[t->belongings.count++] = (struct an_owned){t->samples.data, destroy_dataset};
    if (t->evaluator.data)
        t->belongings.list[t->belongings.count++] = (struct an_owned){t->evaluator.data, destroy_dataset};
    t->belongings.list[t->belongings.count++] = (struct an_owned){t->graph, destroy_graph};
}

static an_status create(an_trainer **trainer, an_graph *graph, an_dataset *training, an_dataset *evaluation,
                        const an_trainer_options *options) {
    an_status status;
    an_context *ctx = graph->ctx;
    an_trainer *t = NULL;
    *trainer = NULL;
    AN_TRY(check_options(ctx, options));
    AN_CHECK(ctx, training, AN_ERR_ARGUMENT, "there is no data to train on");
    AN_CHECK(ctx, evaluation || options->evaluation_micro == 0, AN_ERR_ARGUMENT,
             "evaluation_micro is %lld, but there is no data to evaluate", (long long)options->evaluation_micro);
    if (options->purpose != AN_OPEN_PLAN) AN_TRY(an_launcher_check(ctx));
    const size_t before = ctx->bytes;
    AN_TRY(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    t->ctx = ctx;
    t->weighing.field = -1;
    find_rank(t, options);
    t->graph = graph;
    t->samples.data = training;
    t->evaluator.data = evaluation;
    t->samples.streams = training->streams;
    t->planned = options->purpose == AN_OPEN_PLAN;
    t->plain = options->purpose == AN_OPEN_PLAIN;
    t->division.asked = options->shard;
    t->saving.expected = options->saves;
    t->division.reduces_bf16 = options->reduces_bf16;
    t->saving.writers = options->writers ? options->writers : default_writers(t, options);
    if (options->owns)
        AN_TRY(an_grow(ctx, (void **)&t->belongings.list, &t->belongings.capacity, 3, sizeof *t->belongings.list));
    t->room.held = ctx->bytes - before + (size_t)options->owned_bytes;
    AN_TRY(prepare(t, options));
    *trainer = t;
    return AN_OK;
fail:
    an_trainer_destroy(&t);
    return status;
}

/* Plans it and makes the rest of it. Ranks compare before they choose together what they divide, and again
 * when everything is there. */
static an_status finish(an_trainer *t, const an_trainer_options *options) {
    bool settled;
    an_status status = an_sharding_settle(t, options, &settled);
    if (status == AN_OK && settled) status = an_memory_room_choose(t, options, &settled);
    if (status == AN_OK && settled) status = fill(t, options);
    if (status == AN_OK && options->owns) own_all(t);
    return an_ranks_compare(t, t->ctx, status);
}

/* A trainer that one rank cannot make, or would make otherwise, none of them has. */
an_status an_trainer_create(an_trainer **trainer, an_graph *graph, an_dataset *training, an_dataset *evaluation,
                            const an_trainer_options *options) {
    AN_GUARD;
    AN_NEED(graph, trainer, options);
    an_context *ctx = graph->ctx;
    an_trainer_options own;
    *trainer = NULL;
    an_status status = an_trainer_options_read(ctx, &own, options);
    if (status == AN_OK) status = create(trainer, graph, training, evaluation, &own);
    status = an_ranks_compare(*trainer, ctx, status);
    if (status == AN_OK && *trainer) status = finish(*trainer, &own);
    if (status == AN_OK || !*trainer) return status;
    (*trainer)->belongings.count = 0; /* graph and data stay the caller's */
    an_trainer_destroy(trainer);
    return status;
}

void an_trainer_destroy(an_trainer **trainer) {
    an_trainer *t = trainer ? *trainer : NULL;
    if (!t) return;
    an_context *ctx = t->ctx;
    if (t->run) t->destroy_run(t);
    an_trainer_end_counting(t);
    an_loader_destroy(&t->samples.loader);
    an_loader_destroy(&t->evaluator.loader);
    an_release(ctx, (void **)&t->samples.numbers, (size_t)t->samples.number_count, sizeof *t->samples.numbers);
    an_release(ctx, (void **)&t->cut.ends, (size_t)t->cut.together, sizeof *t->cut.ends);
    an_release(ctx, (void **)&t->weighing.weights, an_trainer_weight_count(t), sizeof *t->weighing.weights);
    an_loss_weights_destroy(t);
    an_handed_destroy(t);
    an_running_destroy(t);
    an_norms_destroy(t);
    an_details_destroy(t);
    an_release(ctx, (void **)&t->evaluator.sums, (size_t)t->evaluator.sums_count, sizeof *t->evaluator.sums);
    an_release(ctx, (void **)&t->evaluator.output_values, t->evaluator.output_count,
               sizeof *t->evaluator.output_values);
    an_stepper_destroy(&t->stepper);
    an_schedule_destroy(&t->schedule);
    an_optimizer_destroy(&t->optimizer);
    an_program_destroy(&t->program);
    an_params_destroy(&t->params);
    an_shards_destroy(&t->division.shards);
    an_plan_destroy(&t->plan);
    an_string_release(ctx, &t->record.kernels);
    an_groups_destroy(&t->groups);
    an_string_release(ctx, &t->room.notes);
    an_string_release(ctx, &t->adapted.path);
    while (t->belongings.count > 0) {
        const struct an_owned *last = &t->belongings.list[--t->belongings.count];
        last->destroy(last->object);
    }
    an_release(ctx, (void **)&t->belongings.list, t->belongings.capacity, sizeof *t->belongings.list);
    an_release(ctx, (void **)trainer, 1, sizeof *t);
}

/* The plan of a trainer: the program's, and everything else that the trainer holds. What exists before
 * the plan is measured; what is created after it reports its size in advance, so a plan without a run
 * has the same numbers.
 *
 * The forms of a plan are the same on all ranks; the rest is counted for one of them, and can be
 * counted again for another. */
#include <string.h>

#include "base/integer.h"
#include "data/loader.h"
#include "data/permutation.h"
#include "step/rounds.h"
#include "store/route.h"
#include "store/stream.h"
#include "train/changes.h"
#include "train/default_leaves.h"

/* The order of an epoch is a keyed permutation, so that any step is found at once. */
static an_batch_part step_indices(void *user, int64_t step, int64_t *indices) {
    const an_trainer *t = user;
    if (step >= t->steps) return (an_batch_part){.n = -1};
    const an_step_batch batch = an_batches_at(&t->samples.batches, step);
    const an_batch_part part = an_leaves_part(&t->samples.batches, step, &t->cut.leaves);
    const an_permutation order = an_permutation_make(t->seed, (uint64_t)batch.epoch, t->samples.batches.samples);
    for (an_leaf_samples l = {.index = -1}; an_leaf_set_next(&t->samples.batches, &t->cut.leaves, &part, &l);)
        for (int64_t i = 0; i < l.count; i++) indices[l.at + i] = an_permutation_at(&order, batch.begin + l.first + i);
    return part;
}

an_loader_options an_trainer_loader(an_trainer *t) {
    return (an_loader_options){.dataset = t->samples.data,
                               .threads = t->samples.threads,
                               .maximum = an_leaves_most(&t->samples.batches, &t->cut.leaves),
                               .indices = step_indices,
                               .partners = an_augment_mixes(&t->samples.augment) ? an_changes_partners : NULL,
                               .change = an_changes_are_on(t) ? an_changes_make : NULL,
                               .scratch_bytes = an_augment_bytes(&t->samples.augment),
                               .user = t};
}

/* ---- memory ---- */

int64_t an_trainer_own_pages(const an_trainer *t) {
    int64_t pages = 0;
    for (int i = 0; t->division.shards && i < t->division.shards->unit_count; i++) {
        const an_page_range piece = an_shards_piece(t->division.shards, i, t->division.shards->rank);
        pages += piece.end - piece.begin;
    }
    return t->division.shards ? pages : t->plan->sizes.trainable_elements / AN_PAGE;
}

static bool add_parts(an_trainer *t, size_t *bytes) {
    const an_loader_options loader = an_trainer_loader(t), evaluation = an_evaluation_loader(t);
    const bool norms = t->division.shards && t->norms.count > 0;
    return an_optimizer_bytes(an_trainer_own_pages(t), t->graph->parameter_count, bytes) &&
           (!norms || an_page_sums_part_bytes(t->graph->parameter_count, bytes)) &&
           (!t->evaluator.data ||
            (an_loader_bytes(&evaluation, bytes) &&
             an_add_elements(bytes, (size_t)an_evaluation_most_batches(t), sizeof *t->evaluator.sums))) &&
           an_add_elements(bytes, t->evaluator.output_count, sizeof *t->evaluator.output_values) &&
           an_details_bytes(t, bytes) && an_add_elements(bytes, (size_t)loader.maximum, sizeof *t->samples.numbers) &&
           an_add_elements(bytes, (size_t)t->cut.together, sizeof *t->cut.ends) &&
           (!an_trainer_weighs(t) || an_add_elements(bytes, an_trainer_weight_count(t), sizeof *t->weighing.weights)) &&
           (t->samples.streams || an_loader_bytes(&loader, bytes));
}

/* Which leaves each rank has. It is the same for all of them, and O(ranks) to find. */
static const an_border_survey *survey_borders(an_trainer *t) {
    const an_borders *known = &t->division.borders.chosen;
    if (known->ranks != t->ranks || known->leaves != t->samples.batches.leaves)
        t->division.borders = an_borders_survey(t->samples.batches.leaves, t->ranks);
    return &t->division.borders;
}

/* What one way to give leaves to ranks costs. */
static void describe_borders(const an_trainer *t, an_border_kind kind, int64_t *leaves, int64_t *bytes) {
    const an_border_cost *cost = &t->division.borders.costs[kind];
    *leaves = cost->most_leaves;
    *bytes = cost->most_traffic * (an_params_flat_bytes(&t->plan->sizes) / t->ranks);
}

/* In rounds, gradients go to their owners: nothing is shared, and leaves lie in no range. */
static void count_traffic(const an_trainer *t, const an_borders *borders, const an_reduction_cost *cost) {
    const bool has_ranges = t->ranks > 1 && !an_shard_has_rounds(t->division.pieces.sharding);
    an_plan_traffic traffic = {.sent = cost->sent,
                               .received = cost->received,
                               .messages = cost->messages,
                               .read = cost->read,
                               .written = cost->written,
                               .leaves = t->cut.leaves.count,
                               .rank = t->rank,
                               .ranks = t->ranks,
                               .host_ranks = has_ranges ? t->division.host_ranks : t->ranks > 1,
                               .subtrees = has_ranges && borders->kind == AN_BORDERS_SUBTREE};
    if (has_ranges) {
        describe_borders(t, AN_BORDERS_SUBTREE, &traffic.subtree_leaves, &traffic.subtree_bytes);
        describe_borders(t, AN_BORDERS_EVEN, &traffic.even_leaves, &traffic.even_bytes);
    }
    an_plan_count_traffic(t->plan, &traffic);
}

/* What a stepper takes: with several ranks, nearly all of it is for what they exchange. */
static an_status count_stepper(an_trainer *t, const an_borders *borders, size_t *bytes) {
    an_reduction_cost cost;
    size_t taken = 0, waiting = 0;
    const an_stepper_shape shape = {.borders = borders,
                                    .rank = t->rank,
                                    .host_ranks = t->division.host_ranks,
                                    .norms = t->norms.count > 0,
                                    .is_bf16 = t->division.reduces_bf16};
    AN_TRY_RETURN(an_stepper_predict(t->plan, &t->division.pieces, &shape, &taken, &cost));
    count_traffic(t, borders, &cost);
    if (an_shard_has_rounds(t->division.pieces.sharding))
        AN_TRY_RETURN(an_leaf_rounds_waiting(t->plan, &t->division.pieces, t->samples.batches.leaves,
                                             t->division.reduces_bf16, &waiting));
    if (t->ranks > 1) return an_plan_count_messages(t->plan, waiting, taken - waiting);
    *bytes += taken;
    return AN_OK;
}

static an_status count(an_trainer *t, const an_borders *borders) {
    an_context *ctx = t->ctx;
    size_t bytes = t->room.held;
    AN_TRY_RETURN(count_stepper(t, borders, &bytes));
    if (!add_parts(t, &bytes))
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "batch: the samples of a step do not fit in memory: lower batch.global");
    return an_plan_count_trainer(t->plan, bytes);
}

/* ---- the plan ---- */

/* The copy that a checkpoint needs is known from the model: what this rank writes. The layout is that of all ranks'
 * files, so it is made once for all that are counted. */
static an_status measure_checkpoint(an_trainer *t, an_kept kept, int64_t *bytes) {
    an_context *ctx = t->ctx;
    *bytes = 0;
    if (!t->saving.expected) return AN_OK;
    if (!t->division.layout)
        AN_TRY_RETURN(an_save_layout_create(&t->division.layout, ctx, t->graph, kept, t->saving.writers));
    const an_file_range files = an_route_files(t->division.layout->file_count, t->rank, t->ranks);
    *bytes = (int64_t)(t->saving.directly ? an_save_window_bytes(t->division.layout, files, AN_SAVE_WINDOW)
                                          : an_save_image_bytes(t->division.layout, files));
    return AN_OK;
}

/* Forgets who owns what. */
static void unite(an_trainer *t) {
    const size_t before = t->ctx->bytes;
    an_shards_destroy(&t->division.shards);
    t->division.pieces.shards = NULL;
    t->room.held -= before - t->ctx->bytes;
}

/* Who owns what of the parameters, if ranks divide them. */
static an_status divide(an_trainer *t) {
    an_context *ctx = t->ctx;
    const an_shards_options options = {.ranks = t->division.group_ranks,
                                       .rank = t->rank % t->division.group_ranks,
                                       .groups = t->ranks / t->division.group_ranks,
                                       .group = t->rank / t->division.group_ranks};
    unite(t);
    if (t->division.pieces.sharding == AN_SHARD_NONE) return AN_OK;
    const size_t before = ctx->bytes;
    AN_TRY_RETURN(an_shards_create(&t->division.shards, ctx, t->plan, &options));
    t->room.held += ctx->bytes - before;
    t->division.pieces.shards = t->division.shards;
    an_plan_divide(t->plan, &t->division.pieces);
    return AN_OK;
}

/* Those of a rank that gathers weights or scatters gradients run in rounds (step/rounds.h); else they lie side by
 * side. */
static an_leaf_set find_leaves(const an_trainer *t, const an_leaf_range *range) {
    const int64_t count = range->end - range->begin, each = t->division.pieces.round_leaves,
                  leaves = t->samples.batches.leaves;
    const int ranks = t->division.group_ranks;
    if (!an_shard_has_rounds(t->division.pieces.sharding)) return (an_leaf_set){range->begin, 1, count, count};
    const an_leaf_range nodes = an_leaf_rounds_range(leaves, each, t->ranks / ranks, t->rank / ranks);
    const int64_t first = nodes.begin + t->rank % ranks, rounds = an_divide_up(an_larger(nodes.end - first, 0), ranks);
    const int64_t end = (first + (rounds - 1) * ranks + 1) * each,
                  missing = an_larger(end - leaves, 0); /* of the last node */
    return (an_leaf_set){first * each, ranks * each, rounds > 0 ? rounds * each - missing : 0, each};
}

/* Those whose gradients the rank adds by itself: of a step, or of a round. */
static an_leaf_range find_added(const an_trainer *t, const an_leaf_range *range) {
    const int64_t leaves = t->samples.batches.leaves;
    if (!an_shard_has_rounds(t->division.pieces.sharding)) return *range;
    return (an_leaf_range){0, an_smaller(t->division.pieces.round_leaves, leaves), leaves};
}

an_status an_trainer_count_rank(an_trainer *t, int rank) {
    int64_t checkpoint;
    t->rank = rank;
    const an_borders borders = survey_borders(t)->chosen;
    const an_leaf_range range = an_borders_range(&borders, rank);
    t->cut.leaves = find_leaves(t, &range);
    AN_TRY_RETURN(measure_checkpoint(t, t->plan->kept, &checkpoint));
    const an_leaf_range added = find_added(t, &range);
    an_plan_count_rank(t->plan, &added, checkpoint);
    AN_TRY_RETURN(divide(t));
    return count(t, &borders);
}

/* The most leaves that a micro-batch may have: those of the rank that has most, as all ranks have the same forms. Where
 * the gradients of each leaf are rounded, it is one. */
static int64_t most_together(an_trainer *t) {
    if (t->division.reduces_bf16) return 1;
    if (an_shard_has_rounds(t->division.pieces.sharding))
        return an_leaf_rounds_most(t->samples.batches.leaves, t->division.group_ranks,
                                   t->ranks / t->division.group_ranks);
    const an_border_survey *survey = survey_borders(t);
    return survey->costs[survey->chosen.kind].most_leaves;
}

/* What a rank makes in a round (step/rounds.h): one micro-batch, or several whose gradients it adds. */
static void settle_round(an_trainer *t) {
    const an_batches *b = &t->samples.batches;
    an_params_pieces *p = &t->division.pieces;
    p->round_leaves = p->round_passes = 0;
    if (!an_shard_has_rounds(p->sharding)) return;
    const int64_t maximum = most_together(t), samples = an_divide_up(an_batches_largest(b), b->leaves);
    const int64_t passes = maximum / t->cut.together * (t->cut.together > 1 ? 1 : an_divide_up(samples, b->micro));
    const bool adds = t->division.accumulates && passes > 1;
    p->round_leaves = adds ? maximum : t->cut.together;
    p->round_passes = adds ? passes : 0;
}

static an_status make_plan(an_trainer *t, const an_trainer_options *o, int64_t maximum) {
    an_context *ctx = t->ctx;
    const char *symbols[AN_MAX_FEED_SYMBOLS + 1];
    int64_t maxima[AN_MAX_FEED_SYMBOLS + 1], evaluation_maxima[AN_MAX_FEED_SYMBOLS + 1];
    an_plan_options plan;
    an_plan_options_init(&plan, sizeof plan);
    symbols[0] = t->samples.feed.batch;
    t->cut.together = an_batches_together(&t->samples.batches, maximum);
    settle_round(t);
    maxima[0] = t->samples.batches.micro;
    plan.run_leaves = t->cut.together;
    plan.accumulates = t->division.pieces.round_passes > 1;
    plan.samples = t->samples.feed.batch;
    plan.leaves = t->samples.batches.leaves;
    plan.rank = t->rank;
    plan.ranks = t->ranks;
    plan.shard = t->division.pieces.sharding;
    plan.min_elements = o->min_elements;
    plan.weighs_samples = an_trainer_weighs(t);
    plan.mixes_targets = t->weighing.mixes_classes;
    plan.symbol_count = t->samples.feed.symbol_count + 1;
    for (int i = 0; i < t->samples.feed.symbol_count; i++) {
        symbols[i + 1] = t->samples.feed.symbols[i];
        maxima[i + 1] = t->samples.feed.values[i];
        for (int k = 0; t->evaluator.data && k < t->evaluator.feed.symbol_count; k++)
            if (!strcmp(t->evaluator.feed.symbols[k], symbols[i + 1]) && t->evaluator.feed.values[k] > maxima[i + 1])
                maxima[i + 1] = t->evaluator.feed.values[k];
    }
    plan.symbols = symbols;
    plan.maxima = maxima;
    if (t->evaluator.data && an_evaluation_micro(t) != t->samples.batches.micro) {
        memcpy(evaluation_maxima, maxima, sizeof maxima);
        evaluation_maxima[0] = an_evaluation_micro(t);
        plan.evaluation_maxima = evaluation_maxima;
    }
    AN_TRY_RETURN(an_optimizer_moments_in(ctx, o->optimizer, &plan.moments));
    plan.average = o->ema_decay > 0;
    plan.precision = o->precision;
    plan.f32_storage = o->f32_storage;
    plan.recompute = t->room.recompute;
    plan.segments = o->segments;
    plan.budget = o->budget;
    plan.kernels = o->kernels;
    plan.fused = o->fused;
    plan.programs = AN_PROGRAM_TRAINING | (t->evaluator.data ? AN_PROGRAM_EVALUATION : 0U);
    const size_t before = ctx->bytes;
    AN_TRY_RETURN(an_plan_create(&t->plan, ctx, t->graph, &plan));
    t->room.held += ctx->bytes - before;
    return AN_OK;
}

an_status an_trainer_make_plan(an_trainer *t, const an_trainer_options *o) {
    bool changed;
    AN_TRY_RETURN(make_plan(t, o, most_together(t)));
    AN_TRY_RETURN(an_default_leaves_settle(t, &changed));
    const bool has_one = an_plan_one_leaf(t->plan) != NULL;
    if (changed || (t->cut.together > 1 && has_one)) { /* only the compiled model says so */
        an_trainer_drop_plan(t);
        AN_TRY_RETURN(make_plan(t, o, has_one ? 1 : most_together(t)));
    }
    if (t->evaluator.data) {
        an_evaluation_find(t);
        an_details_find(t, t->evaluator.asked_details);
    }
    return an_trainer_count_rank(t, t->rank);
}

void an_trainer_end_counting(an_trainer *t) {
    an_save_layout_destroy(&t->division.layout);
}

void an_trainer_drop_plan(an_trainer *t) {
    unite(t);
    an_trainer_end_counting(t);
    const size_t before = t->ctx->bytes;
    an_plan_destroy(&t->plan);
    t->room.held -= before - t->ctx->bytes;
}

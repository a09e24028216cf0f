#include "step/rounds.h"

#include <stdio.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/status.h"
#include "comm/comm.h"

static int64_t each_of(const an_params_pieces *pieces) {
    return an_larger(pieces->round_leaves, 1);
}

an_leaf_range an_leaf_rounds_range(int64_t leaves, int64_t each, int groups, int group) {
    const an_borders borders = an_borders_choose(an_divide_up(leaves, each), groups);
    return an_borders_range(&borders, group);
}

static an_leaf_range range_of(const an_params_pieces *pieces, int64_t leaves) {
    return an_leaf_rounds_range(leaves, each_of(pieces), pieces->shards->groups, pieces->shards->group);
}

int64_t an_leaf_rounds_count(const an_params_pieces *pieces, int64_t leaves) {
    const an_shards *shards = pieces->shards;
    if (!shards || !an_shard_has_rounds(pieces->sharding) || shards->ranks == 1) return 0;
    const an_leaf_range range = range_of(pieces, leaves);
    return an_divide_up(range.end - range.begin, shards->ranks);
}

/* The leaves that a rank makes at most, one after another. */
static int64_t most_work(int64_t leaves, int64_t each, int ranks, int groups) {
    const an_borders borders = an_borders_choose(an_divide_up(leaves, each), groups);
    return an_divide_up(an_borders_cost(&borders).most_leaves, ranks) * each;
}

/* Whether every rank makes a node in the first round. */
static bool has_work(int64_t leaves, int64_t each, int ranks, int groups) {
    const int64_t nodes = an_divide_up(leaves, each);
    if (nodes < groups) return false;
    const an_borders borders = an_borders_choose(nodes, groups);
    int64_t minimum = nodes;
    for (int i = 0; i < groups; i++) {
        const an_leaf_range range = an_borders_range(&borders, i);
        minimum = an_smaller(minimum, range.end - range.begin);
    }
    return minimum >= ranks;
}

int64_t an_leaf_rounds_most(int64_t leaves, int ranks, int groups) {
    const int64_t minimum = most_work(leaves, 1, ranks, groups);
    int64_t each = 1;
    while (has_work(leaves, 2 * each, ranks, groups) && most_work(leaves, 2 * each, ranks, groups) == minimum)
        each *= 2;
    return each;
}

/* ---- what the program asks for ---- */

/* The op scatter: the gradients of a unit are complete. */
static an_status send_unit(void *user, int unit, void *root, an_status failed) {
    const an_leaf_rounds *r = user;
    const bool has_gradients = failed == AN_OK && !r->is_absent;
    return an_scattering_start(r->scattering, unit, r->next - 1, has_gradients ? root : NULL);
}

/* The op scattered: their memory is needed for other things. */
static an_status wait_sent(void *user, int unit) {
    const an_leaf_rounds *r = user;
    return an_scattering_wait(r->scattering, unit);
}

static void join_ranks(an_leaf_rounds *r) {
    r->program->exchange.gradients = (an_gradient_exchange){.user = r, .send_unit = send_unit, .wait_sent = wait_sent};
}

/* A node of several micro-batches opens it for the last of them (step/leaves.c). */
static void open_exchange(const an_leaf_rounds *r, bool open) {
    if (r->passes == 1) r->program->exchange.gradients.is_open = open;
}

/* ---- making them ---- */

static an_scatter_options describe(const an_params_pieces *pieces, an_dtype dtype, int64_t leaves, bool is_bf16,
                                   an_reduction_unit *units) {
    const an_shards *shards = pieces->shards;
    for (int i = 0; i < shards->gradient_unit_count; i++)
        units[i] = (an_reduction_unit){.pages = shards->units[i].pages,
                                       .name = *shards->units[i].name ? shards->units[i].name : "the rest of the model",
                                       .turn = shards->units[i].turn};
    return (an_scatter_options){.leaves = range_of(pieces, leaves),
                                .dtype = dtype,
                                .is_bf16 = is_bf16,
                                .pages = shards->gradient_pages,
                                .units = units,
                                .unit_count = shards->gradient_unit_count};
}

/* What owners add across hosts: their own pieces, where they have some. All hosts have the same. */
static an_reduction_options describe_hosts(const an_shards *shards, const an_scatter_options *scatter,
                                           an_reduction_unit *pieces) {
    int count = 0;
    for (int i = 0; i < shards->gradient_unit_count; i++) {
        const an_page_range piece = an_shards_piece(shards, i, shards->rank);
        if (piece.begin < piece.end)
            pieces[count++] = (an_reduction_unit){.pages = piece, .name = scatter->units[i].name};
    }
    return (an_reduction_options){.borders = an_borders_choose(scatter->leaves.leaves, shards->groups),
                                  .dtype = scatter->dtype,
                                  .pages = scatter->pages,
                                  .units = pieces,
                                  .unit_count = count};
}

/* Those of the units, and behind them those of the pieces, if there are several hosts. */
static size_t unit_records(const an_shards *shards) {
    return (size_t)shards->gradient_unit_count * (shards->groups > 1 ? 2 : 1);
}

an_status an_leaf_rounds_predict(const an_plan *plan, const an_params_pieces *pieces, int64_t leaves, bool is_bf16,
                                 size_t *bytes, an_reduction_cost *cost) {
    an_status status;
    an_context *ctx = plan->ctx;
    const an_shards *shards = pieces->shards;
    const size_t records = unit_records(shards);
    an_reduction_unit *units = NULL;
    AN_TRY(an_alloc(ctx, (void **)&units, records, sizeof *units));
    const an_scatter_options options = describe(pieces, plan->sizes.trainable_dtype, leaves, is_bf16, units);
    const an_scatter_cost scatter = an_scatter_predict(&options, shards->rank, shards->ranks);
    an_reduction_cost hosts = {0};
    if (shards->groups > 1) {
        const an_reduction_options across = describe_hosts(shards, &options, units + shards->gradient_unit_count);
        if (across.unit_count > 0) hosts = an_reduction_predict(&across, shards->group, 1);
    }
    cost->sent += scatter.sent + hosts.sent;
    cost->received += scatter.received + hosts.received;
    cost->messages += scatter.messages + hosts.messages;
    AN_CHECK(ctx,
             an_add_elements(bytes, scatter.bytes, 1) && an_add_elements(bytes, scatter.stack_bytes, 1) &&
                 an_add_elements(bytes, hosts.bytes, 1) && an_add_elements(bytes, records, sizeof *units) &&
                 (pieces->round_passes < 2 || an_add_elements(bytes, an_leaves_group_bytes(pieces->round_leaves), 1)),
             AN_ERR_OVERFLOW, "the gradients that ranks exchange do not fit in memory");
    status = AN_OK;
fail:
    an_release(ctx, (void **)&units, records, sizeof *units);
    return status;
}

an_status an_leaf_rounds_waiting(const an_plan *plan, const an_params_pieces *pieces, int64_t leaves, bool is_bf16,
                                 size_t *bytes) {
    an_context *ctx = plan->ctx;
    const an_shards *shards = pieces->shards;
    an_reduction_unit *units = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&units, unit_records(shards), sizeof *units));
    const an_scatter_options options = describe(pieces, plan->sizes.trainable_dtype, leaves, is_bf16, units);
    *bytes = an_scatter_predict(&options, shards->rank, shards->ranks).stack_bytes;
    an_release(ctx, (void **)&units, unit_records(shards), sizeof *units);
    return AN_OK;
}

static an_status make_hosts(an_leaf_rounds *r, const an_shards *shards) {
    r->pieces = r->units + shards->gradient_unit_count;
    const an_reduction_options options = describe_hosts(shards, &r->options, r->pieces);
    r->piece_count = options.unit_count;
    if (r->piece_count == 0) return AN_OK; /* nor has the owner of nothing on any other host */
    return an_reduction_create(&r->hosts, r->ctx, an_axis_comm(r->ctx, AN_AXIS_REPLICA), &options);
}

/* What is sent of a node that was made in several micro-batches. */
static an_status send_own(void *user, int unit, void *const *nodes) {
    const an_leaf_rounds *r = user;
    const size_t element = an_dtype_size(r->options.dtype);
    const size_t at = (size_t)r->options.units[unit].pages.begin * AN_PAGE * element;
    return an_scattering_start(r->scattering, unit, (r->next - 1) / r->passes,
                               nodes ? (const char *)nodes[0] + at : NULL);
}

static an_status make_own(an_leaf_rounds *r) {
    const an_leaf_group group = {.range = {0, an_smaller(r->each, r->leaves), r->leaves},
                                 .units = r->options.units,
                                 .unit_count = r->options.unit_count,
                                 .send = send_own,
                                 .send_user = r};
    return an_leaves_make_group(&r->own, r->program, &group);
}

an_status an_leaf_rounds_make(an_leaf_rounds *r, an_program *program, int64_t leaves, bool is_bf16,
                              an_forest *forests) {
    an_status status;
    an_context *ctx = program->ctx;
    an_params *params = program->params;
    const an_shards *shards = params->pieces.shards;
    *r = (an_leaf_rounds){.ctx = ctx,
                          .program = program,
                          .params = params,
                          .rank = shards->rank,
                          .ranks = shards->ranks,
                          .leaves = leaves,
                          .each = each_of(&params->pieces),
                          .count = an_leaf_rounds_count(&params->pieces, leaves),
                          .passes = an_leaf_rounds_passes(&params->pieces),
                          .unit_records = unit_records(shards),
                          .forests = forests,
                          .width = an_leaf_width(program->plan->model),
                          .narrow = an_leaf_narrow(program->plan->model)};
    AN_TRY(an_alloc(ctx, (void **)&r->units, r->unit_records, sizeof *r->units));
    r->options = describe(&params->pieces, params->sizes.trainable_dtype, leaves, is_bf16, r->units);
    AN_TRY(an_scattering_create(&r->scattering, ctx, an_shards_comm(shards), &r->options));
    if (shards->groups > 1) AN_TRY(make_hosts(r, shards));
    if (r->passes > 1)
        AN_TRY(make_own(r));
    else
        join_ranks(r);
    return AN_OK;
fail:
    an_leaf_rounds_destroy(r);
    return status;
}

void an_leaf_rounds_destroy(an_leaf_rounds *r) {
    an_context *ctx = r->ctx;
    if (!ctx) return;
    an_leaf_rounds_cancel(r);
    if (r->passes == 1) r->program->exchange.gradients = (an_gradient_exchange){0};
    an_leaves_destroy(&r->own);
    an_reduction_destroy(&r->hosts);
    an_scattering_destroy(&r->scattering);
    an_release(ctx, (void **)&r->units, r->unit_records, sizeof *r->units);
    r->ctx = NULL;
}

/* ---- a step ---- */

/* The forest of a round: of one node, or of none behind the last. */
static an_forest *forest_at(const an_leaf_rounds *r, int64_t round) {
    an_forest *forest = r->forests;
    for (int64_t i = 0; i < round; i++) forest = an_forest_next(forest);
    return forest;
}

/* The leaves of this rank in a round. */
static an_leaf_range leaves_of(const an_leaf_rounds *r, int64_t round) {
    const an_leaf_range *all = &r->options.leaves;
    const int64_t end = an_smaller(all->end * r->each, r->leaves);
    const int64_t first = (all->begin + round * r->ranks + r->rank) * r->each;
    return (an_leaf_range){an_smaller(first, end), an_smaller(first + r->each, end), r->leaves};
}

an_status an_leaf_rounds_start(an_leaf_rounds *r) {
    an_forest *forest = r->forests;
    for (int64_t i = 0; i < r->count; i++, forest = an_forest_next(forest)) {
        const an_leaf_range own = leaves_of(r, i);
        an_forest_begin(forest, &own, r->width);
        forest->narrow = r->narrow;
    }
    r->next = 0;
    AN_TRY_RETURN(an_scattering_begin(r->scattering, r->params->gradients));
    open_exchange(r, true);
    return AN_OK;
}

static bool is_last(const an_leaf_rounds *r, int64_t pass) {
    return (pass + 1) % r->passes == 0;
}

/* The first micro-batch of a node overwrites what was sent of the one before. */
static an_status begin_node(an_leaf_rounds *r, int64_t round) {
    const an_leaf_range range = leaves_of(r, round);
    if (round > 0) AN_TRY_RETURN(an_leaves_complete(&r->own));
    for (int i = 0; round > 0 && i < r->options.unit_count; i++) AN_TRY_RETURN(an_scattering_wait(r->scattering, i));
    an_leaves_regroup(&r->own, &range, forest_at(r, round));
    return AN_OK;
}

/* The micro-batch that comes next. */
static an_status begin_pass(an_leaf_rounds *r) {
    const int64_t pass = r->next++;
    if (r->passes == 1) return AN_OK;
    an_leaves_send_next(&r->own, false);
    return pass % r->passes == 0 ? begin_node(r, pass / r->passes) : AN_OK;
}

/* A micro-batch that has begun, and in which this rank has nothing to run. In the last one of a round it
 * sends what others have made. */
static an_status communicate_once(an_leaf_rounds *r, an_status status) {
    const bool sends = r->passes > 1 && is_last(r, r->next - 1);
    if (sends && status == AN_OK) status = an_leaves_complete(&r->own);
    if (sends) an_leaves_send_next(&r->own, true);
    r->is_absent = true;
    an_program_communicate(r->program, AN_FORM_TRAIN_FIRST, status);
    r->is_absent = false;
    return status;
}

/* Those before number `end` of the step. */
static an_status communicate(an_leaf_rounds *r, int64_t end, an_status status) {
    while (r->next < end) {
        const an_status begun = begin_pass(r);
        status = communicate_once(r, status == AN_OK ? begun : status);
    }
    return status;
}

static an_status refuse_leaf(const an_leaf_rounds *r, int64_t leaf, int64_t count) {
    an_context *ctx = r->ctx;
    char leaves[64] = "one leaf";
    if (r->each > 1) snprintf(leaves, sizeof leaves, "%lld leaves", (long long)r->each);
    return AN_ERROR(
        ctx, AN_ERR_ARGUMENT,
        "a micro-batch of %lld leaves from leaf %lld on does not come next: where ranks divide gradients, "
        "rank %d of %d makes %s at a time, in %lld micro-batch%s at most. If the step has more samples than "
        "batch.global, set that to the samples of the largest step",
        (long long)count, (long long)leaf, r->rank, r->ranks, leaves, (long long)r->passes, r->passes == 1 ? "" : "es");
}

/* Whether leaves are what a micro-batch of this round can have; the round has not ended. */
static bool fits_round(const an_leaf_rounds *r, int64_t round, int64_t leaf, int64_t count) {
    const an_leaf_range own = leaves_of(r, round);
    const bool whole = leaf == own.begin && count == own.end - own.begin;
    return r->next < (round + 1) * r->passes && (r->passes > 1 || whole);
}

/* The numbers of a node that is one micro-batch are still zeros. */
static an_status enter(an_leaf_rounds *r, int64_t leaf, int64_t count, an_leaf_entry *entry) {
    AN_TRY_RETURN(begin_pass(r));
    if (r->passes > 1) return an_leaves_enter(&r->own, leaf, count, is_last(r, r->next - 1), entry);
    an_forest *forest = forest_at(r, r->next - 1);
    an_forest_push(forest, leaf);
    *entry = (an_leaf_entry){.first = true, .sums = an_forest_values(forest, 0)};
    return AN_OK;
}

an_status an_leaf_rounds_enter(an_leaf_rounds *r, int64_t leaf, int64_t count, an_leaf_entry *entry) {
    const int64_t begin = leaf / r->each - r->options.leaves.begin - r->rank, round = begin / r->ranks;
    if (leaf < 0 || leaf >= r->leaves || begin < 0 || begin % r->ranks != 0 || round >= r->count ||
        !fits_round(r, round, leaf, count))
        return refuse_leaf(r, leaf, count);
    AN_TRY_RETURN(communicate(r, round * r->passes, AN_OK));
    const an_status status = enter(r, leaf, count, entry);
    return status == AN_OK ? AN_OK : communicate_once(r, status);
}

/* What the hosts have of this rank's pieces, as far as each could add it. A rank that has failed takes part: others
 * wait for it, and nobody will use the sum. */
static an_status add_hosts(an_leaf_rounds *r) {
    void *nodes[AN_FOREST_MOST];
    if (!r->hosts) return AN_OK;
    for (int i = 0; i < an_scattering_nodes(r->scattering); i++) nodes[i] = an_scattering_node(r->scattering, i);
    for (int i = 0; i < r->piece_count; i++)
        AN_TRY_RETURN(an_reduction_start(r->hosts, i, nodes, r->params->gradients));
    return an_reduction_finish(r->hosts);
}

an_status an_leaf_rounds_reduce(an_leaf_rounds *r, an_status status) {
    status = communicate(r, r->count * r->passes, status);
    if (r->passes > 1 && status == AN_OK) status = an_leaves_complete(&r->own);
    an_status finished = an_scattering_finish(r->scattering);
    open_exchange(r, false);
    if (r->passes > 1) an_leaves_send_next(&r->own, false);
    if (r->passes > 1) an_program_bind_gradients(r->program, NULL);
    if (finished == AN_OK) finished = add_hosts(r);
    return status == AN_OK ? finished : status;
}

void an_leaf_rounds_join(an_leaf_rounds *r) {
    an_forest *next = r->forests;
    for (int64_t i = 1; i < r->count; i++) {
        next = an_forest_next(next);
        an_forest_merge(r->forests, next);
    }
}

void an_leaf_rounds_cancel(an_leaf_rounds *r) {
    if (!r->ctx || !r->scattering) return;
    open_exchange(r, false);
    if (r->own.ctx) an_leaves_cancel(&r->own);
    if (r->hosts) an_reduction_cancel(r->hosts);
    if (r->next > 0) an_scattering_cancel(r->scattering);
    r->next = 0;
}

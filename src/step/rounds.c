#include "step/rounds.h"

#include "base/integer.h"
#include "base/memory.h"
#include "base/status.h"
#include "comm/comm.h"

an_leaf_range an_leaf_rounds_range(const an_shards *shards, int64_t leaves) {
    const an_borders borders = an_borders_choose(leaves, shards->groups);
    return an_borders_range(&borders, shards->group);
}

int64_t an_leaf_rounds_count(const an_params_pieces *pieces, int64_t leaves) {
    const an_shards *shards = pieces->shards;
    if (!shards || !an_shard_has_rounds(pieces->sharding) || shards->ranks == 1) return 0;
    const an_leaf_range range = an_leaf_rounds_range(shards, leaves);
    return an_divide_up(range.end - range.begin, shards->ranks);
}

/* ---- making them ---- */

static an_scatter_options describe(const an_shards *shards, an_dtype dtype, int64_t leaves, bool is_bf16,
                                   an_reduction_unit *units) {
    for (int i = 0; i < shards->unit_count; i++)
        units[i] = (an_reduction_unit){.pages = shards->units[i].pages,
                                       .name = *shards->units[i].name ? shards->units[i].name : "the rest of the model",
                                       .turn = i};
    return (an_scatter_options){.leaves = an_leaf_rounds_range(shards, leaves),
                                .dtype = dtype,
                                .is_bf16 = is_bf16,
                                .pages = shards->pages,
                                .units = units,
                                .unit_count = shards->unit_count};
}

/* What owners add across hosts: their own pieces, where they have some. All hosts have the same. */
static an_reduction_options describe_hosts(const an_shards *shards, const an_scatter_options *scatter,
                                           an_reduction_unit *pieces) {
    int count = 0;
    for (int i = 0; i < shards->unit_count; i++) {
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
    return (size_t)shards->unit_count * (shards->groups > 1 ? 2 : 1);
}

an_status an_leaf_rounds_predict(const an_plan *plan, const an_params_pieces *pieces, int64_t leaves, bool is_bf16,
                                 size_t *bytes, an_reduction_cost *cost) {
    an_status status;
    an_context *ctx = plan->ctx;
    const an_shards *shards = pieces->shards;
    const size_t records = unit_records(shards);
    an_reduction_unit *units = NULL;
    AN_TRY(an_alloc(ctx, (void **)&units, records, sizeof *units));
    const an_scatter_options options = describe(shards, plan->sizes.trainable_dtype, leaves, is_bf16, units);
    const an_scatter_cost scatter = an_scatter_predict(&options, shards->rank, shards->ranks);
    an_reduction_cost hosts = {0};
    if (shards->groups > 1) {
        const an_reduction_options across = describe_hosts(shards, &options, units + shards->unit_count);
        if (across.unit_count > 0) hosts = an_reduction_predict(&across, shards->group, 1);
    }
    cost->sent += scatter.sent + hosts.sent;
    cost->received += scatter.received + hosts.received;
    cost->messages += scatter.messages + hosts.messages;
    AN_CHECK(ctx,
             an_add_elements(bytes, scatter.bytes, 1) && an_add_elements(bytes, scatter.stack_bytes, 1) &&
                 an_add_elements(bytes, hosts.bytes, 1) && an_add_elements(bytes, records, sizeof *units),
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
    const an_scatter_options options = describe(shards, plan->sizes.trainable_dtype, leaves, is_bf16, units);
    *bytes = an_scatter_predict(&options, shards->rank, shards->ranks).stack_bytes;
    an_release(ctx, (void **)&units, unit_records(shards), sizeof *units);
    return AN_OK;
}

static an_status make_hosts(an_leaf_rounds *r, const an_shards *shards) {
    r->pieces = r->units + shards->unit_count;
    const an_reduction_options options = describe_hosts(shards, &r->options, r->pieces);
    r->piece_count = options.unit_count;
    if (r->piece_count == 0) return AN_OK; /* nor has the owner of nothing on any other host */
    return an_reduction_create(&r->hosts, r->ctx, an_axis_comm(r->ctx, AN_AXIS_REPLICA), &options);
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
                          .count = an_leaf_rounds_count(&params->pieces, leaves),
                          .unit_records = unit_records(shards),
                          .forests = forests,
                          .width = an_leaf_width(program->plan->model)};
    AN_TRY(an_alloc(ctx, (void **)&r->units, r->unit_records, sizeof *r->units));
    r->options = describe(shards, params->sizes.trainable_dtype, leaves, is_bf16, r->units);
    AN_TRY(an_scattering_create(&r->scattering, ctx, an_shards_comm(shards), &r->options));
    if (shards->groups > 1) AN_TRY(make_hosts(r, shards));
    return AN_OK;
fail:
    an_leaf_rounds_destroy(r);
    return status;
}

void an_leaf_rounds_destroy(an_leaf_rounds *r) {
    an_context *ctx = r->ctx;
    if (!ctx) return;
    an_leaf_rounds_cancel(r);
    an_reduction_destroy(&r->hosts);
    an_scattering_destroy(&r->scattering);
    an_release(ctx, (void **)&r->units, r->unit_records, sizeof *r->units);
    r->ctx = NULL;
}

/* ---- what the program asks for ---- */

/* The op scatter: the gradients of a unit are complete. */
static an_status scatter(void *user, int unit, void *root, an_status failed) {
    const an_leaf_rounds *r = user;
    const bool has_gradients = failed == AN_OK && !r->is_absent;
    return an_scattering_start(r->scattering, unit, r->next - 1, has_gradients ? root : NULL);
}

/* The op scattered: their memory is needed for other things. */
static an_status scattered(void *user, int unit, an_status failed) {
    const an_leaf_rounds *r = user;
    (void)failed;
    return an_scattering_wait(r->scattering, unit);
}

static void progress(void *user) {
    const an_leaf_rounds *r = user;
    (void)an_scattering_progress(r->scattering); /* an error is found again when a unit is waited for */
}

static void set_hooks(an_leaf_rounds *r, bool on) {
    an_context *ctx = r->ctx;
    if (!on && ctx->scatter_user != r) return;
    ctx->scatter = on ? scatter : NULL;
    ctx->scattered = on ? scattered : NULL;
    ctx->scatter_user = on ? r : NULL;
    ctx->progress[AN_PROGRESS_GRADIENTS] = (an_progress_hook){on ? progress : NULL, r};
}

/* ---- a step ---- */

/* The forest of a round: of one leaf, or of none behind the last. */
static an_forest *forest_at(const an_leaf_rounds *r, int64_t round) {
    an_forest *forest = r->forests;
    for (int64_t i = 0; i < round; i++) forest = an_forest_next(forest);
    return forest;
}

an_status an_leaf_rounds_start(an_leaf_rounds *r) {
    an_context *ctx = r->ctx;
    const an_leaf_range *all = &r->options.leaves;
    an_forest *forest = r->forests;
    for (int64_t i = 0; i < r->count; i++, forest = an_forest_next(forest)) {
        const int64_t leaf = all->begin + i * r->ranks + r->rank;
        const an_leaf_range own = {an_smaller(leaf, all->end), an_smaller(leaf + 1, all->end), all->leaves};
        an_forest_begin(forest, &own, r->width);
    }
    r->next = 0;
    AN_TRY_RETURN(an_scattering_begin(r->scattering, r->params->gradients));
    set_hooks(r, true);
    return AN_OK;
}

/* Rounds up to `end` in which this rank has nothing to run. */
static void communicate(an_leaf_rounds *r, int64_t end, an_status status) {
    r->is_absent = true;
    while (r->next < end) {
        r->next++;
        an_program_communicate(r->program, AN_FORM_TRAIN_FIRST, status);
    }
    r->is_absent = false;
}

an_status an_leaf_rounds_enter(an_leaf_rounds *r, int64_t leaf) {
    an_context *ctx = r->ctx;
    const an_leaf_range *all = &r->options.leaves;
    const int64_t first = all->begin + r->rank, round = (leaf - first) / r->ranks;
    if (leaf < first || (leaf - first) % r->ranks != 0 || leaf >= all->end || round < r->next)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "leaf %lld does not come next: rank %d of %d has leaves %lld, %lld and so on, each once and as "
                        "one micro-batch",
                        (long long)leaf, r->rank, r->ranks, (long long)first, (long long)(first + r->ranks));
    communicate(r, round, AN_OK);
    an_forest *forest = forest_at(r, r->next++);
    an_forest_push(forest, leaf); /* its numbers are still zeros */
    return AN_OK;
}

double *an_leaf_rounds_sums(an_leaf_rounds *r) {
    return an_forest_values(forest_at(r, r->next - 1), 0);
}

/* What the hosts have of this rank's pieces, as far as each could add it. A rank that has failed takes part: others wait for it, and nobody will use the sum. */
static an_status add_hosts(an_leaf_rounds *r) {
    an_context *ctx = r->ctx;
    void *nodes[AN_FOREST_MOST];
    if (!r->hosts) return AN_OK;
    for (int i = 0; i < an_scattering_nodes(r->scattering); i++) nodes[i] = an_scattering_node(r->scattering, i);
    for (int i = 0; i < r->piece_count; i++)
        AN_TRY_RETURN(an_reduction_start(r->hosts, i, nodes, r->params->gradients));
    return an_reduction_finish(r->hosts);
}

an_status an_leaf_rounds_reduce(an_leaf_rounds *r, an_status status) {
    communicate(r, r->count, status);
    an_status finished = an_scattering_finish(r->scattering);
    set_hooks(r, false);
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

an_status an_leaf_rounds_close(an_leaf_rounds *r, const double **sums) {
    an_context *ctx = r->ctx;
    if (r->forests->count != 1)
        return AN_ERROR(ctx, AN_ERR_STATE, "the leaves of this step were not added to one: %lld are left",
                        (long long)r->forests->count);
    *sums = an_forest_values(r->forests, 0);
    return AN_OK;
}

void an_leaf_rounds_cancel(an_leaf_rounds *r) {
    if (!r->ctx || !r->scattering) return;
    set_hooks(r, false);
    if (r->hosts) an_reduction_cancel(r->hosts);
    if (r->next > 0) an_scattering_cancel(r->scattering);
    r->next = 0;
}

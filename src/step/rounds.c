#include "step/rounds.h"

#include "base/integer.h"
#include "base/memory.h"
#include "base/status.h"
#include "comm/comm.h"

int64_t an_leaf_rounds_count(an_shard sharding, int64_t leaves, int ranks) {
    return an_shard_has_rounds(sharding) && ranks > 1 ? an_divide_up(leaves, ranks) : 0;
}

/* ---- making them ---- */

static an_scatter_options describe(const an_shards *shards, an_dtype dtype, int64_t leaves, bool is_bf16,
                                   an_reduction_unit *units) {
    for (int i = 0; i < shards->unit_count; i++)
        units[i] =
            (an_reduction_unit){.pages = shards->units[i].pages,
                                .name = *shards->units[i].name ? shards->units[i].name : "the rest of the model"};
    return (an_scatter_options){.leaves = {0, leaves, leaves},
                                .dtype = dtype,
                                .is_bf16 = is_bf16,
                                .pages = shards->pages,
                                .units = units,
                                .unit_count = shards->unit_count};
}

an_status an_leaf_rounds_predict(const an_plan *plan, const an_params_pieces *pieces, int64_t leaves, bool is_bf16,
                                 size_t *bytes, an_reduction_cost *cost) {
    an_status status;
    an_context *ctx = plan->ctx;
    const an_shards *shards = pieces->shards;
    an_reduction_unit *units = NULL;
    AN_TRY(an_alloc(ctx, (void **)&units, (size_t)shards->unit_count, sizeof *units));
    const an_scatter_options options = describe(shards, plan->sizes.trainable_dtype, leaves, is_bf16, units);
    const an_scatter_cost scatter = an_scatter_predict(&options, shards->rank, shards->ranks);
    cost->sent += scatter.sent;
    cost->received += scatter.received;
    cost->messages += scatter.messages;
    AN_CHECK(ctx,
             an_add_elements(bytes, scatter.bytes, 1) && an_add_elements(bytes, scatter.stack_bytes, 1) &&
                 an_add_elements(bytes, (size_t)shards->unit_count, sizeof *units),
             AN_ERR_OVERFLOW, "the gradients that ranks exchange do not fit in memory");
    status = AN_OK;
fail:
    an_release(ctx, (void **)&units, (size_t)shards->unit_count, sizeof *units);
    return status;
}

an_status an_leaf_rounds_make(an_leaf_rounds *r, an_program *program, int64_t leaves, bool is_bf16,
                              an_forest *forests) {
    an_status status;
    an_context *ctx = program->ctx;
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_SHARD);
    an_params *params = program->params;
    const an_shards *shards = params->pieces.shards;
    *r = (an_leaf_rounds){.ctx = ctx,
                          .program = program,
                          .params = params,
                          .rank = comm->rank,
                          .ranks = comm->ranks,
                          .count = an_leaf_rounds_count(params->pieces.sharding, leaves, comm->ranks),
                          .forests = forests,
                          .width = an_leaf_width(program->plan->model)};
    AN_TRY(an_alloc(ctx, (void **)&r->units, (size_t)shards->unit_count, sizeof *r->units));
    r->options = describe(shards, params->sizes.trainable_dtype, leaves, is_bf16, r->units);
    AN_TRY(an_scattering_create(&r->scattering, ctx, comm, &r->options));
    return AN_OK;
fail:
    an_leaf_rounds_destroy(r);
    return status;
}

void an_leaf_rounds_destroy(an_leaf_rounds *r) {
    an_context *ctx = r->ctx;
    if (!ctx) return;
    an_leaf_rounds_cancel(r);
    an_scattering_destroy(&r->scattering);
    an_release(ctx, (void **)&r->units, (size_t)r->options.unit_count, sizeof *r->units);
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
    const int64_t leaves = r->options.leaves.leaves;
    an_forest *forest = r->forests;
    for (int64_t i = 0; i < r->count; i++, forest = an_forest_next(forest)) {
        const int64_t leaf = i * r->ranks + r->rank;
        an_forest_begin(forest, &(an_leaf_range){an_smaller(leaf, leaves), an_smaller(leaf + 1, leaves), leaves},
                        r->width);
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
    const int64_t round = (leaf - r->rank) / r->ranks;
    if (leaf < r->rank || leaf % r->ranks != r->rank || leaf >= r->options.leaves.leaves || round < r->next)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "leaf %lld does not come next: rank %d of %d has leaves %d, %d and so on, each once and as one "
                        "micro-batch",
                        (long long)leaf, r->rank, r->ranks, r->rank, r->rank + r->ranks);
    communicate(r, round, AN_OK);
    an_forest *forest = forest_at(r, r->next++);
    an_forest_push(forest, leaf); /* its numbers are still zeros */
    return AN_OK;
}

double *an_leaf_rounds_sums(an_leaf_rounds *r) {
    return an_forest_values(forest_at(r, r->next - 1), 0);
}

an_status an_leaf_rounds_reduce(an_leaf_rounds *r, an_status status) {
    communicate(r, r->count, status);
    const an_status finished = an_scattering_finish(r->scattering);
    set_hooks(r, false);
    return status == AN_OK ? finished : status;
}

an_status an_leaf_rounds_close(an_leaf_rounds *r, const double **sums) {
    an_context *ctx = r->ctx;
    an_forest *next = r->forests;
    for (int64_t i = 1; i < r->count; i++) {
        next = an_forest_next(next);
        an_forest_merge(r->forests, next);
    }
    if (r->forests->count != 1)
        return AN_ERROR(ctx, AN_ERR_STATE, "the leaves of this step were not added to one: %lld are left",
                        (long long)r->forests->count);
    *sums = an_forest_values(r->forests, 0);
    return AN_OK;
}

void an_leaf_rounds_cancel(an_leaf_rounds *r) {
    if (!r->ctx || !r->scattering) return;
    set_hooks(r, false);
    if (r->next > 0) an_scattering_cancel(r->scattering);
    r->next = 0;
}

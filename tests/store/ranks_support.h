/* A model that has everything a checkpoint of many ranks can meet: blocks and what lies between them, parameters of
 * many pages and of a part of one, frozen ones, run states. */
#ifndef TESTS_STORE_RANKS_SUPPORT_H
#define TESTS_STORE_RANKS_SUPPORT_H

#include "anneal/models.h"
#include "exec/params.h"
#include "exec/plan.h"
#include "exec/shards.h"
#include "support/support.h"

enum { WIDTH = 83, BLOCKS = 3 };

static inline an_status build_model(an_graph **graph, an_context *ctx) {
    const an_status status = an_graph_create(graph, ctx, "many");
    if (status != AN_OK) return status;
    an_graph *g = *graph;
    const an_dim batch = an_symbol_dim(g, "batch");
    const an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 7)),
                   y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 2));
    an_value h = an_linear(g, x, "in", WIDTH);
    for (int i = 0; i < BLOCKS; i++) {
        char name[32];
        snprintf(name, sizeof name, "blocks.%d", i);
        an_block_begin(g, name, i + 1);
        h = an_batch_norm_layer(g, an_linear(g, h, "fc", WIDTH), "norm", 0.1, 1e-5);
        h = an_multiply(g, an_relu(g, h),
                        an_frozen_param(g, "scale", AN_DTYPE_F32, AN_INITIALIZER_UNIFORM, 1, AN_DIMS(WIDTH)));
        an_block_end(g);
    }
    h = an_linear(g, h, "out", 2);
    an_graph_set_output(g, h, "out");
    an_graph_set_loss(g, an_squared_error(g, h, y), y);
    return an_graph_verify(g);
}

static inline an_status plan_model(an_plan **plan, an_context *ctx, an_graph *g) {
    return plan_for(plan, ctx, g, "batch", 4, AN_PROGRAM_TRAINING);
}

/* ---- stores ---- */

/* What one rank has of the model. */
typedef struct part {
    an_graph *graph;
    an_plan *plan;
    an_shards *shards;
    an_params_pieces pieces;
    an_params *params; /* with what is asked of it */
    an_params *whole;  /* with everything */
} part;

/* Numbers for elements first … end - 1 of an entry. */
static inline void fill_some(char *base, const an_stored *e, int64_t first, int64_t end, uint64_t seed) {
    float *values = (float *)(void *)(base + e->offset);
    for (int64_t i = first; i < end; i++) values[i] = (float)noise(seed + (uint64_t)(e->offset / 4 + i));
}

/* Every number of the state that is there is another one, and the same on every rank. Between the parameters are
 * zeros. */
static inline void fill_store(an_params *p) {
    enum { APART = 1 << 20 };
    for (size_t i = 0; i < p->entry_count; i++) {
        const an_stored *e = &p->entries[i];
        int64_t first, end = 0;
        for (end = 0; an_params_next(p, e, AN_FLAT_MASTERS, end, &first, &end);)
            fill_some(an_params_base(p, e->storage), e, first, end, APART * (uint64_t)e->storage);
        for (int m = 0; m < p->moment_count && e->storage == AN_STORAGE_MASTER; m++)
            for (end = 0; an_params_next(p, e, AN_FLAT_MOMENTS, end, &first, &end);)
                fill_some(p->moments[m], e, first, end, APART * (uint64_t)(AN_STORAGE_COUNT + m));
    }
}

/* sharding NONE: everything is whole */
static inline an_status open_part(part *r, an_context *ctx, an_shard sharding, int ranks, int rank) {
    *r = (part){0};
    an_status status = build_model(&r->graph, ctx);
    if (status == AN_OK) status = plan_model(&r->plan, ctx, r->graph);
    const int groups = sharding == AN_SHARD_HYBRID && ranks % 2 == 0 ? 2 : 1, each = ranks / groups;
    const an_shards_options map = {.ranks = each, .rank = rank % each, .groups = groups, .group = rank / each};
    if (status == AN_OK) status = an_shards_create(&r->shards, ctx, r->plan, &map);
    r->pieces = (an_params_pieces){.shards = r->shards, .sharding = sharding};
    if (status == AN_OK)
        status = an_params_create_in(&r->params, ctx, r->graph, NULL, sharding == AN_SHARD_NONE ? NULL : &r->pieces);
    if (status == AN_OK) status = an_params_create(&r->whole, ctx, r->graph, NULL);
    if (status == AN_OK) fill_store(r->whole);
    return status;
}

static inline void close_part(part *r) {
    an_params_destroy(&r->whole);
    an_params_destroy(&r->params);
    an_shards_destroy(&r->shards);
    an_plan_destroy(&r->plan);
    an_graph_destroy(&r->graph);
}

static inline bool same_pages(const void *a, const void *b, an_page_range pages) {
    const size_t page = AN_PAGE * sizeof(float), at = (size_t)pages.begin * page;
    return !memcmp((const char *)a + at, (const char *)b + at, (size_t)(pages.end - pages.begin) * page);
}

/* What of its own part is not that of the whole model; NULL: nothing. */
static inline const char *compare_part(const part *p) {
    const an_params *found = p->params, *whole = p->whole;
    if (memcmp(found->frozen, whole->frozen, (size_t)whole->sizes.frozen_bytes)) return "what is frozen";
    if (memcmp(found->states, whole->states, (size_t)whole->sizes.state_bytes)) return "the run states";
    for (int unit = 0; unit < p->shards->unit_count; unit++) {
        const an_page_range pages = p->pieces.sharding == AN_SHARD_NONE
                                        ? p->shards->units[unit].pages
                                        : an_shards_piece(p->shards, unit, p->shards->rank);
        if (!same_pages(found->masters, whole->masters, pages)) return "the weights";
        for (int i = 0; i < whole->moment_count; i++)
            if (!same_pages(found->moments[i], whole->moments[i], pages)) return "the moments";
    }
    return NULL;
}

static const an_shard shardings[] = {AN_SHARD_NONE, AN_SHARD_OPTIMIZER, AN_SHARD_GRADIENTS, AN_SHARD_FULL,
                                     AN_SHARD_HYBRID};

#endif

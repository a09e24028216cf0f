#include "exec/shards.h"

#include <string.h>

#include "exec/plan.h"
#include "ops/source.h"
#include "pass/units.h"

/* ---- what is where ---- */

static const struct {
    const char *name;
    an_page_set sets[AN_FLATS];
} strategies[AN_SHARD_COUNT] = {
    [AN_SHARD_NONE] = {"none", {AN_PAGES_ALL, AN_PAGES_ALL, AN_PAGES_ALL, AN_PAGES_ALL}},
    [AN_SHARD_OPTIMIZER] = {"optimizer",
                            {[AN_FLAT_MASTERS] = AN_PAGES_OWN_OR_MASTER_READ,
                             [AN_FLAT_LOW] = AN_PAGES_LOW_READ,
                             [AN_FLAT_GRADIENTS] = AN_PAGES_ALL,
                             [AN_FLAT_MOMENTS] = AN_PAGES_OWN}},
    [AN_SHARD_GRADIENTS] = {"gradients",
                            {[AN_FLAT_MASTERS] = AN_PAGES_OWN_OR_MASTER_READ,
                             [AN_FLAT_LOW] = AN_PAGES_LOW_READ,
                             [AN_FLAT_GRADIENTS] = AN_PAGES_OWN_GRADIENTS,
                             [AN_FLAT_MOMENTS] = AN_PAGES_OWN}},
    [AN_SHARD_FULL] = {"full", {AN_PAGES_OWN, AN_PAGES_OWN, AN_PAGES_OWN_GRADIENTS, AN_PAGES_OWN}},
    [AN_SHARD_HYBRID] = {"hybrid", {AN_PAGES_OWN, AN_PAGES_OWN, AN_PAGES_OWN_GRADIENTS, AN_PAGES_OWN}},
};

const char *an_shard_name(an_shard sharding) {
    return strategies[sharding].name;
}

const char *an_params_pieces_name(const an_params_pieces *pieces) {
    return an_shard_name(pieces->is_hybrid ? AN_SHARD_HYBRID : pieces->sharding);
}

an_page_set an_params_pieces_set(const an_params_pieces *pieces, an_flat flat) {
    return strategies[pieces->sharding].sets[flat];
}

/* What a set is made of. */
static const struct {
    bool all, own, extras;
    uint8_t reads;
} sets[AN_PAGE_SETS] = {
    [AN_PAGES_ALL] = {.all = true},
    [AN_PAGES_OWN] = {.own = true},
    [AN_PAGES_OWN_GRADIENTS] = {.own = true, .extras = true},
    [AN_PAGES_MASTER_READ] = {.reads = AN_READS_MASTER},
    [AN_PAGES_LOW_READ] = {.reads = AN_READS_LOW},
    [AN_PAGES_OWN_OR_MASTER_READ] = {.own = true, .reads = AN_READS_MASTER},
};

/* ---- who reads what ---- */

void an_plan_find_reads(const an_plan *plan, uint8_t *reads) {
    static const uint8_t bits[AN_STORAGE_COUNT] = {
        [AN_STORAGE_MASTER] = AN_READS_MASTER, [AN_STORAGE_LOW] = AN_READS_LOW};
    memset(reads, 0, plan->model->parameter_count);
    for (int form = 0; form < AN_FORMS; form++) {
        const an_graph *g = plan->forms[form];
        for (const an_node *n = g ? g->first : NULL; n; n = n->next) {
            /* Views and sources read nothing; what the program hands out, its caller reads. */
            if (!an_node_runs(n) && !(n->op->flags & AN_OP_KEEPS_INPUTS)) continue;
            for (int i = 0; i < n->input_count; i++) {
                const an_result *r = an_node_input(n, i);
                if (!r || !bits[r->root->storage]) continue;
                const an_param_attributes *a = r->root->node->attributes;
                reads[a->parameter] |= bits[r->root->storage];
            }
        }
    }
}

/* ---- runs of pages ---- */

int an_page_runs_find(const an_page_runs *runs, int64_t page) {
    int low = 0, high = runs->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (runs->runs[middle].end > page)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int an_shards_unit_of(const an_shards *shards, int64_t page) {
    int low = 0, high = shards->unit_count - 1;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (shards->units[middle].pages.end > page)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int an_shards_owner(const an_shards *shards, int64_t page, int64_t *end) {
    const int unit = an_shards_unit_of(shards, page);
    const int owner = an_piece_owner(&shards->units[unit].pages, shards->units[unit].turn, page, shards->ranks);
    *end = an_shards_piece(shards, unit, owner).end;
    return owner;
}

bool an_page_runs_have(const an_page_runs *runs, const an_page_range *pages) {
    if (pages->begin == pages->end) return true;
    const int found = an_page_runs_find(runs, pages->begin);
    return found < runs->count && runs->runs[found].begin <= pages->begin && runs->runs[found].end >= pages->end;
}

typedef struct {
    an_page_range *runs; /* NULL: they are only counted */
    int count;
    an_page_range last;
} collection;

/* In ascending order of their beginnings. */
static void add_pages(collection *c, an_page_range pages) {
    if (pages.begin == pages.end) return;
    if (c->count > 0 && pages.begin <= c->last.end) {
        if (pages.end > c->last.end) c->last.end = pages.end;
    } else {
        c->last = pages;
        c->count++;
    }
    if (c->runs) c->runs[c->count - 1] = c->last;
}

/* Pieces and parameters are both in ascending order: they are merged. */
static int collect(const an_shards *s, const an_graph *g, const uint8_t *reads, an_page_set set, an_page_range *runs) {
    collection c = {.runs = runs};
    if (sets[set].all) {
        add_pages(&c, (an_page_range){0, s->pages});
        return c.count;
    }
    const an_page_range none = {INT64_MAX, INT64_MAX};
    const int units = !sets[set].own ? 0 : sets[set].extras ? s->gradient_unit_count : s->unit_count;
    size_t parameter = 0;
    for (int unit = 0;;) {
        while (parameter < g->parameter_count && !(reads[parameter] & sets[set].reads)) parameter++;
        const an_page_range piece = unit < units ? an_shards_piece(s, unit, s->rank) : none,
                            read =
                                parameter < g->parameter_count ? an_parameter_pages(&g->parameters[parameter]) : none;
        if (unit == units && parameter == g->parameter_count) return c.count;
        if (piece.begin <= read.begin) {
            add_pages(&c, piece);
            unit++;
        } else {
            add_pages(&c, read);
            parameter++;
        }
    }
}

static an_status make_sets(an_shards *s, const an_plan *plan) {
    an_status status;
    an_context *ctx = s->ctx;
    const an_graph *g = plan->model;
    uint8_t *reads = NULL;
    size_t count = 0;
    AN_TRY(an_alloc(ctx, (void **)&reads, g->parameter_count, 1));
    an_plan_find_reads(plan, reads);
    for (int i = 0; i < AN_PAGE_SETS; i++) {
        s->sets[i].count = collect(s, g, reads, (an_page_set)i, NULL);
        count += (size_t)s->sets[i].count;
    }
    AN_TRY(an_alloc(ctx, (void **)&s->runs, count, sizeof *s->runs));
    s->run_count = count;
    count = 0;
    for (int i = 0; i < AN_PAGE_SETS; i++) {
        if (s->sets[i].count == 0) continue;
        s->sets[i].runs = s->runs + count;
        count += (size_t)collect(s, g, reads, (an_page_set)i, s->runs + count);
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&reads, g->parameter_count, 1);
    return status;
}

/* ---- units ---- */

static an_status make_units(an_shards *s, const an_graph *g) {
    an_status status;
    an_context *ctx = s->ctx;
    an_unit *units = NULL;
    int extras;
    const size_t maximum = an_units_most(g);
    AN_TRY(an_alloc(ctx, (void **)&units, maximum, sizeof *units));
    const int count = an_units_find(g, units, &extras, NULL);
    AN_TRY(an_alloc(ctx, (void **)&s->units, (size_t)count, sizeof *s->units));
    s->unit_count = count - extras;
    s->gradient_unit_count = count;
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += an_unit_describe(&units[i], NULL);
    AN_TRY(an_alloc(ctx, (void **)&s->names, bytes, 1));
    s->name_bytes = bytes;
    char *name = s->names;
    for (int i = 0; i < count; i++) {
        s->units[i] = (an_shard_unit){
            .pages = {units[i].begin / AN_PAGE, units[i].end / AN_PAGE}, .name = name, .turn = units[i].turn};
        name += an_unit_describe(&units[i], name);
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&units, maximum, sizeof *units);
    return status;
}

/* ---- the map ---- */

an_status an_shards_create(an_shards **shards, an_context *ctx, const an_plan *plan, const an_shards_options *options) {
    an_status status;
    an_shards *s = NULL;
    *shards = NULL;
    AN_CHECK(ctx, options->ranks >= 1 && options->rank >= 0 && options->rank < options->ranks, AN_ERR_ARGUMENT,
             "rank %d of %d ranks does not exist", options->rank, options->ranks);
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    s->ranks = options->ranks;
    s->rank = options->rank;
    s->groups = options->groups > 0 ? options->groups : 1;
    s->group = options->group;
    s->pages = plan->sizes.trainable_elements / AN_PAGE;
    s->gradient_pages = plan->sizes.gradient_elements / AN_PAGE;
    AN_TRY(make_units(s, plan->model));
    AN_TRY(make_sets(s, plan));
    *shards = s;
    return AN_OK;
fail:
    an_shards_destroy(&s);
    return status;
}

void an_shards_destroy(an_shards **shards) {
    an_shards *s = shards ? *shards : NULL;
    if (!s) return;
    an_context *ctx = s->ctx;
    an_release(ctx, (void **)&s->runs, s->run_count, sizeof *s->runs);
    an_release(ctx, (void **)&s->names, s->name_bytes, 1);
    an_release(ctx, (void **)&s->units, (size_t)s->gradient_unit_count, sizeof *s->units);
    an_release(ctx, (void **)shards, 1, sizeof *s);
}

an_comm *an_shards_comm(const an_shards *shards) {
    return an_axis_comm(shards->ctx, shards->groups > 1 ? AN_AXIS_SHARD : AN_AXIS_DATA);
}

int64_t an_shards_bytes(const an_shards *shards) {
    return (int64_t)(sizeof *shards + (size_t)shards->gradient_unit_count * sizeof *shards->units +
                     shards->run_count * sizeof *shards->runs + shards->name_bytes);
}

/* ---- what a program needs ---- */

static an_status refuse(an_context *ctx, const an_params_pieces *pieces, const char *name, const char *what) {
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                    "the program %s, but with ranks.shard %s, rank %d of %d has only its own pieces of '%s'", what,
                    an_params_pieces_name(pieces), pieces->shards->rank, pieces->shards->ranks, name);
}

an_status an_params_pieces_check(an_context *ctx, const an_params_pieces *pieces, const an_plan *plan) {
    an_status status;
    const an_graph *g = plan->model;
    const an_page_runs *held[AN_FLATS];
    uint8_t *reads = NULL;
    for (int i = 0; i < AN_FLATS; i++) held[i] = &pieces->shards->sets[an_params_pieces_set(pieces, (an_flat)i)];
    AN_TRY(an_alloc(ctx, (void **)&reads, g->parameter_count, 1));
    an_plan_find_reads(plan, reads);
    const bool writes =
        plan->forms[AN_FORM_TRAIN_FIRST] && !plan->passes.scatters && !plan->accumulates; /* to the flat gradients */
    for (size_t i = 0; i < g->parameter_count; i++) {
        const an_parameter *p = &g->parameters[i];
        if (p->node->outputs[0].storage != AN_STORAGE_MASTER) continue;
        const an_page_range pages = an_parameter_pages(p);
        const bool lacks_master = reads[i] & AN_READS_MASTER && !an_page_runs_have(held[AN_FLAT_MASTERS], &pages),
                   lacks_low = reads[i] & AN_READS_LOW && !an_page_runs_have(held[AN_FLAT_LOW], &pages);
        if (lacks_master || lacks_low) AN_TRY(refuse(ctx, pieces, p->name, "reads whole weights"));
        if (writes && !an_page_runs_have(held[AN_FLAT_GRADIENTS], &pages))
            AN_TRY(refuse(ctx, pieces, p->name, "writes whole gradients"));
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&reads, g->parameter_count, 1);
    return status;
}

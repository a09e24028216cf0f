/* Regions of gathered weights: which there are, where they are gathered, and who reads them.
 *
 * The graph is in the order in which it runs. A unit stays gathered while it is one of the two that were read last, so
 * weights that backward needs at once, those of the last block, are not gathered twice, and of a chain of blocks at
 * most two are there, and the one that is on its way. A small unit, such as a norm between the last block and the
 * head, does not count as one of the two. Each region is posted right before the one in front of it is waited for,
 * or later: once a larger one has been let go, as long as another one is still to be read before it. */
#include <stdlib.h>

#include "ops/sink.h"
#include "ops/source.h"
#include "pass/insert.h"
#include "pass/shard.h"

enum {
    STAY = 2,
    SMALL = 16
}; /* units that stay; a unit is small if an average one is more than so many times larger */
enum { CLOSED = -1 };

/* An operand that is a weight, or a view of one. */
typedef struct {
    an_node *node;
    int slot, region;
    an_weight_kind kind;
    int64_t parameter;
    size_t position; /* among all */
    int64_t at;      /* page of the region's root */
} reading;

typedef struct {
    an_region region;
    an_node *first, *posted;      /* the first reader, and before what its gather runs */
    size_t first_read, last_read; /* readings */
    an_result *arrived[AN_WEIGHT_KINDS];
} gathered;

typedef struct {
    const an_sharder *s;
    reading *readings;
    size_t count, capacity;
    gathered *regions;
    size_t region_count, region_capacity;
    int *open;   /* by unit: its region; CLOSED: it has none now */
    int *recent; /* units that are open, the last one that was read first */
    int recent_count;
    int64_t large; /* a unit of fewer elements is small */
    an_region_run *runs;
    an_result **clones; /* by number of a result: what a region reads in its place */
    int *clone_of;      /* … and which region */
    size_t results;
} search;

/* ---- which there are ---- */

static void read_unit(search *f, int unit) {
    int i = 0;
    while (i < f->recent_count && f->recent[i] != unit) i++;
    if (i == f->recent_count) f->recent_count++;
    for (; i > 0; i--) f->recent[i] = f->recent[i - 1];
    f->recent[0] = unit;
}

static void close_old(search *f) {
    int large = 0, kept = 0;
    for (int i = 0; i < f->recent_count; i++) {
        const an_unit *unit = &f->s->units[f->recent[i]];
        if (large == STAY)
            f->open[f->recent[i]] = CLOSED;
        else
            f->recent[kept++] = f->recent[i];
        if (large < STAY && unit->end - unit->begin >= f->large) large++;
    }
    f->recent_count = kept;
}

static an_status note_reading(search *f, an_node *n, int slot, const an_result *weights) {
    an_context *ctx = f->s->g->ctx;
    const an_param_attributes *a = weights->node->attributes;
    const int unit = f->s->unit_of[a->parameter];
    if (f->open[unit] == CLOSED) {
        AN_TRY_RETURN(an_grow(ctx, (void **)&f->regions, &f->region_capacity, f->region_count + 1, sizeof *f->regions));
        f->regions[f->region_count] = (gathered){
            .region = {.unit = unit, .name = f->s->names[unit]}, .first = n, .posted = n, .first_read = f->count};
        f->open[unit] = (int)f->region_count++;
    }
    AN_TRY_RETURN(an_grow(ctx, (void **)&f->readings, &f->capacity, f->count + 1, sizeof *f->readings));
    f->readings[f->count] = (reading){
        .node = n,
        .slot = slot,
        .region = f->open[unit],
        .kind = weights->storage == AN_STORAGE_LOW ? AN_WEIGHTS_LOW : AN_WEIGHTS_MASTER,
        .parameter = a->parameter,
        .position = f->count,
    };
    f->regions[f->open[unit]].last_read = f->count++;
    read_unit(f, unit);
    return AN_OK;
}

/* Views and sources read nothing; what the program hands out, its caller reads. */
static an_status find_regions(search *f) {
    for (an_node *n = f->s->g->first; n; n = n->next) {
        if (!an_node_runs(n) && !(n->op->flags & AN_OP_KEEPS_INPUTS)) continue;
        for (int i = 0; i < n->input_count; i++) {
            const an_result *r = an_node_input(n, i);
            if (r && (r->root->storage == AN_STORAGE_MASTER || r->root->storage == AN_STORAGE_LOW))
                AN_TRY_RETURN(note_reading(f, n, i, r->root));
        }
        close_old(f);
    }
    return AN_OK;
}

static int64_t unit_elements(const search *f, size_t region) {
    const an_unit *unit = &f->s->units[f->regions[region].region.unit];
    return unit->end - unit->begin;
}

/* So the weights of a head and those of the block before the last, which backward reads once it is through with the
 * last, are not there at the same time. */
static void choose_posts(search *f) {
    for (size_t i = 1; i < f->region_count; i++) {
        gathered *next = &f->regions[i];
        next->posted = next[-1].first;
        bool is_let_go = false;
        for (size_t k = next[-1].first_read; k < next->first_read; k++) {
            const reading *r = &f->readings[k];
            if (is_let_go && r->node != r[-1].node) {
                next->posted = r->node;
                is_let_go = false;
            }
            const size_t region = (size_t)r->region;
            is_let_go |= f->regions[region].last_read == k && unit_elements(f, region) > unit_elements(f, i);
        }
    }
}

/* ---- what lies where in their roots ---- */

static int by_place(const void *a, const void *b) {
    const reading *x = a, *y = b;
    if (x->region != y->region) return x->region < y->region ? -1 : 1;
    if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
    if (x->parameter != y->parameter) return x->parameter < y->parameter ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

static void add_pages(an_region_root *root, an_region_run *runs, an_page_range pages) {
    an_region_run *last = root->run_count > 0 ? &runs[root->run_count - 1] : NULL;
    if (last && last->pages.end == pages.begin)
        last->pages.end = pages.end;
    else
        runs[root->run_count++] = (an_region_run){.pages = pages, .at = root->pages};
    root->pages += pages.end - pages.begin;
}

static void lay_out(search *f) {
    an_region_run *runs = f->runs; /* room for one a reading */
    qsort(f->readings, f->count, sizeof *f->readings, by_place);
    for (size_t i = 0; i < f->count; i++) {
        reading *r = &f->readings[i];
        const reading *before = i > 0 ? r - 1 : NULL;
        an_region_root *root = &f->regions[r->region].region.roots[r->kind];
        if (root->pages == 0) root->runs = runs;
        if (before && before->region == r->region && before->kind == r->kind && before->parameter == r->parameter) {
            r->at = before->at;
            continue;
        }
        r->at = root->pages;
        const int count = root->run_count;
        add_pages(root, f->runs + (root->runs - f->runs), an_parameter_pages(&f->s->g->parameters[r->parameter]));
        runs += root->run_count - count;
    }
}

/* ---- their nodes ---- */

static an_status add_gather(const search *f, const gathered *r, an_node *before, const an_dtype *dtypes,
                            an_node **node) {
    const an_region *region = &r->region;
    const an_gather_weights_attributes a = {.region = {(int64_t)f->s->form, r - f->regions},
                                            .masters = region->roots[AN_WEIGHTS_MASTER].pages * AN_PAGE,
                                            .low = region->roots[AN_WEIGHTS_LOW].pages * AN_PAGE,
                                            .dtype = dtypes[AN_WEIGHTS_MASTER],
                                            .low_dtype = dtypes[AN_WEIGHTS_LOW]};
    return an_pass_insert(f->s->g,
                          &(an_insertion){.op = &an_op_gather_weights,
                                          .output_count = (a.masters > 0) + (a.low > 0),
                                          .attributes = &a,
                                          .before = before,
                                          .path = region->name,
                                          .phase = r->first->phase},
                          node);
}

static an_status add_arrivals(const search *f, gathered *r, const an_node *gather) {
    an_graph *g = f->s->g;
    const an_region_attributes a = {(int64_t)f->s->form, r - f->regions};
    int output = 0;
    for (int kind = 0; kind < AN_WEIGHT_KINDS; kind++) {
        an_node *node;
        if (r->region.roots[kind].pages == 0) continue;
        const an_value root = an_node_output_value(g, gather, output++);
        AN_TRY_RETURN(an_pass_insert(g,
                                     &(an_insertion){.op = &an_op_arrive_weights,
                                                     .inputs = &root,
                                                     .input_count = 1,
                                                     .output_count = 1,
                                                     .attributes = &a,
                                                     .before = r->first,
                                                     .path = r->region.name,
                                                     .phase = r->first->phase},
                                     &node));
        r->arrived[kind] = &node->outputs[0];
    }
    return AN_OK;
}

static an_status add_regions(search *f, const an_dtype *dtypes) {
    an_node *gather = NULL, *next = NULL;
    for (size_t i = 0; i < f->region_count; i++) {
        gathered *r = &f->regions[i];
        gather = next;
        if (i == 0) AN_TRY_RETURN(add_gather(f, r, r->posted, dtypes, &gather));
        if (i + 1 < f->region_count) AN_TRY_RETURN(add_gather(f, r + 1, r[1].posted, dtypes, &next));
        AN_TRY_RETURN(add_arrivals(f, r, gather));
    }
    return AN_OK;
}

/* ---- who reads them ---- */

static bool is_cloned(const search *f, const an_result *r, int region) {
    return f->clones[r->number] && f->clone_of[r->number] == region;
}

static void remember(search *f, const an_result *r, int region, an_result *clone) {
    f->clones[r->number] = clone;
    f->clone_of[r->number] = region;
}

/* A parameter as a part of its root. */
static an_value part_of_root(const search *f, const reading *r, const an_result *weights) {
    an_graph *g = f->s->g;
    const int64_t begin = r->at * AN_PAGE, end = begin + g->parameters[r->parameter].elements;
    const an_value root = an_graph_value(g, f->regions[r->region].arrived[r->kind]);
    return an_reshape(g, an_slice(g, root, 0, begin, end), weights->ndims, weights->dims);
}

static an_status clone_view(search *f, const reading *r, const an_result *view) {
    an_graph *g = f->s->g;
    const an_node *node = view->node;
    const bool is_weights = node->op->flags & AN_OP_SOURCE;
    g->added.before = r->node;
    g->added.origin = node->origin ? node->origin : node;
    g->added.phase = r->node->phase;
    an_value value;
    if (is_weights) {
        value = part_of_root(f, r, view);
    } else {
        const an_value base = an_graph_value(g, f->clones[an_node_input(node, 0)->number]);
        value = an_graph_add_outputs(g, node->op, 1, &base, node->attributes, node->output_count);
    }
    g->added.phase = AN_PHASE_FORWARD;
    g->added.origin = NULL;
    g->added.before = NULL;
    an_result *clone = an_graph_result(g, value);
    if (!clone) return AN_ERROR(g->ctx, g->status, "%s", g->message);
    if (is_weights) remember(f, view, r->region, clone);
    for (int i = 0; i < node->output_count && !is_weights; i++)
        remember(f, &node->outputs[i], r->region, &clone->node->outputs[i]);
    return AN_OK;
}

/* The views between a weight and its reader are made again over the region's root, the first one first. There
 * are few between any two. */
static an_status serve(search *f, const reading *r) {
    const an_result *wanted = an_node_input(r->node, r->slot);
    while (!is_cloned(f, wanted, r->region)) {
        const an_result *view = wanted;
        while (!(view->node->op->flags & AN_OP_SOURCE) && !is_cloned(f, an_node_input(view->node, 0), r->region))
            view = an_node_input(view->node, 0);
        AN_TRY_RETURN(clone_view(f, r, view));
    }
    an_node_set_input(r->node, r->slot, f->clones[wanted->number]);
    return AN_OK;
}

/* ---- all of it ---- */

static an_status leave_plan(const search *f, const an_dtype *dtypes) {
    an_graph *g = f->s->g;
    an_region *regions = NULL;
    AN_TRY_RETURN(an_arena_alloc(&g->arena, (void **)&g->shard, 1, sizeof *g->shard));
    AN_TRY_RETURN(an_arena_alloc(&g->arena, (void **)&regions, f->region_count, sizeof *regions));
    for (size_t i = 0; i < f->region_count; i++) regions[i] = f->regions[i].region;
    *g->shard =
        (an_shard_plan){.regions = regions, .region_count = (int)f->region_count, .low = dtypes[AN_WEIGHTS_LOW]};
    return AN_OK;
}

an_status an_shard_weights(const an_sharder *s) {
    an_status status;
    an_graph *g = s->g;
    an_context *ctx = g->ctx;
    const size_t units = (size_t)s->unit_count;
    search f = {.s = s, .results = g->result_count};
    AN_TRY(an_alloc(ctx, (void **)&f.open, units, sizeof *f.open));
    AN_TRY(an_alloc(ctx, (void **)&f.recent, units, sizeof *f.recent));
    AN_TRY(an_alloc(ctx, (void **)&f.clones, f.results, sizeof *f.clones));
    AN_TRY(an_alloc(ctx, (void **)&f.clone_of, f.results, sizeof *f.clone_of));
    for (int i = 0; i < s->unit_count; i++) f.open[i] = CLOSED;
    if (units > 0) f.large = (s->units[units - 1].end - s->units[0].begin) / s->unit_count / SMALL;
    AN_TRY(find_regions(&f));
    choose_posts(&f);
    AN_TRY(an_arena_alloc(&g->arena, (void **)&f.runs, f.count, sizeof *f.runs));
    an_dtype dtypes[AN_WEIGHT_KINDS] = {AN_DTYPE_NONE, AN_DTYPE_NONE};
    for (size_t i = 0; i < f.count; i++)
        dtypes[f.readings[i].kind] = an_node_input(f.readings[i].node, f.readings[i].slot)->root->dtype;
    lay_out(&f);
    AN_TRY(add_regions(&f, dtypes));
    for (size_t i = 0; i < f.count; i++) AN_TRY(serve(&f, &f.readings[i]));
    AN_TRY(leave_plan(&f, dtypes));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&f.clone_of, f.results, sizeof *f.clone_of);
    an_release(ctx, (void **)&f.clones, f.results, sizeof *f.clones);
    an_release(ctx, (void **)&f.recent, units, sizeof *f.recent);
    an_release(ctx, (void **)&f.open, units, sizeof *f.open);
    an_release(ctx, (void **)&f.regions, f.region_capacity, sizeof *f.regions);
    an_release(ctx, (void **)&f.readings, f.capacity, sizeof *f.readings);
    return status;
}

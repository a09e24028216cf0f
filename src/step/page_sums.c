#include "step/page_sums.h"

#include "base/device.h"
#include "base/integer.h"
#include "base/status.h"
#include "exec/shards.h"

/* ---- making them ---- */

static int64_t room_of(int64_t pages) {
    return (pages + 1) / 2;
}

bool an_page_sums_bytes(int64_t pages, size_t *bytes) {
    const an_page_sums *p = NULL;                                                     /* for its members' sizes */
    return an_add_elements(bytes, (size_t)pages, sizeof *p->sums + sizeof(double)) && /* and the device's */
           an_add_elements(bytes, (size_t)room_of(pages), sizeof *p->room);
}

/* A call of the kernel, for one piece. It points into itself, so it stays where it is. */
typedef struct {
    an_tensor src, dst;
    an_call call;
} piece_call;

static void make_call(const an_page_sums *p, const an_page_range *pages, int64_t at, piece_call *c) {
    const int64_t count = pages->end - pages->begin;
    c->src = an_flat_tensor(p->params->gradients, p->params->sizes.trainable_dtype, pages);
    c->dst = (an_tensor){
        .data = (double *)p->device_sums + at, .dtype = AN_DTYPE_F64, .ndims = 1, .dims = {count}, .strides = {1}};
    c->call = (an_call){.ctx = p->ctx, .src_count = 1, .dst_count = 1, .src = &c->src, .dst = &c->dst};
}

an_status an_page_sums_make(an_page_sums *p, const an_params *params) {
    an_context *ctx = params->ctx;
    const an_device *device = params->device;
    *p = (an_page_sums){.ctx = ctx, .params = params, .pages = an_params_own_pages(params)};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&p->sums, (size_t)p->pages, sizeof *p->sums));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&p->room, (size_t)room_of(p->pages), sizeof *p->room));
    if (p->pages == 0) return AN_OK;
    AN_TRY_RETURN(device->allocate(device, ctx, &p->device_sums, (size_t)p->pages * sizeof(double)));
    piece_call c;
    make_call(p, &(an_page_range){0, p->pages}, 0, &c);
    return an_device_kernel(ctx, "square_sums", &c.call, &p->kernel);
}

void an_page_sums_destroy(an_page_sums *p) {
    an_context *ctx = p->ctx;
    if (!ctx) return;
    const an_device *device = p->params->device;
    an_release(ctx, (void **)&p->parts, p->part_capacity, sizeof *p->parts);
    device->release(device, ctx, &p->device_sums, (size_t)p->pages * sizeof(double));
    an_release(ctx, (void **)&p->room, (size_t)room_of(p->pages), sizeof *p->room);
    an_release(ctx, (void **)&p->sums, (size_t)p->pages, sizeof *p->sums);
}

/* ---- sums ---- */

an_status an_page_sums_compute(an_page_sums *p) {
    an_context *ctx = p->ctx;
    const an_device *device = p->params->device;
    if (p->pages == 0) return AN_OK;
    int64_t at = 0;
    for (int i = 0; i < an_params_piece_count(p->params); i++) {
        const an_page_range pages = an_params_piece(p->params, i);
        piece_call c;
        if (pages.begin == pages.end) continue;
        make_call(p, &pages, at, &c);
        AN_TRY_RETURN(device->launch(device, p->kernel, &c.call));
        at += pages.end - pages.begin;
    }
    AN_TRY_RETURN(
        device->copy(device, ctx, p->sums, p->device_sums, (size_t)p->pages * sizeof(double), AN_COPY_FROM_DEVICE));
    return device->synchronize(device, ctx);
}

/* Numbers added in one binary tree over their indices; one without a neighbour goes up as it is.
 * `room` holds half of them. */
static double tree_sum(const double *numbers, int64_t count, double *room) {
    if (count == 0) return 0;
    while (count > 1) {
        for (int64_t i = 0; i < count / 2; i++) room[i] = numbers[2 * i] + numbers[2 * i + 1];
        if (count % 2) room[count / 2] = numbers[count - 1];
        count = (count + 1) / 2;
        numbers = room;
    }
    return numbers[0];
}

double an_page_sums_add(const an_page_sums *p, int64_t begin, int64_t end) {
    return tree_sum(p->sums + begin, end - begin, p->room);
}

/* ---- forests ---- */

static int64_t pages_of(int64_t elements) {
    return an_divide_up(elements, AN_PAGE);
}

bool an_page_sums_part_bytes(size_t parameters, size_t *bytes) {
    return an_add_elements(bytes, parameters, sizeof(an_page_part));
}

an_status an_page_sums_divide(an_page_sums *p) {
    an_context *ctx = p->ctx;
    const an_params *params = p->params;
    if (!params->pieces.shards) return AN_OK; /* all sums are here */
    AN_TRY_RETURN(an_alloc(ctx, (void **)&p->parts, params->parameter_count, sizeof *p->parts));
    p->part_capacity = params->parameter_count;
    for (size_t i = 0; i < params->parameter_count; i++) {
        const an_stored *e = &params->entries[i];
        if (e->storage != AN_STORAGE_MASTER) continue;
        const int64_t first = e->offset / (int64_t)an_dtype_size(e->dtype) / AN_PAGE;
        p->parts[p->part_count++] = (an_page_part){.pages = {first, first + pages_of(e->elements)}, .parameter = i};
    }
    return AN_OK;
}

/* Records are merged in the order of ranks, and a unit's first piece belongs to the rank of its turn
 * (comm/pieces.h): ranks from there on have its front, in order, and those before it its back. So what a unit or
 * a parameter has is a forest of each. */
enum { FRONT, BACK, HALVES };

int an_page_sums_forests(const an_page_sums *p) {
    return HALVES * (an_params_piece_count(p->params) + p->part_count);
}

size_t an_page_sums_record_bytes(const an_shards *shards, const an_graph *model) {
    size_t bytes = HALVES * (size_t)shards->unit_count * an_forest_bytes(shards->pages, 1);
    for (size_t i = 0; model && i < model->parameter_count; i++)
        if (model->parameters[i].node->outputs[0].storage == AN_STORAGE_MASTER)
            bytes += HALVES * an_forest_bytes(pages_of(model->parameters[i].elements), 1);
    return bytes;
}

/* What this rank has of a unit or of a parameter: pages of one piece, as leaves of a tree. */
typedef struct {
    an_leaf_range all, range; /* of the unit or the parameter; of this rank */
    const double *sums;       /* of its pages */
} span;

static span unit_span(const an_page_sums *p, int unit, const double *sums) {
    const an_page_range piece = an_params_piece(p->params, unit), *all = &p->params->pieces.shards->units[unit].pages;
    const int64_t pages = p->params->sizes.trainable_elements / AN_PAGE;
    return (span){.all = {all->begin, all->end, pages}, .range = {piece.begin, piece.end, pages}, .sums = sums};
}

/* A parameter lies in one unit. `sums` are those of this rank's piece of it. */
static span part_span(const an_page_part *part, const an_page_range *piece, const double *sums) {
    const int64_t begin = an_smaller(an_larger(piece->begin, part->pages.begin), part->pages.end);
    const int64_t end = an_larger(an_smaller(piece->end, part->pages.end), begin);
    const int64_t first = part->pages.begin, pages = part->pages.end - first;
    return (span){.all = {0, pages, pages},
                  .range = {begin - first, end - first, pages},
                  .sums = begin < end ? sums + (begin - piece->begin) : sums};
}

/* A maximal node is an aligned block, or what the last page leaves of one, so its pages alone give its sum. */
static void fill(const an_page_sums *p, const span *s, an_forest *forest) {
    an_tree_node nodes[AN_FOREST_MOST];
    const int count = an_forest_nodes(&s->range, nodes);
    for (int k = 0; k < count; k++) {
        const int64_t end = k + 1 < count ? nodes[k + 1].first : s->range.end;
        *an_forest_values(forest, k) =
            tree_sum(s->sums + (nodes[k].first - s->range.begin), end - nodes[k].first, p->room);
        an_forest_push(forest, nodes[k].first);
    }
}

/* The half that is not of this rank is empty where the row of ranks begins or ends. Returns what lies behind both. */
static an_forest *visit_halves(const an_page_sums *p, const span *s, int unit, an_forest *forest, bool fills) {
    const an_shards *shards = p->params->pieces.shards;
    const int mine = shards->rank >= unit % shards->ranks ? FRONT : BACK;
    for (int half = 0; half < HALVES; half++, forest = an_forest_next(forest)) {
        const int64_t border = half == FRONT ? s->all.begin : s->all.end;
        const an_leaf_range range = half == mine ? s->range : (an_leaf_range){border, border, s->all.leaves};
        if (!fills)
            an_forest_begin(forest, &range, 1);
        else if (half == mine)
            fill(p, s, forest);
    }
    return forest;
}

/* All forests, begun or filled. Parts are in the order of units, as parameters are. */
static void visit(const an_page_sums *p, an_forest *forests, bool fills) {
    const an_shards *shards = p->params->pieces.shards;
    const double *sums = p->sums;
    const int units = an_params_piece_count(p->params);
    int unit = 0;
    for (int i = 0; i < units; i++) {
        const span s = unit_span(p, i, sums);
        forests = visit_halves(p, &s, i, forests, fills);
        sums += s.range.end - s.range.begin;
    }
    sums = p->sums;
    for (int i = 0; i < p->part_count; i++) {
        for (; shards->units[unit].pages.end <= p->parts[i].pages.begin; unit++) {
            const an_page_range passed = an_params_piece(p->params, unit);
            sums += passed.end - passed.begin;
        }
        const an_page_range piece = an_params_piece(p->params, unit);
        const span s = part_span(&p->parts[i], &piece, sums);
        forests = visit_halves(p, &s, unit, forests, fills);
    }
}

void an_page_sums_begin(const an_page_sums *p, an_forest *forests) {
    visit(p, forests, false);
}

void an_page_sums_fill(const an_page_sums *p, an_forest *forests) {
    visit(p, forests, true);
}

static an_status take_sum(const an_page_sums *p, an_forest *forest, int64_t pages, double *sum) {
    if (forest->count != 1 || forest->range.begin != 0 || forest->range.end != pages)
        return AN_ERROR(p->ctx, AN_ERR_STATE, "the squares of pages %lld to %lld of %lld were added to %lld numbers",
                        (long long)forest->range.begin, (long long)forest->range.end, (long long)pages,
                        (long long)forest->count);
    *sum = *an_forest_values(forest, 0);
    return AN_OK;
}

an_status an_page_sums_close(an_page_sums *p, an_forest *forests, double *sum) {
    an_forest *next = forests;
    for (int i = 1; i < HALVES * an_params_piece_count(p->params); i++) {
        next = an_forest_next(next);
        an_forest_merge(forests, next);
    }
    for (int i = 0; i < p->part_count; i++) {
        an_page_part *part = &p->parts[i];
        an_forest *front = an_forest_next(next);
        next = an_forest_next(front);
        an_forest_merge(front, next);
        AN_TRY_RETURN(take_sum(p, front, part->pages.end - part->pages.begin, &part->sum));
    }
    return take_sum(p, forests, p->params->sizes.trainable_elements / AN_PAGE, sum);
}

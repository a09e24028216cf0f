#include "step/page_sums.h"

#include "base/device.h"
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

/* Numbers added in one binary tree over their indices; one without a neighbour goes up as it is. `room` holds half of them. */
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

size_t an_page_sums_record_bytes(int64_t pages, int units) {
    return (size_t)units * an_forest_bytes(pages, 1);
}

void an_page_sums_begin(const an_page_sums *p, an_forest *forests) {
    const int64_t pages = p->params->sizes.trainable_elements / AN_PAGE;
    for (int i = 0; i < an_params_piece_count(p->params); i++, forests = an_forest_next(forests)) {
        const an_page_range piece = an_params_piece(p->params, i);
        an_forest_begin(forests, &(an_leaf_range){piece.begin, piece.end, pages}, 1);
    }
}

/* A maximal node is an aligned block, or what the last page leaves of one, so its pages alone give its sum. */
void an_page_sums_fill(const an_page_sums *p, an_forest *forests) {
    const double *sums = p->sums;
    for (int i = 0; i < an_params_piece_count(p->params); i++, forests = an_forest_next(forests)) {
        an_tree_node nodes[AN_FOREST_MOST];
        const an_leaf_range *range = &forests->range;
        const int count = an_forest_nodes(range, nodes);
        for (int k = 0; k < count; k++) {
            const int64_t end = k + 1 < count ? nodes[k + 1].first : range->end;
            *an_forest_values(forests, k) =
                tree_sum(sums + (nodes[k].first - range->begin), end - nodes[k].first, p->room);
            an_forest_push(forests, nodes[k].first);
        }
        sums += range->end - range->begin;
    }
}

an_status an_page_sums_close(const an_page_sums *p, an_forest *forests, double *sum) {
    const int64_t pages = p->params->sizes.trainable_elements / AN_PAGE;
    an_forest *next = forests;
    for (int i = 1; i < an_params_piece_count(p->params); i++) {
        next = an_forest_next(next);
        an_forest_merge(forests, next);
    }
    if (forests->count != 1 || forests->range.begin != 0 || forests->range.end != pages)
        return AN_ERROR(p->ctx, AN_ERR_STATE, "the squares of pages %lld to %lld of %lld were added to %lld numbers",
                        (long long)forests->range.begin, (long long)forests->range.end, (long long)pages,
                        (long long)forests->count);
    *sum = *an_forest_values(forests, 0);
    return AN_OK;
}

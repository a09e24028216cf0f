/* The moving average of the weights: a buffer on the grid, on the pages that this rank updates.
 *
 * Programs read weights at one place, so an evaluation of the average exchanges the two buffers and afterwards
 * exchanges them back. That needs no memory, and low copies and other ranks follow as they do after an update. */
#include "base/status.h"
#include "exec/array.h"
#include "exec/params.h"
#include "kernels/update/average.h"

/* Both kernels have calls of two buffers. They point into themselves, so they stay where they are. */
typedef struct {
    an_tensor tensors[2];
    an_call call;
} pair;

static void make_pair(const an_params *p, const an_page_range *pages, pair *c) {
    const an_dtype dtype = p->sizes.trainable_dtype;
    c->tensors[0] = an_flat_tensor(p->masters, dtype, pages);
    c->tensors[1] = an_flat_tensor(p->average.flat, dtype, pages);
}

static void make_update(const an_params *p, const an_average_attributes *a, const an_page_range *pages, pair *c) {
    make_pair(p, pages, c);
    c->call = (an_call){
        .ctx = p->ctx, .attributes = a, .src_count = 1, .dst_count = 1, .src = &c->tensors[0], .dst = &c->tensors[1]};
}

static void make_swap(const an_params *p, const an_page_range *pages, pair *c) {
    make_pair(p, pages, c);
    c->call = (an_call){.ctx = p->ctx, .dst_count = 2, .dst = c->tensors};
}

an_status an_params_make_average(an_params *p) {
    an_context *ctx = p->ctx;
    const an_average_attributes attributes = {0};
    pair c;
    if (p->grid.end == 0) return AN_OK;
    make_update(p, &attributes, &p->grid, &c);
    AN_TRY_RETURN(an_device_kernel(ctx, "average", &c.call, &p->average.update));
    make_swap(p, &p->grid, &c);
    AN_TRY_RETURN(an_device_kernel(ctx, "swap", &c.call, &p->average.swap));
    return an_params_allocate_flat(p, &p->average.flat, AN_FLAT_MOMENTS, p->sizes.trainable_dtype);
}

/* By a copy of the weights where it has not begun. */
static an_status update(an_params *p, double decay) {
    const an_average_attributes attributes = {.decay = decay, .first = !p->average.begun};
    for (int i = 0; i < an_params_piece_count(p); i++) {
        const an_page_range piece = an_params_piece(p, i);
        pair c;
        if (piece.begin == piece.end) continue;
        make_update(p, &attributes, &piece, &c);
        AN_TRY_RETURN(p->device->launch(p->device, p->average.update, &c.call));
    }
    p->average.begun = true;
    return AN_OK;
}

an_status an_params_update_average(an_params *p, double decay) {
    return p->average.flat ? update(p, decay) : AN_OK;
}

an_status an_params_begin_average(an_params *p) {
    return p->average.flat && !p->average.begun ? update(p, 0) : AN_OK;
}

an_status an_params_show_average(an_params *p, bool shown) {
    if (!p->average.flat || !p->average.begun || p->average.is_shown == shown) return AN_OK;
    for (int i = 0; i < an_params_piece_count(p); i++) {
        const an_page_range piece = an_params_piece(p, i);
        pair c;
        if (piece.begin == piece.end) continue;
        make_swap(p, &piece, &c);
        AN_TRY_RETURN(p->device->launch(p->device, p->average.swap, &c.call));
    }
    p->average.is_shown = shown;
    p->version++;
    return AN_OK;
}

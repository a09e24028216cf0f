/* Portable kernels of convolution.
 *
 * All three are products with the matrix of patches, whose rows are taps (channel, row and column in the window) and
 * whose columns are positions (sample, row and column where the window stands):
 *     dst          = weights · patches of src
 *     diff_weights = diff_dst · (patches of src)ᵀ
 *     diff_src     = weights, with taps and filters swapped, · patches of diff_dst
 * The matrix is never written out: the product core packs its panels straight from the image. A group is an item.
 *
 * With a stride s, a pixel of diff_src meets only those taps that could have stood on it: every s-th. Pixels with the
 * same remainder, a phase, share their taps; so every phase is a product of its own in which no zeros are multiplied.
 */
#include "kernels/convolution/convolution.h"

#include <string.h>

#include "base/integer.h"
#include "kernels/common/leaves.h"
#include "kernels/common/row.h"
#include "kernels/convolution/leaves.h"
#include "kernels/product/core.h"

/* One direction of the window: tap t at position i lies on place first + i · stride + t · tap_stride of the image. */
typedef struct {
    int64_t positions, taps, first, stride, tap_stride;
} axis;

typedef struct {
    const an_tensor *image;
    int64_t channels; /* of a group */
    axis axes[2];
} patches;

typedef struct {
    int64_t begin, end;
} range;

static int64_t place_of(const axis *a, int64_t position, int64_t tap) {
    return a->first + position * a->stride + tap * a->tap_stride;
}

static int64_t clamp(int64_t value, int64_t maximum) {
    return value < 0 ? 0 : an_smaller(value, maximum);
}

/* Which of `count` positions from `position` on have the tap inside an image of `size`. */
static range positions_inside(const axis *a, int64_t size, int64_t position, int64_t count, int64_t tap) {
    int64_t place = place_of(a, position, tap);
    int64_t begin = clamp(an_divide_up(-place, a->stride), count),
            end = clamp(an_divide_up(size - place, a->stride), count);
    return (range){begin, end};
}

#define AN_TEMPLATE "kernels/convolution/template.h"
#include "kernels/common/instantiate.h"

/* ---- operands ---- */

/* (batch, channels, height, width): lines are the channels of a group, places the positions. */
static an_matrix image_matrix(const an_tensor *t, int64_t groups) {
    int64_t channels = t->dims[1] / groups;
    an_matrix m = {.tensor = t};
    an_grid_add(&m.items, groups, channels * t->strides[1]);
    an_grid_add(&m.lines, channels, t->strides[1]);
    an_grid_add(&m.places, t->dims[0], t->strides[0]);
    an_grid_add(&m.places, t->dims[2], t->strides[2]);
    an_grid_add(&m.places, t->dims[3], t->strides[3]);
    return m;
}

/* (filters, channels, height, width): lines are the filters of a group, places the taps. */
static an_matrix filter_matrix(const an_tensor *t, int64_t groups) {
    int64_t filters = t->dims[0] / groups;
    an_matrix m = {.tensor = t};
    an_grid_add(&m.items, groups, filters * t->strides[0]);
    an_grid_add(&m.lines, filters, t->strides[0]);
    for (int i = 1; i < t->ndims; i++) an_grid_add(&m.places, t->dims[i], t->strides[i]);
    return m;
}

/* The patches that forward takes of src; dst and weights give their sizes. */
static patches src_patches(const an_convolution_attributes *attributes, const an_tensor *src, const an_tensor *weights,
                           const an_tensor *dst) {
    patches p = {.image = src, .channels = weights->dims[1]};
    for (int i = 0; i < 2; i++)
        p.axes[i] = (axis){dst->dims[2 + i], weights->dims[2 + i], -attributes->padding.values[i],
                           attributes->stride.values[i], attributes->dilation.values[i]};
    return p;
}

static an_product_operand patches_operand(const patches *p, bool along_k) {
    return (an_product_operand){p, patch_line_f32, patch_line_f64, along_k};
}

static int64_t taps_of(const patches *p) {
    return p->channels * p->axes[0].taps * p->axes[1].taps;
}
static int64_t positions_of(const patches *p) {
    return p->image->dims[0] * p->axes[0].positions * p->axes[1].positions;
}

typedef struct {
    an_product_job product;
    patches patches;
    an_matrix matrix; /* the operand that is not patches */
} job;

static void run_job(const an_call *call, const job *j) {
    if (an_call_is_f64(call))
        an_product_run_f64(&j->product);
    else
        an_product_run_f32(&j->product);
}

static size_t job_scratch(const an_call *call, const job *j) {
    const an_product_job *p = &j->product;
    return an_product_scratch(call->ctx, an_call_is_f64(call), p->items, p->rows, p->columns, p->depth);
}

/* ---- convolution ---- */

static void forward_job(const an_call *call, job *j) {
    const an_convolution_attributes *attributes = call->attributes;
    const an_tensor *src = &call->src[0], *weights = &call->src[1], *dst = &call->dst[0];
    j->patches = src_patches(attributes, src, weights, dst);
    j->matrix = filter_matrix(weights, attributes->groups);
    j->product = (an_product_job){
        .ctx = call->ctx,
        .scratch = call->scratch,
        .items = attributes->groups,
        .rows = weights->dims[0] / attributes->groups,
        .columns = positions_of(&j->patches),
        .depth = taps_of(&j->patches),
        .a = an_matrix_operand(&j->matrix),
        .b = patches_operand(&j->patches, false),
        .dst = image_matrix(dst, attributes->groups),
    };
}

static size_t forward_scratch(const an_call *call) {
    job j;
    forward_job(call, &j);
    return job_scratch(call, &j);
}

static an_status forward_run(const an_call *call) {
    job j;
    forward_job(call, &j);
    run_job(call, &j);
    return AN_OK;
}

AN_KERNEL_LIST(convolution) = {
#ifdef AN_LIST_ONEDNN
    {.name = "onednn",
     .applies = an_convolution_onednn_applies,
     .scratch = an_convolution_onednn_scratch,
     .run = an_convolution_onednn_run},
#endif
    {.name = "portable", .scratch = forward_scratch, .run = forward_run},
    {0},
};

/* ---- convolution_diff_weights ---- */

static void weights_job(const an_call *call, job *j) {
    const an_convolution_attributes *attributes = call->attributes;
    const an_tensor *diff_dst = &call->src[0], *src = &call->src[1], *diff_weights = &call->dst[0];
    j->patches = src_patches(attributes, src, diff_weights, diff_dst);
    j->matrix = image_matrix(diff_dst, attributes->groups);
    j->product = (an_product_job){
        .ctx = call->ctx,
        .scratch = call->scratch,
        .items = attributes->groups,
        .rows = diff_weights->dims[0] / attributes->groups,
        .columns = taps_of(&j->patches),
        .depth = positions_of(&j->patches),
        .a = an_matrix_operand(&j->matrix),
        .b = patches_operand(&j->patches, true),
        .dst = filter_matrix(diff_weights, attributes->groups),
    };
}

static size_t weights_scratch(const an_call *call) {
    job j;
    weights_job(call, &j);
    return job_scratch(call, &j) + (an_call_leaves(call) ? an_convolution_leaves_scratch(call) : 0);
}

static an_status weights_run(const an_call *call) {
    job j;
    if (an_call_leaves(call)) return an_convolution_leaves_run(call, weights_run);
    weights_job(call, &j);
    run_job(call, &j);
    return AN_OK;
}

AN_KERNEL_LIST(convolution_diff_weights) = {
#ifdef AN_LIST_ONEDNN
    {.name = "onednn",
     .applies = an_convolution_diff_weights_onednn_applies,
     .scratch = an_convolution_diff_weights_onednn_scratch,
     .run = an_convolution_diff_weights_onednn_run,
     .by_leaves = true},
#endif
    {.name = "portable", .scratch = weights_scratch, .run = weights_run, .by_leaves = true},
    {0},
};

/* ---- convolution_diff_src ---- */

/* A phase of one direction: pixels `index`, index + s, … and the taps first, first + step, … that stand on them. Tap t
 * on pixel y comes from position (y + padding - t · dilation) / s of dst, which must be whole. */
typedef struct {
    int64_t first, step;
    axis axis;
} phase;

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static phase phase_at(int64_t index, int64_t size, int64_t window, int64_t stride, int64_t padding, int64_t dilation) {
    int64_t divisor = common_divisor(stride, dilation);
    phase p = {.step = stride / divisor};
    int64_t last = an_smaller(p.step, window); /* later taps only repeat the remainders */
    while (p.first < last && (index + padding - p.first * dilation) % stride != 0) p.first++;
    p.axis = (axis){
        .positions = (size - index + stride - 1) / stride,
        .taps = p.first < last ? (window - 1 - p.first) / p.step + 1 : 0,
        .first = (index + padding - p.first * dilation) / stride,
        .stride = 1,
        .tap_stride = -dilation / divisor,
    };
    return p;
}

static void phase_job(const an_call *call, const int64_t *index, job *j) {
    const an_convolution_attributes *attributes = call->attributes;
    const an_tensor *diff_dst = &call->src[0], *weights = &call->src[1], *diff_src = &call->dst[0];
    int64_t filters = weights->dims[0] / attributes->groups, channels = weights->dims[1];
    an_matrix dst = {.tensor = diff_src};
    j->matrix = (an_matrix){.tensor = weights};
    an_grid_add(&j->matrix.items, attributes->groups, filters * weights->strides[0]);
    an_grid_add(&j->matrix.lines, channels, weights->strides[1]);
    an_grid_add(&j->matrix.places, filters, weights->strides[0]);
    an_grid_add(&dst.items, attributes->groups, channels * diff_src->strides[1]);
    an_grid_add(&dst.lines, channels, diff_src->strides[1]);
    an_grid_add(&dst.places, diff_src->dims[0], diff_src->strides[0]);
    j->patches = (patches){.image = diff_dst, .channels = filters};
    for (int i = 0; i < 2; i++) {
        int64_t stride = attributes->stride.values[i];
        phase p = phase_at(index[i], diff_src->dims[2 + i], weights->dims[2 + i], stride, attributes->padding.values[i],
                           attributes->dilation.values[i]);
        j->matrix.offset += p.first * weights->strides[2 + i];
        an_grid_add(&j->matrix.places, p.axis.taps, p.step * weights->strides[2 + i]);
        dst.offset += index[i] * diff_src->strides[2 + i];
        an_grid_add(&dst.places, p.axis.positions, stride * diff_src->strides[2 + i]);
        j->patches.axes[i] = p.axis;
    }
    j->product = (an_product_job){
        .ctx = call->ctx,
        .scratch = call->scratch,
        .items = attributes->groups,
        .rows = channels,
        .columns = positions_of(&j->patches),
        .depth = taps_of(&j->patches),
        .a = an_matrix_operand(&j->matrix),
        .b = patches_operand(&j->patches, false),
        .dst = dst,
    };
}

/* Phase 0 has the most pixels; the taps are bounded by the window. */
static size_t diff_src_scratch(const an_call *call) {
    const an_tensor *weights = &call->src[1];
    job j;
    phase_job(call, (const int64_t[]){0, 0}, &j);
    j.product.depth = j.patches.channels * weights->dims[2] * weights->dims[3];
    return job_scratch(call, &j);
}

static an_status diff_src_run(const an_call *call) {
    const an_convolution_attributes *attributes = call->attributes;
    const int64_t *dims = call->dst[0].dims, *stride = attributes->stride.values;
    for (int64_t row = 0; row < an_smaller(stride[0], dims[2]); row++) {
        for (int64_t column = 0; column < an_smaller(stride[1], dims[3]); column++) {
            job j;
            phase_job(call, (const int64_t[]){row, column}, &j);
            run_job(call, &j);
        }
    }
    return AN_OK;
}

AN_KERNEL_LIST(convolution_diff_src) = {
#ifdef AN_LIST_ONEDNN
    {.name = "onednn",
     .applies = an_convolution_diff_src_onednn_applies,
     .scratch = an_convolution_diff_src_onednn_scratch,
     .run = an_convolution_diff_src_onednn_run},
#endif
    {.name = "portable", .scratch = diff_src_scratch, .run = diff_src_run},
    {0},
};

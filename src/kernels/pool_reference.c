/* Reference kernels of pooling. A plane, which is one channel of one sample, is brought into dense form, pooled and put
 * back; planes are independent, and inside one everything goes in the order of the outputs. */
#include "kernels/pool.h"

#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/row.h"

typedef struct {
    const an_pool_attributes *attributes;
    int64_t image[2], pooled[2]; /* height, width */
} shape;

/* The part of a window that lies inside the image; padding is at most half a window, so there is one. */
typedef struct {
    int64_t top, bottom, left, right;
} box;

typedef void pool_f32(const shape *s, const float *first, const float *second, float *dst);
typedef void pool_f64(const shape *s, const double *first, const double *second, double *dst);

typedef struct {
    const an_call *call;
    shape shape;
    pool_f32 *pool_f32;
    pool_f64 *pool_f64;
    int64_t planes, planes_per_task;
} job;

enum { TASK_ELEMENTS = 1 << 14 }; /* of the image: about 20 µs of work */

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static box box_at(const shape *s, int64_t row, int64_t column) {
    const an_pool_attributes *a = s->attributes;
    int64_t y = row * a->stride.values[0] - a->padding.values[0];
    int64_t x = column * a->stride.values[1] - a->padding.values[1];
    return (box){
        .top = y < 0 ? 0 : y,
        .bottom = smaller(y + a->window.values[0], s->image[0]),
        .left = x < 0 ? 0 : x,
        .right = smaller(x + a->window.values[1], s->image[1]),
    };
}

static int64_t divisor(const shape *s, box b) {
    const an_pool_attributes *a = s->attributes;
    if (a->exclude_padding) return (b.bottom - b.top) * (b.right - b.left);
    return a->window.values[0] * a->window.values[1];
}

static int64_t plane_offset(const an_tensor *t, int64_t plane) {
    return plane / t->dims[1] * t->strides[0] + plane % t->dims[1] * t->strides[1];
}

/* Whether all elements of a plane are equally far apart. */
static bool is_line(const an_tensor *t) {
    return t->strides[2] == t->dims[3] * t->strides[3];
}

static size_t plane_bytes(const an_tensor *t, size_t element) {
    return an_round_up((size_t)(t->dims[2] * t->dims[3]) * element, AN_ALIGNMENT);
}

static size_t thread_bytes(const an_call *call) {
    size_t element = an_call_is_f64(call) ? sizeof(double) : sizeof(float);
    size_t bytes = plane_bytes(&call->dst[0], element);
    for (int i = 0; i < call->src_count; i++) bytes += plane_bytes(&call->src[i], element);
    return bytes;
}

#define AN_TEMPLATE "kernels/pool_template.h"
#include "kernels/instantiate.h"

static size_t scratch(const an_call *call) {
    return (size_t)an_context_threads(call->ctx) * thread_bytes(call);
}

static an_status run(const an_call *call, const an_tensor *image, const an_tensor *pooled, pool_f32 *f32,
                     pool_f64 *f64) {
    job j = {.call = call, .pool_f32 = f32, .pool_f64 = f64, .planes = image->dims[0] * image->dims[1]};
    int64_t elements = image->dims[2] * image->dims[3];
    j.shape = (shape){call->attributes, {image->dims[2], image->dims[3]}, {pooled->dims[2], pooled->dims[3]}};
    j.planes_per_task = elements < TASK_ELEMENTS ? TASK_ELEMENTS / elements : 1;
    an_parallel(call->ctx, (j.planes + j.planes_per_task - 1) / j.planes_per_task,
                an_call_is_f64(call) ? pool_task_f64 : pool_task_f32, &j);
    return AN_OK;
}

#define KERNEL(op, image, pooled)                            \
    static an_status run_##op(const an_call *call) {         \
        return run(call, image, pooled, op##_f32, op##_f64); \
    }                                                        \
    AN_KERNEL_LIST(op) = {{.name = "reference", .scratch = scratch, .run = run_##op}, {0}};

KERNEL(max_pool, &call->src[0], &call->dst[0])
KERNEL(max_pool_diff, &call->dst[0], &call->src[0])
KERNEL(average_pool, &call->src[0], &call->dst[0])
KERNEL(average_pool_diff, &call->dst[0], &call->src[0])

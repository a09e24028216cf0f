/* Portable kernels of pooling. A plane, which is one channel of one sample, is brought into dense form, pooled and put
 * back; planes are independent, and inside one everything goes in the order of the outputs.
 *
 * Where the elements of windows lie is the same for all planes, so maxima are looked for with a table of places: one
 * element of every window after the other, which makes loops over all outputs of a plane. */
#include "kernels/pool/pool.h"

#include <inttypes.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/common/row.h"

typedef struct {
    const an_pool_attributes *attributes;
    int64_t image[2], pooled[2]; /* height, width */
    int32_t *places;             /* of maxima: for every element of a window those in the image, for all outputs */
} shape;

/* The part of a window that lies inside the image; padding is at most half a window, so there is one. */
typedef struct {
    int64_t top, bottom, left, right;
} box;

/* `work` has room for a number and a place for every output. */
typedef void pool_f32(const shape *s, const float *first, const float *second, float *dst, void *work);
typedef void pool_f64(const shape *s, const double *first, const double *second, double *dst, void *work);

typedef struct {
    const an_call *call;
    shape shape;
    pool_f32 *pool_f32;
    pool_f64 *pool_f64;
    char *scratch; /* of the threads */
    size_t thread_bytes;
    int64_t planes, planes_per_task;
} job;

enum { TASK_ELEMENTS = 1 << 14 }; /* of the image: about 20 µs of work */

static box box_at(const shape *s, int64_t row, int64_t column) {
    const an_pool_attributes *a = s->attributes;
    int64_t y = row * a->stride.values[0] - a->padding.values[0];
    int64_t x = column * a->stride.values[1] - a->padding.values[1];
    return (box){
        .top = y < 0 ? 0 : y,
        .bottom = an_smaller(y + a->window.values[0], s->image[0]),
        .left = x < 0 ? 0 : x,
        .right = an_smaller(x + a->window.values[1], s->image[1]),
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

static int64_t window_elements(const an_pool_attributes *a) {
    return a->window.values[0] * a->window.values[1];
}

static int64_t pooled_elements(const shape *s) {
    return s->pooled[0] * s->pooled[1];
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}

/* An element in the padding has the place of the nearest in the window, which is looked at before and after all others
 * of its row or column: the first of the largest stays the same. */
static void fill_places(const shape *s) {
    const an_pool_attributes *a = s->attributes;
    int32_t *to = s->places;
    for (int64_t e = 0; e < window_elements(a); e++)
        for (int64_t i = 0; i < s->pooled[0]; i++) {
            const int64_t y = i * a->stride.values[0] - a->padding.values[0] + e / a->window.values[1];
            const int64_t row = clamp(y, 0, s->image[0] - 1) * s->image[1];
            for (int64_t j = 0; j < s->pooled[1]; j++) {
                const int64_t x = j * a->stride.values[1] - a->padding.values[1] + e % a->window.values[1];
                *to++ = (int32_t)(row + clamp(x, 0, s->image[1] - 1));
            }
        }
}

static size_t plane_bytes(const an_tensor *t, size_t element) {
    return an_round_up((size_t)(t->dims[2] * t->dims[3]) * element, AN_ALIGNMENT);
}

static size_t thread_bytes(const an_call *call, const an_tensor *pooled) {
    size_t element = an_call_is_f64(call) ? sizeof(double) : sizeof(float);
    size_t bytes = plane_bytes(&call->dst[0], element) + plane_bytes(pooled, element + sizeof(int32_t));
    for (int i = 0; i < call->src_count; i++) bytes += plane_bytes(&call->src[i], element);
    return bytes;
}

#define AN_TEMPLATE "kernels/pool/template.h"
#include "kernels/common/instantiate.h"

static size_t places_bytes(const an_call *call, const an_tensor *pooled) {
    return plane_bytes(pooled, (size_t)window_elements(call->attributes) * sizeof(int32_t));
}

static size_t scratch(const an_call *call, const an_tensor *pooled) {
    return places_bytes(call, pooled) + (size_t)an_context_threads(call->ctx) * thread_bytes(call, pooled);
}

static an_status run(const an_call *call, const an_tensor *image, const an_tensor *pooled, bool largest, pool_f32 *f32,
                     pool_f64 *f64) {
    job j = {.call = call,
             .shape = {.attributes = call->attributes,
                       .image = {image->dims[2], image->dims[3]},
                       .pooled = {pooled->dims[2], pooled->dims[3]},
                       .places = call->scratch},
             .pool_f32 = f32,
             .pool_f64 = f64,
             .scratch = (char *)call->scratch + places_bytes(call, pooled),
             .thread_bytes = thread_bytes(call, pooled),
             .planes = image->dims[0] * image->dims[1]};
    int64_t elements = image->dims[2] * image->dims[3];
    if (elements > INT32_MAX)
        return AN_ERROR(call->ctx, AN_ERR_UNSUPPORTED,
                        "the image has %" PRId64 " elements, but at most %d can be pooled", elements, INT32_MAX);
    if (largest) fill_places(&j.shape);
    j.planes_per_task = elements < TASK_ELEMENTS ? TASK_ELEMENTS / elements : 1;
    an_parallel(call->ctx, (j.planes + j.planes_per_task - 1) / j.planes_per_task,
                an_call_is_f64(call) ? pool_task_f64 : pool_task_f32, &j);
    return AN_OK;
}

#define KERNEL(op, image, pooled, largest)                            \
    static size_t scratch_##op(const an_call *call) {                 \
        return scratch(call, pooled);                                 \
    }                                                                 \
    static an_status run_##op(const an_call *call) {                  \
        return run(call, image, pooled, largest, op##_f32, op##_f64); \
    }                                                                 \
    AN_KERNEL_LIST(op) = {{.name = "portable", .scratch = scratch_##op, .run = run_##op}, {0}};

KERNEL(max_pool, &call->src[0], &call->dst[0], true)
KERNEL(max_pool_diff, &call->dst[0], &call->src[0], true)
KERNEL(average_pool, &call->src[0], &call->dst[0], false)
KERNEL(average_pool_diff, &call->dst[0], &call->src[0], false)

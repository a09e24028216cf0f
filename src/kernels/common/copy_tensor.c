/* Copies between tensors of equal shape.
 *
 * Rows of elementwise.h compute in f32 or f64, which would change a large integer or the payload of a NaN; a copy must
 * not, so rows of one type are moved here. What remains, a copy that converts, is an elementwise kernel.
 */
#include "kernels/common/copy_tensor.h"

#include <string.h>

#include "base/parallel.h"
#include "kernels/common/elementwise.h"
#include "kernels/common/stride_order.h"

/* A row is cut into pieces of at most PIECE elements; a task takes pieces until it has about TASK_ELEMENTS. */
enum { PIECE = 1 << 12, TASK_ELEMENTS = 1 << 13 };

typedef struct {
    const char *src; /* NULL: zeros */
    char *dst;
    an_dtype dtype;
    an_copy_space space;
    int64_t pieces, units, units_per_task; /* a unit is one piece of one row */
} job;

void an_copy_space_make(an_copy_space *s, const an_tensor *src, const an_tensor *dst) {
    int order[AN_MAX_DIMS], kept = 0;
    const int n = an_stride_order(dst, order);
    for (int i = 0; i < n; i++) {
        int64_t size = dst->dims[order[i]];
        int64_t from = src ? src->strides[order[i]] : 0, to = dst->strides[order[i]];
        if (kept > 0 && s->src_strides[kept - 1] == from * size && s->dst_strides[kept - 1] == to * size) {
            s->dims[--kept] *= size;
        } else {
            s->dims[kept] = size;
        }
        s->src_strides[kept] = from;
        s->dst_strides[kept++] = to;
    }
    if (!kept) { /* one element */
        s->dims[0] = 1;
        s->src_strides[0] = s->dst_strides[0] = 1;
        kept = 1;
    }
    s->ndims = kept;
}

#define MOVE(type)                                                                     \
    do {                                                                               \
        type *to = (type *)dst;                                                        \
        if (src) {                                                                     \
            const type *from = (const type *)src;                                      \
            for (int64_t i = 0; i < n; i++) to[i * dst_stride] = from[i * src_stride]; \
        } else {                                                                       \
            for (int64_t i = 0; i < n; i++) to[i * dst_stride] = 0;                    \
        }                                                                              \
    } while (0)

static void move(an_dtype dtype, int64_t n, const void *src, int64_t src_stride, void *dst, int64_t dst_stride) {
    if (dst_stride == 1 && (src_stride == 1 || !src)) {
        size_t bytes = (size_t)n * an_dtype_size(dtype);
        if (src)
            memcpy(dst, src, bytes);
        else
            memset(dst, 0, bytes);
        return;
    }
    switch (dtype) {
    case AN_DTYPE_F32: MOVE(float); break;
    case AN_DTYPE_F64: MOVE(double); break;
    case AN_DTYPE_BF16:
    case AN_DTYPE_F16: MOVE(uint16_t); break;
    case AN_DTYPE_I32: MOVE(int32_t); break;
    case AN_DTYPE_I64: MOVE(int64_t); break;
    case AN_DTYPE_U8: MOVE(uint8_t); break;
    case AN_DTYPE_Q8_0: /* has no element of its own */
    case AN_DTYPE_NONE:
    case AN_DTYPE_LIMIT: break;
    }
}

static void move_task(void *user, int64_t index, int thread) {
    const job *j = user;
    const an_copy_space *s = &j->space;
    int last = s->ndims - 1;
    int64_t size = (int64_t)an_dtype_size(j->dtype), end = (index + 1) * j->units_per_task;
    (void)thread;
    if (end > j->units) end = j->units;
    for (int64_t unit = index * j->units_per_task; unit < end; unit++) {
        int64_t row = unit / j->pieces, begin = unit % j->pieces * PIECE;
        int64_t n = s->dims[last] - begin < PIECE ? s->dims[last] - begin : PIECE;
        int64_t from = begin * s->src_strides[last], to = begin * s->dst_strides[last];
        for (int i = last - 1; i >= 0; i--) {
            from += row % s->dims[i] * s->src_strides[i];
            to += row % s->dims[i] * s->dst_strides[i];
            row /= s->dims[i];
        }
        move(j->dtype, n, j->src ? j->src + from * size : NULL, s->src_strides[last], j->dst + to * size,
             s->dst_strides[last]);
    }
}

static void move_tensor(an_context *ctx, const an_tensor *src, const an_tensor *dst) {
    job j = {.src = src ? src->data : NULL, .dst = dst->data, .dtype = dst->dtype};
    an_copy_space_make(&j.space, src, dst);
    int64_t row = j.space.dims[j.space.ndims - 1], rows = 1;
    for (int i = 0; i < j.space.ndims - 1; i++) rows *= j.space.dims[i];
    j.pieces = (row + PIECE - 1) / PIECE;
    j.units = rows * j.pieces;
    j.units_per_task = TASK_ELEMENTS / (row < PIECE ? row : PIECE);
    an_parallel(ctx, (j.units + j.units_per_task - 1) / j.units_per_task, move_task, &j);
}

static void identity_f32(int64_t n, const float *const *src, float *dst, const void *attributes) {
    (void)attributes;
    memcpy(dst, src[0], (size_t)n * sizeof *dst);
}

static void identity_f64(int64_t n, const double *const *src, double *dst, const void *attributes) {
    (void)attributes;
    memcpy(dst, src[0], (size_t)n * sizeof *dst);
}

void an_copy_tensor(an_context *ctx, const an_tensor *src, const an_tensor *dst) {
    if (src->dtype == dst->dtype) {
        move_tensor(ctx, src, dst);
    } else {
        an_call convert = {.ctx = ctx, .src_count = 1, .dst_count = 1, .src = src, .dst = dst};
        (void)an_elementwise(&convert, identity_f32, identity_f64); /* which cannot fail */
    }
}

void an_zero_tensor(an_context *ctx, const an_tensor *dst) {
    move_tensor(ctx, NULL, dst);
}

an_tensor an_tensor_part(const an_tensor *tensor, int axis, int64_t begin, int64_t size) {
    an_tensor part = *tensor;
    part.data = (char *)tensor->data + begin * tensor->strides[axis] * (int64_t)an_dtype_size(tensor->dtype);
    part.dims[axis] = size;
    return part;
}

/* Portable kernel of row_factors. A row at a time, 1,024 columns of it: nothing of the size of the weight is made, and
 * the weight is read as it is stored. The order of sums is that of kernels/common/reduce_order.h.
 *
 * A row of zeros has no direction, and its magnitude is 0. Its factor is 1, so that the change of an adapter gets a
 * gradient and gives it one; its norm is given as 1, so that no gradient divides by 0. */
#include "kernels/norm/row_factors.h"

#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/reduce_order.h"
#include "kernels/common/row.h"

enum { WEIGHT, FIRST, SECOND, MAGNITUDE };
enum { AT_ONCE = 4 }; /* rows of `first` that are added in one pass over a row */
enum { TASK_FLOPS = 1 << 18 };

typedef struct {
    const an_tensor *src, *dst;
    double scale;
    int64_t rows, rows_a_task;
} factors_job;

static inline float root_f32(float x) {
    return __builtin_sqrtf(x);
}
static inline double root_f64(double x) {
    return __builtin_sqrt(x);
}

#define AN_TEMPLATE "kernels/norm/row_factors_template.h"
#include "kernels/common/instantiate.h"

static void compute(const an_call *call, const an_tensor *dst) {
    const an_row_factors_attributes *attributes = call->attributes;
    const an_tensor *weight = &call->src[WEIGHT];
    const int64_t flops = weight->dims[1] * (call->src[FIRST].dims[0] + 1);
    factors_job j = {.src = call->src, .dst = dst, .scale = attributes->scale, .rows = weight->dims[0]};
    j.rows_a_task = flops < TASK_FLOPS ? TASK_FLOPS / flops : 1;
    an_parallel(call->ctx, (j.rows + j.rows_a_task - 1) / j.rows_a_task,
                an_call_is_f64(call) ? rows_task_f64 : rows_task_f32, &j);
}

/* ---- kept: both outputs, as the weights alone say what they are ---- */

/* The outputs in `kept`, one after the other. */
static void find_kept(const an_call *call, an_tensor tensors[2]) {
    for (int i = 0; i < 2; i++) {
        const size_t bytes = (size_t)call->dst[i].dims[0] * an_dtype_size(call->dst[i].dtype);
        tensors[i] = call->dst[i];
        tensors[i].strides[0] = 1;
        tensors[i].data = (char *)call->kept + (i ? an_round_up(bytes, AN_ALIGNMENT) : 0);
    }
}

static size_t kept_bytes(const an_call *call) {
    const size_t bytes = (size_t)call->dst[0].dims[0] * an_dtype_size(call->dst[0].dtype);
    return 2 * an_round_up(bytes, AN_ALIGNMENT);
}

static an_status keep(const an_call *call) {
    an_tensor kept[2];
    find_kept(call, kept);
    compute(call, kept);
    return AN_OK;
}

/* (weight, first, second, magnitude) */
static an_status run(const an_call *call) {
    an_tensor kept[2];
    if (!call->kept) {
        compute(call, call->dst);
        return AN_OK;
    }
    find_kept(call, kept);
    for (int i = 0; i < 2; i++) {
        const size_t size = an_dtype_size(kept[i].dtype), step = (size_t)call->dst[i].strides[0] * size;
        for (size_t k = 0; k < (size_t)kept[i].dims[0]; k++)
            memcpy((char *)call->dst[i].data + k * step, (const char *)kept[i].data + k * size, size);
    }
    return AN_OK;
}

AN_KERNEL_LIST(row_factors) = {{.name = "portable", .run = run, .kept = kept_bytes, .keep = keep}, {0}};

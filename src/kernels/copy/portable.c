/* Portable kernels of copies. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/common/copy_tensor.h"
#include "kernels/common/leaves.h"
#include "kernels/common/row.h"
#include "kernels/copy/copy.h"

static an_status run_copy(const an_call *call) {
    an_copy_tensor(call->ctx, &call->src[0], &call->dst[0]);
    return AN_OK;
}

static an_status run_concat(const an_call *call) {
    const an_concat_attributes *attributes = call->attributes;
    int axis = (int)attributes->axis;
    int64_t begin = 0;
    for (int i = 0; i < call->src_count; i++) {
        int64_t size = call->src[i].dims[axis];
        an_tensor part = an_tensor_part(&call->dst[0], axis, begin, size);
        an_copy_tensor(call->ctx, &call->src[i], &part);
        begin += size;
    }
    return AN_OK;
}

static an_status run_pad(const an_call *call) {
    const an_pad_attributes *attributes = call->attributes;
    const an_tensor *src = &call->src[0], *dst = &call->dst[0];
    int axis = (int)attributes->axis;
    int64_t end = attributes->before + src->dims[axis];
    an_tensor before = an_tensor_part(dst, axis, 0, attributes->before);
    an_tensor middle = an_tensor_part(dst, axis, attributes->before, src->dims[axis]);
    an_tensor after = an_tensor_part(dst, axis, end, dst->dims[axis] - end);
    if (before.dims[axis]) an_zero_tensor(call->ctx, &before);
    an_copy_tensor(call->ctx, src, &middle);
    if (after.dims[axis]) an_zero_tensor(call->ctx, &after);
    return AN_OK;
}

AN_KERNEL_LIST(contiguous) = {
    {.name = "tiled", .applies = an_contiguous_tiled_applies, .run = an_contiguous_tiled_run},
    {.name = "portable", .run = run_copy},
    {0},
};
AN_KERNEL_LIST(cast) = {{.name = "portable", .run = run_copy}, {0}};
AN_KERNEL_LIST(concat) = {{.name = "portable", .run = run_concat}, {0}};
AN_KERNEL_LIST(pad) = {{.name = "portable", .run = run_pad}, {0}};

/* ---- gather and gather_diff ---- Both go by rows: lines along the axis, counted over the other dimensions in C order.
 * Rows touch different elements, so they may run at once. */

enum { TASK_ELEMENTS = 1 << 14 };

typedef struct {
    const an_call *call;
    int axis;
    int64_t entries; /* of src along the axis: what an index must lie below */
    int64_t rows, rows_per_task;
    _Atomic int64_t wrong; /* the first wrong index, by its position in C order; INT64_MAX: none */
} gather_job;

static void row_coordinates(const an_tensor *tensor, int axis, int64_t row, int64_t *at) {
    for (int i = tensor->ndims - 1; i >= 0; i--) {
        at[i] = i == axis ? 0 : row % tensor->dims[i];
        if (i != axis) row /= tensor->dims[i];
    }
}

static int64_t offset_of(const an_tensor *tensor, const int64_t *at) {
    int64_t offset = 0;
    for (int i = 0; i < tensor->ndims; i++) offset += at[i] * tensor->strides[i];
    return offset;
}

static bool is_inside(const an_tensor *tensor, int axis, const int64_t *at) {
    for (int i = 0; i < tensor->ndims; i++)
        if (i != axis && at[i] >= tensor->dims[i]) return false;
    return true;
}

/* Whether an index may be used; a wrong one is remembered, the first of them whatever the threads do. */
static bool check_index(gather_job *j, int64_t index, const int64_t *at, int64_t along) {
    const an_tensor *indices = &j->call->src[1];
    int64_t position = 0, first;
    if (index >= 0 && index < j->entries) return true;
    for (int i = 0; i < indices->ndims; i++) position = position * indices->dims[i] + (i == j->axis ? along : at[i]);
    first = atomic_load(&j->wrong);
    while (position < first && !atomic_compare_exchange_weak(&j->wrong, &first, position)) continue;
    return false;
}

/* Names the wrong index if there was one. */
static an_status gather_status(const gather_job *j) {
    const an_tensor *indices = &j->call->src[1];
    int64_t rest = atomic_load(&j->wrong), offset = 0, at[AN_MAX_DIMS];
    char place[AN_MAX_DIMS * 20 + 1] = ""; /* a number has at most 19 digits, and its comma */
    size_t length = 0;
    if (rest == INT64_MAX) return AN_OK;
    for (int i = indices->ndims - 1; i >= 0; i--) {
        at[i] = rest % indices->dims[i];
        offset += at[i] * indices->strides[i];
        rest /= indices->dims[i];
    }
    for (int i = 0; i < indices->ndims; i++)
        length += (size_t)snprintf(place + length, sizeof place - length, "%s%" PRId64, i ? "," : "", at[i]);
    return AN_ERROR(j->call->ctx, AN_ERR_KERNEL,
                    "indices[%s] is %" PRId64 ", but src has %" PRId64
                    " entries along axis %d: an index must be 0 to %" PRId64,
                    place, an_load_index(indices, offset), j->entries, j->axis, j->entries - 1);
}

static an_status run_rows(gather_job *j, const an_tensor *tensor, an_task *task) {
    int64_t size = tensor->dims[j->axis];
    j->rows = an_tensor_elements(tensor) / size;
    j->rows_per_task = size < TASK_ELEMENTS ? TASK_ELEMENTS / size : 1;
    atomic_init(&j->wrong, INT64_MAX);
    an_parallel(j->call->ctx, (j->rows + j->rows_per_task - 1) / j->rows_per_task, task, j);
    return gather_status(j);
}

static int64_t task_end(const gather_job *j, int64_t index) {
    int64_t end = (index + 1) * j->rows_per_task;
    return end < j->rows ? end : j->rows;
}

#define GATHER(type)                                                             \
    do {                                                                         \
        const type *from = (const type *)src->data + offset_of(src, at);         \
        type *to = (type *)dst->data + offset_of(dst, at);                       \
        for (int64_t i = 0; i < dst->dims[axis]; i++) {                          \
            int64_t index = an_load_index(indices, index_at + i * index_stride); \
            if (!check_index(j, index, at, i)) return;                           \
            to[i * dst->strides[axis]] = from[index * src->strides[axis]];       \
        }                                                                        \
    } while (0)

static void gather_row(gather_job *j, int64_t row) {
    const an_tensor *src = &j->call->src[0], *indices = &j->call->src[1], *dst = &j->call->dst[0];
    int axis = j->axis;
    int64_t at[AN_MAX_DIMS] = {0};
    row_coordinates(dst, axis, row, at);
    int64_t index_at = offset_of(indices, at), index_stride = indices->strides[axis];
    switch (src->dtype) {
    case AN_DTYPE_F32: GATHER(float); break;
    case AN_DTYPE_F64: GATHER(double); break;
    case AN_DTYPE_BF16:
    case AN_DTYPE_F16: GATHER(uint16_t); break;
    case AN_DTYPE_I32: GATHER(int32_t); break;
    case AN_DTYPE_I64: GATHER(int64_t); break;
    case AN_DTYPE_U8: GATHER(uint8_t); break;
    case AN_DTYPE_Q8_0: /* has no element of its own */
    case AN_DTYPE_NONE:
    case AN_DTYPE_LIMIT: break;
    }
}

static void gather_task(void *user, int64_t index, int thread) {
    gather_job *j = user;
    (void)thread;
    for (int64_t row = index * j->rows_per_task; row < task_end(j, index); row++) gather_row(j, row);
}

static bool gather_applies(const an_call *call) {
    return call->src[0].dtype == call->dst[0].dtype;
}

static an_status run_gather(const an_call *call) {
    const an_gather_attributes *attributes = call->attributes;
    gather_job j = {.call = call, .axis = (int)attributes->axis};
    j.entries = call->src[0].dims[j.axis];
    return run_rows(&j, &call->dst[0], gather_task);
}

AN_KERNEL_LIST(gather) = {{.name = "portable", .applies = gather_applies, .run = run_gather}, {0}};

#define AN_TEMPLATE "kernels/copy/template.h"
#include "kernels/common/instantiate.h"

/* One row of sums, for rows that cannot be added up in place. By leaves, for which the samples must lie along the
 * axis, one for each sum that waits in the tree. */
static size_t rows_bytes(const an_call *call) {
    const an_gather_diff_attributes *attributes = call->attributes;
    const size_t element = an_call_is_f64(call) ? sizeof(double) : sizeof(float);
    const size_t rows = call->leaves ? (size_t)an_leaf_slots(call->leaves->count) : 1;
    return an_round_up(rows * (size_t)call->dst[0].dims[attributes->axis] * element, AN_ALIGNMENT);
}

static size_t gather_diff_scratch(const an_call *call) {
    return rows_bytes(call) * (size_t)an_context_threads(call->ctx);
}

static void gather_diff_task(void *user, int64_t index, int thread) {
    gather_job *j = user;
    void *buffer = (char *)j->call->scratch + rows_bytes(j->call) * (size_t)thread;
    bool is_f64 = an_call_is_f64(j->call);
    for (int64_t row = index * j->rows_per_task; row < task_end(j, index); row++) {
        if (is_f64)
            gather_diff_row_f64(j, row, buffer);
        else
            gather_diff_row_f32(j, row, buffer);
    }
}

static an_status run_gather_diff(const an_call *call) {
    const an_gather_diff_attributes *attributes = call->attributes;
    gather_job j = {.call = call, .axis = (int)attributes->axis};
    j.entries = call->dst[0].dims[j.axis];
    return run_rows(&j, &call->dst[0], gather_diff_task);
}

AN_KERNEL_LIST(gather_diff) = {
    {.name = "portable", .scratch = gather_diff_scratch, .run = run_gather_diff, .by_leaves = true},
    {0},
};

/* Portable kernels of softmax and log-softmax along any axis. Rows are independent; sums have the order of
 * reduce_order.h. A row that is not dense in the compute type passes through a buffer of its thread's. */
#include "base/elementary/elementary.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/elementwise.h"
#include "kernels/common/reduce_order.h"
#include "kernels/norm/softmax.h"

enum { MOST_INPUTS = 2, TASK_ELEMENTS = 1 << 14 }; /* a task: some ten microseconds of exp */

typedef void row_function_f32(int64_t n, const float *const *src, float *dst);
typedef void row_function_f64(int64_t n, const double *const *src, double *dst);

typedef struct job {
    const an_call *call;
    row_function_f32 *row_f32;
    row_function_f64 *row_f64;
    int axis;
    an_dtype real;
    int64_t n, rows, rows_per_task;
    size_t thread_bytes;
} job;

static bool needs_buffer(const job *j, const an_tensor *tensor) {
    return tensor->dtype != j->real || tensor->strides[j->axis] != 1;
}

#define AN_TEMPLATE "kernels/norm/softmax_template.h"
#include "kernels/common/instantiate.h"

static job job_of(const an_call *call) {
    job j = {.call = call, .axis = (int)((const an_softmax_attributes *)call->attributes)->axis};
    int buffers = 0;
    j.real = an_call_is_f64(call) ? AN_DTYPE_F64 : AN_DTYPE_F32;
    j.n = call->dst[0].dims[j.axis];
    j.rows = an_tensor_elements(&call->dst[0]) / j.n;
    j.rows_per_task = TASK_ELEMENTS / j.n > 0 ? TASK_ELEMENTS / j.n : 1;
    for (int i = 0; i < call->src_count; i++) buffers += needs_buffer(&j, &call->src[i]);
    buffers += needs_buffer(&j, &call->dst[0]);
    j.thread_bytes = an_round_up((size_t)(buffers * j.n) * an_dtype_size(j.real), AN_ALIGNMENT);
    return j;
}

static void run_task(void *user, int64_t index, int thread) {
    const job *j = user;
    int64_t end = an_smaller((index + 1) * j->rows_per_task, j->rows);
    void *buffer = j->thread_bytes ? (char *)j->call->scratch + (size_t)thread * j->thread_bytes : NULL;
    for (int64_t row = index * j->rows_per_task; row < end; row++) {
        if (j->real == AN_DTYPE_F64)
            run_row_f64(j, row, buffer);
        else
            run_row_f32(j, row, buffer);
    }
}

static size_t scratch(const an_call *call) {
    return (size_t)an_context_threads(call->ctx) * job_of(call).thread_bytes;
}

#define KERNEL(op)                                                                              \
    static an_status run_##op(const an_call *call) {                                            \
        job j = job_of(call);                                                                   \
        j.row_f32 = op##_row_f32;                                                               \
        j.row_f64 = op##_row_f64;                                                               \
        an_parallel(call->ctx, (j.rows + j.rows_per_task - 1) / j.rows_per_task, run_task, &j); \
        return AN_OK;                                                                           \
    }                                                                                           \
    AN_KERNEL_LIST(op) = {{.name = "portable", .scratch = scratch, .run = run_##op}, {0}};

KERNEL(softmax)
KERNEL(log_softmax)
KERNEL(softmax_diff)
KERNEL(log_softmax_diff)

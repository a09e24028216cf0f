/* Portable kernel of count_right: whether a row is right waits in scratch, and one task adds. Nothing is rounded, so
 * every level of instructions counts the same. */
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/reduce_order.h"
#include "kernels/common/row.h"
#include "kernels/loss/loss.h"

enum {
    NO_AXIS = -1,            /* for an_row_offset: rows of one element */
    TASK_ELEMENTS = 1 << 16, /* some ten microseconds */
    BLOCK = 256              /* logits that are compared before it is asked whether the row is decided */
};

typedef struct {
    const an_call *call;
    const an_tensor *logits, *targets;
    int64_t rows, classes, rows_per_task;
    bool f64;
    size_t right_bytes, thread_bytes; /* scratch: a byte for each row, then the buffers of each thread */
    unsigned char *right;
} job;

#define AN_TEMPLATE "kernels/loss/count_right_template.h"
#include "kernels/common/instantiate.h"

static job job_of(const an_call *call) {
    job j = {.call = call, .logits = &call->src[0], .targets = &call->src[1], .f64 = an_call_is_f64(call)};
    const size_t real = j.f64 ? sizeof(double) : sizeof(float);
    const bool is_dense =
        j.logits->dtype == (j.f64 ? AN_DTYPE_F64 : AN_DTYPE_F32) && j.logits->strides[j.logits->ndims - 1] == 1;
    j.classes = j.logits->dims[j.logits->ndims - 1];
    j.rows = an_tensor_elements(j.logits) / j.classes;
    j.rows_per_task = TASK_ELEMENTS / j.classes > 0 ? TASK_ELEMENTS / j.classes : 1;
    j.right_bytes = an_round_up((size_t)j.rows, AN_ALIGNMENT);
    j.thread_bytes = is_dense ? 0 : an_round_up((size_t)j.classes * real, AN_ALIGNMENT);
    j.right = call->scratch;
    return j;
}

static size_t scratch(const an_call *call) {
    const job j = job_of(call);
    return j.right_bytes + (size_t)an_context_threads(call->ctx) * j.thread_bytes;
}

static void run_task(void *user, int64_t index, int thread) {
    const job *j = user;
    const int64_t end = an_smaller((index + 1) * j->rows_per_task, j->rows);
    const int64_t ignored = ((const an_count_right_attributes *)j->call->attributes)->ignored;
    void *buffer = j->thread_bytes ? j->right + j->right_bytes + (size_t)thread * j->thread_bytes : NULL;
    for (int64_t row = index * j->rows_per_task; row < end; row++) {
        const int64_t label = an_load_index(j->targets, an_row_offset(j->targets, NO_AXIS, row));
        bool right = false;
        if (label != ignored && label >= 0 && label < j->classes)
            right = j->f64 ? is_right_f64(j, row, label, buffer) : is_right_f32(j, row, label, buffer);
        j->right[row] = right;
    }
}

static an_status run(const an_call *call) {
    job j = job_of(call);
    int64_t count = 0;
    an_parallel(call->ctx, (j.rows + j.rows_per_task - 1) / j.rows_per_task, run_task, &j);
    for (int64_t row = 0; row < j.rows; row++) count += j.right[row];
    *(int64_t *)call->dst[0].data = count;
    return AN_OK;
}

AN_KERNEL_LIST(count_right) = {{.name = "portable", .scratch = scratch, .run = run}, {0}};

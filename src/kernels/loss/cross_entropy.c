/* Portable kernels of cross-entropy. Labels are checked first, so none can index outside its row; then rows are
 * independent, their losses wait in scratch, and one task adds them. By leaves, the samples must lie along axis 0. */
#include <inttypes.h>

#include "base/elementary/elementary.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/elementwise.h"
#include "kernels/common/leaves.h"
#include "kernels/common/reduce_order.h"
#include "kernels/loss/loss.h"

enum {
    NO_AXIS = -1,           /* for an_row_offset: rows of one element */
    TASK_ELEMENTS = 1 << 14 /* some ten microseconds of exp */
};

typedef struct job {
    const an_call *call;
    const an_cross_entropy_attributes *attributes;
    const an_tensor *targets, *weights; /* weights NULL: none */
    int64_t rows, classes, rows_per_task;
    int64_t each; /* rows of a weight */
    bool f64;
    size_t loss_bytes, thread_bytes; /* scratch: losses, then the buffers of each thread */
    void *losses;                    /* REAL [rows]; NULL: they are not added, but the output */
    void (*row_f32)(const struct job *j, int64_t row, float *buffer);
    void (*row_f64)(const struct job *j, int64_t row, double *buffer);
} job;

static int64_t label_of(const job *j, int64_t row) {
    return an_load_index(j->targets, an_row_offset(j->targets, NO_AXIS, row));
}

/* Whether a tensor's rows are not dense in the compute type. */
static bool needs_buffer(const an_call *call, const an_tensor *tensor) {
    return tensor->dtype != (an_call_is_f64(call) ? AN_DTYPE_F64 : AN_DTYPE_F32) ||
           tensor->strides[tensor->ndims - 1] != 1;
}

#define AN_TEMPLATE "kernels/loss/cross_entropy_template.h"
#include "kernels/common/instantiate.h"

/* `keeps_losses` forward; `buffers` are rows of each thread's; `weights` is an input that may be absent. */
static job job_of(const an_call *call, const an_tensor *logits, const an_tensor *targets, int weights,
                  bool keeps_losses, int buffers) {
    job j = {.call = call, .attributes = call->attributes, .targets = targets, .f64 = an_call_is_f64(call)};
    size_t real = j.f64 ? sizeof(double) : sizeof(float);
    j.classes = logits->dims[logits->ndims - 1];
    j.rows = an_tensor_elements(logits) / j.classes;
    j.rows_per_task = TASK_ELEMENTS / j.classes > 0 ? TASK_ELEMENTS / j.classes : 1;
    j.loss_bytes = keeps_losses ? an_round_up((size_t)j.rows * real, AN_ALIGNMENT) : 0;
    j.thread_bytes = an_round_up((size_t)(buffers * j.classes) * real, AN_ALIGNMENT);
    j.losses = call->scratch;
    if (an_call_has(call, weights)) {
        j.weights = &call->src[weights];
        j.each = j.rows / an_tensor_elements(j.weights);
    }
    return j;
}

static job forward_job(const an_call *call) {
    return job_of(call, &call->src[0], &call->src[1], 2, true, needs_buffer(call, &call->src[0]));
}

static job diff_job(const an_call *call) {
    int buffers = needs_buffer(call, &call->src[1]) + needs_buffer(call, &call->dst[0]);
    return job_of(call, &call->src[1], &call->src[2], 4, false, buffers);
}

static size_t scratch_of(const job *j) {
    return j->loss_bytes + (size_t)an_context_threads(j->call->ctx) * j->thread_bytes;
}

an_status an_cross_entropy_check(an_context *ctx, const an_tensor *targets, int64_t classes, int64_t ignored) {
    const int64_t rows = an_tensor_elements(targets);
    for (int64_t row = 0; row < rows; row++) {
        int64_t label = an_load_index(targets, an_row_offset(targets, NO_AXIS, row));
        if ((label >= 0 && label < classes) || label == ignored) continue;
        return AN_ERROR(ctx, AN_ERR_KERNEL,
                        "cross_entropy: the target of row %" PRId64 " is %" PRId64 ", but there are %" PRId64
                        " classes: a target must be 0 to %" PRId64 ", or %" PRId64 " to be ignored",
                        row, label, classes, classes - 1, ignored);
    }
    return AN_OK;
}

static void run_task(void *user, int64_t index, int thread) {
    const job *j = user;
    int64_t end = an_smaller((index + 1) * j->rows_per_task, j->rows);
    char *buffers = j->thread_bytes ? (char *)j->call->scratch + j->loss_bytes : NULL;
    void *buffer = buffers ? buffers + (size_t)thread * j->thread_bytes : NULL;
    for (int64_t row = index * j->rows_per_task; row < end; row++) {
        if (j->f64)
            j->row_f64(j, row, buffer);
        else
            j->row_f32(j, row, buffer);
    }
}

static an_status run_rows(job *j) {
    an_context *ctx = j->call->ctx;
    AN_TRY_RETURN(an_cross_entropy_check(ctx, j->targets, j->classes, j->attributes->ignored));
    an_parallel(ctx, (j->rows + j->rows_per_task - 1) / j->rows_per_task, run_task, j);
    return AN_OK;
}

static void total_task(void *user, int64_t index, int thread) {
    const job *j = user;
    (void)index, (void)thread;
    if (j->f64)
        sum_rows_f64(j);
    else
        sum_rows_f32(j);
}

static size_t forward_scratch(const an_call *call) {
    job j = forward_job(call);
    return scratch_of(&j);
}

static an_status run_forward(const an_call *call) {
    an_context *ctx = call->ctx;
    job j = forward_job(call);
    j.row_f32 = loss_row_f32;
    j.row_f64 = loss_row_f64;
    if (call->dst[0].ndims > 0) j.losses = NULL;
    AN_TRY_RETURN(run_rows(&j));
    if (call->dst[0].ndims > 0) return AN_OK;
    an_parallel(ctx, 1, total_task, &j); /* as a task, for the floating-point environment */
    return AN_OK;
}

static size_t diff_scratch(const an_call *call) {
    job j = diff_job(call);
    return scratch_of(&j);
}

static an_status run_diff(const an_call *call) {
    job j = diff_job(call);
    j.row_f32 = diff_row_f32;
    j.row_f64 = diff_row_f64;
    return run_rows(&j);
}

AN_KERNEL_LIST(cross_entropy) = {
    {.name = "portable", .scratch = forward_scratch, .run = run_forward, .by_leaves = true}, {0}};
AN_KERNEL_LIST(cross_entropy_diff) = {{.name = "portable", .scratch = diff_scratch, .run = run_diff}, {0}};

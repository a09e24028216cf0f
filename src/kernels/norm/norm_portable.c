/* Portable kernels of layer norm and rms norm. */
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/reduce_order.h"
#include "kernels/common/row.h"
#include "kernels/norm/norm.h"

enum {
    TASK_ELEMENTS = 1 << 13,
    COLUMNS = 256,     /* of a weight gradient, added up by one task */
    CHUNK_ROWS = 64,   /* whose contributions to a weight gradient are summed by one task; more only if there were */
    MOST_CHUNKS = 256, /* else, so that what waits in scratch stays small */
    BLOCK_ELEMENTS = 2048, /* of rows that are done at once, so that one row's sums do not wait for another's */
    ROW_BUFFERS = 3,       /* for each of these rows; a kernel needs at most as many */
    VECTOR_BUFFERS = 2,    /* for weight and bias */
    TENSORS = 5,
};

typedef struct {
    const an_call *call;
    const an_tensor *diff_dst, *src, *weight, *bias, *mean, *inverse, *dst; /* NULL: the op has none */
    an_tensor merged[TENSORS];
    int64_t width, rows, rows_a_block, rows_a_task, tasks;
    size_t buffers_at, thread_bytes; /* where the buffers of thread 0 begin in scratch */
} norm_job;

static size_t real_bytes(const an_call *call) {
    return an_call_is_f64(call) ? sizeof(double) : sizeof(float);
}

static size_t thread_bytes(const an_call *call, int64_t width) {
    const size_t n = (size_t)width, block = width > BLOCK_ELEMENTS ? n : BLOCK_ELEMENTS;
    return an_round_up((VECTOR_BUFFERS * n + ROW_BUFFERS * block) * real_bytes(call), AN_ALIGNMENT);
}

/* A tensor whose rows are counted by one dimension, where strides allow it: their places are then found without dividing. */
static const an_tensor *merge_rows(const an_tensor *t, bool has_columns, an_tensor *merged) {
    if (!t) return NULL;
    an_tensor rows = *t;
    if (has_columns) rows.ndims--;
    *merged = an_tensor_merged(&rows);
    if (has_columns) {
        merged->dims[merged->ndims] = t->dims[t->ndims - 1];
        merged->strides[merged->ndims++] = t->strides[t->ndims - 1];
    }
    return merged;
}

static void *thread_buffer(const norm_job *j, int thread) {
    return (char *)j->call->scratch + j->buffers_at + (size_t)thread * j->thread_bytes;
}

static int64_t task_end(const norm_job *j, int64_t index) {
    const int64_t end = (index + 1) * j->rows_a_task;
    return end < j->rows ? end : j->rows;
}

static inline float square_root_f32(float x) {
    return __builtin_sqrtf(x);
}
static inline double square_root_f64(double x) {
    return __builtin_sqrt(x);
}

#define AN_TEMPLATE "kernels/norm/norm_template.h"
#include "kernels/common/instantiate.h"

static void run(norm_job *j, const an_tensor *like, int64_t rows_a_task, an_task *f32, an_task *f64) {
    j->width = like->dims[like->ndims - 1];
    j->rows = an_tensor_elements(like) / j->width;
    j->rows_a_block = an_smaller(AN_SUM_ROWS, j->width < BLOCK_ELEMENTS ? BLOCK_ELEMENTS / j->width : 1);
    j->src = merge_rows(j->src, true, &j->merged[0]);
    j->diff_dst = merge_rows(j->diff_dst, true, &j->merged[1]);
    j->dst = merge_rows(j->dst, true, &j->merged[2]);
    j->mean = merge_rows(j->mean, false, &j->merged[3]);
    j->inverse = merge_rows(j->inverse, false, &j->merged[4]);
    j->rows_a_task = rows_a_task ? rows_a_task : j->width < TASK_ELEMENTS ? TASK_ELEMENTS / j->width : 1;
    j->tasks = (j->rows + j->rows_a_task - 1) / j->rows_a_task;
    j->thread_bytes = thread_bytes(j->call, j->width);
    an_parallel(j->call->ctx, j->tasks, an_call_is_f64(j->call) ? f64 : f32, j);
}

static size_t row_scratch(const an_call *call) {
    const an_tensor *dst = &call->dst[0];
    return (size_t)an_context_threads(call->ctx) * thread_bytes(call, dst->dims[dst->ndims - 1]);
}

static an_status run_layer_norm(const an_call *call) {
    const an_tensor *src = call->src, *dst = call->dst;
    norm_job j = {.call = call, .src = &src[0], .weight = &src[1], .dst = &dst[0], .mean = &dst[1], .inverse = &dst[2]};
    if (call->src_count > 2) j.bias = &src[2];
    run(&j, src, 0, forward_task_f32, forward_task_f64);
    return AN_OK;
}

static an_status run_rms_norm(const an_call *call) {
    const an_tensor *src = call->src, *dst = call->dst;
    norm_job j = {.call = call, .src = &src[0], .weight = &src[1], .dst = &dst[0], .inverse = &dst[1]};
    run(&j, src, 0, forward_task_f32, forward_task_f64);
    return AN_OK;
}

static an_status run_layer_norm_diff_src(const an_call *call) {
    const an_tensor *src = call->src;
    norm_job j = {.call = call,
                  .diff_dst = &src[0],
                  .src = &src[1],
                  .weight = &src[2],
                  .mean = &src[3],
                  .inverse = &src[4],
                  .dst = &call->dst[0]};
    run(&j, src, 0, diff_src_task_f32, diff_src_task_f64);
    return AN_OK;
}

static an_status run_rms_norm_diff_src(const an_call *call) {
    const an_tensor *src = call->src;
    norm_job j = {
        .call = call, .diff_dst = &src[0], .src = &src[1], .weight = &src[2], .inverse = &src[3], .dst = &call->dst[0]};
    run(&j, src, 0, diff_src_task_f32, diff_src_task_f64);
    return AN_OK;
}

/* ---- weight gradients: chunks of rows first, then the chunks ---- Scratch is sums[chunk][output][column], then the
 * buffers of the threads. */

static size_t sums_bytes(const an_call *call) {
    const an_tensor *diff_dst = &call->src[0];
    const int64_t width = diff_dst->dims[diff_dst->ndims - 1], rows = an_tensor_elements(diff_dst) / width;
    const int64_t chunks = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS; /* fewer rows never need more room than this says */
    const size_t room = (size_t)(chunks < MOST_CHUNKS ? chunks : MOST_CHUNKS);
    return an_round_up(room * (size_t)call->dst_count * (size_t)width * real_bytes(call), AN_ALIGNMENT);
}

static size_t diff_weights_scratch(const an_call *call) {
    const an_tensor *diff_dst = &call->src[0];
    const int64_t width = diff_dst->dims[diff_dst->ndims - 1];
    return sums_bytes(call) + (size_t)an_context_threads(call->ctx) * thread_bytes(call, width);
}

static void run_diff_weights(norm_job *j) {
    const an_tensor *diff_dst = j->diff_dst;
    const int64_t width = diff_dst->dims[diff_dst->ndims - 1], rows = an_tensor_elements(diff_dst) / width;
    int64_t rows_a_chunk = CHUNK_ROWS;
    while (rows_a_chunk * MOST_CHUNKS < rows) rows_a_chunk *= 2;
    j->buffers_at = sums_bytes(j->call);
    run(j, diff_dst, rows_a_chunk, diff_weights_chunk_f32, diff_weights_chunk_f64);
    an_parallel(j->call->ctx, j->call->dst_count * ((width + COLUMNS - 1) / COLUMNS),
                an_call_is_f64(j->call) ? diff_weights_total_f64 : diff_weights_total_f32, j);
}

static an_status run_layer_norm_diff_weights(const an_call *call) {
    const an_tensor *src = call->src;
    norm_job j = {.call = call, .diff_dst = &src[0], .src = &src[1], .mean = &src[2], .inverse = &src[3]};
    run_diff_weights(&j);
    return AN_OK;
}

static an_status run_rms_norm_diff_weights(const an_call *call) {
    const an_tensor *src = call->src;
    norm_job j = {.call = call, .diff_dst = &src[0], .src = &src[1], .inverse = &src[2]};
    run_diff_weights(&j);
    return AN_OK;
}

#define KERNEL(op, op_scratch)                                        \
    AN_KERNEL_LIST(op) = {                                            \
        {.name = "portable", .scratch = op_scratch, .run = run_##op}, \
        {0},                                                          \
    };
KERNEL(layer_norm, row_scratch)
KERNEL(layer_norm_diff_src, row_scratch)
KERNEL(layer_norm_diff_weights, diff_weights_scratch)
KERNEL(rms_norm, row_scratch)
KERNEL(rms_norm_diff_src, row_scratch)
KERNEL(rms_norm_diff_weights, diff_weights_scratch)

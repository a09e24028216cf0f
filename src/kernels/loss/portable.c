/* Portable kernels of the losses that compare a number with a target: chunks of elements are summed by any thread,
 * the chunks' sums wait in scratch, and one task adds them. By leaves, chunks begin anew at each leaf, and the
 * samples must lie along axis 0. */
#include <string.h>

#include "base/elementary/elementary.h"
#include "base/parallel.h"
#include "kernels/common/elementwise.h"
#include "kernels/common/leaf_chunks.h"
#include "kernels/loss/loss.h"

enum {
    NO_AXIS = -1,    /* for an_row_offset: rows of one element */
    TASK_CHUNKS = 16 /* some ten microseconds */
};

typedef struct job {
    const an_call *call;
    an_tensor src, targets;   /* merged */
    const an_tensor *weights; /* NULL: none */
    int64_t count, chunks;
    int64_t each; /* elements of a weight */
    const an_leaf_cut *leaves;
    bool f64;
    an_row_function_f32 *loss_f32;
    an_row_function_f64 *loss_f64;
} job;

#define AN_TEMPLATE "kernels/loss/template.h"
#include "kernels/common/instantiate.h"

enum { WEIGHTS = 2, DIFF_WEIGHTS = 3 }; /* inputs forward and backward */

/* Numbers of chunks. Fewer elements or leaves never have more. */
static int64_t chunks_of(const an_call *call) {
    const int64_t count = an_tensor_elements(&call->src[0]);
    const an_leaf_cut *leaves = an_call_leaves(call);
    return leaves ? an_leaf_chunks(count, leaves->count) : an_chunks_of(count);
}

static size_t loss_scratch(const an_call *call) {
    size_t real = an_call_is_f64(call) ? sizeof(double) : sizeof(float);
    return (size_t)chunks_of(call) * real;
}

static void run_task(void *user, int64_t index, int thread) {
    const job *j = user;
    int64_t end = an_smaller((index + 1) * TASK_CHUNKS, j->chunks);
    (void)thread;
    for (int64_t chunk = index * TASK_CHUNKS; chunk < end; chunk++) {
        if (j->f64)
            sum_chunk_f64(j, chunk);
        else
            sum_chunk_f32(j, chunk);
    }
}

static void total_task(void *user, int64_t index, int thread) {
    const job *j = user;
    (void)index, (void)thread;
    if (j->f64)
        sum_chunks_f64(j);
    else
        sum_chunks_f32(j);
}

static an_status run_loss(const an_call *call, an_row_function_f32 *f32, an_row_function_f64 *f64) {
    job j = {.call = call, .f64 = an_call_is_f64(call), .loss_f32 = f32, .loss_f64 = f64};
    j.src = an_tensor_merged(&call->src[0]);
    j.targets = an_tensor_merged(&call->src[1]);
    j.count = an_tensor_elements(&call->src[0]);
    j.leaves = an_call_leaves(call);
    j.chunks = chunks_of(call);
    if (an_call_has(call, WEIGHTS)) {
        j.weights = &call->src[WEIGHTS];
        j.each = j.count / an_tensor_elements(j.weights);
    }
    an_parallel(call->ctx, (j.chunks + TASK_CHUNKS - 1) / TASK_CHUNKS, run_task, &j);
    an_parallel(call->ctx, 1, total_task, &j); /* as a task, for the floating-point environment */
    return AN_OK;
}

/* Weights have the first dimensions of the elements, and broadcasting aligns at the last. */
static an_status run_diff(const an_call *call, an_row_function_f32 *f32, an_row_function_f64 *f64) {
    an_tensor src[DIFF_WEIGHTS + 1];
    an_call with = *call;
    if (!an_call_has(call, DIFF_WEIGHTS)) return an_elementwise(call, f32, f64);
    memcpy(src, call->src, sizeof src);
    an_tensor *weights = &src[DIFF_WEIGHTS];
    for (; weights->ndims < call->dst[0].ndims; weights->ndims++) {
        weights->dims[weights->ndims] = 1;
        weights->strides[weights->ndims] = 0;
    }
    with.src = src;
    return an_elementwise(&with, f32, f64);
}

#define KERNELS(op)                                                                                                \
    static an_status run_##op(const an_call *call) {                                                               \
        return run_loss(call, op##_f32, op##_f64);                                                                 \
    }                                                                                                              \
    static an_status run_##op##_diff(const an_call *call) {                                                        \
        return run_diff(call, op##_diff_f32, op##_diff_f64);                                                       \
    }                                                                                                              \
    AN_KERNEL_LIST(op) = {{.name = "portable", .scratch = loss_scratch, .run = run_##op, .by_leaves = true}, {0}}; \
    AN_KERNEL_LIST(op##_diff) = {{.name = "portable", .run = run_##op##_diff}, {0}};
AN_ERROR_LOSSES(KERNELS)

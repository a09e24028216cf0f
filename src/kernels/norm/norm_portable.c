/* Portable kernels of layer norm and rms norm. */
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/leaves.h"
#include "kernels/common/reduce_order.h"
#include "kernels/common/row.h"
#include "kernels/norm/norm.h"

enum {
    TASK_ELEMENTS = 1 << 13,
    COLUMNS = 256,     /* of a weight gradient, added up by one task */
    CHUNK_ROWS = 64,   /* whose contributions to a weight gradient are summed by one task; more only if there were */
    MOST_CHUNKS = 256, /* else, so that what waits in scratch stays small */
    WAVE_CHUNKS = 64,  /* by leaves, at once: they are described on the stack */
    BLOCK_ELEMENTS = 2048, /* of rows that are done at once, so that one row's sums do not wait for another's */
    ROW_BUFFERS = 3,       /* for each of these rows; a kernel needs at most as many */
    VECTOR_BUFFERS = 2,    /* for weight and bias */
    TENSORS = 5,
};

/* By leaves: some rows of a leaf. */
typedef struct {
    int64_t begin, end;
    bool is_first; /* of its leaf */
    int slot;      /* where the sums of its leaf wait */
    int joins;     /* how many sums in the tree are complete with it */
} leaf_chunk;

typedef struct {
    const an_call *call;
    const an_tensor *diff_dst, *src, *weight, *bias, *mean, *inverse, *dst; /* NULL: the op has none */
    an_tensor merged[TENSORS];
    int64_t width, rows, rows_a_block, rows_a_task, tasks;
    size_t buffers_at, thread_bytes; /* where the buffers of thread 0 begin in scratch */
    const leaf_chunk *chunks;        /* by leaves: those of this wave */
    int64_t chunk_count, chunks_a_task;
    size_t slots_at; /* by leaves: where the slots begin in scratch */
} norm_job;

static size_t real_bytes(const an_call *call) {
    return an_call_is_f64(call) ? sizeof(double) : sizeof(float);
}

static size_t thread_bytes(const an_call *call, int64_t width) {
    const size_t n = (size_t)width, block = width > BLOCK_ELEMENTS ? n : BLOCK_ELEMENTS;
    return an_round_up((VECTOR_BUFFERS * n + ROW_BUFFERS * block) * real_bytes(call), AN_ALIGNMENT);
}

/* A tensor whose rows are counted by one dimension, where strides allow it: their places are then found without
 * dividing. */
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

static void prepare(norm_job *j, const an_tensor *like, int64_t rows_a_task) {
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
}

static void run(norm_job *j, const an_tensor *like, int64_t rows_a_task, an_task *f32, an_task *f64) {
    prepare(j, like, rows_a_task);
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

/* ---- weight gradients: chunks of rows first, then the chunks ---- Scratch is sums[chunk][output][column], by
 * leaves then slots[slot][output][column], then the buffers of the threads.
 *
 * By leaves, chunks begin anew at each leaf; the samples must lie along the first dimension. There may be many
 * more chunks than MOST_CHUNKS, so they are added in waves of at most so many. The sums of leaves that wait for
 * their right neighbour in the tree stay in the slots from one wave to the next. */

static size_t row_bytes(const an_call *call) {
    const an_tensor *diff_dst = &call->src[0];
    return (size_t)call->dst_count * (size_t)diff_dst->dims[diff_dst->ndims - 1] * real_bytes(call);
}

static int64_t rows_of(const an_call *call) {
    const an_tensor *diff_dst = &call->src[0];
    return an_tensor_elements(diff_dst) / diff_dst->dims[diff_dst->ndims - 1];
}

static int64_t rows_a_chunk(int64_t rows) {
    int64_t chunk = CHUNK_ROWS;
    while (chunk * MOST_CHUNKS < rows) chunk *= 2;
    return chunk;
}

/* Chunks whose sums are in scratch at once. Fewer rows or leaves never need more room than this says. */
static int64_t chunks_at_once(const an_call *call) {
    const int64_t chunks = (rows_of(call) + CHUNK_ROWS - 1) / CHUNK_ROWS + (call->leaves ? call->leaves->count : 0);
    return an_smaller(chunks, an_call_leaves(call) ? WAVE_CHUNKS : MOST_CHUNKS);
}

static size_t sums_bytes(const an_call *call) {
    return an_round_up((size_t)chunks_at_once(call) * row_bytes(call), AN_ALIGNMENT);
}

static size_t slots_bytes(const an_call *call) {
    return call->leaves ? an_round_up((size_t)an_leaf_slots(call->leaves->count) * row_bytes(call), AN_ALIGNMENT) : 0;
}

static size_t diff_weights_scratch(const an_call *call) {
    const an_tensor *diff_dst = &call->src[0];
    const int64_t width = diff_dst->dims[diff_dst->ndims - 1];
    return sums_bytes(call) + slots_bytes(call) + (size_t)an_context_threads(call->ctx) * thread_bytes(call, width);
}

static void add_wave(norm_job *j, const leaf_chunk *chunks, int64_t count) {
    const bool f64 = an_call_is_f64(j->call);
    if (count == 0) return;
    const int64_t rows = chunks[count - 1].end - chunks[0].begin;
    j->chunks = chunks;
    j->chunk_count = count;
    j->chunks_a_task = an_larger(1, count * CHUNK_ROWS / rows); /* as many rows as a task has without leaves */
    an_parallel(j->call->ctx, an_divide_up(count, j->chunks_a_task), f64 ? leaf_chunks_task_f64 : leaf_chunks_task_f32,
                j);
    an_parallel(j->call->ctx, j->call->dst_count * an_divide_up(j->width, COLUMNS),
                f64 ? leaf_slots_task_f64 : leaf_slots_task_f32, j);
}

static void run_leaves(norm_job *j, const an_leaf_cut *leaves) {
    leaf_chunk chunks[WAVE_CHUNKS];
    const int64_t maximum = chunks_at_once(j->call);
    int64_t count = 0;
    prepare(j, j->diff_dst, 1);
    j->slots_at = sums_bytes(j->call);
    j->buffers_at = j->slots_at + slots_bytes(j->call);
    an_leaf_walk w = an_leaf_walk_begin(leaves, j->rows);
    while (an_leaf_walk_next(&w)) {
        const int64_t rows = rows_a_chunk(w.end - w.begin);
        for (int64_t begin = w.begin; begin < w.end; begin += rows) {
            const int64_t end = an_smaller(begin + rows, w.end);
            if (count == maximum) {
                add_wave(j, chunks, count);
                count = 0;
            }
            chunks[count++] = (leaf_chunk){begin, end, begin == w.begin, w.slot, end == w.end ? w.joins : 0};
        }
    }
    add_wave(j, chunks, count);
    an_parallel(j->call->ctx, j->call->dst_count, an_call_is_f64(j->call) ? leaf_total_task_f64 : leaf_total_task_f32,
                j);
}

static void run_diff_weights(norm_job *j) {
    const an_tensor *diff_dst = j->diff_dst;
    const int64_t width = diff_dst->dims[diff_dst->ndims - 1];
    const an_leaf_cut *leaves = an_call_leaves(j->call);
    if (leaves) {
        run_leaves(j, leaves);
        return;
    }
    j->buffers_at = sums_bytes(j->call);
    run(j, diff_dst, rows_a_chunk(rows_of(j->call)), diff_weights_chunk_f32, diff_weights_chunk_f64);
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

#define KERNEL(op, op_scratch, ...)                                                \
    AN_KERNEL_LIST(op) = {                                                         \
        {.name = "portable", .scratch = op_scratch, .run = run_##op, __VA_ARGS__}, \
        {0},                                                                       \
    };
KERNEL(layer_norm, row_scratch, .by_leaves = false)
KERNEL(layer_norm_diff_src, row_scratch, .by_leaves = false)
KERNEL(layer_norm_diff_weights, diff_weights_scratch, .by_leaves = true)
KERNEL(rms_norm, row_scratch, .by_leaves = false)
KERNEL(rms_norm_diff_src, row_scratch, .by_leaves = false)
KERNEL(rms_norm_diff_weights, diff_weights_scratch, .by_leaves = true)

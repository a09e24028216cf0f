/* Portable kernels of reductions: any axes, any strides, the order of reduce_order.h.
 *
 * Work is cut into units of one chunk of one output. Where outputs lie closer together than the elements that they
 * add (a bias gradient: sums down the columns of a matrix), a unit is a chunk of up to COLUMNS neighbouring
 * outputs, so that memory is read in rows; the order of each sum stays the same. If a sum has several chunks, they
 * wait in scratch for a second walk that adds them.
 *
 * reduce_sum by leaves: the samples must lie along the first reduced axis (callers give leaves only then), so that
 * a leaf's elements of an output follow one another. A unit is then a group of leaves for up to block_columns
 * neighbouring outputs, which it adds in one walk, with the sums that wait for their right neighbour on its stack.
 * Groups are of 2^k leaves, so that each is a node of the tree, and so large that there are no more of them than
 * chunks without leaves. Where leaves are longer than chunks, a unit is one chunk of a leaf.
 */
#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/elementwise.h"
#include "kernels/common/leaf_chunks.h"
#include "kernels/reduce/reduce.h"

enum {
    NO_AXIS = -1,      /* for an_row_offset: rows of one element */
    COLUMNS = 64,      /* the lanes of so many sums fit a first-level cache in f32 and f64 */
    BLOCK_BYTES = 256, /* of neighbouring sums that are added by leaves: a stack of them must fit a small thread's */
    STRIP = 32,        /* columns whose sums are in registers: one in use and the total, in f32 at every level */
    TASK_ELEMENTS = 1 << 15 /* read by one task: some ten microseconds */
};

typedef enum reduction { SUM, MEAN, MAX } reduction;

typedef struct job {
    const an_call *call;
    reduction kind;
    const an_tensor *dst;
    an_tensor kept, reduced;        /* src's dimensions, merged; data is src's */
    int64_t outputs, count, chunks; /* count: elements of one output; chunks: of one output */
    bool by_columns, f64;
    int64_t blocks;                     /* by columns: blocks of columns across the last kept dimension */
    void *partials;                     /* REAL [outputs][chunks]; by leaves REAL [pieces][outputs] */
    const an_leaf_cut *leaves, *groups; /* by leaves: groups are cut like leaves; equal: a piece is a chunk of a leaf */
    int group_level;                    /* groups have 2^group_level leaves */
    int64_t pieces;
    int64_t block_columns; /* by leaves: outputs of a block */
} job;

/* Neighbouring outputs that a unit adds. */
typedef struct output_block {
    int64_t first, columns;
    int64_t base; /* the place in src of the first one's first element */
} output_block;

/* Units of a job that tasks share out. */
typedef struct walk {
    const job *job;
    int64_t units, units_per_task;
    void (*f32)(const job *j, int64_t unit);
    void (*f64)(const job *j, int64_t unit);
} walk;

static int64_t distance(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

static int64_t parts(int64_t n, int64_t part) {
    return (n + part - 1) / part;
}

static output_block block_of(const job *j, int64_t number) {
    if (!j->by_columns) return (output_block){number, 1, an_row_offset(&j->kept, NO_AXIS, number)};
    const int last = j->kept.ndims - 1;
    const int64_t width = j->kept.dims[last], row = number / j->blocks, column = number % j->blocks * j->block_columns;
    return (output_block){row * width + column, an_smaller(width - column, j->block_columns),
                          an_row_offset(&j->kept, last, row) + column * j->kept.strides[last]};
}

#define AN_TEMPLATE "kernels/reduce/template.h"
#include "kernels/common/instantiate.h"

static bool is_reduced(const an_reduce_attributes *attributes, int axis) {
    for (int i = 0; i < attributes->axes.count; i++)
        if (attributes->axes.values[i] == axis) return true;
    return false;
}

static void job_space(job *j, const an_call *call, const an_tensor *src) {
    an_tensor kept = {.data = src->data, .dtype = src->dtype}, reduced = kept;
    for (int i = 0; i < src->ndims; i++) {
        an_tensor *side = is_reduced(call->attributes, i) ? &reduced : &kept;
        side->dims[side->ndims] = src->dims[i];
        side->strides[side->ndims++] = src->strides[i];
    }
    j->call = call;
    j->f64 = an_call_is_f64(call);
    j->kept = an_tensor_merged(&kept);
    j->reduced = an_tensor_merged(&reduced);
    j->outputs = an_tensor_elements(&kept);
    j->count = an_tensor_elements(&reduced);
    j->chunks = parts(j->count, AN_SUM_CHUNK);
    j->partials = call->scratch;
}

static void walk_task(void *user, int64_t index, int thread) {
    const walk *w = user;
    int64_t end = an_smaller((index + 1) * w->units_per_task, w->units);
    (void)thread;
    for (int64_t unit = index * w->units_per_task; unit < end; unit++) {
        if (w->job->f64)
            w->f64(w->job, unit);
        else
            w->f32(w->job, unit);
    }
}

static void run_walk(walk w, int64_t elements_of_unit) {
    w.units_per_task = TASK_ELEMENTS / elements_of_unit > 0 ? TASK_ELEMENTS / elements_of_unit : 1;
    an_parallel(w.job->call->ctx, parts(w.units, w.units_per_task), walk_task, &w);
}

static size_t real_bytes(const an_call *call) {
    return an_call_is_f64(call) ? sizeof(double) : sizeof(float);
}

/* The level of the groups that so many leaves are cut into. */
static int level_of_groups(int64_t leaves, int64_t chunks) {
    int level = 0;
    while (parts(leaves, (int64_t)1 << level) > chunks) level++;
    return level;
}

/* With leaves, scratch is the partials of at most two pieces for each chunk, and then the ends of at most so many
 * groups as there are chunks: neither grows with the number of leaves. */
static size_t leaves_partials_bytes(const job *j) {
    return an_round_up(2 * (size_t)j->chunks * (size_t)j->outputs * real_bytes(j->call), AN_ALIGNMENT);
}

static void reduce_leaves(job *j, int64_t columns, int64_t blocks) {
    const int64_t leaves = j->leaves->count;
    j->group_level = level_of_groups(leaves, j->chunks);
    const int64_t groups = parts(leaves, (int64_t)1 << j->group_level);
    an_leaf_cut cut = {.count = groups, .samples = j->leaves->samples};
    j->groups = j->leaves;
    j->pieces = j->group_level > 0 ? groups : an_leaf_chunks(j->count, leaves);
    if (j->group_level > 0 && groups > 1) {
        int64_t *ends = (int64_t *)(void *)((char *)j->call->scratch + leaves_partials_bytes(j));
        for (int64_t i = 0; i < groups; i++)
            ends[i] = j->leaves->ends[an_smaller((i + 1) << j->group_level, leaves) - 1];
        cut.ends = ends;
    }
    if (j->group_level > 0) j->groups = &cut;
    run_walk((walk){j, blocks * j->pieces, 0, add_piece_f32, add_piece_f64}, parts(j->count, j->pieces) * columns);
    if (j->pieces > 1)
        run_walk((walk){j, parts(j->outputs, j->block_columns), 0, combine_pieces_f32, combine_pieces_f64},
                 j->pieces * an_smaller(j->outputs, j->block_columns));
}

static an_status reduce(const an_call *call, reduction kind) {
    job j = {.kind = kind, .dst = &call->dst[0], .leaves = kind == SUM ? an_call_leaves(call) : NULL};
    job_space(&j, call, &call->src[0]);
    const an_tensor *kept = &j.kept, *reduced = &j.reduced;
    int64_t width = kept->ndims ? kept->dims[kept->ndims - 1] : 1, unit = an_smaller(j.count, AN_SUM_CHUNK);
    j.by_columns = width >= AN_SUM_LANES && reduced->ndims > 0 &&
                   distance(kept->strides[kept->ndims - 1]) < distance(reduced->strides[reduced->ndims - 1]);
    j.block_columns = j.leaves ? BLOCK_BYTES / (int64_t)real_bytes(call) : COLUMNS;
    j.blocks = parts(width, j.block_columns);
    if (j.leaves) {
        reduce_leaves(&j, j.by_columns ? an_smaller(width, j.block_columns) : 1,
                      j.by_columns ? j.outputs / width * j.blocks : j.outputs);
        return AN_OK;
    }
    walk units = {&j, (j.by_columns ? j.outputs / width * j.blocks : j.outputs) * j.chunks, 0, reduce_unit_f32,
                  reduce_unit_f64};
    run_walk(units, j.by_columns ? unit * an_smaller(width, COLUMNS) : unit);
    if (j.chunks > 1) run_walk((walk){&j, j.outputs, 0, combine_chunks_f32, combine_chunks_f64}, j.chunks);
    return AN_OK;
}

static size_t reduce_scratch(const an_call *call) {
    job j = {0};
    job_space(&j, call, &call->src[0]);
    if (call->leaves && j.chunks > 1) return leaves_partials_bytes(&j) + (size_t)j.chunks * sizeof(int64_t);
    return j.chunks > 1 ? (size_t)(j.outputs * j.chunks) * real_bytes(call) : 0;
}

static an_status run_sum(const an_call *call) {
    return reduce(call, SUM);
}

static an_status run_mean(const an_call *call) {
    return reduce(call, MEAN);
}

static an_status run_max(const an_call *call) {
    return reduce(call, MAX);
}

static an_status run_mean_diff(const an_call *call) {
    an_call counted = *call;
    int64_t count = an_tensor_elements(&call->dst[0]) / an_tensor_elements(&call->src[0]);
    counted.attributes = &count;
    return an_elementwise(&counted, mean_diff_f32, mean_diff_f64);
}

/* A reduced tensor with an axis of size 1 for each that was reduced. */
static an_tensor with_axes(const an_tensor *reduced, const an_reduce_attributes *attributes, int ndims) {
    an_tensor t = {.data = reduced->data, .dtype = reduced->dtype, .ndims = ndims};
    if (attributes->keep) return *reduced;
    for (int i = 0, from = 0; i < ndims; i++) {
        bool gone = is_reduced(attributes, i);
        t.dims[i] = gone ? 1 : reduced->dims[from];
        t.strides[i] = gone ? 0 : reduced->strides[from++];
    }
    return t;
}

/* The shares first, then one elementwise walk that hands them out. */
static an_status run_max_diff(const an_call *call) {
    job j = {0};
    const an_tensor *src = &call->src[1];
    an_call hand_out = *call;
    job_space(&j, call, src);
    run_walk((walk){&j, j.outputs, 0, max_share_f32, max_share_f64}, j.count);
    an_tensor dst = with_axes(&call->src[2], call->attributes, src->ndims), share = dst;
    int64_t stride = 1;
    share.data = call->scratch;
    share.dtype = j.f64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    for (int i = src->ndims - 1; i >= 0; i--) {
        share.strides[i] = stride;
        stride *= share.dims[i];
    }
    hand_out.src = (const an_tensor[]){share, *src, dst};
    return an_elementwise(&hand_out, max_diff_f32, max_diff_f64);
}

static size_t max_diff_scratch(const an_call *call) {
    return (size_t)an_tensor_elements(&call->src[0]) * real_bytes(call);
}

AN_KERNEL_LIST(reduce_sum) = {{.name = "portable", .scratch = reduce_scratch, .run = run_sum, .by_leaves = true}, {0}};
AN_KERNEL_LIST(reduce_mean) = {{.name = "portable", .scratch = reduce_scratch, .run = run_mean}, {0}};
AN_KERNEL_LIST(reduce_max) = {{.name = "portable", .scratch = reduce_scratch, .run = run_max}, {0}};
AN_KERNEL_LIST(reduce_mean_diff) = {{.name = "portable", .run = run_mean_diff}, {0}};
AN_KERNEL_LIST(reduce_max_diff) = {{.name = "portable", .scratch = max_diff_scratch, .run = run_max_diff}, {0}};

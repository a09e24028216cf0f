/* The ops product and product_sum on tiles: bf16 times bf16, to bf16 or f32. */
#include "kernels/product/amx.h"

#ifdef __AVX512F__
#include "base/context.h"
#include "kernels/product/amx_leaves.h"
#include "kernels/product/product.h"
#include "kernels/product/rounded.h"

/* The stride of operand `t` along dimension `i` of dst; 0 where it broadcasts. */
static int64_t batch_stride(const an_tensor *t, int i, const an_tensor *dst) {
    const int own = i - (dst->ndims - t->ndims);
    return own < 0 || t->dims[own] == 1 ? 0 : t->strides[own];
}

/* The batch of a tensor, as dst counts it. One that it has not, it has no dimensions for. */
static an_grid batch_of(const an_tensor *t, const an_tensor *dst) {
    an_grid grid = {0};
    bool has = false;
    for (int i = 0; i < dst->ndims - 2; i++) {
        const int64_t stride = batch_stride(t, i, dst);
        an_grid_add(&grid, dst->dims[i], stride);
        has = has || (dst->dims[i] > 1 && stride != 0);
    }
    return has ? grid : (an_grid){0};
}

/* The stride of the rows of all `items` matrices, if they lie like those of one: false if they do not. */
static bool merge_rows(an_grid batch, int64_t items, int64_t rows, int64_t *row_stride) {
    if (an_grid_count(&batch) != items) return false;
    an_grid_add(&batch, rows, *row_stride);
    if (batch.ndims > 1) return false;
    if (batch.ndims) *row_stride = batch.strides[0];
    return true;
}

static an_amx_operand operand_of(const an_tensor *t, int lane_from_end, const an_tensor *dst) {
    const int lane = t->ndims - lane_from_end, depth = 2 * t->ndims - 3 - lane;
    return (an_amx_operand){.data = t->data,
                            .lane_stride = t->strides[lane],
                            .depth_stride = t->strides[depth],
                            .items = batch_of(t, dst),
                            .has_blocks = t->dtype == AN_DTYPE_Q8_0};
}

static int64_t depth_of(const an_tensor *a, const an_product_attributes *attributes) {
    return a->dims[a->ndims - (attributes->transpose_a ? 2 : 1)];
}

/* Where no b has a batch, that of every a is more rows of one product, if memory allows it. */
static bool can_merge(const an_amx_job *job) {
    int64_t stride = job->row_stride;
    bool can = !job->b.items.ndims && merge_rows(job->dst_items, job->items, job->rows, &stride);
    stride = job->a.lane_stride;
    can = can && merge_rows(job->a.items, job->items, job->rows, &stride);
    for (int i = 0; can && i < job->more_count; i++) {
        stride = job->more[i].a.lane_stride;
        can = !job->more[i].b.items.ndims && merge_rows(job->more[i].a.items, job->items, job->rows, &stride);
    }
    return can;
}

static void merge_operand(const an_amx_job *job, an_amx_operand *a) {
    merge_rows(a->items, job->items, job->rows, &a->lane_stride);
    a->items = (an_grid){0};
}

/* Where rows cannot be merged, every batch is an item. A matrix times a vector is the vector times the transposed
 * matrix, which gives the same bits. */
static an_amx_job make_job(const an_call *call) {
    const an_product_attributes *attributes = call->attributes;
    const an_tensor *a = &call->src[0], *b = &call->src[1], *dst = &call->dst[0];
    const bool turns = !attributes->finish && call->src_count == 2 && dst->dims[dst->ndims - 1] == 1 &&
                       dst->strides[dst->ndims - 2] == 1;
    const int row = dst->ndims - (turns ? 1 : 2), column = dst->ndims - (turns ? 2 : 1);
    const an_amx_operand left = operand_of(a, attributes->transpose_a ? 1 : 2, dst);
    const an_amx_operand right = operand_of(b, attributes->transpose_b ? 2 : 1, dst);
    an_amx_job job = {.ctx = call->ctx,
                      .scratch = call->scratch,
                      .rows = dst->dims[row],
                      .columns = dst->dims[column],
                      .depth = depth_of(a, attributes),
                      .a = turns ? right : left,
                      .b = turns ? left : right,
                      .dst = dst->data,
                      .dtype = dst->dtype,
                      .row_stride = dst->strides[row],
                      .dst_items = batch_of(dst, dst),
                      .accumulate = attributes->accumulate,
                      .finish = attributes->finish,
                      .add_count = attributes->add_count,
                      .add_to = attributes->add_to};
    job.items = an_grid_count(&job.dst_items);
    for (int i = 2; i + 1 < call->src_count; i += 2)
        job.more[job.more_count++] =
            (an_amx_more){.a = operand_of(&call->src[i], 2, dst),
                          .b = operand_of(&call->src[i + 1], attributes->transpose_b ? 2 : 1, dst),
                          .depth = depth_of(&call->src[i], attributes)};
    if (can_merge(&job)) {
        merge_operand(&job, &job.a);
        for (int i = 0; i < job.more_count; i++) merge_operand(&job, &job.more[i].a);
        merge_rows(job.dst_items, job.items, job.rows, &job.row_stride);
        job.rows *= job.items;
        job.items = 1;
        job.dst_items = (an_grid){0};
    }
    return job;
}

/* Of sizes nothing is asked: a row must have the same bits however many there are, so also the same kernel. */
bool an_product_amx_applies(const an_call *call) {
    const an_tensor *dst = &call->dst[0];
    const int last = dst->ndims - 1;
    const an_dtype left = call->src[0].dtype, right = call->src[1].dtype;
    if (an_product_rounds(call)) return call->ctx->isa == AN_ISA_AMX && an_product_amx_rounded_applies(call);
    return call->ctx->isa == AN_ISA_AMX && left == AN_DTYPE_BF16 &&
           (right == AN_DTYPE_BF16 || right == AN_DTYPE_Q8_0) &&
           (dst->dtype == AN_DTYPE_F32 || dst->dtype == AN_DTYPE_BF16) &&
           (dst->strides[last] == 1 || dst->dims[last] == 1);
}

bool an_product_sum_amx_applies(const an_call *call) {
    an_call pair = *call;
    for (pair.src_count = 2; pair.src < call->src + call->src_count; pair.src += 2)
        if (!an_product_amx_applies(&pair)) return false;
    return true;
}

/* Of a call with fewer samples, batches may be rows where they are items here, or the other way round. */
size_t an_product_amx_scratch(const an_call *call) {
    const an_tensor *dst = &call->dst[0];
    int64_t items = 1;
    if (an_product_rounds(call)) return an_product_amx_rounded_scratch(call);
    for (int i = 0; i < dst->ndims - 2; i++) items *= dst->dims[i];
    const an_amx_job job = make_job(call);
    const int64_t rows = dst->dims[dst->ndims - 2], columns = dst->dims[dst->ndims - 1];
    const an_leaf_cut *cut = an_call_leaves(call);
    if (cut)
        return an_amx_leaves_bytes(cut, job.depth) +
               an_amx_scratch_of_leaves(call->ctx, items, rows, columns,
                                        an_amx_leaves_most_steps(cut, job.depth) * AN_AMX_DEPTH,
                                        an_amx_leaves_slots(cut));
    return an_amx_scratch(call->ctx, items, rows, columns, an_amx_steps(&job) * AN_AMX_DEPTH);
}

/* Sums over samples are the gradients of weights: one product of two matrices, to f32, with nothing behind it. So a
 * call with leaves has no batch, no `more` products, no blocks of q8_0, and neither `finish` nor `accumulate`. */
an_status an_product_amx_run(const an_call *call) {
    if (an_product_rounds(call)) return an_product_amx_rounded_run(call);
    an_amx_job job = make_job(call);
    an_amx_leaves leaves;
    const an_leaf_cut *cut = an_call_leaves(call);
    if (cut && an_amx_leaves_make(&leaves, cut, job.depth, job.scratch)) {
        job.leaves = &leaves;
        job.scratch = (char *)job.scratch + leaves.bytes;
    }
    an_amx_run(&job);
    return AN_OK;
}
#endif

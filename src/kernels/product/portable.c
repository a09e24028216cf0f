/* Portable kernel of products.
 *
 * With leaves, samples are parts of k: a product whose k is the rows of all samples, as in the gradient of a weight.
 * Then operands have two dimensions, are no q8_0, and the call does not accumulate. */
#include "kernels/common/leaves.h"
#include "kernels/common/row.h"
#include "kernels/product/amx.h"
#include "kernels/product/core.h"
#include "kernels/product/kept.h"
#include "kernels/product/product.h"
#include "kernels/product/rounded.h"

/* The stride of operand `t` along dimension `i` of a dst with `ndims`; 0 where it broadcasts. */
static int64_t batch_stride(const an_tensor *t, int i, int ndims) {
    int own = i - (ndims - t->ndims);
    return own < 0 || t->dims[own] == 1 ? 0 : t->strides[own];
}

static bool has_batch(const an_tensor *t, const an_tensor *dst) {
    for (int i = 0; i < dst->ndims - 2; i++)
        if (dst->dims[i] > 1 && batch_stride(t, i, dst->ndims) != 0) return true;
    return false;
}

static void add_batch(an_grid *grid, const an_tensor *t, const an_tensor *dst) {
    for (int i = 0; i < dst->ndims - 2; i++) an_grid_add(grid, dst->dims[i], batch_stride(t, i, dst->ndims));
}

static void add_dimension(an_grid *grid, const an_tensor *t, int from_end) {
    an_grid_add(grid, t->dims[t->ndims - from_end], t->strides[t->ndims - from_end]);
}

/* Batches that only one operand has are more rows (or columns) of one product: a (batch, tokens, k) times a weight is
 * one product of batch · tokens rows, however a lies in memory. Else every batch is an item. */
static an_product_job make_job(const an_call *call, an_matrix *a, an_matrix *b) {
    const an_product_attributes *attributes = call->attributes;
    const an_tensor *dst = &call->dst[0];
    an_product_job job = {.ctx = call->ctx, .scratch = call->scratch, .dst = {.tensor = dst}};
    *a = (an_matrix){.tensor = &call->src[0]};
    *b = (an_matrix){.tensor = &call->src[1]};
    bool more_rows = !has_batch(b->tensor, dst), more_columns = !more_rows && !has_batch(a->tensor, dst);
    add_batch(more_rows ? &a->lines : &a->items, a->tensor, dst);
    add_batch(more_columns ? &b->lines : &b->items, b->tensor, dst);
    add_batch(more_rows ? &job.dst.lines : more_columns ? &job.dst.places : &job.dst.items, dst, dst);
    add_dimension(&a->lines, a->tensor, attributes->transpose_a ? 1 : 2);
    add_dimension(&a->places, a->tensor, attributes->transpose_a ? 2 : 1);
    add_dimension(&b->lines, b->tensor, attributes->transpose_b ? 2 : 1);
    add_dimension(&b->places, b->tensor, attributes->transpose_b ? 1 : 2);
    add_dimension(&job.dst.lines, dst, 2);
    add_dimension(&job.dst.places, dst, 1);
    job.items = an_grid_count(&job.dst.items);
    job.rows = an_grid_count(&job.dst.lines);
    job.columns = an_grid_count(&job.dst.places);
    job.depth = an_grid_count(&a->places);
    job.a = an_matrix_operand(a);
    job.b = an_matrix_operand(b);
    return job;
}

/* A call with fewer samples may have rows or columns where this one has items: where a batch shrinks to 1, an operand
 * may have none left. So scratch is enough for all three ways. */
static size_t scratch(const an_call *call) {
    an_matrix a, b;
    if (an_product_rounds(call)) return an_product_rounded_scratch(call);
    an_product_job job = make_job(call, &a, &b);
    bool f64 = an_call_is_f64(call);
    const an_leaf_cut *leaves = an_call_leaves(call);
    if (leaves) return an_product_leaf_scratch(call->ctx, f64, job.items, job.rows, job.columns, job.depth, leaves);
    size_t bytes[] = {
        an_product_scratch(call->ctx, f64, job.items, job.rows, job.columns, job.depth),
        an_product_scratch(call->ctx, f64, 1, job.items * job.rows, job.columns, job.depth),
        an_product_scratch(call->ctx, f64, 1, job.rows, job.items * job.columns, job.depth),
    };
    size_t maximum = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    return maximum > bytes[2] ? maximum : bytes[2];
}

/* The core finishes rows; a row is a block. */
#define FINISH(REAL, suffix)                                                                                \
    static void finish_##suffix(const void *user, int64_t item, int64_t row, int64_t column, int64_t count, \
                                REAL *values) {                                                             \
        const an_product_finish *finish = user;                                                             \
        const an_product_block block = {                                                                    \
            .item = item, .row = row, .column = column, .rows = 1, .columns = count, .stride = count};      \
        finish->suffix(finish->user, &block, values);                                                       \
    }
FINISH(float, f32)
FINISH(double, f64)

static an_status run(const an_call *call) {
    const an_product_attributes *attributes = call->attributes;
    an_matrix a, b;
    if (an_product_rounds(call)) return an_product_rounded_run(call);
    if (call->kept && !an_call_leaves(call) && an_product_kept_run(call, call->kept)) return AN_OK;
    an_product_job job = make_job(call, &a, &b);
    job.accumulate = attributes->accumulate;
    job.leaves = an_call_leaves(call);
    job.add_count = attributes->add_count;
    job.add_to = attributes->add_to;
    if (attributes->finish) {
        job.finish_f32 = finish_f32;
        job.finish_f64 = finish_f64;
        job.finish_user = attributes->finish;
    }
    if (an_call_is_f64(call))
        an_product_run_f64(&job);
    else
        an_product_run_f32(&job);
    return AN_OK;
}

static an_status keep(const an_call *call) {
    an_product_keep(call, call->kept);
    return AN_OK;
}

AN_KERNEL_LIST(product) = {
#ifdef __AVX512F__
    {.name = "amx",
     .applies = an_product_amx_applies,
     .scratch = an_product_amx_scratch,
     .run = an_product_amx_run,
     .by_leaves = true},
#endif
    {.name = "portable",
     .scratch = scratch,
     .run = run,
     .kept = an_product_kept_bytes,
     .keep = keep,
     .by_leaves = true},
    {0}};

#include "kernels/product/kept.h"

#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "kernels/common/row.h"
#include "kernels/product/core.h"
#include "kernels/product/core_level.h"

/* What is done at once: of rows so many that they are in the first-level cache where k is not long, of columns so many
 * bytes that a piece of them (256 KiB) stays in the second. */
enum { BLOCK_ROWS = 64, BLOCK_COLUMN_BYTES = 1024 };

/* How far ahead b is fetched, in steps of k. */
enum { FETCH_STEPS = 24 };

/* Few rows have too few sums to keep the multipliers busy, so several panels of b are taken at once. */
enum { WIDE_ROWS = 3, WIDE_PANELS = 4 };

/* What the register tile fetches besides b: nothing that is not at hand. */
typedef struct {
    const char *from;
    int64_t step, gap;
} fetch;

typedef struct {
    int64_t rows, columns, depth;
    const void *a, *b;
    void *dst;
    const an_product_finish *finish;
} job;

typedef struct {
    int64_t begin, count;
} range;

static void finish_f32(const an_product_finish *finish, const an_product_block *block, float *values) {
    finish->f32(finish->user, block, values);
}
static void finish_f64(const an_product_finish *finish, const an_product_block *block, double *values) {
    finish->f64(finish->user, block, values);
}

#define AN_TEMPLATE "kernels/product/kept_template.h"
#include "kernels/common/instantiate.h"

/* Rows of a and dst without gaps, one matrix b, all of the type that is computed in, and one thread. */
static bool can_run(const an_call *call) {
    const an_product_attributes *attributes = call->attributes;
    const an_tensor *a = &call->src[0], *b = &call->src[1], *dst = &call->dst[0];
    const bool same = a->dtype == b->dtype && a->dtype == dst->dtype;
    return same && (a->dtype == AN_DTYPE_F32 || a->dtype == AN_DTYPE_F64) && !attributes->transpose_a &&
           !attributes->accumulate && a->ndims == dst->ndims && b->ndims == 2 && an_tensor_is_dense(a) &&
           an_tensor_is_dense(dst) && an_context_threads(call->ctx) == 1;
}

size_t an_product_kept_bytes(const an_call *call) {
    const an_product_attributes *attributes = call->attributes;
    const an_tensor *b = &call->src[1];
    if (!can_run(call)) return 0;
    const size_t columns = (size_t)b->dims[attributes->transpose_b ? 0 : 1];
    const size_t depth = (size_t)b->dims[attributes->transpose_b ? 1 : 0];
    return an_round_up(columns * an_dtype_size(b->dtype), PANEL_BYTES) * depth;
}

void an_product_keep(const an_call *call, void *kept) {
    const an_product_attributes *attributes = call->attributes;
    const an_tensor *b = &call->src[1];
    const int column = attributes->transpose_b ? 0 : 1, k = 1 - column;
    const int64_t columns = b->dims[column], depth = b->dims[k];
    memset(kept, 0, an_product_kept_bytes(call));
    if (b->dtype == AN_DTYPE_F64)
        keep_f64(b->data, columns, depth, b->strides[column], b->strides[k], kept);
    else
        keep_f32(b->data, columns, depth, b->strides[column], b->strides[k], kept);
}

bool an_product_kept_run(const an_call *call, const void *kept) {
    const an_product_attributes *attributes = call->attributes;
    if (!can_run(call)) return false;
    const an_tensor *a = &call->src[0], *dst = &call->dst[0];
    const int last = dst->ndims - 1;
    job j = {.rows = 1,
             .columns = dst->dims[last],
             .depth = a->dims[last],
             .a = a->data,
             .b = kept,
             .dst = dst->data,
             .finish = attributes->finish};
    for (int i = 0; i < last; i++) j.rows *= dst->dims[i];
    if (dst->dtype == AN_DTYPE_F64)
        run_f64(&j);
    else
        run_f32(&j);
    return true;
}

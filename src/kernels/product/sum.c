/* Sums of products. On tiles it is one job, whose k go from one product to the next. Elsewhere the products go on from
 * each other's sums, in dst or, where that is of a low type, in scratch. */
#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/row.h"
#include "kernels/product/amx.h"
#include "kernels/product/product.h"

enum { ROWS_A_TASK = 8 };

static int pairs_of(const an_call *call) {
    return call->src_count / 2;
}

/* Sums are kept in dst if it is of the type that is computed in. */
static bool needs_room(const an_call *call) {
    const an_dtype dtype = call->dst[0].dtype;
    return dtype != (an_call_is_f64(call) ? AN_DTYPE_F64 : AN_DTYPE_F32) || !an_tensor_is_dense(&call->dst[0]);
}

static size_t room(const an_call *call) {
    const size_t size = an_call_is_f64(call) ? sizeof(double) : sizeof(float);
    return needs_room(call) ? an_round_up((size_t)an_tensor_elements(&call->dst[0]) * size, AN_ALIGNMENT) : 0;
}

/* dst, or the place of its sums in scratch. */
static an_tensor sums_of(const an_call *call) {
    an_tensor sums = call->dst[0];
    if (!needs_room(call)) return sums;
    sums.dtype = an_call_is_f64(call) ? AN_DTYPE_F64 : AN_DTYPE_F32;
    sums.data = call->scratch;
    int64_t stride = 1;
    for (int i = sums.ndims - 1; i >= 0; i--) {
        sums.strides[i] = stride;
        stride *= sums.dims[i];
    }
    return sums;
}

typedef struct {
    an_call call;
    an_product_attributes attributes;
    const an_kernel *kernel;
} one;

static void make_one(one *o, const an_call *call, const an_tensor *sums, int pair) {
    const an_product_attributes *attributes = call->attributes;
    const bool is_last = pair + 1 == pairs_of(call) && !needs_room(call);
    o->attributes = (an_product_attributes){
        .transpose_b = attributes->transpose_b, .accumulate = pair > 0, .finish = is_last ? attributes->finish : NULL};
    o->call = *call;
    o->call.attributes = &o->attributes;
    o->call.src = call->src + 2 * pair;
    o->call.src_count = 2;
    o->call.dst = sums;
    o->call.dst_count = 1;
    o->call.kept = NULL;
    if (call->scratch) o->call.scratch = (char *)call->scratch + room(call);
    o->kernel = AN_LEVELED(an_kernels_product);
    while (o->kernel->applies && !o->kernel->applies(&o->call)) o->kernel++;
}

static size_t scratch(const an_call *call) {
    const an_tensor sums = sums_of(call);
    size_t maximum = 0;
    for (int i = 0; i < pairs_of(call); i++) {
        one o;
        make_one(&o, call, &sums, i);
        const size_t bytes = o.kernel->scratch ? o.kernel->scratch(&o.call) : 0;
        if (bytes == AN_SCRATCH_FAILED) return bytes;
        if (bytes > maximum) maximum = bytes;
    }
    return room(call) + maximum;
}

typedef struct {
    const an_call *call;
    const an_tensor *sums;
    int64_t rows, columns;
} rounding;

/* Finishes rows of sums and rounds them to dst. */
static void round_rows(void *user, int64_t index, int thread) {
    const rounding *r = user;
    const an_product_attributes *attributes = r->call->attributes;
    const int64_t end = an_smaller(r->rows, (index + 1) * ROWS_A_TASK);
    (void)thread;
    for (int64_t row = index * ROWS_A_TASK; row < end; row++) {
        const an_product_block block = {.row = row, .rows = 1, .columns = r->columns, .stride = r->columns};
        const an_tensor *dst = &r->call->dst[0];
        const int64_t offset = row * r->columns, to = an_row_offset(dst, dst->ndims - 1, row);
        const int64_t stride = dst->strides[dst->ndims - 1];
        if (r->sums->dtype == AN_DTYPE_F64) {
            double *values = (double *)r->sums->data + offset;
            if (attributes->finish) attributes->finish->f64(attributes->finish->user, &block, values);
            an_row_store_f64(dst, to, stride, r->columns, values);
        } else {
            float *values = (float *)r->sums->data + offset;
            if (attributes->finish) attributes->finish->f32(attributes->finish->user, &block, values);
            an_row_store_f32(dst, to, stride, r->columns, values);
        }
    }
}

static an_status run(const an_call *call) {
    const an_tensor sums = sums_of(call);
    for (int i = 0; i < pairs_of(call); i++) {
        one o;
        make_one(&o, call, &sums, i);
        const an_status status = o.kernel->run(&o.call);
        if (status != AN_OK) return status;
    }
    rounding r = {.call = call, .sums = &sums, .rows = 1, .columns = sums.dims[sums.ndims - 1]};
    if (!needs_room(call)) return AN_OK;
    for (int i = 0; i < sums.ndims - 1; i++) r.rows *= sums.dims[i];
    an_parallel(call->ctx, an_divide_up(r.rows, ROWS_A_TASK), round_rows, &r);
    return AN_OK;
}

AN_KERNEL_LIST(product_sum) = {
#ifdef __AVX512F__
    {.name = "amx",
     .applies = an_product_sum_amx_applies,
     .scratch = an_product_amx_scratch,
     .run = an_product_amx_run},
#endif
    {.name = "portable", .scratch = scratch, .run = run},
    {0}};

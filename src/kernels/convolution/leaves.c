#include "kernels/convolution/leaves.h"

#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/common/copy_tensor.h"
#include "kernels/common/leaves.h"
#include "kernels/common/row.h"

enum { PIECE = 1 << 14 /* elements: work for a task */ };

typedef struct {
    int64_t count;
    bool is_f64;
    void *to;
    const void *from;
} addition;

static void add_task(void *user, int64_t index, int thread) {
    const addition *a = user;
    const int64_t begin = index * PIECE, end = an_smaller(a->count, begin + PIECE);
    (void)thread;
    if (a->is_f64)
        for (int64_t i = begin; i < end; i++) ((double *)a->to)[i] += ((const double *)a->from)[i];
    else
        for (int64_t i = begin; i < end; i++) ((float *)a->to)[i] += ((const float *)a->from)[i];
}

static an_dtype sum_dtype(const an_call *call) {
    return an_call_is_f64(call) ? AN_DTYPE_F64 : AN_DTYPE_F32;
}

static size_t slot_bytes(const an_call *call) {
    return an_round_up((size_t)an_tensor_elements(&call->dst[0]) * an_dtype_size(sum_dtype(call)), AN_ALIGNMENT);
}

/* Slot 0 may be dst itself, but there is room for it in any case: the layout of dst is then free. */
size_t an_convolution_leaves_scratch(const an_call *call) {
    const int64_t samples = call->src[0].dims[0]; /* no more nodes wait than there are samples */
    return (size_t)an_smaller(an_leaf_slots(call->leaves->count), samples) * slot_bytes(call);
}

/* dst, dense, in slot `slot`. */
static an_tensor slot_tensor(const an_call *call, int slot) {
    an_tensor t = call->dst[0];
    int64_t stride = 1;
    t.dtype = sum_dtype(call);
    for (int i = t.ndims - 1; i >= 0; i--) {
        t.strides[i] = stride;
        stride *= t.dims[i];
    }
    const bool is_dst = slot == 0 && call->dst[0].dtype == t.dtype && an_tensor_is_dense(&call->dst[0]);
    if (!is_dst) t.data = (char *)call->scratch + (size_t)slot * slot_bytes(call);
    return t;
}

an_status an_convolution_leaves_run(const an_call *call, an_status (*run)(const an_call *call)) {
    an_context *ctx = call->ctx;
    an_leaf_walk w = an_leaf_walk_begin(call->leaves, call->src[0].dims[0]);
    while (an_leaf_walk_next(&w)) {
        an_tensor src[] = {call->src[0], call->src[1]}, dst = slot_tensor(call, w.slot);
        an_call alone = *call;
        for (int i = 0; i < 2; i++) {
            src[i].dims[0] = w.end - w.begin;
            src[i].data = (char *)src[i].data + w.begin * src[i].strides[0] * (int64_t)an_dtype_size(src[i].dtype);
        }
        alone.src = src;
        alone.dst = &dst;
        alone.leaves = NULL;
        alone.scratch = (char *)call->scratch + an_convolution_leaves_scratch(call);
        AN_TRY_RETURN(run(&alone));
        addition a = {.count = an_tensor_elements(&dst), .is_f64 = dst.dtype == AN_DTYPE_F64, .from = dst.data};
        for (int i = 0; i < w.joins; i++) {
            a.to = slot_tensor(call, w.slot - i - 1).data;
            an_parallel(ctx, an_divide_up(a.count, PIECE), add_task, &a);
            a.from = a.to;
        }
    }
    const an_tensor sum = slot_tensor(call, 0);
    if (sum.data != call->dst[0].data) an_copy_tensor(ctx, &sum, &call->dst[0]);
    return AN_OK;
}

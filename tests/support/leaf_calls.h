/* Sums by leaves, done the simple way: a kernel runs on the samples of one leaf alone, and the sums are added by a
 * recursion that knows nothing of base/tree.h. What a kernel with `by_leaves` gives must have these bits. */
#ifndef TESTS_SUPPORT_LEAF_CALLS_H
#define TESTS_SUPPORT_LEAF_CALLS_H

#include "support/leaf_cut.h"
#include "support/support.h"

enum { LEAF_CALL_SRC = 8, LEAF_CALL_DST = 4 };

static inline int64_t leaf_call_elements(const an_tensor *t) {
    int64_t elements = 1;
    for (int i = 0; i < t->ndims; i++) elements *= t->dims[i];
    return elements;
}

static inline void *leaf_call_scratch(const an_kernel *kernel, const an_call *call) {
    const size_t bytes = kernel->scratch ? kernel->scratch(call) : 0;
    return bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
}

/* A kernel, a call, and along which axis the samples of each input lie (-1: it has none). All outputs are sums over
 * samples, dense, f32 or f64. */
typedef struct leaf_calls {
    const an_kernel *kernel;
    const an_call *call;
    const int *axes;
    const an_leaf_cut *cut;
} leaf_calls;

/* Sums of leaves first … first + 2^level - 1, in buffers of the sizes of the outputs; false: none of them has
 * samples. */
static inline bool leaf_calls_node(const leaf_calls *l, int64_t first, int level, void *const *sums) {
    const an_leaf_cut *cut = l->cut;
    if (first >= cut->count) return false;
    if (level > 0) {
        void *right[LEAF_CALL_DST];
        const int64_t half = (int64_t)1 << (level - 1);
        for (int d = 0; d < l->call->dst_count; d++)
            right[d] = malloc((size_t)leaf_call_elements(&l->call->dst[d]) * sizeof(double));
        const bool has_left = leaf_calls_node(l, first, level - 1, sums);
        const bool has_right = leaf_calls_node(l, first + half, level - 1, has_left ? right : sums);
        for (int d = 0; d < l->call->dst_count; d++) {
            const int64_t elements = leaf_call_elements(&l->call->dst[d]);
            for (int64_t i = 0; has_left && has_right && i < elements; i++) {
                if (l->call->dst[d].dtype == AN_DTYPE_F64)
                    ((double *)sums[d])[i] = ((double *)sums[d])[i] + ((double *)right[d])[i];
                else
                    ((float *)sums[d])[i] = ((float *)sums[d])[i] + ((float *)right[d])[i];
            }
            free(right[d]);
        }
        return has_left || has_right;
    }
    const int64_t begin = first ? cut->ends[first - 1] : 0, samples = cut->ends[first] - begin;
    if (samples == 0) return false;
    an_tensor src[LEAF_CALL_SRC], dst[LEAF_CALL_DST];
    an_call call = *l->call;
    for (int s = 0; s < call.src_count; s++) {
        src[s] = call.src[s];
        const int axis = l->axes[s];
        if (axis < 0) continue;
        const int64_t each = src[s].dims[axis] / cut->samples;
        src[s].dims[axis] = each * samples;
        src[s].data = (char *)src[s].data + begin * each * src[s].strides[axis] * (int64_t)an_dtype_size(src[s].dtype);
    }
    for (int d = 0; d < call.dst_count; d++) {
        dst[d] = call.dst[d];
        dst[d].data = sums[d];
        int64_t stride = 1;
        for (int i = dst[d].ndims - 1; i >= 0; i--) {
            dst[d].strides[i] = stride;
            stride *= dst[d].dims[i];
        }
    }
    call.src = src;
    call.dst = dst;
    call.leaves = NULL;
    call.scratch = leaf_call_scratch(l->kernel, &call);
    OK(call.ctx, l->kernel->run(&call));
    free(call.scratch);
    return true;
}

/* Fills sums[d], buffers of eight bytes an element, with what the outputs must be. */
static inline void leaf_calls_run(const leaf_calls *l, void *const *sums) {
    int level = 0;
    while ((int64_t)1 << level < l->cut->count) level++;
    assert_true(leaf_calls_node(l, 0, level, sums));
}

/* The kernel's own way: with the scratch that it asked for when it knew only the most leaves and
 * samples, filled with NaN. */
static inline void leaf_calls_run_whole(const leaf_calls *l) {
    an_call call = *l->call;
    const an_leaf_cut maximum = {.count = l->cut->count, .samples = l->cut->samples};
    call.leaves = &maximum;
    const size_t bytes = l->kernel->scratch ? l->kernel->scratch(&call) : 0;
    call.scratch = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
    if (bytes) memset(call.scratch, 0xff, bytes);
    call.leaves = l->cut;
    OK(call.ctx, l->kernel->run(&call));
    free(call.scratch);
}

#endif

#include "exec/by_leaf.h"

#include "kernels/common/leaves.h"
#include "pass/leaf_slots.h"

/* The part of a tensor along the axis of samples. */
static void cut(an_tensor *t, int axis, const an_leaf_walk *w) {
    if (axis < 0) return;
    const int64_t each = t->dims[axis] / w->cut->samples;
    t->dims[axis] = each * (w->end - w->begin);
    t->data = (char *)t->data + each * w->begin * t->strides[axis] * (int64_t)an_dtype_size(t->dtype);
}

/* A sum in a slot: in dst itself, or dense in scratch. */
static an_tensor in_slot(const an_call *call, const an_node *node, int output, int slot) {
    an_tensor t = call->dst[output];
    if (slot == 0) return t;
    t.data = (char *)call->scratch + (size_t)(slot - 1) * an_leaf_slot_bytes(node, call->dst, node->output_count) +
             an_leaf_slot_bytes(node, call->dst, output);
    int64_t stride = 1;
    for (int i = t.ndims - 1; i >= 0; i--) {
        t.strides[i] = stride;
        stride *= t.dims[i];
    }
    return t;
}

static an_status run_leaf(const an_device *device, const an_node *node, const an_call *call, const an_leaf_walk *w,
                          size_t slots) {
    an_tensor src[AN_MAX_INPUTS], dst[AN_MAX_OUTPUTS];
    an_call one = *call;
    for (int i = 0; i < call->src_count; i++) {
        src[i] = call->src[i];
        if (src[i].data) cut(&src[i], node->leaf_sum->src[i], w);
    }
    for (int i = 0; i < call->dst_count; i++) {
        dst[i] = an_leaf_slots_have(node, i) ? in_slot(call, node, i, w->slot) : call->dst[i];
        cut(&dst[i], node->leaf_sum->dst[i], w);
    }
    one.src = src;
    one.dst = dst;
    one.leaves = NULL;
    one.scratch = (char *)call->scratch + slots;
    return device->launch(device, node->kernel, &one);
}

static an_status join(const an_device *device, const an_node *node, const an_kernel *add, const an_call *call,
                      int slot) {
    an_status status = AN_OK;
    for (int i = 0; i < call->dst_count && status == AN_OK; i++) {
        if (!an_leaf_slots_have(node, i)) continue;
        const an_tensor src[] = {in_slot(call, node, i, slot - 1), in_slot(call, node, i, slot)};
        const an_call sum = {.ctx = call->ctx, .src_count = 2, .dst_count = 1, .src = src, .dst = src};
        status = device->launch(device, add, &sum);
    }
    return status;
}

an_status an_by_leaf_launch(const an_device *device, const an_node *node, const an_kernel *add, const an_call *call) {
    const size_t slots = an_leaf_slots_bytes(node, call->dst, call->leaves->count);
    an_leaf_walk w = an_leaf_walk_begin(call->leaves, call->leaves->samples);
    an_status status = AN_OK;
    while (status == AN_OK && an_leaf_walk_next(&w)) {
        status = run_leaf(device, node, call, &w, slots);
        for (int i = 0; i < w.joins && status == AN_OK; i++) status = join(device, node, add, call, w.slot - i);
    }
    return status;
}

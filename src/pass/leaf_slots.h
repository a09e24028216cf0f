/* Where sums of leaves wait if a node's kernel knows nothing of leaves: the sum of the first leaf is made in the output
 * itself, those of others in slots of scratch, in front of the kernel's own. The select pass makes room for them,
 * and exec/by_leaf.c uses it. */
#ifndef AN_PASS_LEAF_SLOTS_H
#define AN_PASS_LEAF_SLOTS_H

#include "base/memory.h"
#include "base/tree.h"
#include "ir/graph.h"

/* Of a node with leaf_sum. */
static inline bool an_leaf_slots_have(const an_node *node, int output) {
    return node->leaf_sum->dst[output] < 0;
}

/* What outputs 0 to `outputs` - 1 take in a slot, so where the next one lies. */
static inline size_t an_leaf_slot_bytes(const an_node *node, const an_tensor *dst, int outputs) {
    size_t bytes = 0;
    for (int i = 0; i < outputs; i++) {
        size_t elements = an_leaf_slots_have(node, i);
        for (int d = 0; d < dst[i].ndims; d++) elements *= (size_t)dst[i].dims[d];
        bytes += an_round_up(elements * an_dtype_size(dst[i].dtype), AN_ALIGNMENT);
    }
    return bytes;
}

/* All slots, for at most so many leaves. */
static inline size_t an_leaf_slots_bytes(const an_node *node, const an_tensor *dst, int64_t leaves) {
    return (size_t)(an_tree_nodes(leaves) - 1) * an_leaf_slot_bytes(node, dst, node->output_count);
}

#endif

/* Sums by leaves with kernels that know nothing of leaves: a kernel runs once for each leaf, on its part of the inputs,
 * and the outputs that are sums are added in the tree. */
#ifndef AN_EXEC_BY_LEAF_H
#define AN_EXEC_BY_LEAF_H

#include "ir/graph.h"

/* Launches the node's kernel as if it had `by_leaves`: call->leaves says how the samples are cut. `add` is the
 * device's kernel of that op. */
an_status an_by_leaf_launch(const an_device *device, const an_node *node, const an_kernel *add, const an_call *call);

#endif

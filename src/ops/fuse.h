/* Fusions that records name in `fuse`: each replaces a node and its neighbours by fewer nodes with the same bits, and
 * leaves what is no longer read to prune. */
#ifndef AN_OPS_FUSE_H
#define AN_OPS_FUSE_H

#include "ir/graph.h"

void an_fuse_product_loss(an_graph *g, an_node *loss, bool may_keep);
/* The same for cross_entropy_each. */
void an_fuse_product_losses(an_graph *g, an_node *losses, bool may_keep);
/* Elementwise ops without attributes: into the product, or the chain, that makes their operand. */
void an_fuse_elementwise(an_graph *g, an_node *node, bool may_keep);

#endif

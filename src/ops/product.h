/* Builders of products and helpers of gradients, for ops that multiply in low precision. */
#ifndef AN_OPS_PRODUCT_H
#define AN_OPS_PRODUCT_H

#include "ops/common.h"

/* an_matmul with the dtype of dst; AN_DTYPE_NONE: the wider input's. */
an_value an_product_as(an_graph *g, an_value a, an_value b, bool transpose_a, bool transpose_b, an_dtype dtype);

/* a·b + c·d in one sum; b and d are matrices, transposed or not. */
an_value an_product_add(an_graph *g, an_value a, an_value b, an_value c, an_value d, bool transpose_b);

/* An addition of products, in the backward part of a graph with an adapter, as one product_sum; 0: it is none. */
an_value an_sum_products(an_graph *g, const an_node *add);

/* `along` of products: of the pair of operands to which an input belongs. `transpose_a` and
 * `transpose_b` as in the attributes. */
an_along an_product_operand_along(const an_along_question *q, bool transpose_a, bool transpose_b);

/* The gradient that comes into an op whose inputs 0 and 1 are of one low type, cast to that type; else as it is. */
an_value an_lower_diff(an_graph *g, const an_node *node, an_value diff_dst);

/* The dtype of an input's gradient: its own; but that of a parameter, also through its low copy and through views, is
 * of the compute type, and so is any of a node whose output was asked for in it. */
an_dtype an_gradient_dtype(const an_node *node, const an_result *input);

#endif

/* How a model whose weights do not change is stored. */
#ifndef AN_PASS_FROZEN_H
#define AN_PASS_FROZEN_H

#include "ir/graph.h"

/* Freezes every parameter but those of an adapter and those that are trained beside it, and stores matrices in the type
 * `low`; AN_DTYPE_NONE: as they are. Of AN_DTYPE_Q8_0, matrices of f32 with a multiple of 32 columns; a model that
 * has none is refused. It works on the model, before it is planned. */
an_status an_graph_freeze(an_graph *g, an_dtype low);

/* Lets products with matrices of q8_0 round what they multiply them by to integers (kernels/product/rounded.h):
 * faster than to widen the matrices, and other bits than training has. */
an_status an_graph_round_products(an_graph *g);

#endif

/* Layers with their own initialization, for models. The public ones (anneal/builders.h) are initialized like
 * PyTorch's.
 *
 * A layer's parameters are created in a scope of its name; a name of NULL puts them directly under the open block,
 * for layers that are a block by themselves.
 */
#ifndef AN_OPS_LAYERS_H
#define AN_OPS_LAYERS_H

#include "ops/common.h"

/* How a parameter starts. */
typedef struct an_start {
    an_initializer initializer;
    double scale;
} an_start;

/* src · weightᵀ + bias; `bias` NULL: none. */
an_value an_linear_with(an_graph *g, an_value src, const char *name, an_dim features, const an_start *weight,
                        const an_start *bias);

an_value an_convolution_layer_with(an_graph *g, an_value src, const char *name, int64_t filters, int64_t window,
                                   const an_convolution_options *options, bool bias);

#endif

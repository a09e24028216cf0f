/* Windows that move over images: what convolution and pooling have in common. Pairs are of (height, width). */
#ifndef AN_OPS_WINDOW_H
#define AN_OPS_WINDOW_H

#include "ops/common.h"

/* A pair of an options struct as an attribute; zeros become `standard`'s numbers (NULL: they stay). */
an_int_list an_window_pair(const int64_t *values, const int64_t *standard);

/* Infer hooks: whether an attribute is a pair of numbers, none below `least`. */
an_status an_expect_pair(an_graph *g, const an_node *node, const char *name, const an_int_list *pair, int64_t minimum);

/* How often windows of these sizes stand on an image with padding on both sides. */
an_status an_window_dims(an_graph *g, const an_node *node, const an_dim *image, const int64_t *window,
                         const an_int_list *stride, const an_int_list *padding, an_dim *dims);

#endif

/* For ops whose gradients are sums in a type of their own. */
#ifndef AN_OPS_REDUCE_H
#define AN_OPS_REDUCE_H

#include "ops/common.h"

/* an_reduce_sum whose output has the type `dtype`: gradients of parameters are f32 (f64) though what is added is low. */
an_value an_reduce_sum_as(an_graph *g, an_value src, int axis_count, const int *axes, bool keep, an_dtype dtype);

#endif

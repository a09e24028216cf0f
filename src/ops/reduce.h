/* For ops whose gradients are sums in a type of their own. */
#ifndef AN_OPS_REDUCE_H
#define AN_OPS_REDUCE_H

#include "ops/common.h"

/* an_reduce_sum whose output has the type `dtype`: gradients of parameters are f32 (f64) though what is added is
 * low. */
an_value an_reduce_sum_as(an_graph *g, an_value src, int axis_count, const int *axes, bool keep, an_dtype dtype);

/* sum ÷ divisor, where the divisor lies along the last axis. If `sum` is an an_reduce_sum over all other axes, each
 * term is divided before it is added, so that the sum, which may be one over samples, stays the last operation. */
an_value an_divide_sum(an_graph *g, an_value sum, an_value divisor);

#endif

/* Kernels of functions of one element. A function without attributes has its row in unary_template.h and its record in
 * ops/unary.c, and is named nowhere else. */
#ifndef AN_KERNELS_ELEMENTWISE_UNARY_H
#define AN_KERNELS_ELEMENTWISE_UNARY_H

#include "kernels/common/list.h"

typedef struct an_scale_attributes {
    double factor;
} an_scale_attributes;

/* of clamp and clamp_diff */
typedef struct an_clamp_attributes {
    double low, high; /* low ≤ high; both may be infinite */
} an_clamp_attributes;

/* dst = f(src) */
AN_DECLARE_KERNELS(scale);
AN_DECLARE_KERNELS(clamp);

/* diff_src = diff_dst · f', from (diff_dst, src) */
AN_DECLARE_KERNELS(clamp_diff);

#endif

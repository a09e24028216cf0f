/* Kernels of ops/reduce.c: sum, mean and maximum over a set of axes, and gradients. */
#ifndef AN_KERNELS_REDUCE_REDUCE_H
#define AN_KERNELS_REDUCE_REDUCE_H

#include "ir/op.h"
#include "kernels/common/list.h"

typedef struct an_reduce_attributes {
    an_int_list axes; /* rising, ≥ 0 */
    bool keep;        /* reduced axes stay, of size 1 */
    an_dtype dtype;   /* reduce_sum only: of dst; NONE: src's */
} an_reduce_attributes;

typedef struct an_reduce_mean_diff_attributes {
    an_dim_list dims; /* of diff_src */
} an_reduce_mean_diff_attributes;

/* (src) → dst. Sums are added in the order of reduce_order.h over the reduced axes in C order, in the compute type. */
AN_DECLARE_KERNELS(reduce_sum);
AN_DECLARE_KERNELS(reduce_mean);
AN_DECLARE_KERNELS(reduce_max);

/* (diff_dst with the reduced axes kept) → diff_src = diff_dst ÷ the number of elements that were averaged */
AN_DECLARE_KERNELS(reduce_mean_diff);

/* (diff_dst, src, dst) → diff_src: the elements that are the maximum share its gradient evenly. */
AN_DECLARE_KERNELS(reduce_max_diff);

#endif

/* Kernels of ops/pool.c: maxima and means over windows of images, and their gradients. */
#ifndef AN_KERNELS_POOL_POOL_H
#define AN_KERNELS_POOL_POOL_H

#include "ir/op.h"
#include "kernels/common/list.h"

/* The lists are of (height, width). */
typedef struct an_pool_attributes {
    an_int_list window, stride, padding;
    bool exclude_padding; /* average: divide by the elements inside the image only */
    an_dim_list dims;     /* of src, for average_pool_diff */
} an_pool_attributes;

AN_DECLARE_KERNELS(max_pool);          /* src */
AN_DECLARE_KERNELS(max_pool_diff);     /* diff_dst, src */
AN_DECLARE_KERNELS(average_pool);      /* src */
AN_DECLARE_KERNELS(average_pool_diff); /* diff_dst */

#endif

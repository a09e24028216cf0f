/* The order in which kernels walk through a tensor's dimensions: longest stride first, whatever order the shape has
 * them in. */
#ifndef AN_KERNELS_COMMON_STRIDE_ORDER_H
#define AN_KERNELS_COMMON_STRIDE_ORDER_H

#include "anneal/experimental.h"

/* Writes the dimensions that are larger than 1 and returns how many there are. An insertion sort:
 * stable, at most 8 of them. */
static inline int an_stride_order(const an_tensor *tensor, int order[AN_MAX_DIMS]) {
    int count = 0;
    for (int i = 0; i < tensor->ndims; i++) {
        if (tensor->dims[i] == 1) continue;
        int at = count++;
        while (at > 0 && tensor->strides[order[at - 1]] < tensor->strides[i]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    return count;
}

#endif

/* Kernels of ops/product.c. */
#ifndef AN_KERNELS_PRODUCT_H
#define AN_KERNELS_PRODUCT_H

#include "anneal/experimental.h"

typedef struct an_product_attributes {
    bool transpose_a, transpose_b;
    an_dtype dtype; /* of dst; AN_DTYPE_NONE: the wider input's */
} an_product_attributes;

extern const an_kernel an_kernels_product[];

#endif

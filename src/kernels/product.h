/* Kernels of ops/product.c. */
#ifndef AN_KERNELS_PRODUCT_H
#define AN_KERNELS_PRODUCT_H

#include "kernels/list.h"

typedef struct an_product_attributes {
    bool transpose_a, transpose_b;
    an_dtype dtype; /* of dst; AN_DTYPE_NONE: the wider input's */
} an_product_attributes;

AN_DECLARE_KERNELS(product);

#endif

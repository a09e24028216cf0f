/* Kernels of the op product_chain in ops/chain.c: a product whose elements go through a chain before they are
 * stored. */
#ifndef AN_KERNELS_PRODUCT_CHAIN_H
#define AN_KERNELS_PRODUCT_CHAIN_H

#include "kernels/elementwise/chain.h"
#include "kernels/product/product.h"

/* Operands of stages, besides those of the products. */
enum { AN_PRODUCT_CHAIN_MORE = 4, AN_PRODUCT_CHAIN_INPUTS = 2 * AN_PRODUCT_SUM_PAIRS + AN_PRODUCT_CHAIN_MORE };

typedef struct an_product_chain_attributes {
    bool transpose_a, transpose_b;
    an_dtype dtype;      /* to which the product is rounded before the chain; NONE: the compute type */
    const char *program; /* x is the product */
    an_chain chain;      /* what infer read in it */
    int64_t kept;        /* the stage whose value is output 1; -1: none */
    bool rounds_a;       /* as the product */
    int64_t added;       /* products that are added to the first: x is a product_sum then */
} an_product_chain_attributes;

/* (a, b, more…) → dst, the kept value. b is a matrix. With products that are added: (a, b, a, b…, more…). */
AN_DECLARE_KERNELS(product_chain);

#endif

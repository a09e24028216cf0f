/* Kernels of the op product_chain in ops/chain.c: a product whose elements go through a chain before they are stored. */
#ifndef AN_KERNELS_PRODUCT_CHAIN_H
#define AN_KERNELS_PRODUCT_CHAIN_H

#include "kernels/elementwise/chain.h"
#include "kernels/product/product.h"

enum { AN_PRODUCT_CHAIN_INPUTS = 6 };

typedef struct an_product_chain_attributes {
    bool transpose_a, transpose_b;
    an_dtype dtype;      /* to which the product is rounded before the chain; NONE: the compute type */
    const char *program; /* x is the product */
    an_chain chain;      /* what infer read in it */
    int64_t kept;        /* the stage whose value is output 1; -1: none */
    bool rounds_a;       /* as the product */
} an_product_chain_attributes;

/* (a, b, more…) → dst, the kept value. b is a matrix. */
AN_DECLARE_KERNELS(product_chain);

#endif

/* Kernels of ops/product.c. */
#ifndef AN_KERNELS_PRODUCT_PRODUCT_H
#define AN_KERNELS_PRODUCT_PRODUCT_H

#include "kernels/common/list.h"

/* A part of dst whose sums are finished, rows of `stride` values, in a first-level cache. */
typedef struct an_product_block {
    int64_t item, row, column, rows, columns, stride;
} an_product_block;

/* What kernels that end in a product do with its elements before they are converted to dst's type and stored. Blocks
 * come in any order, on any thread, each element once. */
typedef struct an_product_finish {
    void (*f32)(void *user, const an_product_block *block, float *values);
    void (*f64)(void *user, const an_product_block *block, double *values);
    void *user;
} an_product_finish;

typedef struct an_product_attributes {
    bool transpose_a, transpose_b;
    an_dtype dtype; /* of dst; AN_DTYPE_NONE: the wider input's */
    bool rounds_a;  /* to integers, which are multiplied by the numbers of b, which is q8_0: rounded.h */
    /* For kernels that run products on parts of k, cut at multiples of AN_PRODUCT_CUT: the sum goes on from what dst,
     * dense and of the compute type, holds. No node has it. */
    bool accumulate;
    const an_product_finish *finish; /* NULL: none. No node has it */
    /* For kernels that add products in a tree: matrices of dst's shape, dense and of the compute type, that are added
     * to the finished sums, add_to[add_count - 1] first and add_to[0] last. At most AN_PRODUCT_MOST_ADDED. add_to[0]
     * may be dst. No node has it, and it is not together with `finish`. */
    int add_count;
    const void *const *add_to;
} an_product_attributes;

enum { AN_PRODUCT_CUT = 512 }; /* a multiple of every kernel's pieces of k */

enum { AN_PRODUCT_MOST_ADDED = 24 };

enum { AN_PRODUCT_SUM_PAIRS = 6 };

AN_DECLARE_KERNELS(product);
/* (a, b, a, b…) → a·b + a·b + …, at most AN_PRODUCT_SUM_PAIRS of them, each b a matrix and no a transposed. */
AN_DECLARE_KERNELS(product_sum);

#endif

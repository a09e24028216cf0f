/* Kernels of ops/product_loss.c: cross-entropy of logits that are a product, by chunks of rows, so that logits never
 * lie in memory as a whole. */
#ifndef AN_KERNELS_PRODUCT_LOSS_H
#define AN_KERNELS_PRODUCT_LOSS_H

#include "kernels/common/list.h"
#include "kernels/loss/loss.h"
#include "kernels/product/product.h"

/* Rows in a chunk: a multiple of the pieces in which products add over k, so that the gradient of the weights, whose k
 * is the rows, is added in the same order as in one product. Large enough that a pass over the weights for each chunk
 * is a small part of the work, small enough for memory: 512 rows of 50,257 logits are 103 MB. */
enum { AN_PRODUCT_LOSS_ROWS = AN_PRODUCT_CUT };

enum {
    AN_PRODUCT_LOSS_SRC,
    AN_PRODUCT_LOSS_WEIGHTS,
    AN_PRODUCT_LOSS_TARGETS,
    AN_PRODUCT_LOSS_DIFF,
    AN_PRODUCT_LOSS_TARGET_WEIGHTS
};

enum { AN_PRODUCT_LOSS_RIGHT = 1 }; /* the output, where there is no diff_dst */

/* (src, weights, targets, diff_dst, target weights) → loss, diff_src, diff_weights. Without diff_dst only the loss and,
 * where it is asked for, the number of targets that have the largest logit (count_right); diff_weights may be left out
 * too. src, targets and their weights, which may be absent, are dense; weights are [classes, k]. A loss with
 * dimensions is that of each target, dense. */
AN_DECLARE_KERNELS(product_cross_entropy);

#endif

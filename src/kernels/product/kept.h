/* Products with a matrix that stays the same from run to run, on one thread: prediction with few rows at a time.
 *
 * All of b is packed once, and nothing is planned when a product runs. The sums are those of the product core: products
 * are added one after the other inside pieces of AN_PRODUCT_PIECE, and the pieces in order. So are their bits.
 */
#ifndef AN_KERNELS_PRODUCT_KEPT_H
#define AN_KERNELS_PRODUCT_KEPT_H

#include "kernels/product/product.h"

/* Compiled once a level. */
#define an_product_kept_bytes AN_LEVELED(an_product_kept_bytes)
#define an_product_keep AN_LEVELED(an_product_keep)
#define an_product_kept_run AN_LEVELED(an_product_kept_run)

/* Bytes that a call of the product keeps of its b; 0: it is none that can run from them. */
size_t an_product_kept_bytes(const an_call *call);
/* Packs b into them. */
void an_product_keep(const an_call *call, void *kept);
/* The product from them; false, and nothing done: not at these sizes. */
bool an_product_kept_run(const an_call *call, const void *kept);

#endif

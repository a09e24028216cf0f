/* Chunks of rows for product_cross_entropy (loss.h) where the gradient of the weights is a sum by leaves.
 *
 * A chunk is a node of the tree of leaves, or a part of a leaf that is longer than a chunk. Its product ends with the
 * addition of the nodes that wait for it, so a chunk itself needs no buffer of the gradient's size, only a sum of
 * several chunks does. Of two nodes, the one that needs more buffers is made first. That does not change bits, as a + b
 * = b + a, and a second buffer is then needed only from twice as many rows on, a third from four times as many, and so
 * on. The logits of one chunk and these buffers are in memory at once.
 */
#ifndef AN_KERNELS_PRODUCT_LOSS_LEAVES_H
#define AN_KERNELS_PRODUCT_LOSS_LEAVES_H

#include "anneal/experimental.h"
#include "base/level.h"

#define an_loss_cut_choose AN_LEVELED(an_loss_cut_choose)
#define an_loss_walk_run AN_LEVELED(an_loss_walk_run)

/* How chunks are chosen: the rows of one at most, and buffers besides the gradient itself. */
typedef struct an_loss_cut {
    int64_t rows;
    int buffers;
} an_loss_cut;

/* The one that takes the least memory for `all` rows of as many samples, whatever the leaves are. It takes no more for
 * fewer rows, samples or leaves. */
an_loss_cut an_loss_cut_choose(int64_t all, const an_leaf_cut *maximum, size_t row_bytes, size_t buffer_bytes);

/* The product of a chunk: its sums, as those of `leaves` (NULL: one leaf), and what is added to them (product.h). */
typedef struct an_loss_chunk {
    int64_t row, rows;
    const an_leaf_cut *leaves;
    bool continues; /* `sums` holds those of the rows of the same leaf before the chunk's */
    void *sums;
    int add_count;
    const void *const *add_to;
} an_loss_chunk;

enum { AN_LOSS_MOST_BUFFERS = 24 };

typedef struct an_loss_walk {
    an_context *ctx;
    const an_leaf_cut *leaves;
    int64_t each; /* rows of a sample */
    an_loss_cut cut;
    void *buffers[AN_LOSS_MOST_BUFFERS]; /* the gradient, and cut.buffers others */
    int64_t *ends;                       /* memory for the ends of leaves->count leaves */
    an_status (*run)(void *user, const an_loss_chunk *chunk);
    void *user;
} an_loss_walk;

/* Runs all chunks. *sums is the buffer that then holds the gradient. */
an_status an_loss_walk_run(const an_loss_walk *walk, void **sums);

#endif

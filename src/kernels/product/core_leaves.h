/* Pieces of k where k is cut into leaves (kernels/common/leaves.h).
 *
 * A piece is a part of one leaf's rows, or several short leaves that form one node of the tree: their sums never leave
 * the first-level cache. Finished nodes that wait for their right neighbour are in slots, which are tiles of sums. Slot
 * 0 is where a job without leaves keeps its sums.
 */
#ifndef AN_KERNELS_PRODUCT_CORE_LEAVES_H
#define AN_KERNELS_PRODUCT_CORE_LEAVES_H

#include "kernels/product/core.h"

#define an_product_most_pieces AN_LEVELED(an_product_most_pieces)
#define an_product_most_slots AN_LEVELED(an_product_most_slots)
#define an_product_cut_bytes AN_LEVELED(an_product_cut_bytes)
#define an_product_cut_make AN_LEVELED(an_product_cut_make)

/* Several leaves in a piece are at most so many levels of the tree below it, so at most so many sums wait in a
 * piece. */
enum { AN_PRODUCT_LEAF_LEVELS = 8 };

/* A leaf inside a piece. */
typedef struct an_product_leaf {
    int64_t rows;
    int64_t joins; /* how many sums that wait in the piece are complete with it */
} an_product_leaf;

typedef struct an_product_piece {
    int64_t begin, count; /* rows of k */
    const an_product_leaf *leaves;
    int64_t leaf_count;
    int slot;  /* of its node's sums … */
    int joins; /* … and of how many slots below that are added to them when the node is complete, the nearest first */
    bool continues; /* the slot holds the sums of this leaf's rows before it */
} an_product_piece;

typedef struct an_product_cut {
    const an_product_piece *pieces;
    int64_t count;
    int slots; /* that are written */
} an_product_cut;

/* Bounds for every cut of k into `leaves` or fewer, and for every smaller depth. */
int64_t an_product_most_pieces(int64_t depth, const an_leaf_cut *leaves);
int an_product_most_slots(int64_t depth, const an_leaf_cut *leaves);
size_t an_product_cut_bytes(int64_t depth, const an_leaf_cut *leaves);

/* Makes the pieces in `memory`, which has an_product_cut_bytes. */
an_product_cut an_product_cut_make(int64_t depth, const an_leaf_cut *leaves, void *memory);

#endif

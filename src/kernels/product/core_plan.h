/* How the product core cuts a job, and where its parts lie in scratch. All of it follows from the job's sizes.
 *
 * Rows and columns, the sides of dst, are cut into tiles of whole panels. Tiles are done in blocks, whose packed panels
 * fit into a share of scratch; k is in blocks of pieces where even that is not enough. A block is two parallel runs:
 * over what is to be packed, and over its tiles.
 */
#ifndef AN_KERNELS_PRODUCT_CORE_PLAN_H
#define AN_KERNELS_PRODUCT_CORE_PLAN_H

#include "base/integer.h"
#include "kernels/product/core.h"

#define an_product_plan_make AN_LEVELED(an_product_plan_make)

enum { AN_PACK_PANELS = 8 }; /* a line that goes into several panels is asked for in parts of so many */

enum { AN_ROWS, AN_COLUMNS, AN_SIDES };

typedef struct an_product_side {
    int64_t panels;        /* in all */
    int64_t width, stride; /* of a panel: its lanes, and elements from one k to the next */
    int64_t tile;          /* panels in a tile */
    int64_t tiles;         /* in all */
    int64_t block;         /* tiles in a block */
    bool shared;           /* several tiles need the same panels: packed once a block; else by each tile's task */
    size_t step_bytes;     /* of one k of a panel */
    size_t panel_bytes;    /* of the largest piece of k */
    size_t begin;          /* of the packed panels, in scratch if they are shared, else in a thread's part of it */
} an_product_side;

typedef struct an_product_plan {
    an_product_side sides[AN_SIDES];
    int64_t items, item_block;
    int64_t pieces, piece_block; /* one piece at least: that of depth 0 is empty */
    int64_t block_depth;         /* the most of k that is in a block */
    int64_t together;            /* few tiles and much k: pieces that run at once; else 0 */
    int64_t task_pieces;         /* … how many of them in a task */
    int slots;                   /* sums that a tile has between pieces (core_leaves.h): 1 without leaves */
    int64_t sum_stride;          /* of a tile's rows */
    size_t sum_bytes;            /* of a tile */
    size_t sums_begin;
    size_t slots_begin;  /* of all slots but the first */
    size_t thread_bytes; /* a thread's part, at the begin of scratch, begins with a buffer for lines */
    size_t bytes;
} an_product_plan;

/* Pieces of k without leaves. */
static inline int64_t an_product_pieces(int64_t depth) {
    return an_larger(1, an_divide_up(depth, AN_PRODUCT_PIECE));
}

an_product_plan an_product_plan_make(an_context *ctx, size_t element, int64_t items, int64_t rows, int64_t columns,
                                     int64_t depth, int64_t pieces, int slots);

#endif

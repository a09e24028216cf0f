/* Operands of products on tiles, packed into panels.
 *
 * A panel is 32 lanes. For each 32 of k it has a block of two tiles, one for either half of its lanes: of a, a tile's
 * rows are lanes; of b, they are pairs of neighbours in k, one for each lane. What is missing at an end is zero.
 */
#ifndef AN_KERNELS_PRODUCT_AMX_PACK_H
#define AN_KERNELS_PRODUCT_AMX_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/product/amx.h"

#define an_amx_pack AN_LEVELED(an_amx_pack)
#define an_amx_pack_operand AN_LEVELED(an_amx_pack_operand)
#define an_amx_item_offset AN_LEVELED(an_amx_item_offset)

enum {
    AN_AMX_SIDE = 32,         /* lanes of a panel, and k of a block */
    AN_AMX_TILE_BYTES = 1024, /* 16 rows of 64 */
    AN_AMX_BLOCK_BYTES = 2 * AN_AMX_TILE_BYTES
};

typedef struct an_amx_matrix {
    const uint16_t *data;
    int64_t lane_stride, depth_stride, lanes, depth;
    bool is_b, has_blocks; /* has_blocks: `data` is q8_0, whose rows in memory have whole blocks */
} an_amx_matrix;

/* Whether rows of memory are lanes; else they are k. */
static inline bool an_amx_along(const an_amx_matrix *m) {
    return m->depth_stride == 1 || m->lane_stride != 1;
}
static inline bool an_amx_operand_along(const an_amx_operand *o) {
    return o->depth_stride == 1 || o->lane_stride != 1;
}

typedef struct an_amx_range {
    int64_t begin, count;
} an_amx_range;

/* Packs these panels for these 32s of k. Blocks of a panel lie one after the other; panels are panel_bytes apart. */
void an_amx_pack(const an_amx_matrix *matrix, an_amx_range panels, an_amx_range steps, char *to, int64_t panel_bytes);

/* The same for an operand of an item of a job, where steps are counted over all of its products. `as_b`: packed as
 * the right side of tiles. */
void an_amx_pack_operand(const an_amx_job *job, int64_t item, bool is_b, bool as_b, an_amx_range panels,
                         an_amx_range steps, char *to, int64_t panel_bytes);

/* Where an item begins, in elements. */
int64_t an_amx_item_offset(const an_grid *items, int64_t item);

#endif

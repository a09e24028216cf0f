/* Packing: which pieces share a sample. */
#ifndef AN_DATA_TEXTS_PACK_H
#define AN_DATA_TEXTS_PACK_H

#include "base/memory.h"

/* Pieces in samples: those of sample i are order[begins[i]] to order[begins[i + 1] - 1]. */
typedef struct an_packing {
    an_context *ctx;
    int64_t *order, *begins;
    int64_t pieces, samples;
} an_packing;

/* Each piece, the longest first, goes into the sample with the least room that it fits in, or into a new one. Lengths
 * are from 1 to `room`. Depends on nothing but these numbers. O(pieces · (log pieces + room / 64)). */
an_status an_packing_create(an_packing *packing, an_context *ctx, const int32_t *lengths, int64_t count, int32_t room);
/* Every sample has so many pieces, which `count` is a multiple of, in order. */
an_status an_packing_create_equal(an_packing *packing, an_context *ctx, int64_t count, int64_t each);
void an_packing_destroy(an_packing *packing);

#endif

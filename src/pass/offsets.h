/* An allocator of offsets: best fit over free blocks, neighbours merged, the end grows when nothing fits. It hands out
 * numbers, not memory; the memory pass plays a step through it. O(log blocks) a call. */
#ifndef AN_PASS_OFFSETS_H
#define AN_PASS_OFFSETS_H

#include "base/memory.h"

typedef struct an_offset_block an_offset_block;
typedef struct an_offsets {
    an_context *ctx;
    an_offset_block *blocks;
    size_t capacity, used;
    an_offset_block *spare, *last, *tree;
    int64_t end; /* most ever needed */
} an_offsets;

/* `most` is the number of blocks that are taken at once at most. */
an_status an_offsets_create(an_offsets *offsets, an_context *ctx, size_t maximum);
void an_offsets_destroy(an_offsets *offsets);
an_offset_block *an_offsets_take(an_offsets *offsets, int64_t bytes);
void an_offsets_give(an_offsets *offsets, an_offset_block *block);
int64_t an_offset_of(const an_offset_block *block);

#endif

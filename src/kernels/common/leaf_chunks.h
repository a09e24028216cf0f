/* Chunks of leaves, for kernels that add by leaves in the order of reduce_order.h, where the chunks of a leaf are
 * counted from its first element.
 *
 * Chunk c of leaf l, whose first element is b, has the number b / AN_SUM_CHUNK + l + c. No two chunks share a
 * number, so threads can share out numbers and partial sums can lie at them without a table. Some numbers have no
 * chunk.
 */
#ifndef AN_KERNELS_COMMON_LEAF_CHUNKS_H
#define AN_KERNELS_COMMON_LEAF_CHUNKS_H

#include "kernels/common/leaves.h"
#include "kernels/common/reduce_order.h"

typedef struct an_leaf_chunk {
    int64_t begin, count; /* its elements; count 0: the number has no chunk */
} an_leaf_chunk;

/* Numbers of `count` elements in at most so many leaves. */
static inline int64_t an_leaf_chunks(int64_t count, int64_t leaves) {
    return count / AN_SUM_CHUNK + leaves;
}

/* The number of the first chunk of a leaf. */
static inline int64_t an_leaf_chunk_number(int64_t leaf, int64_t begin) {
    return begin / AN_SUM_CHUNK + leaf;
}

/* Chunks of so many elements. */
static inline int64_t an_chunks_of(int64_t count) {
    return an_divide_up(count, AN_SUM_CHUNK);
}

/* `each`: elements of a sample. */
static inline an_leaf_chunk an_leaf_chunk_find(const an_leaf_cut *cut, int64_t each, int64_t number) {
    int64_t leaf = 0, after = cut->count; /* the last leaf whose first number is not beyond this one */
    while (after - leaf > 1) {
        const int64_t middle = leaf + (after - leaf) / 2;
        if (an_leaf_chunk_number(middle, cut->ends[middle - 1] * each) <= number)
            leaf = middle;
        else
            after = middle;
    }
    const int64_t first = leaf ? cut->ends[leaf - 1] * each : 0, end = cut->ends[leaf] * each;
    const int64_t begin = first + (number - an_leaf_chunk_number(leaf, first)) * AN_SUM_CHUNK;
    return (an_leaf_chunk){begin, begin < end ? an_smaller(end - begin, AN_SUM_CHUNK) : 0};
}

/* How many pairs of sums in the tree of chunks are complete with chunk `chunk` of `chunks`: on a stack of sums the
 * upper is added to the lower, so often. */
static inline int an_chunk_joins(int64_t chunk, int64_t chunks) {
    return chunk + 1 < chunks ? __builtin_ctzll((uint64_t)chunk + 1) : __builtin_popcountll((uint64_t)chunk);
}

#endif

/* The order of an epoch: a bijection of 0 … count-1 that the seed and the epoch choose. It is computed, not stored: any
 * place of it in O(1), on any rank. */
#ifndef AN_DATA_PERMUTATION_H
#define AN_DATA_PERMUTATION_H

#include "base/philox.h"

/* A Feistel network on pairs of `half` bits, the fewest that `count` fits in; what falls outside of it goes through
 * again until it is inside (Black and Rogaway 2002), which takes fewer than four turns in the mean. */
typedef struct an_permutation {
    an_philox_stream stream;
    uint64_t count;
    int half;
} an_permutation;

/* `count` is from 1 to 2^62. */
an_permutation an_permutation_make(uint64_t seed, uint64_t epoch, int64_t count);
/* `i` is from 0 to below the count. */
int64_t an_permutation_at(const an_permutation *permutation, int64_t i);

#endif

/* The merges of byte-level BPE, from counted words. */
#ifndef AN_TEXT_BPE_MERGES_H
#define AN_TEXT_BPE_MERGES_H

#include "text/words.h"

typedef struct an_bpe_merge {
    int32_t left, right;
} an_bpe_merge;

typedef struct an_bpe_merges {
    an_words tokens; /* bytes of tokens, first the 256 that are one byte */
    an_bpe_merge *merges;
    size_t count, capacity;
} an_bpe_merges;

/* Finds merges until there are `vocabulary` tokens, or no pair appears `least` times. `bytes` has the 256
 * bytes in the order of their tokens. No merge makes a token of `reserved`. False: no memory. To be
 * released whatever this returns. */
bool an_bpe_merges_find(an_bpe_merges *merges, const an_words *words, const unsigned char bytes[256],
                        const an_words *reserved, int64_t vocabulary, int64_t minimum);
void an_bpe_merges_release(an_bpe_merges *merges);

#endif

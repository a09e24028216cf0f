#include "launch/siphash.h"

enum { ROUNDS = 2, LAST_ROUNDS = 4, WORD = 8, BITS = 8 };

static uint64_t rotate(uint64_t x, int by) {
    enum { WIDTH = 64 };
    return x << by | x >> (WIDTH - by);
}

/* One round of the paper's figure 2.1, with its rotations. */
static void mix(uint64_t v[4], int rounds) {
    enum { R0 = 13, R1 = 16, R2 = 21, R3 = 17, HALF = 32 };
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], R0) ^ v[0];
        v[3] = rotate(v[3], R1) ^ v[2];
        v[0] = rotate(v[0], HALF);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], R3) ^ v[2];
        v[3] = rotate(v[3], R2) ^ v[0];
        v[2] = rotate(v[2], HALF);
    }
}

/* The first of `count` bytes, at most a word of them, least significant first. */
static uint64_t load(const unsigned char *bytes, size_t count) {
    uint64_t word = 0;
    for (size_t i = 0; i < count && i < WORD; i++) word |= (uint64_t)bytes[i] << (BITS * i);
    return word;
}

uint64_t an_siphash(const an_siphash_key *key, const void *bytes, size_t count) {
    enum { LAST = 0xff, LENGTH_SHIFT = 56 };
    /* "somepseudorandomlygeneratedbytes" */
    uint64_t v[4] = {key->words[0] ^ 0x736f6d6570736575, key->words[1] ^ 0x646f72616e646f6d,
                     key->words[0] ^ 0x6c7967656e657261, key->words[1] ^ 0x7465646279746573};
    const unsigned char *at = bytes;
    for (size_t left = count;; left -= WORD, at += WORD) {
        const uint64_t word = left >= WORD ? load(at, WORD) : load(at, left) | (uint64_t)count << LENGTH_SHIFT;
        v[3] ^= word;
        mix(v, ROUNDS);
        v[0] ^= word;
        if (left < WORD) break;
    }
    v[2] ^= LAST;
    mix(v, LAST_ROUNDS);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

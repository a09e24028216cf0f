#include "data/permutation.h"

/* Rounds: four make a Feistel network that nobody can tell from random in a large domain (Luby and Rackoff 1988);
 * small domains need more. With halves of one bit eight rounds leave the orders of a few samples uneven, and with
 * two bits any number does. */
enum { ROUNDS = 8, LEAST_HALF = 3 };

/* Apart from every other use of random numbers: "permuted" in ASCII. */
static const uint64_t site = 0x7065726d75746564;

an_permutation an_permutation_make(uint64_t seed, uint64_t epoch, int64_t count) {
    an_permutation p = {.count = (uint64_t)count, .half = LEAST_HALF};
    p.stream = an_philox_fold((an_philox_key){.seed = seed, .step = epoch, .site = site});
    while ((p.count - 1) >> 2 * p.half != 0) p.half++;
    return p;
}

static uint64_t turn(const an_permutation *p, uint64_t x) {
    const uint64_t mask = (UINT64_C(1) << p->half) - 1;
    uint64_t left = x >> p->half, right = x & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint32_t words[4];
        an_philox_block(p->stream, round << 32 | right, words);
        const uint64_t mixed = left ^ (words[0] & mask);
        left = right;
        right = mixed;
    }
    return left << p->half | right;
}

int64_t an_permutation_at(const an_permutation *p, int64_t i) {
    uint64_t x = (uint64_t)i;
    do x = turn(p, x);
    while (x >= p->count);
    return (int64_t)x;
}

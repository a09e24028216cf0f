/* Random numbers that are counted, not drawn: number i of a key is a pure function of (key, i).
 *
 * There is no generator state. Any thread or rank makes any number at once, and a resumed run makes the same ones. The
 * function is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011): a
 * bijection of a counter of 128 bits under a key of 64 bits.
 *
 * Seed, step, sample, site and element are 320 bits, and Philox takes 192. They are folded by Philox itself:
 *
 *     (h0, h1, h2, h3) = philox(counter: step, site;  key: seed)
 *     words of a block = philox(counter: block, sample xor (h2, h3);  key: (h0, h1))
 *
 * each 64-bit number as two words, lower first. Under one seed different (step, site) give different h, because Philox
 * is a bijection. Two streams can meet only where 64 bits of h agree by chance and the other 64 differ by just the
 * xor of two sample numbers: for 2^30 pairs of step and site and 2^30 samples, a chance of about 2^-39.
 *
 * A block of four words makes elements 4b ... 4b + 3 of f32 and u32 numbers, 2b and 2b + 1 of f64 ones. So numbers of
 * different kinds under one key are made of the same bits: a site draws one kind.
 */
#ifndef AN_BASE_PHILOX_H
#define AN_BASE_PHILOX_H

#include <math.h>
#include <stdint.h>

#include "base/elementary/elementary.h"

typedef struct an_philox_key {
    uint64_t seed;   /* of the run */
    uint64_t step;   /* of the optimizer */
    uint64_t sample; /* its number in the run's global order */
    uint64_t site;   /* what draws: a hash of the op's path and ordinal, of a parameter's name, … */
} an_philox_key;

/* Philox4x32-10 as published. The multipliers are the authors'; the keys grow by the golden ratio and sqrt(3) - 1. */
static inline void an_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    enum { ROUNDS = 10 };
    const uint64_t multiplier0 = 0xd2511f53, multiplier1 = 0xcd9e8d57;
    const uint32_t weyl0 = 0x9e3779b9, weyl1 = 0xbb67ae85;
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t product0 = multiplier0 * c0, product1 = multiplier1 * c2;
        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product0;
        k0 += weyl0;
        k1 += weyl1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A folded key: what is the same for all elements. */
typedef struct an_philox_stream {
    uint32_t key[2];
    uint32_t upper[2]; /* half of the counter */
} an_philox_stream;

static inline an_philox_stream an_philox_fold(an_philox_key key) {
    const uint32_t counter[4] = {(uint32_t)key.step, (uint32_t)(key.step >> 32), (uint32_t)key.site,
                                 (uint32_t)(key.site >> 32)};
    const uint32_t seed[2] = {(uint32_t)key.seed, (uint32_t)(key.seed >> 32)};
    uint32_t h[4];
    an_philox4x32(counter, seed, h);
    return (an_philox_stream){{h[0], h[1]}, {(uint32_t)key.sample ^ h[2], (uint32_t)(key.sample >> 32) ^ h[3]}};
}

static inline void an_philox_block(an_philox_stream stream, uint64_t block, uint32_t words[4]) {
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), stream.upper[0], stream.upper[1]};
    an_philox4x32(counter, stream.key, words);
}

/* Words to numbers. Uniform ones are multiples of 2^-24 (2^-53) in [0, 1). */
static inline float an_uniform_of_word_f32(uint32_t word) {
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

static inline double an_uniform_of_words_f64(uint32_t first, uint32_t second) {
    const double upper = (double)(int32_t)(first >> 5), lower = (double)(int32_t)(second >> 6); /* 27 and 26 bits */
    return (upper * 0x1p26 + lower) * 0x1p-53;
}

/* Two normal numbers of mean 0 and variance 1 (Box and Muller 1958): radius sqrt(-2 ln u), u in (0, 1] with all bits of
 * its word(s), so that values reach 6.7 (f32) and 9.4 (f64); the angle is the other word(s) as a part of a turn, of
 * which sine and cosine need no reduction. */
typedef struct an_normals_f32 {
    float cosine, sine;
} an_normals_f32;

typedef struct an_normals_f64 {
    double cosine, sine;
} an_normals_f64;

static inline an_normals_f32 an_normals_of_words_f32(uint32_t first, uint32_t second) {
    const float whole = (float)(int32_t)(first >> 16) * 0x1p16f + (float)(int32_t)(first & 0xffff); /* rounds once */
    const float radius = sqrtf(-2.0f * an_log_f32((whole + 0.5f) * 0x1p-32f));
    const uint32_t quarters = (second + (UINT32_C(1) << 29)) >> 30;
    const float part = (float)(int32_t)(second - (quarters << 30)) * 0x1p-30f; /* of a quarter, -1/2 to 1/2 */
    const float half_pi = 0x1.921fb6p+0f;
    const an_trig_parts_f32 angle = {(float)(int32_t)quarters, part * half_pi};
    return (an_normals_f32){radius * an_trig_sine_f32(angle, 1), radius * an_trig_sine_f32(angle, 0)};
}

static inline an_normals_f64 an_normals_of_words_f64(const uint32_t words[4]) {
    const double whole = (double)words[0] * 0x1p32 + (double)words[1]; /* rounds once */
    const double radius = sqrt(-2.0 * an_log_f64((whole + 0.5) * 0x1p-64));
    const uint32_t quarters = (words[2] + (UINT32_C(1) << 29)) >> 30;
    const double upper = (double)(int32_t)(words[2] - (quarters << 30)), lower = (double)words[3];
    const double part = (upper * 0x1p32 + lower) * 0x1p-62; /* of a quarter, -1/2 to 1/2 */
    const double half_pi = 0x1.921fb54442d18p+0;
    const an_trig_parts_f64 angle = {(double)quarters, part * half_pi, 0};
    return (an_normals_f64){radius * an_trig_sine_f64(angle, 1), radius * an_trig_sine_f64(angle, 0)};
}

/* Element `element` of a key alone. In a loop the block forms below are several times faster. */
static inline uint32_t an_random_u32(an_philox_key key, uint64_t element) {
    uint32_t words[4];
    an_philox_block(an_philox_fold(key), element / 4, words);
    return words[element % 4];
}

static inline float an_random_uniform_f32(an_philox_key key, uint64_t element) {
    return an_uniform_of_word_f32(an_random_u32(key, element));
}

static inline double an_random_uniform_f64(an_philox_key key, uint64_t element) {
    uint32_t words[4];
    an_philox_block(an_philox_fold(key), element / 2, words);
    const uint64_t start = element % 2 * 2;
    return an_uniform_of_words_f64(words[start], words[start + 1]);
}

static inline float an_random_normal_f32(an_philox_key key, uint64_t element) {
    uint32_t words[4];
    an_philox_block(an_philox_fold(key), element / 4, words);
    const uint64_t start = element % 4 / 2 * 2;
    const an_normals_f32 normals = an_normals_of_words_f32(words[start], words[start + 1]);
    return element % 2 == 0 ? normals.cosine : normals.sine;
}

static inline double an_random_normal_f64(an_philox_key key, uint64_t element) {
    uint32_t words[4];
    an_philox_block(an_philox_fold(key), element / 2, words);
    const an_normals_f64 normals = an_normals_of_words_f64(words);
    return element % 2 == 0 ? normals.cosine : normals.sine;
}

/* Elements first ... first + n - 1, the same values as above. Compiled once a level. */
#define an_random_block_u32 AN_LEVELED(an_random_block_u32)
#define an_random_block_uniform_f32 AN_LEVELED(an_random_block_uniform_f32)
#define an_random_block_uniform_f64 AN_LEVELED(an_random_block_uniform_f64)
#define an_random_block_normal_f32 AN_LEVELED(an_random_block_normal_f32)
#define an_random_block_normal_f64 AN_LEVELED(an_random_block_normal_f64)
void an_random_block_u32(an_philox_key key, uint64_t first, int64_t n, uint32_t *out);
void an_random_block_uniform_f32(an_philox_key key, uint64_t first, int64_t n, float *out);
void an_random_block_uniform_f64(an_philox_key key, uint64_t first, int64_t n, double *out);
void an_random_block_normal_f32(an_philox_key key, uint64_t first, int64_t n, float *out);
void an_random_block_normal_f64(an_philox_key key, uint64_t first, int64_t n, double *out);

#endif

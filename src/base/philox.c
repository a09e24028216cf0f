/* Runs of random numbers: groups of blocks side by side, so that the compiler can give each block a vector lane. */
#include "base/philox.h"

enum { GROUP = 16, WORDS = 4 }; /* blocks in a group: the 32-bit lanes of the widest vector; words in a block */

static void group_words(an_philox_stream stream, uint64_t block, uint32_t words[GROUP * WORDS]) {
    uint32_t word[WORDS][GROUP];
    for (uint32_t i = 0; i < GROUP; i++) {
        uint32_t out[WORDS];
        an_philox_block(stream, block + i, out);
        for (int w = 0; w < WORDS; w++) word[w][i] = out[w];
    }
    for (int i = 0; i < GROUP; i++) {
        for (int w = 0; w < WORDS; w++) words[i * WORDS + w] = word[w][i];
    }
}

static void group_u32(const uint32_t *words, uint32_t *values) {
    memcpy(values, words, GROUP * WORDS * sizeof *values);
}

static void group_uniform_f32(const uint32_t *words, float *values) {
    for (int i = 0; i < GROUP * WORDS; i++) values[i] = an_uniform_of_word_f32(words[i]);
}

static void group_uniform_f64(const uint32_t *words, double *values) {
    for (int i = 0; i < GROUP * WORDS / 2; i++) values[i] = an_uniform_of_words_f64(words[2 * i], words[2 * i + 1]);
}

static void group_normal_f32(const uint32_t *words, float *values) {
    for (int i = 0; i < GROUP * WORDS / 2; i++) {
        const an_normals_f32 normals = an_normals_of_words_f32(words[2 * i], words[2 * i + 1]);
        values[2 * i] = normals.cosine;
        values[2 * i + 1] = normals.sine;
    }
}

static void group_normal_f64(const uint32_t *words, double *values) {
    for (int i = 0; i < GROUP; i++) {
        const an_normals_f64 normals = an_normals_of_words_f64(words + WORDS * i);
        values[2 * i] = normals.cosine;
        values[2 * i + 1] = normals.sine;
    }
}

#define DEFINE_BLOCK(name, type, per_block)                                                \
    void an_random_block_##name(an_philox_key key, uint64_t first, int64_t n, type *out) { \
        const an_philox_stream stream = an_philox_fold(key);                               \
        uint32_t words[GROUP * WORDS];                                                     \
        type values[GROUP * (per_block)];                                                  \
        for (int64_t done = 0; done < n;) {                                                \
            const uint64_t element = first + (uint64_t)done;                               \
            const int64_t skip = (int64_t)(element % (per_block));                         \
            const int64_t rest = n - done, full = GROUP * (per_block)-skip;                \
            const int64_t count = rest < full ? rest : full;                               \
            group_words(stream, element / (per_block), words);                             \
            group_##name(words, values);                                                   \
            memcpy(out + done, values + skip, (size_t)count * sizeof *out);                \
            done += count;                                                                 \
        }                                                                                  \
    }
DEFINE_BLOCK(u32, uint32_t, 4)
DEFINE_BLOCK(uniform_f32, float, 4)
DEFINE_BLOCK(uniform_f64, double, 2)
DEFINE_BLOCK(normal_f32, float, 4)
DEFINE_BLOCK(normal_f64, double, 2)

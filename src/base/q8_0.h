/* Q8_0, as GGUF files have it: 32 elements of a row share a scale in f16, which lies before their 32
 * numbers of 8 bits. A parameter of that type lies in memory as in a file, row after row, so element e
 * of a dense one is in block e ÷ 32. */
#ifndef AN_BASE_Q8_0_H
#define AN_BASE_Q8_0_H

#include <string.h>

#include "base/float16.h"

enum { AN_Q8_0_ELEMENTS = 32, AN_Q8_0_SCALE_BYTES = 2, AN_Q8_0_BYTES = AN_Q8_0_ELEMENTS + AN_Q8_0_SCALE_BYTES };

static inline const unsigned char *an_q8_0_block(const void *blocks, int64_t element) {
    return (const unsigned char *)blocks + element / AN_Q8_0_ELEMENTS * AN_Q8_0_BYTES;
}

/* Files are little endian, and so are the machines that anneal runs on. */
static inline float an_q8_0_scale(const unsigned char *block) {
    uint16_t scale;
    memcpy(&scale, block, sizeof scale);
    return an_f16_to_f32(scale);
}

/* Exact: a scale has 11 bits and a number 8. */
static inline float an_q8_0_value(const void *blocks, int64_t element) {
    const unsigned char *block = an_q8_0_block(blocks, element);
    return an_q8_0_scale(block) * (float)(int8_t)block[AN_Q8_0_SCALE_BYTES + element % AN_Q8_0_ELEMENTS];
}

/* `count` is a multiple of AN_Q8_0_ELEMENTS. Rounds as ggml and the gguf package for Python do. A block with a number
 * that is not finite, or that is too large for its scale, gets a scale that is not finite. */
void an_q8_0_from_f32(const float *values, int64_t count, void *blocks);
void an_q8_0_to_f32(const void *blocks, int64_t count, float *values);

#endif

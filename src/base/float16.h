/* bf16 and f16 as storage: conversions to and from f32, round to nearest even, NaN stays NaN. Plain integer code, so
 * that every machine gives the same bits. */
#ifndef AN_BASE_FLOAT16_H
#define AN_BASE_FLOAT16_H

#include <stdint.h>

#include "base/elementary/bits.h"

static inline float an_bf16_to_f32(uint16_t h) {
    return an_f32_of_bits((uint32_t)h << 16);
}

static inline uint16_t an_f32_to_bf16(float x) {
    uint32_t u = an_bits_of_f32(x);
    uint32_t rounded = u + 0x7fff + (u >> 16 & 1);
    uint32_t quiet = u | 0x400000; /* a NaN whose payload lies in the low half must not become infinity */
    return (uint16_t)((x != x ? quiet : rounded) >> 16);
}

static inline float an_f16_to_f32(uint16_t h) {
    /* Shift exponent and mantissa into place, rescale by 2^(127-15): right for normals and denormals alike. */
    float magnitude = an_f32_of_bits((uint32_t)(h & 0x7fff) << 13) * 0x1p112f;
    uint32_t u = an_bits_of_f32(magnitude);
    u |= (h & 0x7c00) == 0x7c00 ? 0x7f800000u : 0; /* infinity and NaN */
    return an_f32_of_bits(u | (uint32_t)(h & 0x8000) << 16);
}

static inline uint16_t an_f32_to_f16(float x) {
    uint32_t u = an_bits_of_f32(x), sign = u >> 16 & 0x8000, magnitude = u & 0x7fffffff, h;
    if (magnitude > 0x7f800000) {
        h = 0x7e00; /* NaN */
    } else if (magnitude >= 0x477ff000) {
        h = 0x7c00; /* 65520 and above round to infinity */
    } else if (magnitude < 0x38800000) {
        /* below 2^-14: adding 0.5 puts the rounded denormal into the low bits (its ulp, 2^-24, is f16's) */
        h = an_bits_of_f32(an_f32_of_bits(magnitude) + 0.5f) - 0x3f000000;
    } else {
        h = (magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13;
    }
    return (uint16_t)(sign | h);
}

#endif

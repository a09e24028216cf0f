/* Blocks of q8_0 as the tiles of AMX read them: rounded to bf16. */
#ifndef AN_KERNELS_PRODUCT_AMX_WIDEN_H
#define AN_KERNELS_PRODUCT_AMX_WIDEN_H

#include "base/q8_0.h"
#include "kernels/common/tiles.h"

/* A scale times a number is exact in f32 and never a denormal, so it is rounded once, to the nearest. */
AN_TILES_INLINE void an_amx_widen(const unsigned char *block, uint16_t *to) {
    uint16_t scale;
    memcpy(&scale, block, sizeof scale);
    const __m128i *halves = (const __m128i *)(const void *)(block + AN_Q8_0_SCALE_BYTES);
    const __m512 factor = _mm512_cvtph_ps(_mm256_set1_epi16((short)scale));
    const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(halves)));
    const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(halves + 1)));
    _mm512_storeu_si512(to, an_round_32_to_bf16(_mm512_mul_ps(high, factor), _mm512_mul_ps(low, factor)));
}

#endif

/* What a level of instructions gives the product core: the width of its vectors, how many of them a register tile has
 * and how they multiply and add. For files that are compiled once a level (base/level.h). */
#ifndef AN_KERNELS_PRODUCT_CORE_LEVEL_H
#define AN_KERNELS_PRODUCT_CORE_LEVEL_H

#include "base/unroll.h"

/* PANEL_ROWS · PANEL_VECTORS sums, PANEL_VECTORS of b and one element of a (and where nothing is fused, a product) are
 * as many registers as there are. One k of a panel of a is PANEL_ROW_STRIDE elements: whole vectors of any type. */
#define PANEL_VECTORS 2
#if defined(__AVX512F__)
#include <immintrin.h>
#define VECTOR_BYTES 64
#define PANEL_ROWS 14
#define PANEL_ROW_STRIDE 16
#define MULTIPLY_ADD_f32(a, b, sum) _mm512_fmadd_ps(_mm512_set1_ps(a), b, sum)
#define MULTIPLY_ADD_f64(a, b, sum) _mm512_fmadd_pd(_mm512_set1_pd(a), b, sum)
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define VECTOR_BYTES 32
#define PANEL_ROWS 6
#define PANEL_ROW_STRIDE 8
#define MULTIPLY_ADD_f32(a, b, sum) _mm256_fmadd_ps(_mm256_set1_ps(a), b, sum)
#define MULTIPLY_ADD_f64(a, b, sum) _mm256_fmadd_pd(_mm256_set1_pd(a), b, sum)
#else
#define VECTOR_BYTES 16
#define PANEL_ROWS 4
#define PANEL_ROW_STRIDE 4
#define MULTIPLY_ADD_f32(a, b, sum) ((sum) + (a) * (b))
#define MULTIPLY_ADD_f64(a, b, sum) ((sum) + (a) * (b))
#endif
enum { PANEL_BYTES = PANEL_VECTORS * VECTOR_BYTES }; /* one k of a panel of b */

/* a[0], b[0], a[1], b[1], … of the first halves of two vectors, or of the second. */
#if VECTOR_BYTES == 64
#define INTERLEAVE_LOW_f32(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH_f32(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define INTERLEAVE_LOW_f64(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH_f64(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif VECTOR_BYTES == 32
#define INTERLEAVE_LOW_f32(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH_f32(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define INTERLEAVE_LOW_f64(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH_f64(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#else
#define INTERLEAVE_LOW_f32(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH_f32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define INTERLEAVE_LOW_f64(a, b) __builtin_shufflevector(a, b, 0, 2)
#define INTERLEAVE_HIGH_f64(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

#endif

/* Vectors of f32 and f64, as wide as the level has them. */
#ifndef AN_KERNELS_ATTENTION_VECTOR_H
#define AN_KERNELS_ATTENTION_VECTOR_H

#include <immintrin.h>
#include <stdint.h>

#ifdef __AVX512F__
enum { LANES_f32 = 16, LANES_f64 = 8 };
typedef __m512 vector_f32;
typedef __m512d vector_f64;
typedef __m512i vector_bits;
#define VECTOR_NAME(name) _mm512_##name
#else
enum { LANES_f32 = 8, LANES_f64 = 4 };
typedef __m256 vector_f32;
typedef __m256d vector_f64;
typedef __m256i vector_bits;
#define VECTOR_NAME(name) _mm256_##name
#endif

#define DEFINE_VECTORS(real, suffix, intrinsic)                                                                    \
    static inline vector_##suffix load_##suffix(const real *from) {                                                \
        return VECTOR_NAME(loadu_##intrinsic)(from);                                                               \
    }                                                                                                              \
    static inline void store_##suffix(real *to, vector_##suffix x) {                                               \
        VECTOR_NAME(storeu_##intrinsic)(to, x);                                                                    \
    }                                                                                                              \
    static inline vector_##suffix broadcast_##suffix(real x) {                                                     \
        return VECTOR_NAME(set1_##intrinsic)(x);                                                                   \
    }                                                                                                              \
    static inline vector_##suffix multiply_add_##suffix(vector_##suffix a, vector_##suffix b, vector_##suffix c) { \
        return VECTOR_NAME(fmadd_##intrinsic)(a, b, c);                                                            \
    }                                                                                                              \
    /* The larger and the smaller; b where one of them is NaN. */                                                  \
    static inline vector_##suffix larger_##suffix(vector_##suffix a, vector_##suffix b) {                          \
        return VECTOR_NAME(max_##intrinsic)(a, b);                                                                 \
    }                                                                                                              \
    static inline vector_##suffix smaller_##suffix(vector_##suffix a, vector_##suffix b) {                         \
        return VECTOR_NAME(min_##intrinsic)(a, b);                                                                 \
    }                                                                                                              \
    static inline real first_lane_##suffix(vector_##suffix x) {                                                    \
        return x[0];                                                                                               \
    }                                                                                                              \
    /* NaN left out. */                                                                                            \
    static inline real largest_lane_##suffix(vector_##suffix x) {                                                  \
        real lanes[LANES_##suffix];                                                                                \
        store_##suffix(lanes, x);                                                                                  \
        for (int half = LANES_##suffix / 2; half > 0; half /= 2)                                                   \
            for (int l = 0; l < half; l++) lanes[l] = lanes[l + half] > lanes[l] ? lanes[l + half] : lanes[l];     \
        return lanes[0];                                                                                           \
    }
DEFINE_VECTORS(float, f32, ps)
DEFINE_VECTORS(double, f64, pd)

/* x with the lowest bits of n, an integer below its rounder (base/elementary_bits.h), added to its exponent. */
static inline vector_f32 add_exponent_f32(vector_f32 x, vector_f32 n) {
    enum { EXPONENT = 23 };
    const vector_bits shifted = VECTOR_NAME(slli_epi32)((vector_bits)n, EXPONENT);
    return (vector_f32)VECTOR_NAME(add_epi32)((vector_bits)x, shifted);
}

#endif

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

#define DEFINE_VECTORS(real, suffix, intrinsic, integer)                                                           \
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
    /* Lanes begin to end - 1 of x, and `other` in the rest. */                                                    \
    static inline vector_##suffix only_lanes_##suffix(vector_##suffix x, int64_t begin, int64_t end, real other) { \
        typedef integer lanes __attribute__((vector_size(sizeof x)));                                              \
        const vector_##suffix others = broadcast_##suffix(other);                                                  \
        lanes lane;                                                                                                \
        for (int l = 0; l < LANES_##suffix; l++) lane[l] = l;                                                      \
        const lanes is_in = (lane >= (integer)begin) & (lane < (integer)end);                                      \
        return (vector_##suffix)(((lanes)x & is_in) | ((lanes)others & ~is_in));                                   \
    }
DEFINE_VECTORS(float, f32, ps, int32_t)
DEFINE_VECTORS(double, f64, pd, int64_t)

/* The largest of all lanes. */
#ifdef __AVX512F__
static inline float largest_lane_f32(vector_f32 x) {
    return _mm512_reduce_max_ps(x);
}
static inline double largest_lane_f64(vector_f64 x) {
    return _mm512_reduce_max_pd(x);
}
#else
static inline float largest_lane_f32(vector_f32 x) {
    __m128 maximum = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    maximum = _mm_max_ps(maximum, _mm_movehl_ps(maximum, maximum));
    return _mm_cvtss_f32(_mm_max_ss(maximum, _mm_movehdup_ps(maximum)));
}
static inline double largest_lane_f64(vector_f64 x) {
    const __m128d maximum = _mm_max_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_max_sd(maximum, _mm_unpackhi_pd(maximum, maximum)));
}
#endif

/* x with the lowest bits of n, an integer below its rounder (base/elementary/bits.h), added to its exponent. */
static inline vector_f32 add_exponent_f32(vector_f32 x, vector_f32 n) {
    enum { EXPONENT = 23 };
    const vector_bits shifted = VECTOR_NAME(slli_epi32)((vector_bits)n, EXPONENT);
    return (vector_f32)VECTOR_NAME(add_epi32)((vector_bits)x, shifted);
}

#endif

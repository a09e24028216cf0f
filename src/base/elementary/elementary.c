/* Array forms of the elementary functions, and the exact reduction of huge arguments of sin and cos. */
#include "base/elementary/elementary.h"

#include "base/unroll.h"

/* dst may be src: the iterations are then still independent, which compilers cannot know. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

/* ---- tanh ---- of several vectors at once, as many as there are registers for */

#define INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)
#include <immintrin.h>
enum { VECTOR_BYTES = 64, TANH_VECTORS = 4 };
#define MASK_f32 __mmask16
#define MASK_f64 __mmask8
#define BELOW_f32(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define BELOW_f64(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define BLEND_f32 _mm512_mask_blend_ps
#define BLEND_f64 _mm512_mask_blend_pd
#define MIN_f32 _mm512_min_ps
#define MIN_f64 _mm512_min_pd
/* Compilers would compute one vector after the other again. Nothing is done, but to all of them at once. */
#define TOGETHER(x) __asm__("" : "+v"((x)[0]), "+v"((x)[1]), "+v"((x)[2]), "+v"((x)[3]));
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32, TANH_VECTORS = 2 };
#define TOGETHER(x)
#else
enum { VECTOR_BYTES = 16, TANH_VECTORS = 2 };
#define TOGETHER(x)
#endif

#define REAL float
#define BITS uint32_t
#define NAME(x) x##_f32
#define AN(x) AN_##x##_F32
#define LIMIT 10.0f
#include "base/elementary/tanh.h"
#undef REAL
#undef BITS
#undef NAME
#undef AN
#undef LIMIT
#define REAL double
#define BITS uint64_t
#define NAME(x) x##_f64
#define AN(x) AN_##x##_F64
#define LIMIT 20.0
#include "base/elementary/tanh.h"

/* ---- the others ---- */

#define DEFINE_F32_1(name)                                                 \
    void an_vector_##name##_f32(int64_t n, const float *src, float *dst) { \
        INDEPENDENT                                                        \
        for (int64_t i = 0; i < n; i++) dst[i] = an_##name##_f32(src[i]);  \
    }
AN_ELEMENTARY_LOOPS(DEFINE_F32_1)
AN_ELEMENTARY_TRIG(DEFINE_F32_1)

#define DEFINE_F64_1(name)                                                   \
    void an_vector_##name##_f64(int64_t n, const double *src, double *dst) { \
        INDEPENDENT                                                          \
        for (int64_t i = 0; i < n; i++) dst[i] = an_##name##_f64(src[i]);    \
    }
AN_ELEMENTARY_LOOPS(DEFINE_F64_1)

#define DEFINE_2(name, type, suffix)                                                       \
    void an_vector_##name##_##suffix(int64_t n, const type *a, const type *b, type *dst) { \
        INDEPENDENT                                                                        \
        for (int64_t i = 0; i < n; i++) dst[i] = an_##name##_##suffix(a[i], b[i]);         \
    }
#define DEFINE_BOTH_2(name) DEFINE_2(name, float, f32) DEFINE_2(name, double, f64)
AN_ELEMENTARY_2(DEFINE_BOTH_2)

/* Elements that one huge argument can slow down; small enough to stay in the first cache between two readings. */
enum { TRIG_BLOCK = 512 };

static bool has_huge(int64_t n, const double *src) {
    const double below_huge = 0x1.fffffffffffffp19;
    uint64_t found = 0;
    for (int64_t i = 0; i < n; i++) found |= an_above_f64(an_absolute_f64(src[i]), below_huge);
    return found != 0;
}

#define DEFINE_TRIG_F64(name)                                                                    \
    void an_vector_##name##_f64(int64_t n, const double *src, double *dst) {                     \
        for (int64_t first = 0; first < n; first += TRIG_BLOCK) {                                \
            const int64_t end = n - first < TRIG_BLOCK ? n : first + TRIG_BLOCK;                 \
            if (has_huge(end - first, src + first)) {                                            \
                for (int64_t i = first; i < end; i++) dst[i] = an_##name##_f64(src[i]);          \
            } else {                                                                             \
                INDEPENDENT                                                                      \
                for (int64_t i = first; i < end; i++) dst[i] = an_##name##_moderate_f64(src[i]); \
            }                                                                                    \
        }                                                                                        \
    }
AN_ELEMENTARY_TRIG(DEFINE_TRIG_F64)

/* The first 1184 binary digits of 2 / pi, 32 to a word, after two words of zeros. */
static const uint32_t two_over_pi[] = {
    0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046,
};

/* As Payne and Hanek (1983): a = m 2^e with an integer m, and of 2 / pi only those digits are used that count. Those
 * before digit e - 1 make multiples of 4 of the product; 192 digits later what is left out is below 2^-137, while no
 * f64 comes nearer than 2^-61 to a multiple of pi / 2 (Kahan). */
an_trig_parts_f64 an_trig_parts_of_huge_f64(double a) {
    enum { WORDS = 6, WORD_BITS = 32, WHOLE_BITS = 2 };
    const uint64_t bits = an_bits_of_f64(a);
    const uint64_t hidden = UINT64_C(1) << AN_SHIFT_F64;
    const uint64_t mantissa = (bits & (hidden - 1)) | hidden;
    const uint64_t m_low = mantissa & UINT32_MAX, m_high = mantissa >> WORD_BITS;
    const int exponent = (int)(bits >> AN_SHIFT_F64) - AN_BIAS_F64 - AN_SHIFT_F64;
    const int start = exponent - WHOLE_BITS + 2 * WORD_BITS; /* in the table; 30 at the least, for a = 2^20 */
    const uint32_t *digits = two_over_pi + start / WORD_BITS;
    const int shift = start % WORD_BITS;

    /* The product modulo 2^192, in units of 2^-190; word 0 is the lowest. The sum of two products of 32 bits, a carry
     * and a word fits: m_high has 21 bits. */
    uint32_t product[WORDS] = {0};
    uint64_t carry = 0, lower = 0;
    for (int i = 0; i < WORDS; i++) {
        const uint32_t *place = digits + (WORDS - 1 - i);
        const uint64_t pair = ((uint64_t)place[0] << WORD_BITS) | place[1];
        const uint64_t window = (pair << shift) >> WORD_BITS;
        const uint64_t low_part = m_low * window;
        const uint64_t sum = (low_part & UINT32_MAX) + m_high * lower + carry;
        product[i] = (uint32_t)sum;
        carry = (sum >> WORD_BITS) + (low_part >> WORD_BITS);
        lower = window;
    }

    /* To the nearest quarter: the fraction becomes a magnitude up to 1/2 and a sign. */
    const uint32_t half = UINT32_C(1) << (WORD_BITS - WHOLE_BITS - 1);
    uint32_t *top = &product[WORDS - 1];
    const uint32_t quarters = (*top + half) >> (WORD_BITS - WHOLE_BITS);
    *top -= quarters << (WORD_BITS - WHOLE_BITS);
    const bool negative = *top >> (WORD_BITS - 1) != 0;
    if (negative) {
        uint64_t add = 1;
        for (int i = 0; i < WORDS; i++) {
            add += (uint32_t)~product[i];
            product[i] = (uint32_t)add;
            add >>= WORD_BITS;
        }
    }
    double unit = 0x1p-30; /* of the top word */
    an_pair_f64 fraction = {0, 0};
    for (int i = WORDS - 1; i >= 0; i--) {
        const an_pair_f64 sum = an_sum_f64(fraction.high, (double)product[i] * unit);
        fraction = (an_pair_f64){sum.high, fraction.low + sum.low};
        unit *= 0x1p-32;
    }
    const double half_pi = 0x1.921fb54442d18p+0, half_pi_low = 0x1.1a62633145c07p-54;
    const an_pair_f64 angle = an_product_f64(fraction.high, half_pi);
    const double angle_low = angle.low + (fraction.high * half_pi_low + fraction.low * half_pi);
    const an_pair_f64 rest = an_sum_ordered_f64(angle.high, angle_low);
    return (an_trig_parts_f64){(double)quarters, negative ? -rest.high : rest.high, negative ? -rest.low : rest.low};
}

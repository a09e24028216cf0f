/* Elementary functions of f32. See elementary.h for what they promise.
 *
 * All but sin, cos and pow compute in f32, so that a vector holds as many lanes as can be. Coefficients come from
 * tools/minimax.py, which names them as here.
 */
#ifndef AN_BASE_ELEMENTARY_F32_H
#define AN_BASE_ELEMENTARY_F32_H

#include "base/elementary/bits.h"
#include "base/elementary/f64.h"

#define AN_LOG2_E_F32 0x1.715476p+0f
/* ln 2 in two parts. The upper has 15 bits, so that its product with an exponent is exact. */
#define AN_LN2_HIGH_F32 0x1.62e4p-1f
#define AN_LN2_LOW_F32 0x1.7f7d1cp-20f

/* x = count ln 2 + rest + correction, |rest| <= ln 2 / 2; the correction is the rounding error of rest. */
typedef struct an_exp_parts_f32 {
    float count, rest, correction;
} an_exp_parts_f32;

static inline an_exp_parts_f32 an_exp_parts_of_f32(float x) {
    const float count = an_nearest_f32(x * AN_LOG2_E_F32);
    const float high = x - count * AN_LN2_HIGH_F32; /* exact */
    const float low = count * AN_LN2_LOW_F32;
    const float rest = high - low;
    return (an_exp_parts_f32){count, rest, (high - rest) - low};
}

/* exp_f32: what tanh of arrays needs too. STEP(coefficient) for each after the first. */
#define AN_EXP_FIRST_F32 0x1.6bebd6p-10f
#define AN_EXP_STEPS_F32(STEP) STEP(0x1.122778p-7f) STEP(0x1.555674p-5f) STEP(0x1.5554bp-3f) STEP(0x1.fffffep-2f)

/* e^r - 1 - r for |r| <= ln 2 / 2. exp_f32: 2^-25.8 of e^r - 1. */
static inline float an_exp_tail_f32(float r) {
    float p = AN_EXP_FIRST_F32;
#define AN_EXP_STEP(coefficient) p = p * r + (coefficient);
    AN_EXP_STEPS_F32(AN_EXP_STEP)
#undef AN_EXP_STEP
    return p * (r * r);
}

/* Of tanh below AN_TANH_SMALL, in z, the square of its argument. */
#define AN_TANH_SMALL_F32 0.55f
#define AN_TANH_NUMERATOR_F32(z) (315.0f + 14.0f * (z))
#define AN_TANH_DENOMINATOR_F32(z) (945.0f + (z) * (420.0f + 15.0f * (z)))

static inline float an_exp_f32(float x) {
    /* e^-104 is below half the smallest denormal, e^89 overflows. */
    const an_exp_parts_f32 parts = an_exp_parts_of_f32(an_clamp_f32(x, -104.0f, 89.0f));
    const float tail = an_exp_tail_f32(parts.rest) + parts.correction;
    return an_absolute_f32(an_scale_f32(1.0f + (parts.rest + tail), parts.count)); /* it is, but for a NaN */
}

static inline float an_expm1_f32(float x) {
    /* From e^-18 on the result rounds to -1. */
    const an_exp_parts_f32 parts = an_exp_parts_of_f32(an_clamp_f32(x, -18.0f, 89.0f));
    /* e^x - 1 = 2^count ((1 - 2^-count) + (e^rest - 1)); beyond 2^30 the 1 has no part in it. */
    const float base = 1.0f - an_power_of_two_f32(-an_select_f32(parts.count > 30.0f, 30.0f, parts.count));
    const float sum = base + parts.rest;
    const float error = (base - sum) + parts.rest; /* exact: base is 0 or larger than rest */
    const float tail = an_exp_tail_f32(parts.rest) + (parts.correction + error);
    return an_with_sign_f32(an_scale_f32(sum + tail, parts.count), x);
}

/* ln(2^exponent (1 + f)), f between sqrt(1/2) - 1 and sqrt(2) - 1. log_f32: 2^-28.2 of ln(1 + f). */
static inline float an_log_sum_f32(float exponent, float f) {
    float p = 0x1.14578p-4f;
    p = p * f - 0x1.de3bdep-4f;
    p = p * f + 0x1.e6f052p-4f;
    p = p * f - 0x1.fc220ap-4f;
    p = p * f + 0x1.23376ap-3f;
    p = p * f - 0x1.555c4ep-3f;
    p = p * f + 0x1.99a4b6p-3f;
    p = p * f - 0x1.000006p-2f;
    p = p * f + 0x1.555548p-2f;
    const float square = f * f;
    const float tail = (p * f * square - 0.5f * square) + exponent * AN_LN2_LOW_F32;
    return exponent * AN_LN2_HIGH_F32 + (f + tail);
}

/* x = 2^exponent * mantissa, sqrt(1/2) <= mantissa < sqrt(2), for a positive normal number. */
typedef struct an_log_parts_f32 {
    float exponent, mantissa;
} an_log_parts_f32;

static inline an_log_parts_f32 an_log_parts_of_f32(float x) {
    const uint32_t root_half = an_bits_of_f32(0x1.6a09e6p-1f), one = an_bits_of_f32(1.0f);
    const uint32_t fraction = (UINT32_C(1) << AN_SHIFT_F32) - 1;
    /* With sqrt(1/2) moved to 1, the exponent field is the exponent looked for. */
    const uint32_t moved = an_bits_of_f32(x) + (one - root_half);
    const int32_t exponent = (int32_t)(moved >> AN_SHIFT_F32) - AN_BIAS_F32;
    return (an_log_parts_f32){(float)exponent, an_f32_of_bits((moved & fraction) + root_half)};
}

static inline float an_log_f32(float x) {
    const bool denormal = x < 0x1p-126f;
    const an_log_parts_f32 parts = an_log_parts_of_f32(an_select_f32(denormal, x * 0x1p23f, x));
    const float exponent = parts.exponent - an_select_f32(denormal, 23.0f, 0.0f);
    const float result = an_log_sum_f32(exponent, parts.mantissa - 1.0f);
    const float infinity = an_f32_of_bits(AN_INFINITY_BITS_F32), nan = an_f32_of_bits(AN_NAN_BITS_F32);
    const float special = an_select_f32(x == 0, -infinity, an_select_f32(x < 0, nan, x + x));
    return an_select_f32((x > 0) & (x < infinity), result, special);
}

static inline float an_log1p_f32(float x) {
    const float sum = 1.0f + x;
    const float x_part = sum - 1.0f;
    const float error = (1.0f - (sum - x_part)) + (x - x_part); /* of the sum, exact (see an_sum_f64) */
    const an_log_parts_f32 parts = an_log_parts_of_f32(sum);
    /* Where the exponent is over 30, the error is 0. */
    const float scale = an_power_of_two_f32(-an_select_f32(parts.exponent > 30.0f, 30.0f, parts.exponent));
    const float result = an_log_sum_f32(parts.exponent, (parts.mantissa - 1.0f) + error * scale);
    const float infinity = an_f32_of_bits(AN_INFINITY_BITS_F32), nan = an_f32_of_bits(AN_NAN_BITS_F32);
    const float special = an_select_f32(x == -1.0f, -infinity, an_select_f32(x < -1.0f, nan, x + x));
    const float signed_result = an_with_sign_f32(result, x); /* also of zero */
    return an_select_f32((x > -1.0f) & (x < infinity), signed_result, special);
}

static inline float an_tanh_f32(float x) {
    const float a = an_absolute_f32(x);
    /* Lambert's continued fraction x / (1 + z / (3 + z / (5 + z / (7 + z / 9)))), z = x^2, is right to 2^-32 below
     * 0.55. Written as x - x z (315 + 14 z) / (945 + 420 z + 15 z^2) it loses nothing to rounding. */
    const float z = a * a;
    const float small_numerator = a * z * AN_TANH_NUMERATOR_F32(z);
    const float small_denominator = AN_TANH_DENOMINATOR_F32(z);
    /* From there on the result is over 1/2, and 1 - 2 / (e^2x + 1) is as exact; from 10 on it is 1. */
    const an_exp_parts_f32 parts = an_exp_parts_of_f32(2.0f * an_select_f32(a > 10.0f, 10.0f, a));
    const float tail = an_exp_tail_f32(parts.rest) + parts.correction;
    const float large_denominator = (1.0f + (parts.rest + tail)) * an_power_of_two_f32(parts.count) + 1.0f;
    const bool small = a < AN_TANH_SMALL_F32;
    const float quotient =
        an_select_f32(small, small_numerator, 2.0f) / an_select_f32(small, small_denominator, large_denominator);
    return an_with_sign_f32(an_select_f32(small, a, 1.0f) - quotient, x);
}

static inline float an_erf_f32(float x) {
    const float a = an_absolute_f32(x);
    /* erf_small_f32: erf(a) / a - 1 below 15/16, to 2^-26.8. */
    const float z = a * a;
    float p = 0x1.5bfbe2p-14f;
    p = p * z - 0x1.aa06a4p-11f;
    p = p * z + 0x1.54c2ccp-8f;
    p = p * z - 0x1.b80e3p-6f;
    p = p * z + 0x1.ce2e06p-4f;
    p = p * z - 0x1.812742p-2f;
    p = p * z + 0x1.06eba8p-3f;
    const float small = a + a * p;
    /* erf_large_f32: -ln(1 - erf(a)) from there to 4, to 2^-26.8 of erf(a); from 4 on that is 1. */
    const float b = an_select_f32(a > 4.0f, 4.0f, a);
    float q = -0x1.96a026p-13f;
    q = q * b + 0x1.8c3e7cp-9f;
    q = q * b - 0x1.6ad8cap-6f;
    q = q * b + 0x1.a90448p-4f;
    q = q * b + 0x1.4655ecp-1f;
    q = q * b + 0x1.20a7d6p+0f;
    q = q * b + 0x1.d4da88p-13f;
    const float large = 1.0f - an_exp_f32(-q);
    return an_with_sign_f32(an_select_f32(a < 0.9375f, small, large), x);
}

/* sin(r) and cos(r) for |r| <= pi / 4. sin_f32: 2^-27.5, cos_f32: 2^-32.6. */
static inline float an_sin_polynomial_f32(float r) {
    const float z = r * r;
    float p = -0x1.994e5ap-13f;
    p = p * z + 0x1.11076p-7f;
    p = p * z - 0x1.555546p-3f;
    return r + r * z * p;
}

static inline float an_cos_polynomial_f32(float r) {
    const float z = r * r;
    float p = 0x1.99eb4cp-16f;
    p = p * z - 0x1.6c0c32p-10f;
    p = p * z + 0x1.55554ap-5f;
    const float start = 1.0f - 0.5f * z, error = (1.0f - start) - 0.5f * z;
    return start + (error + z * z * p);
}

/* x less the nearest multiple of 2^j, exactly, where rounder is 1.5 * 2^(52 + j) and |x| at most 2^(51 + j). */
static inline double an_less_multiples_f64(double x, double rounder) {
    return x - ((x + rounder) - rounder);
}

/* a = quarters * pi / 2 + rest, for any finite a >= 0; quarters is modulo 4. */
typedef struct an_trig_parts_f32 {
    float quarters, rest;
} an_trig_parts_f32;

/* a * 2 / pi modulo 4, for a up to 2^128, in f64 and without a table: 2 / pi is cut into pieces of 29 bits, whose
 * products with the 24 bits of a are exact. Multiples of 4 are taken off each product; what is left is cut at 2^-26
 * into an upper part (the upper parts add up exactly) and a lower one. 198 bits of 2 / pi leave an error of 2^-69,
 * and no f32 is nearer than 2^-30 to a multiple of pi / 2. */
static inline an_trig_parts_f32 an_trig_parts_of_f32(float a) {
    const double x = (double)a;
    const double product0 = x * 0x1.45f306dp-1; /* below 2^128 */
    const double product1 = x * 0x1.9391054p-30;
    const double product2 = x * 0x1.4fe13abp-59;
    const double product3 = x * 0x1.d1f534dp-88;
    const double product4 = x * 0x1.b81b6c5p-117; /* below 2^12 */
    const double product5 = x * 0x1.5993c439041fep-148;
    const double part0 = an_less_multiples_f64(an_less_multiples_f64(product0, 0x1.8p129), 0x1.8p77); /* to 2^24 */
    const double part1 = an_less_multiples_f64(an_less_multiples_f64(product1, 0x1.8p100), 0x1.8p54); /* to 2 */
    const double part2 = an_less_multiples_f64(product2, 0x1.8p71);                                   /* to 2^18 */
    const double part3 = an_less_multiples_f64(product3, 0x1.8p54);                                   /* to 2 */
    const double grid = 0x1.8p26;                                                                     /* 2^-26 */
    const double low0 = an_less_multiples_f64(part0, grid);
    const double low1 = an_less_multiples_f64(part1, grid);
    const double low2 = an_less_multiples_f64(part2, grid);
    const double low3 = an_less_multiples_f64(part3, grid);
    const double low4 = an_less_multiples_f64(product4, grid);
    const double high = (part0 - low0) + (part1 - low1) + (part2 - low2) + (part3 - low3) + (product4 - low4);
    const double low = low0 + (low1 + (low2 + (low3 + (low4 + product5))));
    const double turned = an_less_multiples_f64(high, 0x1.8p54); /* to 2 */
    const double quarters = an_nearest_f64(turned);
    const double half_pi = 0x1.921fb54442d18p+0;
    return (an_trig_parts_f32){(float)quarters, (float)(((turned - quarters) + low) * half_pi)};
}

/* The sine of parts, a quarter of a turn further for each `more`. */
static inline float an_trig_sine_f32(an_trig_parts_f32 parts, uint32_t more) {
    const uint32_t quarters = an_bits_of_f32(parts.quarters + AN_ROUNDER_F32) + more;
    const float sine = an_sin_polynomial_f32(parts.rest), cosine = an_cos_polynomial_f32(parts.rest);
    const uint32_t sign_of_half_turn = quarters >> 1 << 31;
    return an_f32_of_bits(an_bits_of_f32(an_select_f32((quarters & 1) != 0, cosine, sine)) ^ sign_of_half_turn);
}

static inline float an_sin_f32(float x) {
    const float a = an_absolute_f32(x), nan = an_f32_of_bits(AN_NAN_BITS_F32);
    const float sine = an_trig_sine_f32(an_trig_parts_of_f32(a), 0);
    const uint32_t sign = an_bits_of_f32(x) & AN_SIGN_F32;
    return an_select_f32(a < an_f32_of_bits(AN_INFINITY_BITS_F32), an_f32_of_bits(an_bits_of_f32(sine) ^ sign), nan);
}

static inline float an_cos_f32(float x) {
    const float a = an_absolute_f32(x), nan = an_f32_of_bits(AN_NAN_BITS_F32);
    const float cosine = an_trig_sine_f32(an_trig_parts_of_f32(a), 1);
    return an_select_f32(a < an_f32_of_bits(AN_INFINITY_BITS_F32), cosine, nan);
}

/* In f64, because y ln(x) needs 7 bits more than the result has: there is nothing left to do but to round. */
static inline float an_pow_f32(float x, float y) {
    const double a = (double)an_absolute_f32(x);
    const double magnitude = an_exp_f64((double)y * an_log_f64(a));
    return (float)an_pow_special_f64((double)x, (double)y, magnitude);
}

#endif

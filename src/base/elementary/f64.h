/* Elementary functions of f64. See elementary.h for what they promise.
 *
 * 64-bit integers are only added, shifted by constants and masked: there are no vector instructions before AVX-512
 * that compare them or convert them to floating point. Coefficients come from tools/minimax.py, which names them as
 * here.
 */
#ifndef AN_BASE_ELEMENTARY_F64_H
#define AN_BASE_ELEMENTARY_F64_H

#include "base/elementary/bits.h"
#include "base/level.h"

#define AN_LOG2_E_F64 0x1.71547652b82fep+0
/* ln 2 in two parts. The upper has 38 bits, so that its product with an exponent is exact. */
#define AN_LN2_HIGH_F64 0x1.62e42fefa3p-1
#define AN_LN2_LOW_F64 0x1.3de6af278ece6p-42

/* x + more = count ln 2 + rest + correction, |rest| <= ln 2 / 2, where `more` is at most a rounding error of x; the
 * correction is the rounding error of rest. */
typedef struct an_exp_parts_f64 {
    double count, rest, correction;
} an_exp_parts_f64;

static inline an_exp_parts_f64 an_exp_parts_of_f64(double x, double more) {
    const double count = an_nearest_f64(x * AN_LOG2_E_F64);
    const double high = x - count * AN_LN2_HIGH_F64; /* exact */
    const double low = count * AN_LN2_LOW_F64 - more;
    const double rest = high - low;
    return (an_exp_parts_f64){count, rest, (high - rest) - low};
}

/* exp_f64: what tanh of arrays needs too. STEP(coefficient) for each after the first. */
#define AN_EXP_FIRST_F64 0x1.1ee8893d052b7p-29
#define AN_EXP_STEPS_F64(STEP)  \
    STEP(0x1.af5e757099d71p-26) \
    STEP(0x1.27e5362a53f25p-22) \
    STEP(0x1.71ddf87e7d53fp-19) \
    STEP(0x1.a01a017bc8216p-16) \
    STEP(0x1.a01a01afd3f92p-13) \
    STEP(0x1.6c16c16c1f06ep-10) \
    STEP(0x1.111111110f6dap-7) STEP(0x1.555555555553fp-5) STEP(0x1.5555555555559p-3) STEP(0.5)

/* e^r - 1 - r for |r| <= ln 2 / 2. exp_f64: 2^-59.9 of e^r - 1. */
static inline double an_exp_tail_f64(double r) {
    double p = AN_EXP_FIRST_F64;
#define AN_EXP_STEP(coefficient) p = p * r + (coefficient);
    AN_EXP_STEPS_F64(AN_EXP_STEP)
#undef AN_EXP_STEP
    return p * (r * r);
}

/* Of tanh below AN_TANH_SMALL, in z, the square of its argument. */
#define AN_TANH_SMALL_F64 0.55
#define AN_TANH_NUMERATOR_F64(z) (675675.0 + (z) * (45045.0 + (z) * (594.0 + (z))))
#define AN_TANH_DENOMINATOR_F64(z) (2027025.0 + (z) * (945945.0 + (z) * (51975.0 + (z) * (630.0 + (z)))))

/* e^(x + more), where `more` is at most a rounding error of x. */
static inline double an_exp_sum_f64(double x, double more) {
    /* e^-746 is below half the smallest denormal, and e^746 overflows. */
    const double limited = an_with_sign_f64(an_limit_f64(an_absolute_f64(x), 746.0), x);
    const an_exp_parts_f64 parts = an_exp_parts_of_f64(limited, more);
    const double tail = an_exp_tail_f64(parts.rest) + parts.correction;
    return an_absolute_f64(an_scale_f64(1.0 + (parts.rest + tail), parts.count)); /* it is, but for a NaN */
}

static inline double an_exp_f64(double x) {
    return an_exp_sum_f64(x, 0.0);
}

static inline double an_expm1_f64(double x) {
    /* From e^-38 on the result rounds to -1, and e^746 overflows. */
    const double limit = an_choose_f64(an_negative_f64(x), 38.0, 746.0);
    const double limited = an_with_sign_f64(an_limit_f64(an_absolute_f64(x), limit), x);
    const an_exp_parts_f64 parts = an_exp_parts_of_f64(limited, 0.0);
    /* e^x - 1 = 2^count ((1 - 2^-count) + (e^rest - 1)); beyond 2^60 the 1 has no part in it. */
    const uint64_t beyond = an_above_f64(an_absolute_f64(parts.count), 60.0);
    const double base = 1.0 - an_power_of_two_f64(-an_choose_f64(beyond, 60.0, parts.count));
    const an_pair_f64 sum = an_sum_ordered_f64(base, parts.rest); /* base is 0 or larger than rest */
    const double tail = an_exp_tail_f64(parts.rest) + (parts.correction + sum.low);
    return an_with_sign_f64(an_scale_f64(sum.high + tail, parts.count), x);
}

/* x = 2^exponent * mantissa, sqrt(1/2) <= mantissa < sqrt(2), for a positive normal number. */
typedef struct an_log_parts_f64 {
    double exponent, mantissa;
} an_log_parts_f64;

static inline an_log_parts_f64 an_log_parts_of_f64(double x) {
    const uint64_t root_half = an_bits_of_f64(0x1.6a09e667f3bcdp-1), one = an_bits_of_f64(1.0);
    const uint64_t fraction = (UINT64_C(1) << AN_SHIFT_F64) - 1;
    const double two_52 = 0x1p52; /* its low bits count ones, so that or-ing an integer into them converts it */
    /* With sqrt(1/2) moved to 1, the exponent field is the exponent looked for. */
    const uint64_t moved = an_bits_of_f64(x) + (one - root_half);
    const double biased = an_f64_of_bits(an_bits_of_f64(two_52) | (moved >> AN_SHIFT_F64));
    return (an_log_parts_f64){biased - (two_52 + AN_BIAS_F64), an_f64_of_bits((moved & fraction) + root_half)};
}

/* The same for any positive number: a denormal one is made normal first. */
static inline an_log_parts_f64 an_log_parts_of_any_f64(double x) {
    const uint64_t denormal = an_above_f64(0x1p-1022, x);
    const an_log_parts_f64 parts = an_log_parts_of_f64(an_choose_f64(denormal, x * 0x1p52, x));
    return (an_log_parts_f64){parts.exponent - an_choose_f64(denormal, 52.0, 0.0), parts.mantissa};
}

/* ln(2^exponent (1 + f)), f between sqrt(1/2) - 1 and sqrt(2) - 1.
 *
 * With s = f / (2 + f) and z = s^2, ln(1 + f) = 2 atanh(s) = 2 s + s z R(z), and 2 s = f - s f, where
 * s f = f^2 / 2 - s f^2 / 2. So ln(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + z R(z))), which starts with an exact term.
 * log_f64: z R(z) to 2^-58.9 of 2. */
static inline double an_log_sum_f64(double exponent, double f) {
    const double s = f / (2.0 + f);
    const double z = s * s;
    double p = 0x1.2f06351a00ef8p-3;
    p = p * z + 0x1.39a1a7102f47cp-3;
    p = p * z + 0x1.74663f9f7da1bp-3;
    p = p * z + 0x1.c71c52061df4bp-3;
    p = p * z + 0x1.24924941f4d3cp-2;
    p = p * z + 0x1.999999997fd7bp-2;
    p = p * z + 0x1.5555555555592p-1;
    const double half_square = 0.5 * f * f;
    const double tail = s * (half_square + z * p) + exponent * AN_LN2_LOW_F64;
    return exponent * AN_LN2_HIGH_F64 - ((half_square - tail) - f);
}

static inline double an_log_f64(double x) {
    const an_log_parts_f64 parts = an_log_parts_of_any_f64(x);
    const double infinity = an_f64_of_bits(AN_INFINITY_BITS_F64), nan = an_f64_of_bits(AN_NAN_BITS_F64);
    const double a = an_absolute_f64(x);
    double result = an_log_sum_f64(parts.exponent, parts.mantissa - 1.0);
    result = an_choose_f64(an_above_f64(infinity, a), result, x + x); /* infinity and NaN stay */
    result = an_choose_f64(an_negative_f64(x), nan, result);
    return an_choose_f64(an_above_f64(a, 0.0), result, -infinity);
}

static inline double an_log1p_f64(double x) {
    const an_pair_f64 sum = an_sum_f64(1.0, x);
    const an_log_parts_f64 parts = an_log_parts_of_f64(sum.high);
    /* Where the exponent is over 60, the sum's low part is 0. */
    const uint64_t beyond = an_above_f64(an_absolute_f64(parts.exponent), 60.0);
    const double scale = an_power_of_two_f64(-an_choose_f64(beyond, 60.0, parts.exponent));
    const double infinity = an_f64_of_bits(AN_INFINITY_BITS_F64), nan = an_f64_of_bits(AN_NAN_BITS_F64);
    const double a = an_absolute_f64(x);
    double result = an_log_sum_f64(parts.exponent, (parts.mantissa - 1.0) + sum.low * scale);
    result = an_choose_f64(an_negative_f64(x) & an_same_f64(a, 1.0), infinity, result);
    result = an_with_sign_f64(result, x);                             /* also of zero, and of this infinity */
    result = an_choose_f64(an_above_f64(infinity, a), result, x + x); /* infinity and NaN stay */
    return an_choose_f64(an_negative_f64(x) & an_above_f64(a, 1.0), nan, result);
}

static inline double an_tanh_f64(double x) {
    const double a = an_absolute_f64(x);
    /* Lambert's continued fraction x / (1 + z / (3 + z / (5 + ... z / 15))), z = x^2, is right to 2^-60 below 0.55.
     * Written as x - x z P(z) / Q(z), with the first terms of numerator and denominator taken away from each other, it
     * loses nothing to rounding. */
    const double z = a * a;
    const double small_numerator = a * z * AN_TANH_NUMERATOR_F64(z);
    const double small_denominator = AN_TANH_DENOMINATOR_F64(z);
    /* From there on the result is over 1/2, and 1 - 2 / (e^2x + 1) is as exact; from 20 on it is 1. */
    const an_exp_parts_f64 parts = an_exp_parts_of_f64(2.0 * an_limit_f64(a, 20.0), 0.0);
    const double tail = an_exp_tail_f64(parts.rest) + parts.correction;
    const double large_denominator = (1.0 + (parts.rest + tail)) * an_power_of_two_f64(parts.count) + 1.0;
    const uint64_t small = an_above_f64(AN_TANH_SMALL_F64, a);
    const double numerator = an_choose_f64(small, small_numerator, 2.0);
    const double denominator = an_choose_f64(small, small_denominator, large_denominator);
    return an_with_sign_f64(an_choose_f64(small, a, 1.0) - numerator / denominator, x);
}

static inline double an_erf_f64(double x) {
    const double a = an_absolute_f64(x);
    /* erf_small_f64: erf(a) / a - 1 below 1, to 2^-55.8. */
    const double z = a * a;
    double p = 0x1.062749bb4418dp-34;
    p = p * z - 0x1.38ac1a2154b21p-30;
    p = p * z + 0x1.f7b999ce21919p-27;
    p = p * z - 0x1.5f1f40888d439p-23;
    p = p * z + 0x1.b9df304b6bb9cp-20;
    p = p * z - 0x1.f4d1e4330902ep-17;
    p = p * z + 0x1.f9a321e49be08p-14;
    p = p * z - 0x1.c02db3db483c6p-11;
    p = p * z + 0x1.565bcd0dbd896p-8;
    p = p * z - 0x1.b82ce31284f33p-6;
    p = p * z + 0x1.ce2f21a042b34p-4;
    p = p * z - 0x1.812746b0379e6p-2;
    p = p * z + 0x1.06eba8214db69p-3;
    const double small = a + a * p;
    /* erf_large_f64: e^(b^2) (1 - erf(b)) from 1 to 6, to 2^-57.7 of the result; from 6 on that is 1. The variable
     * maps 1 ... 6 to -1/2 ... 1/3 and straightens the curve. */
    const double b = an_limit_f64(a, 6.0);
    const double t = (b - 3.0) / (b + 3.0);
    double q = -0x1.b989b1978ecbp-18;
    q = q * t - 0x1.b04031c94d402p-18;
    q = q * t + 0x1.2c6993a2593edp-14;
    q = q * t + 0x1.a543462837a29p-15;
    q = q * t - 0x1.37f391c853ffcp-11;
    q = q * t + 0x1.735b2819e8136p-11;
    q = q * t + 0x1.17c9d6e4f82d5p-8;
    q = q * t - 0x1.8fa584ac70ceap-6;
    q = q * t + 0x1.258b13c0bc6c5p-4;
    q = q * t - 0x1.336ffbf093bafp-3;
    q = q * t + 0x1.f6ff2040ddd1ep-3;
    q = q * t - 0x1.4e102b9cf8de6p-2;
    q = q * t + 0x1.6e9827d229d2fp-3;
    const double large = 1.0 - an_exp_f64(-(b * b)) * q;
    return an_with_sign_f64(an_choose_f64(an_above_f64(1.0, a), small, large), x);
}

/* sin(r + more) and cos(r + more) for |r| <= pi / 4, where `more` is at most a rounding error of r.
 * sin_f64: 2^-57.2, cos_f64: 2^-59.6. */
static inline double an_sin_polynomial_f64(double r, double more) {
    const double z = r * r;
    double p = 0x1.5d93004970b69p-33;
    p = p * z - 0x1.ae5e6638965ebp-26;
    p = p * z + 0x1.71de3577b4e8ap-19;
    p = p * z - 0x1.a01a019c1199p-13;
    p = p * z + 0x1.111111110f87ap-7;
    p = p * z - 0x1.5555555555549p-3;
    return r + (r * z * p + more * (1.0 - 0.5 * z));
}

static inline double an_cos_polynomial_f64(double r, double more) {
    const double z = r * r;
    double p = -0x1.8fa467fdaa845p-37;
    p = p * z + 0x1.1ee9d7572b042p-29;
    p = p * z - 0x1.27e4f7ea3f543p-22;
    p = p * z + 0x1.a01a019c839d1p-16;
    p = p * z - 0x1.6c16c16c14f8ap-10;
    p = p * z + 0x1.555555555554bp-5;
    const an_pair_f64 start = an_sum_ordered_f64(1.0, -0.5 * z);
    return start.high + (start.low + (z * z * p - r * more));
}

/* a = quarters * pi / 2 + rest + correction; quarters is an integer, of which the last two bits count. */
typedef struct an_trig_parts_f64 {
    double quarters, rest, correction;
} an_trig_parts_f64;

#define AN_TRIG_HUGE_F64 0x1p20

/* For 0 <= a < AN_TRIG_HUGE_F64: pi / 2 is cut into pieces of 33 bits, whose products with the 20 bits of quarters are
 * exact, and a last one of 53 (Cody and Waite 1980). The 152 bits leave an error of 2^-132, and no f64 is
 * nearer than 2^-61 to a multiple of pi / 2. */
static inline an_trig_parts_f64 an_trig_parts_of_f64(double a) {
    const double two_over_pi = 0x1.45f306dc9c883p-1;
    const double quarters = an_nearest_f64(a * two_over_pi);
    const double first = a - quarters * 0x1.921fb544p+0; /* exact */
    const an_pair_f64 second = an_sum_f64(first, -(quarters * 0x1.0b4611a6p-34));
    const an_pair_f64 third = an_sum_f64(second.high, -(quarters * 0x1.3198a2ep-69));
    const double low = (second.low + third.low) - quarters * 0x1.b839a252049c1p-104;
    const an_pair_f64 rest = an_sum_ordered_f64(third.high, low);
    return (an_trig_parts_f64){quarters, rest.high, rest.low};
}

/* For any finite a >= AN_TRIG_HUGE_F64, in integers. */
#define an_trig_parts_of_huge_f64 AN_LEVELED(an_trig_parts_of_huge_f64)
an_trig_parts_f64 an_trig_parts_of_huge_f64(double a);

/* The sine of parts, a quarter of a turn further for each `more`. */
static inline double an_trig_sine_f64(an_trig_parts_f64 parts, uint64_t more) {
    const uint64_t quarters = an_bits_of_f64(parts.quarters + AN_ROUNDER_F64) + more;
    const double sine = an_sin_polynomial_f64(parts.rest, parts.correction);
    const double cosine = an_cos_polynomial_f64(parts.rest, parts.correction);
    const uint64_t sign_of_half_turn = quarters >> 1 << 63;
    return an_f64_of_bits(an_bits_of_f64(an_choose_f64(0 - (quarters & 1), cosine, sine)) ^ sign_of_half_turn);
}

/* sin and cos for |x| < AN_TRIG_HUGE_F64, without a branch; NaN for infinity and NaN. */
static inline double an_sin_moderate_f64(double x) {
    const double a = an_absolute_f64(x), nan = an_f64_of_bits(AN_NAN_BITS_F64);
    const double sine = an_trig_sine_f64(an_trig_parts_of_f64(a), 0);
    const uint64_t sign = an_bits_of_f64(x) & AN_SIGN_F64;
    const uint64_t finite = an_above_f64(an_f64_of_bits(AN_INFINITY_BITS_F64), a);
    return an_choose_f64(finite, an_f64_of_bits(an_bits_of_f64(sine) ^ sign), nan);
}

static inline double an_cos_moderate_f64(double x) {
    const double a = an_absolute_f64(x), nan = an_f64_of_bits(AN_NAN_BITS_F64);
    const double cosine = an_trig_sine_f64(an_trig_parts_of_f64(a), 1);
    return an_choose_f64(an_above_f64(an_f64_of_bits(AN_INFINITY_BITS_F64), a), cosine, nan);
}

static inline bool an_trig_is_huge_f64(double x) {
    const double a = an_absolute_f64(x);
    return a >= AN_TRIG_HUGE_F64 && a < an_f64_of_bits(AN_INFINITY_BITS_F64);
}

static inline double an_sin_f64(double x) {
    if (!an_trig_is_huge_f64(x)) return an_sin_moderate_f64(x);
    const double sine = an_trig_sine_f64(an_trig_parts_of_huge_f64(an_absolute_f64(x)), 0);
    return an_f64_of_bits(an_bits_of_f64(sine) ^ (an_bits_of_f64(x) & AN_SIGN_F64));
}

static inline double an_cos_f64(double x) {
    if (!an_trig_is_huge_f64(x)) return an_cos_moderate_f64(x);
    return an_trig_sine_f64(an_trig_parts_of_huge_f64(an_absolute_f64(x)), 1);
}

/* ln(a) of a finite positive number to about 2^-66: as in an_log_sum_f64, but the terms that need it are pairs.
 * pow_f64: what is left of atanh(s) / s after 1 + z / 3, to 2^-66.3. */
static inline an_pair_f64 an_log_pair_f64(double a) {
    const an_log_parts_f64 parts = an_log_parts_of_any_f64(a);
    const double f = parts.mantissa - 1.0; /* exact */
    const an_pair_f64 divisor = an_sum_ordered_f64(1.0, parts.mantissa);
    const double inverse = 1.0 / divisor.high;
    const double s = f * inverse;
    const an_pair_f64 back = an_product_f64(s, divisor.high);
    const double s_low = (((f - back.high) - back.low) - s * divisor.low) * inverse;

    const an_pair_f64 square = an_product_f64(s, s);
    const double z = square.high, z_low = square.low + 2.0 * s * s_low;
    double p = 0x1.eb11f6a1c4bf6p-5;
    p = p * z + 0x1.de3356ab6562ap-5;
    p = p * z + 0x1.1120b6482c3f8p-4;
    p = p * z + 0x1.3b1362b1a51cbp-4;
    p = p * z + 0x1.745d1832636f8p-4;
    p = p * z + 0x1.c71c71c580457p-4;
    p = p * z + 0x1.2492492493036p-3;
    p = p * z + 0x1.9999999999996p-3;
    const double third = 0x1.5555555555555p-2, third_low = 0x1.5555555555555p-56;
    const an_pair_f64 factor = an_sum_ordered_f64(third, z * p);
    const an_pair_f64 ratio = an_product_f64(z, factor.high);
    const double ratio_low = ratio.low + z * (factor.low + third_low) + z_low * factor.high;
    const an_pair_f64 cubic = an_product_f64(s, ratio.high);
    const double cubic_low = cubic.low + s * ratio_low + s_low * ratio.high;
    const an_pair_f64 atanh = an_sum_ordered_f64(s, cubic.high);
    const double atanh_low = atanh.low + (s_low + cubic_low);

    const an_pair_f64 sum = an_sum_ordered_f64(parts.exponent * AN_LN2_HIGH_F64, 2.0 * atanh.high);
    const double low = sum.low + (2.0 * atanh_low + parts.exponent * AN_LN2_LOW_F64);
    return an_sum_ordered_f64(sum.high, low);
}

/* x^y, given |x|^y, by the rules of C11 F.10.4.4. */
static inline double an_pow_special_f64(double x, double y, double magnitude) {
    const double nan = an_f64_of_bits(AN_NAN_BITS_F64), infinity = an_f64_of_bits(AN_INFINITY_BITS_F64);
    const double a = an_absolute_f64(x), b = an_absolute_f64(y);
    /* From 2^52 on all numbers are integers, from 2^53 on even ones; adding 2^52 rounds what is below it. */
    const double two_52 = 0x1p52, two_53 = 0x1p53;
    const double whole = an_limit_f64(b, two_52);
    const double half = 0.5 * an_limit_f64(b, two_53);
    const uint64_t is_integer = an_same_f64((whole + two_52) - two_52, whole);
    const uint64_t is_odd = is_integer & ~an_same_f64((half + two_52) - two_52, half);
    double result = an_choose_f64(an_same_f64(a, 1.0), 1.0, magnitude); /* also where y is infinite */
    result = an_f64_of_bits(an_bits_of_f64(result) | (an_bits_of_f64(x) & is_odd & AN_SIGN_F64));
    const uint64_t has_nan = an_above_f64(a, infinity) | an_above_f64(b, infinity);
    const uint64_t has_no_root = an_negative_f64(x) & an_above_f64(a, 0.0) & an_above_f64(infinity, a) & ~is_integer;
    result = an_choose_f64(has_nan | has_no_root, nan, result);
    const uint64_t is_one = an_same_f64(b, 0.0) | (an_same_f64(a, 1.0) & ~an_negative_f64(x));
    return an_choose_f64(is_one, 1.0, result);
}

static inline double an_pow_f64(double x, double y) {
    const double infinity = an_f64_of_bits(AN_INFINITY_BITS_F64);
    const double a = an_absolute_f64(x);
    const an_pair_f64 log = an_log_pair_f64(a);
    const an_pair_f64 product = an_product_f64(y, log.high);
    /* Where the result over- or underflows for certain, the parts of the product may not be numbers. */
    const uint64_t certain = an_above_f64(an_absolute_f64(product.high), 800.0);
    const double magnitude = an_exp_sum_f64(product.high, an_choose_f64(certain, 0.0, product.low + y * log.low));
    const uint64_t is_zero = an_same_f64(a, 0.0), is_infinite = an_same_f64(a, infinity);
    const double extreme = an_choose_f64(is_zero ^ an_negative_f64(y), 0.0, infinity);
    return an_pow_special_f64(x, y, an_choose_f64(is_zero | is_infinite, extreme, magnitude));
}

#endif

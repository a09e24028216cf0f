/* What the elementary functions are made of: bits, choices without branches, exact sums and products.
 *
 * A choice is made on integers. A ?: of floating-point values would be a branch until the compiler turns it into a
 * blend, and gcc does not do that while the operations of an arm could trap, which by the standard they may. For f64
 * the condition is made of integers too: gcc cannot vectorise a comparison of doubles that becomes a mask for SSE2,
 * nor has that an instruction that compares 64-bit integers.
 */
#ifndef AN_BASE_ELEMENTARY_BITS_H
#define AN_BASE_ELEMENTARY_BITS_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "the elementary functions depend on the order of floating-point operations: compile without -ffast-math"
#endif
#if FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2
#error "the elementary functions depend on f32 and f64 operations being rounded to f32 and f64: use SSE, not x87"
#endif

#define AN_SIGN_F32 UINT32_C(0x80000000)
#define AN_SIGN_F64 UINT64_C(0x8000000000000000)
#define AN_INFINITY_BITS_F32 UINT32_C(0x7f800000)
#define AN_INFINITY_BITS_F64 UINT64_C(0x7ff0000000000000)
#define AN_NAN_BITS_F32 UINT32_C(0x7fc00000)
#define AN_NAN_BITS_F64 UINT64_C(0x7ff8000000000000)

/* Where the exponent starts, and what is added to it. */
enum { AN_SHIFT_F32 = 23, AN_SHIFT_F64 = 52, AN_BIAS_F32 = 127, AN_BIAS_F64 = 1023 };

/* Adding this to a number of at most a quarter of it rounds to an integer, which then stands in the low bits of the
 * sum (in two's complement); taking it away again leaves the integer as a number. */
#define AN_ROUNDER_F32 0x1.8p23f
#define AN_ROUNDER_F64 0x1.8p52

static inline uint32_t an_bits_of_f32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint64_t an_bits_of_f64(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float an_f32_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline double an_f64_of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float an_select_f32(bool condition, float yes, float no) {
    const uint32_t mask = 0 - (uint32_t)condition;
    return an_f32_of_bits((an_bits_of_f32(yes) & mask) | (an_bits_of_f32(no) & ~mask));
}

/* Chooses by a mask of all ones or all zeros. */
static inline double an_choose_f64(uint64_t mask, double yes, double no) {
    return an_f64_of_bits((an_bits_of_f64(yes) & mask) | (an_bits_of_f64(no) & ~mask));
}

/* Masks. Without their sign, numbers are in the order of their bits as integers, and NaN comes after infinity; so a
 * comparison is a subtraction, whose borrow is in the top bit. */
static inline uint64_t an_negative_f64(double x) {
    return 0 - (an_bits_of_f64(x) >> 63);
}

static inline uint64_t an_above_f64(double a, double b) { /* a > b, for numbers without a sign */
    return 0 - ((an_bits_of_f64(b) - an_bits_of_f64(a)) >> 63);
}

static inline uint64_t an_same_f64(double a, double b) { /* a == b, for numbers without a sign */
    return ~(an_above_f64(a, b) | an_above_f64(b, a));
}

static inline float an_absolute_f32(float x) {
    return an_f32_of_bits(an_bits_of_f32(x) & ~AN_SIGN_F32);
}

static inline double an_absolute_f64(double x) {
    return an_f64_of_bits(an_bits_of_f64(x) & ~AN_SIGN_F64);
}

/* The magnitude with the sign of x. The magnitude's own sign is cleared: that of a NaN depends on the order in which a
 * compiler takes the operands of a product. */
static inline float an_with_sign_f32(float magnitude, float x) {
    const uint32_t sign = an_bits_of_f32(x) & AN_SIGN_F32;
    return an_f32_of_bits((an_bits_of_f32(magnitude) & ~AN_SIGN_F32) | sign);
}

static inline double an_with_sign_f64(double magnitude, double x) {
    const uint64_t sign = an_bits_of_f64(x) & AN_SIGN_F64;
    return an_f64_of_bits((an_bits_of_f64(magnitude) & ~AN_SIGN_F64) | sign);
}

/* x within the bounds; NaN stays NaN. */
static inline float an_clamp_f32(float x, float low, float high) {
    return an_select_f32(x > high, high, an_select_f32(x < low, low, x));
}

/* The smaller of two numbers without a sign; NaN stays NaN. */
static inline double an_limit_f64(double a, double limit) {
    const double infinity = an_f64_of_bits(AN_INFINITY_BITS_F64);
    return an_choose_f64(an_above_f64(a, limit) & ~an_above_f64(a, infinity), limit, a);
}

/* The nearest integer of a number up to 2^22 (2^51), as a number. */
static inline float an_nearest_f32(float x) {
    return (x + AN_ROUNDER_F32) - AN_ROUNDER_F32;
}

static inline double an_nearest_f64(double x) {
    return (x + AN_ROUNDER_F64) - AN_ROUNDER_F64;
}

/* 2^k for an integer k that is the exponent of a normal number. The rounder's own bits are shifted out. */
static inline float an_power_of_two_f32(float k) {
    return an_f32_of_bits((an_bits_of_f32(k + AN_ROUNDER_F32) + AN_BIAS_F32) << AN_SHIFT_F32);
}

static inline double an_power_of_two_f64(double k) {
    return an_f64_of_bits((an_bits_of_f64(k + AN_ROUNDER_F64) + AN_BIAS_F64) << AN_SHIFT_F64);
}

/* x * 2^k in two steps, neither of which leaves the range of exponents: so the result may overflow or be denormal. */
static inline float an_scale_f32(float x, float k) {
    const float half = an_nearest_f32(0.5f * k);
    return x * an_power_of_two_f32(half) * an_power_of_two_f32(k - half);
}

static inline double an_scale_f64(double x, double k) {
    const double half = an_nearest_f64(0.5 * k);
    return x * an_power_of_two_f64(half) * an_power_of_two_f64(k - half);
}

/* An unevaluated sum: `low` is what did not fit into `high`. */
typedef struct an_pair_f64 {
    double high, low;
} an_pair_f64;

/* a + b exactly, if |a| >= |b| or a is 0 (Dekker 1971). */
static inline an_pair_f64 an_sum_ordered_f64(double a, double b) {
    const double sum = a + b;
    return (an_pair_f64){sum, (a - sum) + b};
}

/* a + b exactly (Knuth, The Art of Computer Programming 2, 4.2.2). */
static inline an_pair_f64 an_sum_f64(double a, double b) {
    const double sum = a + b;
    const double b_part = sum - a;
    return (an_pair_f64){sum, (a - (sum - b_part)) + (b - b_part)};
}

/* The upper 26 of the 53 bits: products of two such halves are exact. */
static inline double an_upper_half_f64(double x) {
    const int lower_bits = 27;
    return an_f64_of_bits(an_bits_of_f64(x) >> lower_bits << lower_bits);
}

/* a * b, exact to 106 bits, unless it over- or underflows (Dekker 1971). */
static inline an_pair_f64 an_product_f64(double a, double b) {
    const double product = a * b;
    const double a_high = an_upper_half_f64(a), a_low = a - a_high;
    const double b_high = an_upper_half_f64(b), b_low = b - b_high;
    return (an_pair_f64){product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

#endif

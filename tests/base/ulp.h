/* How far a result is from the exact value, in units of the last place of the exact value.
 *
 * The spacing is that of the numbers in the exact value's binade, and not less than the smallest denormal. Infinity
 * stands where the next number after the largest would be. A result that is wrong in kind (NaN or not, infinite or not,
 * sign) is infinitely far.
 */
#ifndef AN_TESTS_BASE_ULP_H
#define AN_TESTS_BASE_ULP_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double ulp_error_f32(float result, double exact) {
    if (isnan(exact)) return isnan(result) ? 0 : INFINITY;
    if (isnan(result) || !signbit(result) != !signbit(exact)) return INFINITY;
    const double magnitude = fabs(exact), got = isinf(result) ? 0x1p128 : fabs((double)result);
    if (magnitude >= 0x1p128) return got == 0x1p128 ? 0 : INFINITY;
    uint64_t bits; /* its exponent field is the binade; logb would be a call */
    memcpy(&bits, &magnitude, sizeof bits);
    const int exponent = (int)(bits >> 52) - 1023;
    const int place = (exponent < FLT_MIN_EXP - 1 ? FLT_MIN_EXP - 1 : exponent) - (FLT_MANT_DIG - 1);
    const uint64_t inverse_bits = (uint64_t)(1023 - place) << 52;
    double inverse;
    memcpy(&inverse, &inverse_bits, sizeof inverse);
    return fabs(got - magnitude) * inverse;
}

static inline double ulp_error_f64(double result, long double exact) {
    if (isnan(exact)) return isnan(result) ? 0 : INFINITY;
    if (isnan(result) || !signbit(result) != !signbit(exact)) return INFINITY;
    const long double magnitude = fabsl(exact);
    if (isinf(magnitude) || ilogbl(magnitude) >= DBL_MAX_EXP) return isinf(result) ? 0 : INFINITY;
    const int exponent = magnitude == 0 ? DBL_MIN_EXP - 1 : ilogbl(magnitude);
    const int place = (exponent < DBL_MIN_EXP - 1 ? DBL_MIN_EXP - 1 : exponent) - (DBL_MANT_DIG - 1);
    /* Both are scaled first: where long double has the range of double, infinity's place has no number. */
    const long double got = isinf(result) ? ldexpl(1, DBL_MAX_EXP - place) : ldexpl(fabsl((long double)result), -place);
    return (double)fabsl(got - ldexpl(magnitude, -place));
}

#endif

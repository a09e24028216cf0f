/* Our own elementary functions, because libm's are not the same on every machine.
 *
 * A C library picks variants of exp or sin by CPU, and changes them between versions; a run would then give other bits
 * on another node. These functions use only operations that IEEE 754 fixes to the last bit (+ - * / sqrt, comparisons,
 * conversions) and integer operations on bits. The project is compiled with -ffp-contract=off, so every compiler, every
 * CPU and every vector width gives the same bits; tests/base/test_elementary_width.c compares them.
 *
 * exp, expm1, log, log1p, tanh, erf, sin, cos (one argument) and pow (two), each as
 *
 *     float an_exp_f32(float x);       double an_exp_f64(double x);        inline, without branches
 *     void an_vector_exp_f32(int64_t n, const float *src, float *dst);     arrays
 *
 * A loop over the inline form becomes vector code with gcc and clang. The exceptions are an_sin_f64 and an_cos_f64,
 * which branch for |x| >= 2^20; their array forms look at blocks and keep the branch out of the loop that counts.
 *
 * The error is at most 1.6 ulp; docs/evidence/elementary.md has the measured maximum of each. Zeros keep their sign
 * where the function is odd; infinities, NaN, overflow and denormals (as arguments and as results) follow C11 annex F.
 * The floating-point environment must be the default one: round to nearest, no flush to zero. Exception flags mean
 * nothing: code without branches also computes what it then does not choose.
 */
#ifndef AN_BASE_ELEMENTARY_H
#define AN_BASE_ELEMENTARY_H

#include "base/elementary/f32.h"
#include "base/elementary/f64.h"
#include "base/level.h"

/* X(name) for every function of one argument, and of two. */
#define AN_ELEMENTARY_TRIG(X) X(sin) X(cos)
#define AN_ELEMENTARY_LOOPS(X) X(exp) X(expm1) X(log) X(log1p) X(erf) /* of these, array forms are plain loops */
#define AN_ELEMENTARY_OTHER(X) AN_ELEMENTARY_LOOPS(X) X(tanh)
#define AN_ELEMENTARY_1(X) AN_ELEMENTARY_OTHER(X) AN_ELEMENTARY_TRIG(X)
#define AN_ELEMENTARY_2(X) X(pow)

/* Array forms are compiled once a level. */
#define an_vector_exp_f32 AN_LEVELED(an_vector_exp_f32)
#define an_vector_exp_f64 AN_LEVELED(an_vector_exp_f64)
#define an_vector_expm1_f32 AN_LEVELED(an_vector_expm1_f32)
#define an_vector_expm1_f64 AN_LEVELED(an_vector_expm1_f64)
#define an_vector_log_f32 AN_LEVELED(an_vector_log_f32)
#define an_vector_log_f64 AN_LEVELED(an_vector_log_f64)
#define an_vector_log1p_f32 AN_LEVELED(an_vector_log1p_f32)
#define an_vector_log1p_f64 AN_LEVELED(an_vector_log1p_f64)
#define an_vector_tanh_f32 AN_LEVELED(an_vector_tanh_f32)
#define an_vector_tanh_f64 AN_LEVELED(an_vector_tanh_f64)
#define an_vector_erf_f32 AN_LEVELED(an_vector_erf_f32)
#define an_vector_erf_f64 AN_LEVELED(an_vector_erf_f64)
#define an_vector_sin_f32 AN_LEVELED(an_vector_sin_f32)
#define an_vector_sin_f64 AN_LEVELED(an_vector_sin_f64)
#define an_vector_cos_f32 AN_LEVELED(an_vector_cos_f32)
#define an_vector_cos_f64 AN_LEVELED(an_vector_cos_f64)
#define an_vector_pow_f32 AN_LEVELED(an_vector_pow_f32)
#define an_vector_pow_f64 AN_LEVELED(an_vector_pow_f64)

/* dst[i] = f(src[i]) for i < n. dst is src, or does not overlap it. */
#define AN_DECLARE_VECTOR_1(name)                                         \
    void an_vector_##name##_f32(int64_t n, const float *src, float *dst); \
    void an_vector_##name##_f64(int64_t n, const double *src, double *dst);
AN_ELEMENTARY_1(AN_DECLARE_VECTOR_1)
#undef AN_DECLARE_VECTOR_1

/* dst[i] = f(a[i], b[i]) for i < n. dst is a or b, or does not overlap them. */
#define AN_DECLARE_VECTOR_2(name)                                                       \
    void an_vector_##name##_f32(int64_t n, const float *a, const float *b, float *dst); \
    void an_vector_##name##_f64(int64_t n, const double *a, const double *b, double *dst);
AN_ELEMENTARY_2(AN_DECLARE_VECTOR_2)
#undef AN_DECLARE_VECTOR_2

#endif

/* The elementary functions against libm in a higher precision.
 *
 *     test_elementary                          special values, and two million arguments for each function (fewer
 *                                              under an emulator)
 *     test_elementary exhaustive [function]    all 2^32 arguments in f32, 2^26 random ones in f64 and of pow
 *
 * All OpenMP threads work. The largest errors are printed; docs/evidence/elementary.md keeps them.
 */
#include "base/elementary/elementary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/ulp.h"

typedef struct function_1 {
    const char *name;
    void (*vector_f32)(int64_t, const float *, float *);
    void (*vector_f64)(int64_t, const double *, double *);
    float (*scalar_f32)(float);
    double (*scalar_f64)(double);
    double (*exact_f32)(double);
    long double (*exact_f64)(long double);
    double limit_f32, limit_f64; /* ulp */
} function_1;

/* What we promise is 2 ulp; the limits are the measured errors, rounded up, so that a loss is seen. Not const, because
 * cmocka's state is not. */
#define FORMS(name) an_vector_##name##_f32, an_vector_##name##_f64, an_##name##_f32, an_##name##_f64, name, name##l
static function_1 functions[] = {
    {"exp", FORMS(exp), 1, 1},         {"expm1", FORMS(expm1), 1.25, 1.25}, {"log", FORMS(log), 1, 1},
    {"log1p", FORMS(log1p), 1.5, 1.5}, {"tanh", FORMS(tanh), 1.5, 1.5},     {"erf", FORMS(erf), 1.5, 1.5},
    {"sin", FORMS(sin), 1.75, 1},      {"cos", FORMS(cos), 1.75, 1},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };
static const double pow_limit_f32 = 1, pow_limit_f64 = 1;

/* Where a long double is no longer than a double, the reference itself is an ulp off. */
static const double reference_error_f64 = LDBL_MANT_DIG >= 64 ? 0 : 1;

/* --- arguments, in blocks --- */

#ifdef ANNEAL_EMULATED
enum { QUICK_BLOCKS = 32 }; /* the long double of libm is software there, in an emulator */
#else
enum { QUICK_BLOCKS = 512 };
#endif
enum { BLOCK = 4096, MANY_BLOCKS = (1 << 26) / BLOCK };

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Each block has its own arguments, whichever thread makes them. */
static uint64_t state_of_block(int64_t block) {
    uint64_t state = (uint64_t)block;
    return next_random(&state);
}

/* Uniform in [-1, 1). */
static double next_uniform(uint64_t *state) {
    return (double)(int64_t)next_random(state) * 0x1p-63;
}

static double next_pattern(uint64_t *state, int digits) {
    const uint64_t bits = next_random(state);
    return digits == FLT_MANT_DIG ? (double)an_f32_of_bits((uint32_t)bits) : an_f64_of_bits(bits);
}

/* 1 and a little, at any distance. */
static double next_near_one(uint64_t *state, int digits) {
    const int distance = (int)(next_random(state) % (uint64_t)digits);
    return 1 + ldexp(next_uniform(state), -distance);
}

/* Arguments in layers: all bit patterns (every exponent as often), the ranges in which the functions bend, the
 * surroundings of 1, -1 and multiples of pi / 2. */
enum { LAYERS = 8 };
static double next_argument(uint64_t *state, int layer, int digits) {
    const double half_pi = 1.57079632679489661923;
    switch (layer % LAYERS) {
    case 0: return next_uniform(state);
    case 1: return 20 * next_uniform(state);
    case 2: return (digits == FLT_MANT_DIG ? 110 : 760) * next_uniform(state);
    case 3: return next_near_one(state, digits);
    case 4: return -next_near_one(state, digits);
    case 5: return half_pi * (double)(next_random(state) % 100000) * (1 + ldexp(next_uniform(state), -digits));
    case 6: return 1e7 * next_uniform(state);
    default: return next_pattern(state, digits);
    }
}

/* Arguments for pow: results over the whole range, with integer exponents of negative numbers among them. */
static void next_pair(uint64_t *state, int layer, int digits, double *x, double *y) {
    const double range = digits == FLT_MANT_DIG ? 160 : 1100; /* of log2 of the result */
    switch (layer % LAYERS) {
    case 0:
        *x = next_pattern(state, digits);
        *y = next_pattern(state, digits);
        break;
    case 1:
        *x = -exp2(4 * next_uniform(state));
        *y = nearbyint(40 * next_uniform(state));
        break;
    case 2:
        *x = next_near_one(state, digits);
        *y = range * next_uniform(state) / log2(*x);
        break;
    default: *x = exp2(range * next_uniform(state) * next_uniform(state)); *y = range * next_uniform(state) / log2(*x);
    }
}

/* --- the largest error of many blocks --- */

typedef struct worst {
    double error; /* ulp; infinite also if the array form differs from the inline one */
    double x, y, result;
} worst;

static void note(worst *w, double error, double x, double y, double result) {
    if (error > w->error) *w = (worst){error, x, y, result};
}

typedef worst check_block(const function_1 *function, int64_t block);

static worst check_f32(const function_1 *function, const float *x) {
    float results[BLOCK];
    worst w = {0};
    function->vector_f32(BLOCK, x, results);
    for (int i = 0; i < BLOCK; i++) {
        const double exact = function->exact_f32((double)x[i]);
        note(&w, ulp_error_f32(results[i], exact), (double)x[i], 0, (double)results[i]);
    }
    return w;
}

static worst check_all_f32(const function_1 *function, int64_t block) {
    float x[BLOCK];
    for (int i = 0; i < BLOCK; i++) x[i] = an_f32_of_bits((uint32_t)(block * BLOCK + i));
    return check_f32(function, x);
}

static worst check_some_f32(const function_1 *function, int64_t block) {
    float x[BLOCK];
    uint64_t state = state_of_block(block);
    for (int i = 0; i < BLOCK; i++) x[i] = (float)next_argument(&state, i, FLT_MANT_DIG);
    worst w = check_f32(function, x);
    float results[BLOCK];
    function->vector_f32(BLOCK, x, results);
    for (int i = 0; i < BLOCK; i++) {
        const float alone = function->scalar_f32(x[i]);
        if (an_bits_of_f32(alone) != an_bits_of_f32(results[i])) note(&w, INFINITY, (double)x[i], 0, (double)alone);
    }
    return w;
}

static worst check_f64(const function_1 *function, int64_t block) {
    double x[BLOCK], results[BLOCK];
    worst w = {0};
    uint64_t state = state_of_block(block);
    for (int i = 0; i < BLOCK; i++) x[i] = next_argument(&state, i, DBL_MANT_DIG);
    function->vector_f64(BLOCK, x, results);
    for (int i = 0; i < BLOCK; i++) {
        const long double exact = function->exact_f64((long double)x[i]);
        const bool same = an_bits_of_f64(function->scalar_f64(x[i])) == an_bits_of_f64(results[i]);
        note(&w, same ? ulp_error_f64(results[i], exact) : (double)INFINITY, x[i], 0, results[i]);
    }
    return w;
}

static worst check_pow_f32(const function_1 *function, int64_t block) {
    (void)function;
    float x[BLOCK], y[BLOCK], results[BLOCK];
    worst w = {0};
    uint64_t state = state_of_block(block);
    for (int i = 0; i < BLOCK; i++) {
        double a, b;
        next_pair(&state, i, FLT_MANT_DIG, &a, &b);
        x[i] = (float)a;
        y[i] = (float)b;
    }
    an_vector_pow_f32(BLOCK, x, y, results);
    for (int i = 0; i < BLOCK; i++) {
        const double exact = pow((double)x[i], (double)y[i]);
        const bool same = an_bits_of_f32(an_pow_f32(x[i], y[i])) == an_bits_of_f32(results[i]);
        note(&w, same ? ulp_error_f32(results[i], exact) : INFINITY, (double)x[i], (double)y[i], (double)results[i]);
    }
    return w;
}

static worst check_pow_f64(const function_1 *function, int64_t block) {
    (void)function;
    double x[BLOCK], y[BLOCK], results[BLOCK];
    worst w = {0};
    uint64_t state = state_of_block(block);
    for (int i = 0; i < BLOCK; i++) next_pair(&state, i, DBL_MANT_DIG, &x[i], &y[i]);
    an_vector_pow_f64(BLOCK, x, y, results);
    for (int i = 0; i < BLOCK; i++) {
        const long double exact = powl((long double)x[i], (long double)y[i]);
        const bool same = an_bits_of_f64(an_pow_f64(x[i], y[i])) == an_bits_of_f64(results[i]);
        note(&w, same ? ulp_error_f64(results[i], exact) : (double)INFINITY, x[i], y[i], results[i]);
    }
    return w;
}

static void check_blocks(const char *kind, check_block *check, const function_1 *function, int64_t blocks,
                         double limit) {
    worst w = {0};
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t block = 0; block < blocks; block++) {
        const worst here = check(function, block);
#pragma omp critical
        /* Of equal ones the smallest argument, so that the report does not depend on threads. */
        if (here.error > w.error || (here.error == w.error && here.x < w.x)) w = here;
    }
    const char *const name = function ? function->name : "pow";
    print_message("%s, %s: at most %.3f ulp, at %a, %a: %a\n", name, kind, w.error, w.x, w.y, w.result);
    if (!(w.error <= limit)) fail_msg("%s, %s: %g ulp, more than %g", name, kind, w.error, limit);
}

static void test_f32(void **state) {
    const function_1 *function = *state;
    check_blocks("f32", check_some_f32, function, QUICK_BLOCKS, function->limit_f32);
}

static void test_f64(void **state) {
    const function_1 *function = *state;
    check_blocks("f64", check_f64, function, QUICK_BLOCKS, function->limit_f64 + reference_error_f64);
}

static void test_all_f32(void **state) {
    const function_1 *function = *state;
    check_blocks("all f32", check_all_f32, function, (INT64_C(1) << 32) / BLOCK, function->limit_f32);
}

static void test_many_f64(void **state) {
    const function_1 *function = *state;
    check_blocks("many f64", check_f64, function, MANY_BLOCKS, function->limit_f64 + reference_error_f64);
}

static void test_pow(void **state) {
    (void)state;
    check_blocks("f32", check_pow_f32, NULL, QUICK_BLOCKS, pow_limit_f32);
    check_blocks("f64", check_pow_f64, NULL, QUICK_BLOCKS, pow_limit_f64 + reference_error_f64);
}

static void test_many_pow(void **state) {
    (void)state;
    check_blocks("many f32", check_pow_f32, NULL, MANY_BLOCKS, pow_limit_f32);
    check_blocks("many f64", check_pow_f64, NULL, MANY_BLOCKS, pow_limit_f64 + reference_error_f64);
}

/* --- special values --- */

/* Arguments at which something ends or changes, each tested with its neighbours and in both signs. Among them: ends of
 * the range, where results overflow, are denormal or are 1; where the code goes from one formula to another; and the
 * numbers that come nearest to a multiple of pi / 2. */
static const double edges_f32[] = {
    0,
    0x1p-149,
    0x1p-126,
    0x1p-24,
    0x1p-12,
    0.5,
    1,
    2,
    3,
    10,
    0x1p20,
    0x1p24,
    0x1p127,
    FLT_MAX,
    INFINITY,
    88.722839,
    87.33655,
    103.97208,
    17.32868,
    9.010913,
    3.91921,
    4,
    0.34657359,
    0.55,
    0.70710678,
    0.78539816,
    0.9375,
    1.41421356,
    1.57079633,
    3.14159265,
    0x1.f37c8ap+95,
};
static const double edges_f64[] = {
    0,
    0x1p-1074,
    0x1p-1022,
    0x1p-53,
    0x1p-26,
    0.5,
    1,
    2,
    3,
    10,
    0x1p20,
    0x1p53,
    0x1p127,
    0x1p1023,
    DBL_MAX,
    INFINITY,
    709.782712893384,
    708.396418532264,
    745.133219101941,
    37.42994775023705,
    19.06154747,
    5.92158719,
    6,
    0.34657359027997264,
    0.55,
    0.70710678118654752,
    0.78539816339744831,
    1.41421356237309505,
    1.57079632679489662,
    3.14159265358979324,
    0x1.6ac5b262ca1ffp+849,
};

static void test_edges(void **state) {
    enum { AROUND = 3 };
    const function_1 *function = *state;
    for (size_t i = 0; i < sizeof edges_f32 / sizeof *edges_f32; i++) {
        const float edge = (float)edges_f32[i];
        const float around[] = {nextafterf(edge, 0), edge, nextafterf(edge, INFINITY)};
        for (int j = 0; j < 2 * AROUND; j++) {
            const float x = j < AROUND ? around[j] : -around[j - AROUND], y = function->scalar_f32(x);
            const double error = ulp_error_f32(y, function->exact_f32((double)x));
            if (error > function->limit_f32)
                fail_msg("%s_f32(%a) = %a: %g ulp", function->name, (double)x, (double)y, error);
        }
    }
    for (size_t i = 0; i < sizeof edges_f64 / sizeof *edges_f64; i++) {
        const double edge = edges_f64[i], around[] = {nextafter(edge, 0), edge, nextafter(edge, INFINITY)};
        for (int j = 0; j < 2 * AROUND; j++) {
            const double x = j < AROUND ? around[j] : -around[j - AROUND], y = function->scalar_f64(x);
            const double error = ulp_error_f64(y, function->exact_f64((long double)x));
            if (error > function->limit_f64 + reference_error_f64)
                fail_msg("%s_f64(%a) = %a: %g ulp", function->name, x, y, error);
        }
    }
    assert_true(isnan(function->scalar_f32(NAN)) && isnan(function->scalar_f32(-NAN)));
    assert_true(isnan(function->scalar_f64((double)NAN)) && isnan(function->scalar_f64(-(double)NAN)));
}

/* dst may be src, and lengths need not be multiples of anything. */
static void test_in_place(void **state) {
    const function_1 *function = *state;
    enum { MOST = 67 };
    for (int n = 0; n <= MOST; n++) {
        float f32[MOST + 1];
        double f64[MOST + 1];
        for (int i = 0; i <= MOST; i++) f64[i] = f32[i] = (float)i * 0x1.8p18f;
        function->vector_f32(n, f32, f32);
        function->vector_f64(n, f64, f64);
        for (int i = 0; i <= MOST; i++) {
            const float x = (float)i * 0x1.8p18f;
            assert_true(f32[i] == (i < n ? function->scalar_f32(x) : x));
            assert_true(f64[i] == (i < n ? function->scalar_f64((double)x) : (double)x));
        }
    }
}

/* Every pair of the numbers at which C11 F.10.4.4 makes a difference, and some more. */
static void test_pow_edges(void **state) {
    (void)state;
    static const double numbers[] = {
        0,
        0x1p-1074,
        0x1p-149,
        0x1p-126,
        0.25,
        0.5,
        0.9999999403953552,
        1,
        1.0000001192092896,
        1.5,
        2,
        2.5,
        3,
        4.5,
        5,
        1023,
        8388607.5,
        0x1p23,
        8388609,
        16777215,
        0x1p24,
        4503599627370495.5,
        0x1p52,
        4503599627370497,
        9007199254740991,
        0x1p53,
        0x1p127,
        0x1p1023,
        INFINITY,
        (double)NAN,
    };
    enum { COUNT = sizeof numbers / sizeof *numbers };
    for (int i = 0; i < 2 * COUNT; i++) {
        for (int j = 0; j < 2 * COUNT; j++) {
            const double x = i < COUNT ? numbers[i] : -numbers[i - COUNT],
                         y = j < COUNT ? numbers[j] : -numbers[j - COUNT];
            const double error64 = ulp_error_f64(an_pow_f64(x, y), powl((long double)x, (long double)y));
            if (error64 > pow_limit_f64 + reference_error_f64) fail_msg("pow_f64(%a, %a): %g ulp", x, y, error64);
            const float u = (float)x, v = (float)y;
            const double error32 = ulp_error_f32(an_pow_f32(u, v), pow((double)u, (double)v));
            if (error32 > pow_limit_f32) fail_msg("pow_f32(%a, %a): %g ulp", (double)u, (double)v, error32);
        }
    }
}

/* The measure itself: what is an ulp off is seen, and what is wrong in kind is infinitely far. */
static void test_measure(void **state) {
    (void)state;
    assert_true(ulp_error_f32(1, 1) == 0);
    assert_true(ulp_error_f32(nextafterf(1, 2), 1) == 1);
    assert_true(ulp_error_f32(nextafterf(1, 0), 1) == 0.5);
    assert_true(ulp_error_f32(0, 0x1p-149) == 1);
    assert_true(ulp_error_f32(INFINITY, (double)FLT_MAX) == 1);
    assert_true(isinf(ulp_error_f32(FLT_MAX, 0x1p128)));
    assert_true(isinf(ulp_error_f32(-0.0f, 0)));
    assert_true(isinf(ulp_error_f32(NAN, 1)));
    assert_true(isinf(ulp_error_f32(1, (double)NAN)));
    assert_true(ulp_error_f64(1, 1) == 0);
    assert_true(ulp_error_f64(nextafter(1, 2), 1) == 1);
    assert_true(ulp_error_f64(nextafter(1, 0), 1) == 0.5);
    assert_true(ulp_error_f64(0, 0x1p-1074L) == 1);
    assert_true(ulp_error_f64((double)INFINITY, (long double)DBL_MAX) == 1);
    assert_true(isinf(ulp_error_f64(-0.0, 0)));
    assert_true(isinf(ulp_error_f64((double)NAN, 1)));
    assert_true(isinf(ulp_error_f64(1, (long double)NAN)));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        CMUnitTestFunction test;
        bool exhaustive;
    } kinds[] = {
        {"edges", test_edges, false}, {"in_place", test_in_place, false}, {"f32", test_f32, false},
        {"f64", test_f64, false},     {"all_f32", test_all_f32, true},    {"many_f64", test_many_f64, true},
    };
    enum { KINDS = sizeof kinds / sizeof *kinds, ALONE = 3, NAME = 32 };
    const bool exhaustive = argc > 1 && strcmp(argv[1], "exhaustive") == 0;
    const char *const only = argc > 2 ? argv[2] : NULL;
    struct CMUnitTest tests[FUNCTIONS * KINDS + ALONE];
    char names[FUNCTIONS * KINDS][NAME];
    size_t count = 0, named = 0;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        for (size_t k = 0; k < KINDS; k++) {
            if (kinds[k].exhaustive != exhaustive || (only && strcmp(only, functions[i].name) != 0)) continue;
            char *const name = names[named++];
            snprintf(name, NAME, "%s_%s", functions[i].name, kinds[k].name);
            tests[count++] = (struct CMUnitTest){name, kinds[k].test, NULL, NULL, &functions[i]};
        }
    }
    if (exhaustive && (!only || strcmp(only, "pow") == 0)) {
        tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_many_pow);
    } else if (!exhaustive) {
        tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_measure);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_pow_edges);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_pow);
    }
    if ((argc > 1 && !exhaustive) || count == 0) {
        fprintf(stderr, "usage: test_elementary [exhaustive [function]]\n");
        return 2;
    }
    return _cmocka_run_group_tests("elementary", tests, count, NULL, NULL);
}

/* The elementary functions and random numbers give the same bits in every vector width.
 *
 * The reference is compiled with -O1 and without vectorisation. The widths that this CPU has are compared with it, bit
 * by bit, NaN included; and so are the library's array forms.
 */
#include "base/elementary_width.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/elementary/elementary.h"
#include "base/philox.h"

static width_arguments arguments;
static width_results expected, results;

/* A third are any bits (every exponent, denormals, NaN, infinity), a third between -1 and 1, a third wider. */
static int prepare(void **state) {
    (void)state;
    const an_philox_key key = {.site = 1};
    for (uint64_t i = 0; i < WIDTH_COUNT; i++) {
        const uint64_t bits = (uint64_t)an_random_u32(key, 4 * i) << 32 | an_random_u32(key, 4 * i + 1);
        const uint64_t more = (uint64_t)an_random_u32(key, 4 * i + 2) << 32 | an_random_u32(key, 4 * i + 3);
        const double x = (double)(int64_t)bits * 0x1p-63, y = (double)(int64_t)more * 0x1p-63; /* in [-1, 1) */
        switch (i % 3) {
        case 0:
            arguments.x_f32[i] = an_f32_of_bits((uint32_t)bits);
            arguments.y_f32[i] = an_f32_of_bits((uint32_t)more);
            arguments.x_f64[i] = an_f64_of_bits(bits);
            arguments.y_f64[i] = an_f64_of_bits(more);
            break;
        case 1:
            arguments.x_f32[i] = (float)x;
            arguments.y_f32[i] = (float)y;
            arguments.x_f64[i] = x;
            arguments.y_f64[i] = y;
            break;
        default:
            arguments.x_f32[i] = (float)(100 * x);
            arguments.y_f32[i] = (float)(30 * y);
            arguments.x_f64[i] = 700 * x;
            arguments.y_f64[i] = 100 * y;
        }
    }
    width_run_scalar(&arguments, &expected);
    return 0;
}

static const char *const rows[WIDTH_RESULTS] = {
#define NAME(name) #name,
    AN_ELEMENTARY_1(NAME) AN_ELEMENTARY_2(NAME) "sin_moderate", "cos_moderate", "uniform", "normal"};

static void compare(const char *width) {
    for (int row = 0; row < WIDTH_RESULTS; row++) {
        for (int i = 0; i < WIDTH_COUNT; i++) {
            if (an_bits_of_f32(results.f32[row][i]) != an_bits_of_f32(expected.f32[row][i])) {
                fail_msg("%s: %s_f32(%a, %a): %a is not %a", width, rows[row], (double)arguments.x_f32[i],
                         (double)arguments.y_f32[i], (double)results.f32[row][i], (double)expected.f32[row][i]);
            }
            if (an_bits_of_f64(results.f64[row][i]) != an_bits_of_f64(expected.f64[row][i])) {
                fail_msg("%s: %s_f64(%a, %a): %a is not %a", width, rows[row], arguments.x_f64[i], arguments.y_f64[i],
                         results.f64[row][i], expected.f64[row][i]);
            }
        }
    }
}

static void test_baseline(void **state) {
    (void)state;
    width_run_baseline(&arguments, &results);
    compare("baseline");
}

static void test_array_forms(void **state) {
    (void)state;
    results = expected;
    int row = 0;
#define ARRAY_1(name)                                                       \
    an_vector_##name##_f32(WIDTH_COUNT, arguments.x_f32, results.f32[row]); \
    an_vector_##name##_f64(WIDTH_COUNT, arguments.x_f64, results.f64[row]); \
    row++;
    AN_ELEMENTARY_1(ARRAY_1)
#define ARRAY_2(name)                                                                        \
    an_vector_##name##_f32(WIDTH_COUNT, arguments.x_f32, arguments.y_f32, results.f32[row]); \
    an_vector_##name##_f64(WIDTH_COUNT, arguments.x_f64, arguments.y_f64, results.f64[row]); \
    row++;
    AN_ELEMENTARY_2(ARRAY_2)
    compare("array forms");
}

#ifdef HAVE_WIDTH_FLAGS
static void test_avx2(void **state) {
    (void)state;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) skip();
    width_run_avx2(&arguments, &results);
    compare("avx2");
}

static void test_avx512(void **state) {
    (void)state;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("fma")) skip();
    width_run_avx512(&arguments, &results);
    compare("avx512");
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_baseline),
        cmocka_unit_test(test_array_forms),
#ifdef HAVE_WIDTH_FLAGS
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
#endif
    };
    return cmocka_run_group_tests_name("elementary_width", tests, prepare, NULL);
}

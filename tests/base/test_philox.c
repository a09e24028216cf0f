/* The counter-based generator: published answers, the folding of keys, and every way to a number gives that number. */
#include "base/philox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Random123's known answers for philox4x32 with 10 rounds: all zeros, all ones, digits of pi. */
static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        an_philox4x32(known[i].counter, known[i].key, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

static const an_philox_key some_key = {
    .seed = 42, .step = 1000, .sample = 123456789, .site = UINT64_C(0xfedcba9876543210)};

/* What runs depend on: these may never change. */
static void test_fixed_values(void **state) {
    (void)state;
    enum { VALUES = 4 };
    static const uint32_t words[VALUES] = {0xbc899591, 0xb8099a55, 0x61d256f5, 0x1ac47baa};
    static const float uniform_f32[VALUES] = {0x1.79132ap-1f, 0x1.701334p-1f, 0x1.874958p-2f, 0x1.ac47bp-4f};
    static const float normal_f32[VALUES] = {-0x1.370eeep-3f, -0x1.88d6bcp-1f, 0x1.192ee4p+0f, 0x1.b1bc0ep-1f};
    static const double uniform_f64[VALUES] = {0x1.79132b2e02669p-1, 0x1.87495b8d623dcp-2, 0x1.2bd34d3fcddp-9,
                                               0x1.54b37dae0f36ap-2};
    static const double normal_f64[VALUES] = {-0x1.278ae0d006125p-1, 0x1.0e3ae5eb900b6p-1, -0x1.bb5c250e1a5a7p+0,
                                              0x1.836c8803a85a1p+1};
    for (uint64_t i = 0; i < VALUES; i++) {
        assert_int_equal(an_random_u32(some_key, i), words[i]);
        assert_true(an_random_uniform_f32(some_key, i) == uniform_f32[i]);
        assert_true(an_random_normal_f32(some_key, i) == normal_f32[i]);
        assert_true(an_random_uniform_f64(some_key, i) == uniform_f64[i]);
        assert_true(an_random_normal_f64(some_key, i) == normal_f64[i]);
    }
}

/* Each bit of each of the five numbers changes the word, and about half of its bits. */
static void test_every_bit_matters(void **state) {
    (void)state;
    enum { NUMBERS = 5, BITS = 64, WORD = 32 };
    const uint64_t element = UINT64_C(0x0123456789abcde3);
    const uint32_t before = an_random_u32(some_key, element);
    int changed = 0;
    for (int number = 0; number < NUMBERS; number++) {
        for (int bit = 0; bit < BITS; bit++) {
            const uint64_t flip = UINT64_C(1) << bit;
            an_philox_key key = some_key;
            uint64_t place = element;
            uint64_t *const numbers[NUMBERS] = {&key.seed, &key.step, &key.sample, &key.site, &place};
            *numbers[number] ^= flip;
            const uint32_t difference = an_random_u32(key, place) ^ before;
            assert_int_not_equal(difference, 0);
            changed += __builtin_popcount(difference);
        }
    }
    /* 10240 fair coins: the deviation is 51. */
    const int half = NUMBERS * BITS * WORD / 2;
    assert_in_range(changed, half - 5 * 51, half + 5 * 51);
}

/* Exchanging two of the numbers is another key. */
static void test_numbers_have_places(void **state) {
    (void)state;
    const an_philox_key keys[] = {{1, 2, 3, 4}, {2, 1, 3, 4}, {1, 3, 2, 4}, {1, 2, 4, 3},
                                  {4, 2, 3, 1}, {1, 4, 3, 2}, {3, 2, 1, 4}};
    enum { KEYS = sizeof keys / sizeof *keys };
    for (int i = 0; i < KEYS; i++) {
        for (int j = 0; j < i; j++) assert_int_not_equal(an_random_u32(keys[i], 5), an_random_u32(keys[j], 5));
    }
}

/* Blocks of any start and length, also across 2^34 (where the block number needs its second word). */
static void test_blocks(void **state) {
    (void)state;
    enum { MOST = 150 };
    static const uint64_t starts[] = {0, 1, 2, 3, 5, 62, 63, 64, (UINT64_C(1) << 34) - 7, UINT64_C(0x7ffffffffffffff1)};
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        for (int64_t n = 0; n <= MOST; n += n < 20 ? 1 : 13) {
            uint32_t words[MOST + 1];
            float uniform32[MOST + 1], normal32[MOST + 1];
            double uniform64[MOST + 1], normal64[MOST + 1];
            words[n] = 7;
            uniform32[n] = normal32[n] = 7;
            uniform64[n] = normal64[n] = 7;
            an_random_block_u32(some_key, starts[s], n, words);
            an_random_block_uniform_f32(some_key, starts[s], n, uniform32);
            an_random_block_uniform_f64(some_key, starts[s], n, uniform64);
            an_random_block_normal_f32(some_key, starts[s], n, normal32);
            an_random_block_normal_f64(some_key, starts[s], n, normal64);
            for (int64_t i = 0; i < n; i++) {
                const uint64_t element = starts[s] + (uint64_t)i;
                assert_true(words[i] == an_random_u32(some_key, element));
                assert_true(uniform32[i] == an_random_uniform_f32(some_key, element));
                assert_true(uniform64[i] == an_random_uniform_f64(some_key, element));
                assert_true(normal32[i] == an_random_normal_f32(some_key, element));
                assert_true(normal64[i] == an_random_normal_f64(some_key, element));
            }
            assert_true(words[n] == 7 && uniform32[n] == 7 && uniform64[n] == 7 && normal32[n] == 7 &&
                        normal64[n] == 7);
        }
    }
}

/* The largest and smallest words. */
static void test_extremes(void **state) {
    (void)state;
    assert_true(an_uniform_of_word_f32(0) == 0);
    assert_true(an_uniform_of_word_f32(UINT32_MAX) == 1 - 0x1p-24f);
    assert_true(an_uniform_of_words_f64(0, 0) == 0);
    assert_true(an_uniform_of_words_f64(UINT32_MAX, UINT32_MAX) == 1 - 0x1p-53);
    static const uint32_t ends[] = {0, 1, UINT32_MAX, UINT32_MAX - 1, 0x20000000, 0x1fffffff, 0xdfffffff, 0xe0000000};
    enum { ENDS = sizeof ends / sizeof *ends };
    for (int i = 0; i < ENDS; i++) {
        for (int j = 0; j < ENDS; j++) {
            const an_normals_f32 f32 = an_normals_of_words_f32(ends[i], ends[j]);
            const double turn = 6.28318530717958647693;
            const double radius = sqrt(-2 * log(((double)ends[i] + 0.5) * 0x1p-32)), angle = turn * ends[j] * 0x1p-32;
            assert_true(fabs((double)f32.cosine - radius * cos(angle)) < 4e-4); /* f32 rounds u near 1 */
            assert_true(fabs((double)f32.sine - radius * sin(angle)) < 4e-4);
            const uint32_t words[4] = {ends[i], ends[j], ends[j], ends[i]};
            const an_normals_f64 f64 = an_normals_of_words_f64(words);
            const double u = (double)words[0] * 0x1p-32 + ((double)words[1] + 0.5) * 0x1p-64;
            const double radius64 = sqrt(-2 * log(u));
            const double angle64 = turn * ((double)words[2] * 0x1p-32 + (double)words[3] * 0x1p-64);
            assert_true(fabs(f64.cosine - radius64 * cos(angle64)) < 1e-7);
            assert_true(fabs(f64.sine - radius64 * sin(angle64)) < 1e-7);
        }
    }
}

/* Moments and neighbours' correlation of 2^20 numbers, within five standard deviations of what they should be. */
enum { COUNT = 1 << 20 };

static void check_moments(const double *numbers, double mean, double variance, double fourth) {
    double sum = 0, squares = 0, products = 0;
    for (int i = 0; i < COUNT; i++) {
        const double centred = numbers[i] - mean, next = numbers[(i + 1) % COUNT] - mean;
        sum += centred;
        squares += centred * centred;
        products += centred * next;
    }
    const double root = sqrt((double)COUNT);
    assert_true(fabs(sum / COUNT) < 5 * sqrt(variance) / root);
    assert_true(fabs(squares / COUNT - variance) < 5 * sqrt(fourth - variance * variance) / root);
    assert_true(fabs(products / COUNT) < 5 * variance / root);
}

static void test_moments(void **state) {
    (void)state;
    static double numbers[COUNT];
    static float numbers_f32[COUNT];
    an_random_block_uniform_f64(some_key, 0, COUNT, numbers);
    check_moments(numbers, 0.5, 1.0 / 12, 1.0 / 80);
    an_random_block_normal_f64(some_key, 0, COUNT, numbers);
    check_moments(numbers, 0, 1, 3);
    an_random_block_uniform_f32(some_key, 0, COUNT, numbers_f32);
    for (int i = 0; i < COUNT; i++) numbers[i] = (double)numbers_f32[i];
    check_moments(numbers, 0.5, 1.0 / 12, 1.0 / 80);
    an_random_block_normal_f32(some_key, 0, COUNT, numbers_f32);
    for (int i = 0; i < COUNT; i++) numbers[i] = (double)numbers_f32[i];
    check_moments(numbers, 0, 1, 3);
}

/* Counts of uniform and normal numbers in 64 boxes of equal probability: chi-square of 63 degrees of freedom. */
static void test_boxes(void **state) {
    (void)state;
    enum { BOXES = 64 };
    static float numbers[COUNT];
    for (int normal = 0; normal < 2; normal++) {
        int counts[BOXES] = {0};
        if (normal) {
            an_random_block_normal_f32(some_key, 0, COUNT, numbers);
        } else {
            an_random_block_uniform_f32(some_key, 0, COUNT, numbers);
        }
        for (int i = 0; i < COUNT; i++) {
            const double x = (double)numbers[i], uniform = normal ? 0.5 * erfc(-x * 0.70710678118654752440) : x;
            counts[(int)(uniform * BOXES)]++;
        }
        const double expected = (double)COUNT / BOXES;
        double chi_square = 0;
        for (int i = 0; i < BOXES; i++) chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
        assert_true(chi_square > 25 && chi_square < 130); /* each exceeded once in a million times */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_fixed_values),
        cmocka_unit_test(test_every_bit_matters),
        cmocka_unit_test(test_numbers_have_places),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_boxes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

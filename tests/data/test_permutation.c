/* The order of an epoch is a bijection of any count, spread evenly, and another one for every seed and epoch. */
#include "data/permutation.h"
#include "support/support.h"

static void check_bijection(uint64_t seed, uint64_t epoch, int64_t count) {
    const an_permutation p = an_permutation_make(seed, epoch, count);
    unsigned char *seen = calloc((size_t)count, 1);
    assert_non_null(seen);
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = an_permutation_at(&p, i);
        assert_in_range(x, 0, count - 1);
        assert_false(seen[x]);
        seen[x] = 1;
    }
    free(seen);
}

static void test_bijection(void **state) {
    (void)state;
    for (int64_t count = 1; count <= 600; count++) check_bijection(7, (uint64_t)count % 3, count);
    check_bijection(1337, 0, 65536);
    check_bijection(1337, 1, 65537);
    check_bijection(UINT64_MAX, UINT64_MAX, 1000003);
}

static int compare(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Too many to look at all: some, of which no two may be equal, from all over the range. */
static void test_large_counts(void **state) {
    enum { SOME = 2000 };
    static const int64_t counts[] = {INT64_C(1) << 31,       (INT64_C(1) << 32) + 1, INT64_C(1) << 40,
                                     INT64_C(1000000000039), (INT64_C(1) << 60) + 1, INT64_C(1) << 62};
    static int64_t found[SOME];
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const an_permutation p = an_permutation_make(3, 5, counts[c]);
        double mean = 0;
        for (int64_t i = 0; i < SOME; i++) {
            const int64_t at = i % 2 ? counts[c] - 1 - i : i;
            found[i] = an_permutation_at(&p, at);
            assert_true(found[i] >= 0 && found[i] < counts[c]);
            mean += (double)found[i] / (double)counts[c] / SOME;
        }
        assert_true(mean > 0.46 && mean < 0.54); /* six standard deviations are 0.039 */
        qsort(found, SOME, sizeof *found, compare);
        for (int i = 1; i < SOME; i++) assert_true(found[i] != found[i - 1]);
    }
}

/* Over many seeds every element comes equally often first, and last: chi-squared, far beyond its 99.99th percentile. */
static void test_even(void **state) {
    enum { SEEDS = 20000, MOST = 37 };
    static const int64_t counts[] = {2, 3, 4, 5, 8, 10, 16, 17, MOST};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const int64_t n = counts[c], places[] = {0, n - 1};
        for (int k = 0; k < 2; k++) {
            int times[MOST] = {0};
            double chi = 0;
            for (uint64_t seed = 0; seed < SEEDS; seed++) {
                const an_permutation p = an_permutation_make(seed, seed / 7, n);
                times[an_permutation_at(&p, places[k])]++;
            }
            const double expected = (double)SEEDS / (double)n;
            for (int64_t i = 0; i < n; i++) chi += (times[i] - expected) * (times[i] - expected) / expected;
            const double freedom = (double)(n - 1);
            if (chi > freedom + 5 * sqrt(2 * freedom) + 10) fail_msg("count %d: chi-squared %g", (int)n, chi);
        }
    }
}

/* All six orders of three samples, and all 24 of four, equally often. */
static void test_all_orders(void **state) {
    enum { SEEDS = 24000 };
    (void)state;
    int times[4 * 4 * 4] = {0}, orders = 0;
    double chi = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const an_permutation p = an_permutation_make(seed, 0, 4);
        times[an_permutation_at(&p, 0) * 16 + an_permutation_at(&p, 1) * 4 + an_permutation_at(&p, 2)]++;
    }
    for (int i = 0; i < 64; i++) {
        orders += times[i] > 0;
        if (times[i] > 0) chi += (times[i] - SEEDS / 24.0) * (times[i] - SEEDS / 24.0) / (SEEDS / 24.0);
    }
    assert_int_equal(orders, 24);
    if (chi > 70) fail_msg("chi-squared %g of 23 degrees of freedom", chi);
}

static void test_seeds_and_epochs_differ(void **state) {
    enum { COUNT = 1000 };
    const an_permutation a = an_permutation_make(1, 1, COUNT), b = an_permutation_make(1, 2, COUNT),
                         c = an_permutation_make(2, 1, COUNT), again = an_permutation_make(1, 1, COUNT);
    int equal_b = 0, equal_c = 0, fixed = 0, next = 0;
    (void)state;
    for (int64_t i = 0; i < COUNT; i++) {
        const int64_t x = an_permutation_at(&a, i);
        assert_int_equal(x, an_permutation_at(&again, i));
        equal_b += x == an_permutation_at(&b, i);
        equal_c += x == an_permutation_at(&c, i);
        fixed += x == i;
        next += i > 0 && x == an_permutation_at(&a, i - 1) + 1;
    }
    assert_in_range(equal_b, 0, 10); /* one in the mean */
    assert_in_range(equal_c, 0, 10);
    assert_in_range(fixed, 0, 10);
    assert_in_range(next, 0, 10);
}

/* The order of a run must not change from version to version: a resumed run would see samples twice. */
static void test_known_answers(void **state) {
    static const int64_t expected[] = {8880, 4155, 828, 4188, 7110, 738, 9514, 325}, few[] = {2, 4, 3, 1, 0};
    const an_permutation p = an_permutation_make(1337, 3, 10000), q = an_permutation_make(1337, 3, 5);
    (void)state;
    for (int64_t i = 0; i < 8; i++) assert_int_equal(an_permutation_at(&p, i), expected[i]);
    for (int64_t i = 0; i < 5; i++) assert_int_equal(an_permutation_at(&q, i), few[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bijection),     cmocka_unit_test(test_large_counts),
        cmocka_unit_test(test_even),          cmocka_unit_test(test_all_orders),
        cmocka_unit_test(test_known_answers), cmocka_unit_test(test_seeds_and_epochs_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Mixup: shares have the distribution that is asked for, partners are other samples, and both are the same
 * whenever they are asked for. */
#include "data/mixup.h"

#include <math.h>
#include <stdlib.h>

#include "data/support.h"

enum { DRAWS = 20000 };

static double shares[DRAWS];

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void draw(double alpha) {
    for (int64_t i = 0; i < DRAWS; i++) {
        const an_mix mix = an_mix_draw(alpha, 5, 2, i, DRAWS);
        assert_in_range(mix.share, 0, AN_MIX_WHOLE);
        shares[i] = (double)mix.share / AN_MIX_WHOLE;
    }
    qsort(shares, DRAWS, sizeof *shares, compare);
}

/* Distribution functions of Beta(alpha, alpha) that are known in closed form. */
static double arcsine(double x) {
    return 2 / 3.14159265358979323846 * asin(sqrt(x));
}

static double uniform(double x) {
    return x;
}

static double cubic(double x) {
    return x * x * (3 - 2 * x);
}

/* The largest distance between the two distribution functions (Kolmogorov and Smirnov); it is larger in 1 of 10^4
 * cases. */
static void test_distribution(void **state) {
    static const struct {
        double alpha;
        double (*function)(double);
    } cases[] = {{0.5, arcsine}, {1, uniform}, {2, cubic}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double largest = 0;
        draw(cases[c].alpha);
        for (int i = 0; i < DRAWS; i++) {
            const double here = cases[c].function(shares[i]);
            largest = fmax(largest, fmax(fabs(here - (double)i / DRAWS), fabs(here - (double)(i + 1) / DRAWS)));
        }
        if (!(largest < 2.2 / sqrt(DRAWS))) fail_msg("Beta(%g): the distance is %g", cases[c].alpha, largest);
    }
}

/* The mean is 1/2 and the variance 1 / (4 (2 alpha + 1)), for small and large alpha too. */
static void test_moments(void **state) {
    static const double alphas[] = {0.001, 0.05, 0.2, 0.4, 3, 40, 1000};
    (void)state;
    for (size_t a = 0; a < sizeof alphas / sizeof *alphas; a++) {
        double sum = 0, squares = 0;
        draw(alphas[a]);
        for (int i = 0; i < DRAWS; i++) sum += shares[i];
        const double mean = sum / DRAWS, wanted = 1 / (4 * (2 * alphas[a] + 1));
        for (int i = 0; i < DRAWS; i++) squares += (shares[i] - mean) * (shares[i] - mean);
        if (!(fabs(mean - 0.5) < 4 * sqrt(wanted / DRAWS) && fabs(squares / DRAWS / wanted - 1) < 0.06))
            fail_msg("Beta(%g): mean %g, variance %g instead of %g", alphas[a], mean, squares / DRAWS, wanted);
    }
}

static void test_partners(void **state) {
    enum { COUNT = 5, EPOCHS = 2000 };
    int seen[COUNT][COUNT] = {{0}};
    (void)state;
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++)
        for (int64_t i = 0; i < COUNT; i++) {
            const an_mix mix = an_mix_draw(0.3, 9, epoch, i, COUNT), again = an_mix_draw(0.3, 9, epoch, i, COUNT);
            assert_in_range(mix.partner, 0, COUNT - 1);
            assert_true(mix.partner == again.partner && mix.share == again.share);
            seen[i][mix.partner]++;
        }
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < COUNT; k++)
            if (i == k)
                assert_int_equal(seen[i][k], 0);
            else
                assert_in_range(seen[i][k], EPOCHS / 4 - 100, EPOCHS / 4 + 100);
    const an_mix alone = an_mix_draw(0.3, 9, 0, 0, 1);
    assert_true(alone.partner == 0 && alone.share == AN_MIX_WHOLE);
    assert_int_equal(an_mix_draw(0.3, 9, 0, 1, 2).partner, 0);
}

/* They are those of every machine; another seed, epoch or sample gives others. */
static void test_bits(void **state) {
    static const uint64_t wanted = UINT64_C(0x3ec11bf48c5c905c);
    uint64_t hash = UINT64_C(14695981039346656037);
    (void)state;
    for (int64_t i = 0; i < 3000; i++) {
        const an_mix mix = an_mix_draw(0.1 + (double)(i % 7), (uint64_t)(i % 3), (uint64_t)(i % 5), i, 10007);
        hash = (hash ^ (uint64_t)mix.partner) * UINT64_C(1099511628211);
        hash = (hash ^ (uint64_t)mix.share) * UINT64_C(1099511628211);
    }
    if (hash != wanted) fail_msg("the bits have changed: the hash is 0x%016llx", (unsigned long long)hash);
    const an_mix mix = an_mix_draw(1, 0, 0, 0, 10007);
    assert_true(mix.share != an_mix_draw(1, 1, 0, 0, 10007).share);
    assert_true(mix.share != an_mix_draw(1, 0, 1, 0, 10007).share);
    assert_true(mix.share != an_mix_draw(1, 0, 0, 1, 10007).share);
}

static void test_blend(void **state) {
    float own[] = {1, -2, 0.1f}, other[] = {3, 5, -0.7f}, kept[3];
    double wide[] = {8}, wider[] = {-8};
    (void)state;
    memcpy(kept, own, sizeof kept);
    an_mix_blend(AN_DTYPE_F32, 3, AN_MIX_WHOLE, own, other);
    assert_memory_equal(own, kept, sizeof kept);
    an_mix_blend(AN_DTYPE_F32, 3, AN_MIX_WHOLE / 4, own, other);
    assert_true(own[0] == 2.5f && own[1] == 3.25f);
    an_mix_blend(AN_DTYPE_F32, 3, 0, own, other);
    assert_memory_equal(own, other, sizeof own);
    an_mix_blend(AN_DTYPE_F64, 1, AN_MIX_WHOLE / 4, wide, wider);
    assert_true(wide[0] == -4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distribution), cmocka_unit_test(test_moments), cmocka_unit_test(test_partners),
        cmocka_unit_test(test_bits),         cmocka_unit_test(test_blend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

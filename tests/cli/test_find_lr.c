/* The curve of a range test: its smoothing, where it ends, and the rate that it proposes. */
#include <math.h>

#include "cli/find_lr/curve.h"
#include "support/support.h"

enum { STEPS = 100 };

static double rate_at(int step) {
    return 1e-7 * pow(10, 7.0 * step / (STEPS - 1));
}

/* Flat at 2, falling by a logistic curve around 10^-3, and rising steeply beyond 10^-1. */
static double loss_at(double rate) {
    const double x = log10(rate);
    return 2 - 1.5 / (1 + exp(-4 * (x + 3))) + (x > -1 ? 40 * (x + 1) * (x + 1) : 0);
}

static void test_smoothing(void **state) {
    find_lr_curve c;
    (void)state;
    assert_true(find_lr_curve_create(&c, STEPS));
    assert_true(fabs(c.smoothing - 0.8) < 1e-15);
    assert_true(find_lr_curve_add(&c, 1e-7, 3) && find_lr_curve_add(&c, 2e-7, 1) && find_lr_curve_add(&c, 4e-7, 2));
    assert_true(fabs(c.points[0].smoothed - 3) < 1e-12); /* the first is not drawn towards 0 */
    assert_true(fabs(c.points[1].smoothed - (0.8 * 3 + 1) / 1.8) < 1e-12);
    assert_true(fabs(c.points[2].smoothed - (0.64 * 3 + 0.8 * 1 + 2) / 2.44) < 1e-12);
    find_lr_curve_destroy(&c);
    assert_null(c.points);
}

static void test_proposal(void **state) {
    find_lr_curve c;
    (void)state;
    assert_true(find_lr_curve_create(&c, STEPS));
    int step = 0;
    while (step < STEPS && find_lr_curve_add(&c, rate_at(step), loss_at(rate_at(step)))) step++;
    assert_in_range(step, 86, STEPS - 1); /* it ends where the loss rises, and not before */
    assert_int_equal(c.count, step + 1);
    assert_true(c.points[c.count - 1].smoothed > 4 * c.points[c.lowest].smoothed);
    assert_true(c.points[c.count - 2].smoothed <= 4 * c.points[c.lowest].smoothed);
    const int proposal = find_lr_curve_propose(&c);
    assert_true(proposal > 0 && proposal < c.lowest);
    /* The steepest place is 10^-3; smoothing looks back over some 4 steps, a quarter of a decade. */
    assert_true(c.points[proposal].rate > 1e-3 && c.points[proposal].rate < 3e-3);
    find_lr_curve_destroy(&c);
}

static void test_noise_in_the_flat_part(void **state) {
    find_lr_curve c;
    (void)state;
    assert_true(find_lr_curve_create(&c, STEPS));
    for (int step = 0; step < STEPS; step++) /* as large as a fifth of the fall */
        if (!find_lr_curve_add(&c, rate_at(step), loss_at(rate_at(step)) + 0.3 * sin(12.9898 * step * step))) break;
    const int proposal = find_lr_curve_propose(&c);
    assert_true(proposal > 0 && c.points[proposal].rate > 3e-4 && c.points[proposal].rate < 1e-2);
    find_lr_curve_destroy(&c);
}

/* Losses that only scatter: their steepest fall is no reason for a rate. */
static void test_noise_alone(void **state) {
    (void)state;
    for (int seed = 0; seed < 20; seed++) {
        find_lr_curve c;
        assert_true(find_lr_curve_create(&c, STEPS));
        for (int step = 0; step < STEPS; step++)
            assert_true(find_lr_curve_add(&c, rate_at(step), 2 + 0.3 * sin(12.9898 * step * step + seed)));
        assert_int_equal(find_lr_curve_propose(&c), -1);
        find_lr_curve_destroy(&c);
    }
}

/* A first batch with next to no loss is luck, and no reason to call what follows a rise. */
static void test_lucky_start(void **state) {
    find_lr_curve c;
    (void)state;
    assert_true(find_lr_curve_create(&c, STEPS));
    assert_true(find_lr_curve_add(&c, rate_at(0), 0.01));
    for (int step = 1; step < STEPS / 2; step++)
        assert_true(find_lr_curve_add(&c, rate_at(step), 1 + 0.1 * (step % 2)));
    assert_int_not_equal(c.lowest, 0);
    find_lr_curve_destroy(&c);
}

static void test_no_proposal(void **state) {
    find_lr_curve c;
    (void)state;
    assert_true(find_lr_curve_create(&c, STEPS));
    for (int step = 0; step < STEPS; step++) assert_true(find_lr_curve_add(&c, rate_at(step), 1 + 0.01 * step));
    assert_in_range(c.lowest, 0, 7); /* among the first, which are averages of few */
    assert_int_equal(find_lr_curve_propose(&c), -1);
    assert_false(find_lr_curve_add(&c, 1, 1)); /* there is no room for more */
    find_lr_curve_destroy(&c);
    assert_true(find_lr_curve_create(&c, STEPS)); /* a loss below 0 may rise by any factor */
    assert_true(find_lr_curve_add(&c, 1e-7, -1) && find_lr_curve_add(&c, 1e-6, 100));
    find_lr_curve_destroy(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smoothing),
        cmocka_unit_test(test_proposal),
        cmocka_unit_test(test_noise_in_the_flat_part),
        cmocka_unit_test(test_noise_alone),
        cmocka_unit_test(test_lucky_start),
        cmocka_unit_test(test_no_proposal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The loss scaler against PyTorch's GradScaler: the scale, the skips and the weights of a run with planted
 * infinities. */
#include "step/series.h"

enum { STEPS = 100, BIAS = 2 };
static const int infinite[] = {3, 4, 10, 11, 12, 30, 55, 56, 90}, nan_steps[] = {21, 71};

static double planted(int step) {
    for (size_t i = 0; i < sizeof infinite / sizeof *infinite; i++)
        if (infinite[i] == step) return INFINITY;
    for (size_t i = 0; i < sizeof nan_steps / sizeof *nan_steps; i++)
        if (nan_steps[i] == step) return NAN;
    return 0;
}

/* Only the bias has gradients. */
static void set_gradients(bench *b, int step, double scale) {
    double numbers[MOST_ELEMENTS] = {0};
    for (int64_t i = 0; i < series_parameters[BIAS].elements; i++) numbers[i] = series_gradient(BIAS, i, step) * scale;
    if (planted(step) != 0) numbers[step % 7] = planted(step);
    series_set(b->ctx, b->params, BIAS, AN_PART_GRADIENT, b->dtype, numbers);
}

static void check_run(const series_file *file, const char *name, an_scaler scaler) {
    double scales[STEPS + 1], skips[STEPS], weights[STEPS * 7], numbers[MOST_ELEMENTS] = {0}, norm;
    const an_optimizer_options sgd = {DEFAULTS(an_optimizer_options), .type = AN_OPTIMIZER_SGD};
    char series[64];
    bench b;
    snprintf(series, sizeof series, "%s.scales", name);
    assert_int_equal(series_read(file, series, scales, STEPS + 1), STEPS + 1);
    snprintf(series, sizeof series, "%s.skips", name);
    assert_int_equal(series_read(file, series, skips, STEPS), STEPS);
    snprintf(series, sizeof series, "%s.weights", name);
    assert_int_equal(series_read(file, series, weights, STEPS * 7), STEPS * 7);
    bench_open(&b, AN_DTYPE_F32, NULL, NULL, &sgd);
    assert_true(scaler.scale == scales[0]);
    for (int step = 0; step < STEPS; step++) {
        const an_update update = {DEFAULTS(an_update), .rate = 0.1, .scale = scaler.scale};
        set_gradients(&b, step, scaler.scale);
        OK(b.ctx, an_optimizer_norm(b.optimizer, scaler.scale, &norm));
        const bool skip = an_scaler_update(&scaler, isfinite(norm) != 0);
        if (!skip) OK(b.ctx, an_optimizer_update(b.optimizer, &update));
        if (skip) FAILS(b.ctx, an_optimizer_update(b.optimizer, &update), AN_ERR_STATE, "would destroy");
        if (skip != (skips[step] != 0)) fail_msg("%s: step %d: skip is %d", name, step, skip);
        if (scaler.scale != scales[step + 1])
            fail_msg("%s: step %d: the scale is %.17g, not %.17g", name, step, scaler.scale, scales[step + 1]);
        series_get(b.ctx, b.params, BIAS, AN_PART_WEIGHT, b.dtype, numbers);
        for (int i = 0; i < 7; i++) assert_true(fabs(numbers[i] - weights[step * 7 + i]) <= 1e-6);
    }
    bench_close(&b);
}

static void test_parity(void **state) {
    (void)state;
    series_file file = series_open("scaler");
    check_run(&file, "usual", (an_scaler){DEFAULTS(an_scaler), .interval = 5});
    check_run(&file, "odd",
              (an_scaler){DEFAULTS(an_scaler), .scale = 1000, .growth = 1.7, .backoff = 0.3, .interval = 4});
    check_run(&file, "highest", (an_scaler){DEFAULTS(an_scaler), .scale = 0x1p125, .interval = 3});
    series_close(&file);
}

static void test_defaults(void **state) {
    (void)state;
    an_scaler s;
    an_scaler_init(&s, sizeof s);
    for (int i = 0; i < 1999; i++) assert_true(!an_scaler_update(&s, true));
    assert_true(s.scale == 65536 && s.good_steps == 1999);
    assert_true(!an_scaler_update(&s, true));
    assert_true(s.scale == 131072 && s.good_steps == 0);
    for (int i = 0; i < 1999; i++) assert_true(!an_scaler_update(&s, true));
    assert_true(an_scaler_update(&s, false)); /* the good steps must be on end */
    assert_true(s.scale == 65536 && s.good_steps == 0);
    assert_true(!an_scaler_update(&s, true));
    assert_true(s.scale == 65536);
}

/* It never becomes 0, from where it could not rise, nor infinite. */
static void test_ends(void **state) {
    (void)state;
    an_scaler s;
    an_scaler_init(&s, sizeof s);
    for (int i = 0; i < 1000; i++) assert_true(an_scaler_update(&s, false));
    assert_true(s.scale > 0 && s.scale < 1e-40);
    s.interval = 1;
    for (int i = 0; i < 1000; i++) assert_true(!an_scaler_update(&s, true));
    assert_true(s.scale == 0x1p127);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parity), cmocka_unit_test(test_defaults),
                                       cmocka_unit_test(test_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

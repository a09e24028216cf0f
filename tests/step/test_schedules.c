/* Schedules against PyTorch's at each of 1,000 steps, to 1e-12 of the peak rate; and what they refuse. */
#include <fenv.h>

#include "step/schedule.h"
#include "step/series.h"

enum { STEPS = 1000, WARMUP = 100 };
static const double tolerance = 1e-12;

static an_context *ctx;
static size_t bytes; /* of the context alone */

static int setup(void **state) {
    (void)state;
    if (an_context_create(&ctx, NULL) != AN_OK) return 1;
    bytes = an_context_bytes(ctx);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    const bool all_given_back = an_context_bytes(ctx) == bytes;
    an_context_destroy(&ctx);
    return !all_given_back;
}

static const int64_t point_steps[] = {0, 50, 400, 900}, milestones[] = {200, 600};
static const double point_factors[] = {0, 1, 0.5, 0.1};
static const an_schedule_options parts[] = {
    {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_LINEAR, .min_ratio = 0.5},
    {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_COSINE, .min_ratio = 0.2},
    {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_EXPONENTIAL, .gamma = 0.995},
};

#define SCHEDULE(kind) DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_##kind, .steps = STEPS
#define SEQUENCE SCHEDULE(SEQUENCE), .part_count = 3, .parts = parts, .milestones = milestones

typedef struct {
    const char *name;
    an_schedule_options options;
} schedule_case;

static const schedule_case cases[] = {
    {"constant", {SCHEDULE(CONSTANT)}},
    {"linear", {SCHEDULE(LINEAR), .min_ratio = 0.1}},
    {"linear_to_zero", {SCHEDULE(LINEAR)}},
    {"cosine", {SCHEDULE(COSINE), .min_ratio = 0.1}},
    {"cosine_to_zero", {SCHEDULE(COSINE)}},
    {"cosine_clamp", {SCHEDULE(COSINE), .min_ratio = 0.1, .clamp = true}},
    {"cosine_restarts", {SCHEDULE(COSINE_RESTARTS), .min_ratio = 0.1, .period = 130}},
    {"cosine_restarts_growing", {SCHEDULE(COSINE_RESTARTS), .period = 70, .period_growth = 2}},
    {"one_cycle", {SCHEDULE(ONE_CYCLE)}},
    {"one_cycle_linear",
     {SCHEDULE(ONE_CYCLE), .linear = true, .pct_start = 0.2501, .div_factor = 10, .final_div_factor = 100}},
    {"one_cycle_three", {SCHEDULE(ONE_CYCLE), .three_phase = true}},
    {"one_cycle_three_linear", {SCHEDULE(ONE_CYCLE), .three_phase = true, .linear = true, .pct_start = 0.4}},
    {"inverse_sqrt", {SCHEDULE(INVERSE_SQRT), .warmup = WARMUP, .start_factor = 0}},
    {"inverse_sqrt_cold", {SCHEDULE(INVERSE_SQRT)}},
    {"wsd", {SCHEDULE(WSD), .warmup = WARMUP, .start_factor = 0, .decay_steps = 200, .min_ratio = 0.1}},
    {"step", {SCHEDULE(STEP), .period = 30, .gamma = 0.7}},
    {"exponential", {SCHEDULE(EXPONENTIAL), .gamma = 0.993}},
    {"polynomial", {SCHEDULE(POLYNOMIAL), .power = 2.5}},
    {"polynomial_plain", {SCHEDULE(POLYNOMIAL)}},
    {"polynomial_floor", {SCHEDULE(POLYNOMIAL), .power = 0.5, .min_ratio = 0.1}},
    {"points", {SCHEDULE(POINTS), .point_count = 4, .point_steps = point_steps, .point_factors = point_factors}},
    {"sequence", {SEQUENCE}},
    {"warmup_cosine_0", {SCHEDULE(COSINE), .warmup = WARMUP, .start_factor = 0, .min_ratio = 0.1}},
    {"warmup_cosine_tiny", {SCHEDULE(COSINE), .warmup = WARMUP, .start_factor = 1e-8, .min_ratio = 0.1}},
    {"warmup_cosine", {SCHEDULE(COSINE), .warmup = WARMUP, .min_ratio = 0.1}},
    {"warmup_linear", {SCHEDULE(LINEAR), .warmup = WARMUP, .min_ratio = 0.1}},
    {"warmup_constant", {SCHEDULE(CONSTANT), .warmup = WARMUP}},
    {"warmup_step", {SCHEDULE(STEP), .warmup = WARMUP, .period = 30, .gamma = 0.7}},
    {"warmup_sequence", {SEQUENCE, .warmup = WARMUP}},
};

/* The largest distance of a schedule from a golden series. */
static double distance(const series_file *file, const char *name, const an_schedule *schedule,
                       double (*ask)(const an_schedule *, int64_t)) {
    double golden[STEPS], largest = 0;
    assert_int_equal(series_read(file, name, golden, STEPS), STEPS);
    for (int t = 0; t < STEPS; t++) {
        const double error = fabs(ask(schedule, t) - golden[t]);
        if (!(error <= tolerance)) fail_msg("%s: step %d is %.17g, not %.17g", name, t, ask(schedule, t), golden[t]);
        if (error > largest) largest = error;
    }
    return largest;
}

static void test_parity_at_every_step(void **state) {
    (void)state;
    series_file file = series_open("schedules");
    double largest = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_schedule *schedule = NULL;
        OK(ctx, an_schedule_create(&schedule, ctx, &cases[i].options));
        double error = distance(&file, cases[i].name, schedule, an_schedule_factor);
        if (error > largest) largest = error;
        if (cases[i].options.type == AN_SCHEDULE_ONE_CYCLE) {
            char name[64];
            snprintf(name, sizeof name, "%s.momentum", cases[i].name);
            error = distance(&file, name, schedule, an_schedule_momentum);
            if (error > largest) largest = error;
        } else {
            assert_true(an_schedule_momentum(schedule, 500) == 0);
        }
        an_schedule_destroy(&schedule);
    }
    series_close(&file);
    print_message("largest error of %d schedules: %.2g\n", (int)(sizeof cases / sizeof *cases), largest);
}

/* ---- what the golden files do not show ---- */

static an_schedule *make(const an_schedule_options *options) {
    an_schedule *schedule = NULL;
    OK(ctx, an_schedule_create(&schedule, ctx, options));
    return schedule;
}

static void assert_near(double a, double b) {
    if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g is not %.17g", a, b);
}

static void test_momentum_is_fixed_on_request(void **state) {
    (void)state;
    an_schedule *s = make(&(an_schedule_options){SCHEDULE(ONE_CYCLE), .cycle_momentum = false});
    for (int t = 0; t < STEPS; t++) assert_true(an_schedule_momentum(s, t) == 0);
    an_schedule_destroy(&s);
}

/* In a sequence the part that holds the step moves it. */
static void test_momentum_of_parts(void **state) {
    (void)state;
    const an_schedule_options two[] = {{DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_CONSTANT},
                                       {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_ONE_CYCLE}};
    const int64_t at = 100;
    an_schedule *s = make(&(an_schedule_options){SCHEDULE(SEQUENCE), .part_count = 2, .parts = two, .milestones = &at});
    an_schedule *alone =
        make(&(an_schedule_options){DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_ONE_CYCLE, .steps = STEPS - at});
    assert_true(an_schedule_momentum(s, at - 1) == 0);
    for (int64_t t = at; t < STEPS; t++) {
        assert_true(an_schedule_momentum(s, t) == an_schedule_momentum(alone, t - at));
        assert_true(an_schedule_factor(s, t) == an_schedule_factor(alone, t - at));
    }
    an_schedule_destroy(&s);
    an_schedule_destroy(&alone);
}

/* The last part ends with the run, wherever the warm-up put its beginning. */
static void test_last_part_ends_with_the_run(void **state) {
    (void)state;
    const an_schedule_options two[] = {{DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_CONSTANT},
                                       {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_LINEAR}};
    const int64_t at = 400;
    an_schedule *s = make(
        &(an_schedule_options){SCHEDULE(SEQUENCE), .warmup = WARMUP, .part_count = 2, .parts = two, .milestones = &at});
    assert_near(an_schedule_factor(s, WARMUP + at), 1);
    assert_near(an_schedule_factor(s, WARMUP + at + 250), 0.5); /* of 500 steps */
    assert_near(an_schedule_factor(s, STEPS), 0);
    an_schedule_destroy(&s);
}

static void test_options_are_copied(void **state) {
    (void)state;
    int64_t *steps = malloc(2 * sizeof *steps), *at = malloc(sizeof *at); /* no longer than they must be */
    double *factors = malloc(2 * sizeof *factors);
    an_schedule_options *two = calloc(2, sizeof *two);
    assert_true(steps && at && factors && two);
    steps[0] = 10, steps[1] = 20, *at = 50;
    factors[0] = 1, factors[1] = 0.5;
    two[0] = (an_schedule_options){DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_POINTS, .point_count = 2,
                                   .point_steps = steps, .point_factors = factors};
    two[1] = (an_schedule_options){DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_CONSTANT};
    an_schedule *s = make(&(an_schedule_options){SCHEDULE(SEQUENCE), .part_count = 2, .parts = two, .milestones = at});
    free(steps);
    free(at);
    free(factors);
    free(two);
    assert_near(an_schedule_factor(s, 0), 1);
    assert_near(an_schedule_factor(s, 15), 0.75);
    assert_near(an_schedule_factor(s, 49), 0.5);
    assert_near(an_schedule_factor(s, 50), 1);
    an_schedule_destroy(&s);
}

/* Shapes that have an end stay there, and no step gives anything but a number. */
static void test_after_the_end(void **state) {
    (void)state;
    static const int64_t far[] = {STEPS, STEPS + 1, 12345, (int64_t)1 << 41, INT64_MAX};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_schedule *s = make(&cases[i].options);
        assert_true(an_schedule_factor(s, -5) == an_schedule_factor(s, 0));
        for (size_t k = 0; k < sizeof far / sizeof *far; k++) {
            const double factor = an_schedule_factor(s, far[k]);
            if (!(factor >= 0 && factor <= 1)) fail_msg("%s: step %lld: %g", cases[i].name, (long long)far[k], factor);
        }
        an_schedule_destroy(&s);
    }
    static const an_schedule_type ending[] = {AN_SCHEDULE_LINEAR, AN_SCHEDULE_COSINE, AN_SCHEDULE_POLYNOMIAL,
                                              AN_SCHEDULE_WSD, AN_SCHEDULE_SQRT};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        an_schedule *s = make(&(an_schedule_options){DEFAULTS(an_schedule_options), .type = ending[i], .steps = STEPS,
                                                     .min_ratio = 0.25, .decay_steps = 10});
        assert_true(an_schedule_factor(s, STEPS - 1) > 0.25);
        assert_near(an_schedule_factor(s, STEPS), 0.25);
        assert_near(an_schedule_factor(s, INT64_MAX), 0.25);
        an_schedule_destroy(&s);
    }
}

/* Periods that grow out of 64 bits end in one that has no end. */
static void test_restarts_of_huge_periods(void **state) {
    (void)state;
    const int64_t period = (int64_t)1 << 40;
    an_schedule *s = make(&(an_schedule_options){SCHEDULE(COSINE_RESTARTS), .period = period, .period_growth = period});
    assert_near(an_schedule_factor(s, period), 1);
    for (int k = 0; k < 63; k++) {
        const double factor = an_schedule_factor(s, (int64_t)1 << k);
        assert_true(factor >= 0 && factor <= 1);
    }
    an_schedule_destroy(&s);
}

/* A warm-up that is longer than the run is allowed; the run ends inside it. */
static void test_long_warm_up(void **state) {
    (void)state;
    for (int type = 0; type <= AN_SCHEDULE_POLYNOMIAL; type++) {
        an_schedule *s =
            make(&(an_schedule_options){DEFAULTS(an_schedule_options), .type = (an_schedule_type)type, .steps = 50,
                                        .warmup = WARMUP, .period = 10, .gamma = 0.5, .decay_steps = 80});
        for (int t = 0; t < WARMUP; t++) assert_near(an_schedule_factor(s, t), (1 + 0.99 * t) / WARMUP);
        for (int t = 0; t < WARMUP; t++) /* that of a low rate, as in any warm-up */
            assert_true(an_schedule_momentum(s, t) == (type == AN_SCHEDULE_ONE_CYCLE ? 0.95 : 0));
        for (int t = WARMUP; t < 2 * WARMUP; t++) {
            const double factor = an_schedule_factor(s, t);
            assert_true(factor >= 0 && factor <= 1);
        }
        an_schedule_destroy(&s);
    }
}

/* Neither does the host's rounding change a bit, nor the schedule the host's rounding. */
static void test_rounding_of_the_host(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        an_schedule *s = make(&cases[i].options);
        for (int t = 0; t < STEPS; t += 7) {
            const double factor = an_schedule_factor(s, t), momentum = an_schedule_momentum(s, t);
            assert_int_equal(fesetround(FE_UPWARD), 0);
            const double upward = an_schedule_factor(s, t), upward_momentum = an_schedule_momentum(s, t);
            assert_int_equal(fegetround(), FE_UPWARD);
            assert_int_equal(fesetround(FE_TONEAREST), 0);
            assert_true(factor == upward && momentum == upward_momentum);
        }
        an_schedule_destroy(&s);
    }
}

/* Every allocation in turn fails: the error says so, and nothing stays behind. */
static void test_memory_runs_out(void **state) {
    (void)state;
    const an_schedule_options o = {SEQUENCE, .custom_name = "none"};
    bool done = false;
    for (long n = 1; !done; n++) {
        ledger l = {0};
        an_context *poor = NULL;
        an_schedule *s = NULL;
        assert_int_equal(context_with_ledger(&poor, &l, 1), AN_OK);
        const size_t before = l.held;
        l.fail_at = l.calls + n;
        const an_status status = an_schedule_create(&s, poor, &o);
        done = status == AN_OK;
        if (!done) {
            assert_int_equal(status, AN_ERR_MEMORY);
            assert_null(s);
        }
        an_schedule_destroy(&s);
        assert_int_equal(l.held, before);
        an_context_destroy(&poor);
        assert_true(!l.mismatch && n < 100);
    }
}

/* Shapes that have no end need no number of steps. */
static void test_without_an_end(void **state) {
    (void)state;
    an_schedule_options o = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_INVERSE_SQRT, .warmup = WARMUP};
    an_schedule *s = make(&o);
    assert_near(an_schedule_factor(s, 4 * WARMUP), 0.5);
    an_schedule_destroy(&s);
    o = (an_schedule_options){DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_EXPONENTIAL, .gamma = 0.5};
    s = make(&o);
    assert_near(an_schedule_factor(s, 3), 0.125);
    an_schedule_destroy(&s);
}

/* Its formula at each step, and as the last part of a run at a constant rate. */
static void test_sqrt(void **state) {
    enum { COOLDOWN = 200 };
    static const int64_t at = STEPS - COOLDOWN;
    static const an_schedule_options two[] = {
        {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_CONSTANT},
        {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_SQRT, .min_ratio = 0.1}};
    (void)state;
    an_schedule *whole = make(&(an_schedule_options){SCHEDULE(SQRT), .warmup = WARMUP, .min_ratio = 0.25});
    for (int t = WARMUP; t < 2 * STEPS; t++) {
        const double p = t < STEPS ? (double)(t - WARMUP) / (STEPS - WARMUP) : 1;
        assert_near(an_schedule_factor(whole, t), 0.25 + 0.75 * (1 - sqrt(p)));
        assert_true(an_schedule_momentum(whole, t) == 0);
    }
    an_schedule_destroy(&whole);
    an_schedule *s = make(&(an_schedule_options){SCHEDULE(SEQUENCE), .part_count = 2, .parts = two, .milestones = &at});
    for (int t = 0; t < STEPS; t++)
        assert_near(an_schedule_factor(s, t), t < at ? 1 : 0.1 + 0.9 * (1 - sqrt((double)(t - at) / COOLDOWN)));
    assert_near(an_schedule_factor(s, STEPS), 0.1);
    an_schedule_destroy(&s);
    assert_string_equal(an_schedule_type_name(AN_SCHEDULE_SQRT), "sqrt");
}

static double tenth(void *user, int64_t step) {
    return *(const double *)user / (double)(step + 1);
}

static void test_custom(void **state) {
    (void)state;
    double one = 1;
    char name[] = "tenth";
    an_schedule *s = make(&(an_schedule_options){SCHEDULE(CUSTOM), .warmup = 10, .custom = tenth, .custom_user = &one,
                                                 .custom_name = name});
    name[0] = 'x'; /* the schedule has its own */
    assert_string_equal(s->options.custom_name, "tenth");
    assert_near(an_schedule_factor(s, 0), 0.1);
    assert_near(an_schedule_factor(s, 10), 1);
    assert_near(an_schedule_factor(s, 13), 0.25);
    an_schedule_destroy(&s);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(an_schedule_type_name(AN_SCHEDULE_COSINE_RESTARTS), "cosine_restarts");
    assert_string_equal(an_schedule_type_name(AN_SCHEDULE_CUSTOM), "custom");
    assert_string_equal(an_schedule_type_name((an_schedule_type)99), "");
}

/* ---- mistakes ---- */

#define REFUSED(words, ...)                                                               \
    do {                                                                                  \
        an_schedule *refused = NULL;                                                      \
        const an_schedule_options options_ = {__VA_ARGS__};                               \
        FAILS(ctx, an_schedule_create(&refused, ctx, &options_), AN_ERR_ARGUMENT, words); \
        assert_null(refused);                                                             \
    } while (0)

static void test_mistakes(void **state) {
    (void)state;
    REFUSED("_init first", .type = AN_SCHEDULE_LINEAR, .steps = 1);
    REFUSED("type is 99, which is not a value of an_schedule_type", DEFAULTS(an_schedule_options),
            .type = (an_schedule_type)99, .steps = 1);
    REFUSED("needs the number of steps of the run", DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_COSINE);
    REFUSED("the warm-up has -1 steps", SCHEDULE(LINEAR), .warmup = -1);
    REFUSED("start_factor is 2", SCHEDULE(LINEAR), .warmup = 1, .start_factor = 2);
    REFUSED("start_factor is -1", SCHEDULE(LINEAR), .warmup = 1, .start_factor = -1);
    REFUSED("min_ratio is 1.5", SCHEDULE(LINEAR), .min_ratio = 1.5);
    REFUSED("min_ratio is", SCHEDULE(LINEAR), .min_ratio = NAN);
    REFUSED("needs a period of at least one step", SCHEDULE(STEP), .gamma = 0.5);
    REFUSED("needs a period of at least one step", SCHEDULE(COSINE_RESTARTS), .period = -3);
    REFUSED("needs gamma, the factor from one period to the next", SCHEDULE(STEP), .period = 3);
    REFUSED("needs gamma, the factor from one step to the next", SCHEDULE(EXPONENTIAL));
    REFUSED("needs gamma", SCHEDULE(EXPONENTIAL), .gamma = INFINITY);
    REFUSED("needs the number of steps of its decay", SCHEDULE(WSD));
    REFUSED("pct_start is 1", SCHEDULE(ONE_CYCLE), .pct_start = 1);
    REFUSED("pct_start is -0.1", SCHEDULE(ONE_CYCLE), .pct_start = -0.1);
    REFUSED("div_factor", SCHEDULE(ONE_CYCLE), .div_factor = -1);
    REFUSED("div_factor", SCHEDULE(ONE_CYCLE), .final_div_factor = NAN);
    REFUSED("power is -1", SCHEDULE(POLYNOMIAL), .power = -1);
    REFUSED("has no function", SCHEDULE(CUSTOM));
    REFUSED("a schedule of type points needs at least one point", SCHEDULE(POINTS));
    REFUSED("point 1 of the schedule is at step 5", SCHEDULE(POINTS), .point_count = 2,
            .point_steps = (const int64_t[]){5, 5}, .point_factors = point_factors);
    REFUSED("point 0 of the schedule has the factor", SCHEDULE(POINTS), .point_count = 1, .point_steps = point_steps,
            .point_factors = (const double[]){INFINITY});
    REFUSED("needs parts", SCHEDULE(SEQUENCE));
    REFUSED("milestone 1 of the schedule is step 10", SCHEDULE(SEQUENCE), .part_count = 3, .parts = parts,
            .milestones = (const int64_t[]){20, 10});
    const an_schedule_options bad = {DEFAULTS(an_schedule_options), .type = AN_SCHEDULE_EXPONENTIAL};
    REFUSED("needs gamma", SCHEDULE(SEQUENCE), .part_count = 1, .parts = &bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity_at_every_step),
        cmocka_unit_test(test_momentum_is_fixed_on_request),
        cmocka_unit_test(test_momentum_of_parts),
        cmocka_unit_test(test_last_part_ends_with_the_run),
        cmocka_unit_test(test_options_are_copied),
        cmocka_unit_test(test_after_the_end),
        cmocka_unit_test(test_restarts_of_huge_periods),
        cmocka_unit_test(test_long_warm_up),
        cmocka_unit_test(test_without_an_end),
        cmocka_unit_test(test_sqrt),
        cmocka_unit_test(test_custom),
        cmocka_unit_test(test_rounding_of_the_host),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_mistakes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* run.max_time: slurm, by what the environment says. */
#include "anneal/open.h"
#include "anneal/run.h"
#include "base/system/clock.h"
#include "run/run.h"

#include "open/support.h" /* last, as its ctx would be shadowed */

enum { MARGIN = 60 }; /* seconds that a run keeps free at the end of its job */

static void set_end(double seconds_from_now) {
    char text[32];
    snprintf(text, sizeof text, "%.0f", an_clock_of_day() + seconds_from_now);
    assert_int_equal(setenv("SLURM_JOB_END_TIME", text, 1), 0);
}

static int setup_job(void **state) {
    setenv("SLURM_JOB_ID", "17", 1);
    unsetenv("SLURM_JOB_END_TIME");
    return setup(state);
}

static int teardown_job(void **state) {
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_JOB_END_TIME");
    return teardown(state);
}

static void test_seconds(void **state) {
    (void)state;
    double seconds = 0;
    set_end(3600);
    OK(ctx, an_job_seconds(ctx, &seconds));
    assert_true(seconds > 3600 - MARGIN - 5 && seconds <= 3600 - MARGIN + 1);
    unsetenv("SLURM_JOB_ID"); /* the end alone suffices */
    OK(ctx, an_job_seconds(ctx, &seconds));
    /* too late: never 0, which would be no limit */
    set_end(0.5 * MARGIN);
    OK(ctx, an_job_seconds(ctx, &seconds));
    assert_true(seconds > 0 && seconds < 1);
    /* a job without an end has one in many years */
    setenv("SLURM_JOB_END_TIME", "9000000000", 1);
    OK(ctx, an_job_seconds(ctx, &seconds));
    assert_true(seconds > 1e9);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const no_times[] = {"",           "Unknown", "-1", "1e12", "12h", " 99", "99999999999999999999",
                                           "NONE\033[1m"};
    double seconds = 0;
    FAILS(ctx, an_job_seconds(ctx, &seconds), AN_ERR_ARGUMENT, "SLURM_JOB_END_TIME is not set");
    FAILS(ctx, an_job_seconds(ctx, &seconds), AN_ERR_ARGUMENT,
          "export SLURM_JOB_END_TIME=$(date -d \"$(squeue -h -j $SLURM_JOB_ID -o %e)\" +%s)");
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++) {
        setenv("SLURM_JOB_END_TIME", no_times[i], 1);
        FAILS(ctx, an_job_seconds(ctx, &seconds), AN_ERR_ARGUMENT, "seconds since 1970");
        assert_null(strchr(an_last_error(ctx), '\033'));
    }
    set_end(-100);
    FAILS(ctx, an_job_seconds(ctx, &seconds), AN_ERR_ARGUMENT, "seconds ago");
    unsetenv("SLURM_JOB_END_TIME");
    unsetenv("SLURM_JOB_ID");
    FAILS(ctx, an_job_seconds(ctx, &seconds), AN_ERR_ARGUMENT,
          "this is not a Slurm job; start it in one, or set a time such as 3h50m");
    assert_true(seconds == 0);
}

static const char config[] = "model: {type: mlp, hidden: [4]}\n"
                             "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: sum}}\n"
                             "run: {steps: 2, max_time: slurm}\n";

static void test_run(void **state) {
    (void)state;
    write_sums();
    refused(config, AN_ERR_ARGUMENT, "run.yaml:3:27: run.max_time is slurm, but SLURM_JOB_END_TIME is not set");
    set_end(1000);
    an_trainer *t = open_run(config);
    assert_true(t->run->options.max_seconds > 900 && t->run->options.max_seconds < 1000);
    an_trainer_destroy(&t);
}

/* A plan is made where the job is not. */
static void test_plan(void **state) {
    (void)state;
    an_trainer *t = NULL;
    an_config *c = NULL;
    an_config_options from;
    an_config_options_init(&from, sizeof from);
    an_open_options options;
    an_open_options_init(&options, sizeof options);
    from.file = "run.yaml";
    options.purpose = AN_OPEN_PLAN;
    write_sums();
    write_text("run.yaml", config);
    OK(ctx, an_config_create(&c, ctx, &from));
    OK(ctx, an_trainer_open_config(&t, ctx, c, &options));
    an_trainer_destroy(&t);
    an_config_destroy(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_seconds, setup_job, teardown_job),
        cmocka_unit_test_setup_teardown(test_refused, setup_job, teardown_job),
        cmocka_unit_test_setup_teardown(test_run, setup_job, teardown_job),
        cmocka_unit_test_setup_teardown(test_plan, setup_job, teardown_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Callbacks at the four places of a run that ask for a stop, fail, or take long: where the run ends, and how. */
#include <time.h>

#include "anneal/run.h"

#include "open/support.h"

#define CONFIG                                                                                                      \
    "run: {dir: callbacks, steps: 10}\n"                                                                            \
    "model: {type: mlp, hidden: [4]}\n"                                                                             \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, eval: {type: csv, path: sums.csv, " \
    "inputs: [a, b], targets: [sum]}}\n"                                                                            \
    "batch: {global: 16}\n"                                                                                         \
    "eval: {every: 3 steps}\n"

enum { BEFORE_STEP, AFTER_STEP, AFTER_EVALUATION, AFTER_SAVE, PLACES, AT = 3 };

typedef struct {
    int place;
    bool stops, fails;
    double seconds;
    bool done; /* it was there */
    int calls; /* of any callback since */
} watch;

static an_status visit(watch *w, an_trainer *trainer, int place, int64_t step) {
    w->calls += w->done;
    if (place != w->place || step != AT) return AN_OK;
    const struct timespec pause = {(time_t)w->seconds, (long)((w->seconds - (double)(time_t)w->seconds) * 1e9)};
    nanosleep(&pause, NULL);
    w->done = true;
    if (w->stops) an_trainer_request_stop(trainer);
    return w->fails ? AN_ERR_HOOK : AN_OK;
}

static an_status before_step(void *user, an_trainer *trainer, int64_t step) {
    return visit(user, trainer, BEFORE_STEP, step);
}

static an_status after_step(void *user, an_trainer *trainer) {
    return visit(user, trainer, AFTER_STEP, an_trainer_next_step(trainer));
}

static an_status after_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    (void)best;
    return visit(user, trainer, AFTER_EVALUATION, step);
}

static an_status after_save(void *user, an_trainer *trainer) {
    an_save_report report;
    an_save_report_init(&report, sizeof report);
    OK(ctx, an_trainer_save_report(trainer, &report));
    return visit(user, trainer, AFTER_SAVE, report.step);
}

static an_status run(watch *w, const char *config, double max_seconds, an_run_outcome *outcome, int64_t *steps) {
    an_run_options options;
    an_run_options_init(&options, sizeof options);
    an_run_outcome_init(outcome, sizeof *outcome);
    assert_int_equal(system("rm -rf callbacks"), 0); /* NOLINT(cert-env33-c) */
    write_sums();
    an_trainer *trainer = open_run(config);
    OK(ctx, an_trainer_run_options(trainer, &options));
    options.max_seconds = max_seconds;
    options.callbacks = &(const an_run_callbacks){.size = sizeof(an_run_callbacks),
                                                  .before_step = before_step,
                                                  .after_step = after_step,
                                                  .after_evaluation = after_evaluation,
                                                  .after_save = after_save,
                                                  .user = w};
    const an_status status = an_trainer_run(trainer, &options, outcome);
    *steps = an_trainer_next_step(trainer);
    an_trainer_destroy(&trainer);
    return status;
}

/* After the step that is under way, and at once if there is none. A save ends beside the steps: the
 * step may be a later one. */
static void test_stop_from_any_callback(void **state) {
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        watch w = {.place = place, .stops = true};
        an_run_outcome outcome;
        int64_t steps;
        OK(ctx, run(&w, CONFIG "save: {every: 3 steps}\n", 0, &outcome, &steps));
        assert_true(w.done);
        if (place == AFTER_SAVE) continue;
        assert_int_equal(outcome.end, AN_RUN_REQUESTED);
        assert_int_equal(steps, AT);
    }
}

/* No callback comes after one that failed. */
static void test_failure_of_any_callback(void **state) {
    static const char *const names[] = {"before_step", "after_step", "after_evaluation", "after_save"};
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        watch w = {.place = place, .fails = true};
        an_run_outcome outcome;
        int64_t steps;
        assert_int_equal(run(&w, CONFIG "save: {every: 3 steps}\n", 0, &outcome, &steps), AN_ERR_HOOK);
        assert_int_equal(outcome.end, AN_RUN_FAILED);
        if (!strstr(an_last_error(ctx), names[place])) fail_msg("%s is not in: %s", names[place], an_last_error(ctx));
        assert_int_equal(w.calls, 0);
        if (place != AFTER_SAVE) assert_int_equal(steps, place == BEFORE_STEP ? AT - 1 : AT);
    }
}

/* The time that an evaluation takes counts before the next step. */
static void test_time_is_over_after_an_evaluation(void **state) {
    const double maximum = 3600, beyond = 1;
    (void)state;
    watch w = {.place = AFTER_EVALUATION, .seconds = 0};
    an_run_outcome outcome;
    int64_t steps;
    OK(ctx, run(&w, CONFIG "save: {every: off}\n", maximum, &outcome, &steps));
    assert_int_equal(outcome.end, AN_RUN_DONE);
    w = (watch){.place = AFTER_EVALUATION, .seconds = beyond};
    OK(ctx, run(&w, CONFIG "save: {every: off}\n", beyond, &outcome, &steps));
    assert_int_equal(outcome.end, AN_RUN_TIME);
    assert_in_range(steps, 1, AT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop_from_any_callback),
        cmocka_unit_test(test_failure_of_any_callback),
        cmocka_unit_test(test_time_is_over_after_an_evaluation),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* Steps that are skipped because a gradient is not finite: a run that never recovers fails instead of coming to its
 * end. */
#include <stdlib.h>

#include "anneal/checkpoint.h"
#include "anneal/run.h"
#include "open/support.h"

/* An input of 1e6 is infinite in f16, so every step is skipped. */
static void write_huge(const char *name, int bad_every, const char *bad) {
    enum { ROWS = 96 };
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs("a,b,sum\n", file);
    for (int i = 0; i < ROWS; i++) {
        const double a = i % 11 / 10.0, b = i % 7 / 6.0;
        if (i % bad_every == 0)
            fprintf(file, "%s,%.3f,1\n", bad, b);
        else
            fprintf(file, "%.3f,%.3f,%.3f\n", a, b, a + b);
    }
    fclose(file);
}

#define CONFIG(dir, steps)                                                                                         \
    "run: {dir: " dir ", steps: " steps ", seed: 2}\nmodel: {type: mlp, hidden: [5]}\n"                            \
    "data: {train: {type: csv, path: huge.csv, inputs: [a, b], targets: [sum]}, threads: 0}\nbatch: {global: 8}\n" \
    "log: {every: 1 steps}\n"

static void remove_folder(const char *folder) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own folder */
}

/* Steps until one fails; gives how many were taken. */
static int64_t steps_until_error(an_trainer *trainer, const char *words) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    char before[AN_HASH_TEXT], after[AN_HASH_TEXT];
    an_status status;
    do {
        OK(ctx, an_trainer_state_hash(trainer, before));
        status = an_trainer_step(trainer, &metrics);
        if (status == AN_OK) assert_true(metrics.skipped && metrics.skips == metrics.step);
    } while (status == AN_OK);
    assert_int_equal(status, AN_ERR_NONFINITE);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    const int64_t taken = an_trainer_next_step(trainer);
    assert_int_equal(an_trainer_step(trainer, &metrics), AN_ERR_NONFINITE); /* and so it stays */
    OK(ctx, an_trainer_state_hash(trainer, after));
    assert_string_equal(before, after);
    assert_int_equal(an_trainer_next_step(trainer), taken);
    return taken;
}

/* 65,536 can be halved 16 times until it is 1. */
static void test_f16_that_never_recovers_fails(void **state) {
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    (void)state;
    remove_folder("never");
    write_huge("huge.csv", 1, "1e6");
    an_trainer *trainer = open_run(CONFIG("never", "120") "train: {precision: f16}\n");
    assert_int_equal(steps_until_error(trainer, "the loss scale would fall to 0.5"), 16);
    assert_non_null(strstr(an_last_error(ctx), "17 steps in a row were skipped"));
    assert_int_equal(an_trainer_run(trainer, NULL, &outcome), AN_ERR_NONFINITE);
    assert_int_equal(outcome.steps, 16);
    an_trainer_destroy(&trainer);
}

static void test_max_skips(void **state) {
    static const struct {
        const char *config, *bad;
        int64_t steps;
    } cases[] = {
        {CONFIG("most", "120") "train: {precision: f16, max_skips: 5}\n", "1e6", 4},
        {CONFIG("most", "120") "train: {precision: f16, max_skips: 1}\n", "1e6", 0},
        {CONFIG("most", "120") "train: {precision: f16, max_skips: off}\n", "1e6", 16},
        {CONFIG("most", "120") "train: {precision: f32, on_nonfinite: skip}\n", "1e38", 99},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        remove_folder("most");
        write_huge("huge.csv", 1, cases[i].bad);
        an_trainer *trainer = open_run(cases[i].config);
        assert_int_equal(steps_until_error(trainer, "steps in a row were skipped"), cases[i].steps);
        an_trainer_destroy(&trainer);
    }
    write_huge("huge.csv", 1, "1e38");
    an_trainer *trainer =
        open_run(CONFIG("endless", "120") "train: {precision: f32, on_nonfinite: skip, max_skips: off}\n");
    train(trainer);
    assert_int_equal(an_trainer_next_step(trainer), 120);
    an_trainer_destroy(&trainer);
}

static void test_skips_in_a_row_are_counted_across_launches(void **state) {
    static const char config[] = CONFIG("across", "120") "train: {precision: f16, max_skips: 7}\n";
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    remove_folder("across");
    write_huge("huge.csv", 1, "1e6");
    for (int launch = 0; launch < 3; launch++) {
        an_trainer *trainer = open_run(config);
        assert_int_equal(an_trainer_next_step(trainer), 2 * launch);
        for (int i = 0; i < 2; i++) OK(ctx, an_trainer_step(trainer, &metrics));
        OK(ctx, an_trainer_save(trainer, an_trainer_next_step(trainer)));
        an_trainer_destroy(&trainer);
    }
    an_trainer *trainer = open_run(config);
    assert_int_equal(steps_until_error(trainer, "7 steps in a row were skipped"), 6);
    an_trainer_destroy(&trainer);
}

/* One bad sample in an epoch of 12 steps: at most two steps in a row are skipped, and the run comes to its end. */
static void test_a_good_step_begins_the_count_anew(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    remove_folder("now");
    write_huge("huge.csv", 96, "1e6");
    an_trainer *trainer = open_run(CONFIG("now", "96") "train: {precision: f16, max_skips: 3}\n");
    for (int i = 0; i < 96; i++) OK(ctx, an_trainer_step(trainer, &metrics));
    assert_int_equal(metrics.skips, 8);
    an_trainer_destroy(&trainer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_that_never_recovers_fails),
        cmocka_unit_test(test_max_skips),
        cmocka_unit_test(test_skips_in_a_row_are_counted_across_launches),
        cmocka_unit_test(test_a_good_step_begins_the_count_anew),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

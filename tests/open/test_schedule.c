/* Schedules of a config against their closed forms: sequences, rates that hold inside an epoch, lengths of every
 * kind. */
#include "open/support.h"

#define MODEL "model: {type: mlp, hidden: [4]}\ndata: {train: {type: csv, path: sums.csv, targets: [sum]}}\n"

/* The schedule of a run; 96 samples of the data make an epoch. */
static an_trainer *scheduled(const char *schedule) {
    char text[1024];
    write_sums();
    snprintf(text, sizeof text, MODEL "%s", schedule);
    return open_run(text);
}

static void expect_factor(const an_trainer *trainer, int64_t step, double factor) {
    const double given = an_schedule_factor(an_trainer_schedule(trainer), step);
    if (!(fabs(given - factor) < 1e-12))
        fail_msg("step %lld: the factor is %.15g, not %.15g", (long long)step, given, factor);
}

/* ---- sequences ---- */

static void test_sequence_has_its_parts(void **state) {
    (void)state;
    an_trainer *trainer = scheduled("run: {steps: 100}\n"
                                    "schedule:\n"
                                    "  type: sequence\n"
                                    "  milestones: [20 steps, 60%]\n"
                                    "  parts:\n"
                                    "  - {type: constant}\n"
                                    "  - {type: linear, min_ratio: 0.5, warmup: 4 steps}\n"
                                    "  - {type: exponential, gamma: 0.9}\n");
    for (int t = 0; t < 100; t++) {
        double factor = 1;
        if (t >= 20) factor = t < 24 ? 0.25 + 0.75 * (t - 20) / 4.0 : 0.5 + 0.5 * (1 - (t - 24) / 36.0);
        if (t >= 60) factor = pow(0.9, t - 60);
        expect_factor(trainer, t, factor);
    }
    an_trainer_destroy(&trainer);
}

/* Steps of milestones count after the warm-up; shares inside a part are of the part, those of milestones of the run. */
static void test_sequences_nest(void **state) {
    (void)state;
    an_trainer *trainer = scheduled("run: {steps: 110}\n"
                                    "schedule:\n"
                                    "  type: sequence\n"
                                    "  warmup: {steps: 10, start_factor: 0}\n"
                                    "  milestones: [60]\n"
                                    "  parts:\n"
                                    "  - type: sequence\n"
                                    "    milestones: [50%]\n"
                                    "    parts: [{type: points, points: {0: 1, 30: 0.4}}, constant]\n"
                                    "  - {type: wsd, decay: 25%}\n");
    for (int t = 0; t < 110; t++) {
        const int u = t - 10;
        double factor = t / 10.0;
        if (t >= 10) factor = u < 30 ? 1 - 0.02 * u : 1;
        if (u >= 60) factor = u < 90 ? 1 : 1 - (u - 90) / 10.0; /* 25% of 40 steps: 10 */
        expect_factor(trainer, t, factor);
    }
    an_trainer_destroy(&trainer);
}

/* A milestone behind the end is allowed: the run ends in the part before. */
static void test_run_may_end_before_a_milestone(void **state) {
    (void)state;
    an_trainer *trainer = scheduled("run: {steps: 10}\n"
                                    "schedule: {type: sequence, milestones: [20], parts: [linear, {type: wsd}]}\n");
    for (int t = 0; t < 10; t++) expect_factor(trainer, t, 1 - t / 20.0);
    an_trainer_destroy(&trainer);
}

static void test_steps_take_their_rate_from_the_sequence(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_trainer *trainer = scheduled("run: {steps: 6}\noptimizer: {lr: 0.01}\n"
                                    "schedule: {type: sequence, milestones: [2], parts: [{type: points, points: {0: "
                                    "0.5}}, {type: linear}]}\n");
    const double rates[] = {0.005, 0.005, 0.01, 0.0075, 0.005, 0.0025};
    for (int t = 0; t < 6; t++) {
        OK(ctx, an_trainer_step(trainer, &metrics));
        assert_true(fabs(metrics.rate - rates[t]) < 1e-15);
    }
    an_trainer_destroy(&trainer);
}

/* The end as a rate is the end as a share of the peak, in every part. */
static void test_end_may_be_a_rate(void **state) {
    (void)state;
    an_trainer *trainer =
        scheduled("run: {steps: 10}\noptimizer: {lr: 0.01}\nschedule: {type: linear, min_lr: 2e-3}\n");
    for (int t = 0; t < 10; t++) expect_factor(trainer, t, 1 - 0.8 * t / 10.0);
    an_trainer_destroy(&trainer);
    trainer =
        scheduled("run: {steps: 10}\noptimizer: {lr: 0.01}\n"
                  "schedule: {type: sequence, milestones: [4], parts: [{type: linear, min_lr: 5e-3}, constant]}\n");
    for (int t = 0; t < 10; t++) expect_factor(trainer, t, t < 4 ? 1 - 0.5 * t / 4.0 : 1);
    an_trainer_destroy(&trainer);
    refused(MODEL "schedule: {type: linear, min_lr: 1e-3}\noptimizer: {lr: 1e-4}\n", AN_ERR_ARGUMENT,
            "schedule.min_lr is 0.001, more than optimizer.lr, which is 0.0001");
    refused(MODEL "schedule: {type: linear, min_lr: 1e-5, min_ratio: 0.1}\n", AN_ERR_ARGUMENT,
            "min_ratio and min_lr are both set; remove one of them");
}

/* ---- epochs ---- */

static void test_rate_holds_inside_an_epoch(void **state) {
    (void)state;
    an_trainer *trainer = scheduled("run: {epochs: 4}\nbatch: {global: 10}\n" /* 96 samples: ten steps */
                                    "schedule: {type: cosine, per: epoch, warmup: 1 epoch}\n");
    assert_int_equal(an_trainer_steps(trainer), 40);
    for (int t = 0; t < 40; t++) {
        const int first = t / 10 * 10;
        expect_factor(trainer, t, first == 0 ? 0.1 : (1 + cos(acos(-1) * (first - 10) / 30.0)) / 2);
    }
    an_trainer_destroy(&trainer);
}

/* Epochs may have different numbers of steps. */
static void test_rate_holds_where_epochs_change(void **state) {
    static const int begins[] = {0, 5, 10, 13, 16};
    (void)state;
    an_trainer *trainer = scheduled("run: {epochs: 4}\nbatch: {micro: 20, accumulate: {0: 1, 2: 2}, leaves: 1}\n"
                                    "schedule: {type: linear, per: epoch}\n");
    assert_int_equal(an_trainer_steps(trainer), 16);
    for (int t = 0, epoch = 0; t < 16; t++) {
        epoch += t == begins[epoch + 1];
        expect_factor(trainer, t, 1 - begins[epoch] / 16.0);
    }
    an_trainer_destroy(&trainer);
}

/* Those of a part are counted from where it begins in the run: behind the warm-up, and behind the parts before it. */
static void test_epochs_of_a_part(void **state) {
    (void)state;
    an_trainer *trainer =
        scheduled("run: {epochs: 4}\nbatch: {micro: 20, accumulate: {0: 1, 2: 2}, leaves: 1}\n"
                  "schedule:\n"
                  "  type: sequence\n"
                  "  warmup: {steps: 5, start_factor: 0}\n"
                  "  milestones: [5]\n"
                  "  parts: [constant, {type: constant, warmup: {steps: 1 epoch, start_factor: 0}}]\n");
    for (int t = 0; t < 16; t++) /* from step 10 on, an epoch has three steps */
        expect_factor(trainer, t, t < 5 ? t / 5.0 : t < 10 || t >= 13 ? 1 : (t - 10) / 3.0);
    an_trainer_destroy(&trainer);
}

/* 7 % of 100 steps are 7, though 0.07 × 100 is a little more than that. */
static void test_shares_are_whole_steps(void **state) {
    (void)state;
    for (int percent = 1; percent < 100; percent++) {
        char text[256];
        snprintf(text, sizeof text,
                 "run: {steps: 100}\nschedule: {type: constant, warmup: {steps: %d%%, start_factor: 0}}\n", percent);
        an_trainer *trainer = scheduled(text);
        expect_factor(trainer, percent - 1, (percent - 1.0) / percent);
        an_trainer_destroy(&trainer);
    }
    an_trainer *trainer = scheduled("run: {epochs: 4}\nbatch: {global: 10}\n" /* 96 samples: ten steps */
                                    "schedule: {type: constant, warmup: {steps: 1.1 epochs, start_factor: 0}}\n");
    expect_factor(trainer, 10, 10 / 11.0);
    an_trainer_destroy(&trainer);
}

/* ---- options that belong to a type ---- */

static void test_wsd_knows_its_stable_part(void **state) {
    (void)state;
    an_trainer *trainer = scheduled("run: {steps: 100}\nschedule: {type: wsd, stable: 30 steps, min_ratio: 0.1}\n");
    for (int t = 0; t < 100; t++) expect_factor(trainer, t, t < 30 ? 1 : 0.1 + 0.9 * (1 - (t - 30) / 70.0));
    an_trainer_destroy(&trainer);
    trainer = scheduled(
        "run: {steps: 100}\nschedule: {type: wsd, warmup: {steps: 10, start_factor: 0}, stable: 30, decay: 20}\n");
    for (int t = 0; t < 100; t++)
        expect_factor(trainer, t, t < 10 ? t / 10.0 : t < 40 ? 1 : t < 60 ? 1 - (t - 40) / 20.0 : 0);
    an_trainer_destroy(&trainer);
}

static void test_one_cycle_has_its_peak(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_trainer *trainer = scheduled("run: {steps: 10}\nschedule: {type: one_cycle, max_lr: 0.05}\n");
    OK(ctx, an_trainer_step(trainer, &metrics));
    assert_true(fabs(metrics.rate - 0.05 / 25) < 1e-15);
    an_trainer_destroy(&trainer);
}

static void test_mistakes_have_their_place(void **state) {
    (void)state;
    write_sums();
    refused(MODEL "schedule: {type: sequence, milestones: [2], parts: [constant, {type: linear, per: epoch}]}\n",
            AN_ERR_ARGUMENT, "per applies to a whole schedule, not to a part of it; use schedule.per");
    refused(MODEL "schedule: {type: sequence, milestones: [2], parts: [constant, {type: one_cycle, max_lr: 1}]}\n",
            AN_ERR_ARGUMENT, "run.yaml:3:89: max_lr applies to a whole schedule, not to a part of it; use");
    refused(MODEL "run: {steps: 10}\nschedule: {type: wsd, warmup: 4, stable: 7}\n", AN_ERR_ARGUMENT,
            "run.yaml:4:42: a warm-up of 4 steps and 7 steps at the peak leave nothing of 10 steps");
    refused(MODEL "schedule: {type: sequence, milestones: [20 steps, 1%], parts: [constant, linear, cosine]}\n",
            AN_ERR_ARGUMENT, "but each milestone must be later than the one before");
    refused(
        MODEL "run: {steps: 10}\nschedule: {type: sequence, milestones: [75%, 78%], parts: [linear, linear, linear]}\n",
        AN_ERR_ARGUMENT,
        "run.yaml:4:40: milestones 1 and 2 of 10 steps are after 8 and 8 steps, but each milestone must be later than "
        "the one before");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequence_has_its_parts),
        cmocka_unit_test(test_sequences_nest),
        cmocka_unit_test(test_run_may_end_before_a_milestone),
        cmocka_unit_test(test_steps_take_their_rate_from_the_sequence),
        cmocka_unit_test(test_end_may_be_a_rate),
        cmocka_unit_test(test_rate_holds_inside_an_epoch),
        cmocka_unit_test(test_rate_holds_where_epochs_change),
        cmocka_unit_test(test_epochs_of_a_part),
        cmocka_unit_test(test_shares_are_whole_steps),
        cmocka_unit_test(test_wsd_knows_its_stable_part),
        cmocka_unit_test(test_one_cycle_has_its_peak),
        cmocka_unit_test(test_mistakes_have_their_place),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

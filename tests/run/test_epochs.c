/* An epoch is an epoch, also where accumulation by epoch changes how many steps it has: evaluations,
 * saves, log lines and lengths. */
#include <dirent.h>

#include "anneal/open.h"
#include "anneal/run.h"
#include "open/support.h"

/* 96 samples in steps of 40, 20 and 5: epochs of 3, 5, 5, 20 and 20 steps, each with a short last one. */
#define CONFIG                                                                  \
    "run: {dir: folder, epochs: 5, seed: 2}\nmodel: {type: mlp, hidden: [6]}\n" \
    "batch: {micro: 5, accumulate: {0: 8, 1: 4, 3: 1}, leaves: 1}\n"            \
    "optimizer: {lr: 1e-2}\ntrain: {precision: f32}\n"
#define TRAIN "train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}"
#define DATA "data: {" TRAIN "}\n"
#define DATA_DROP "data: {" TRAIN ", drop_last: true}\n"
#define EVAL ", eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}"
#define DATA_EVAL "data: {" TRAIN EVAL "}\n"
#define DATA_EVAL_DROP "data: {" TRAIN EVAL ", drop_last: true}\n"

enum { MOST_EVENTS = 64 };

static int start(void **state) {
    if (setup(state) || system("rm -rf folder") != 0) return 1; /* NOLINT(cert-env33-c): the test's own folder */
    write_sums();
    return 0;
}

/* ---- what a run did, and when ---- */

typedef struct {
    an_trainer *trainer;
    int64_t dies_at, stops_at; /* steps; 0: never */
    int64_t evaluations[MOST_EVENTS], saves[MOST_EVENTS];
    int evaluation_count, save_count;
    double losses[MOST_EVENTS]; /* of steps, times their targets */
    int64_t targets[MOST_EVENTS];
    int64_t epochs[MOST_EVENTS]; /* whose end was told */
    int epoch_count;
} watcher;

/* From the losses of the steps. */
static double mean_loss(const watcher *w, int64_t first, int64_t last) {
    double loss = 0, targets = 0;
    for (int64_t step = first; step <= last; step++) {
        loss += w->losses[step];
        targets += (double)w->targets[step];
    }
    return loss / targets;
}

enum { STEPS = 53, EPOCHS = 5 };
static const int borders[] = {0, 3, 8, 13, 33, 53}; /* where epochs begin */

static int epoch_of(int t) {
    int epoch = 0;
    while (borders[epoch + 1] <= t) epoch++;
    return epoch;
}

static an_status after_step(void *user, an_trainer *trainer) {
    watcher *w = user;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_trainer_step_metrics(trainer, &metrics));
    if (metrics.step < MOST_EVENTS) {
        w->losses[metrics.step] = metrics.loss * (double)metrics.targets;
        w->targets[metrics.step] = metrics.targets;
    }
    if (metrics.step == w->stops_at) an_trainer_request_stop(w->trainer);
    return metrics.step == w->dies_at ? AN_ERR_HOOK : AN_OK;
}

static an_status after_evaluation(void *user, an_trainer *trainer, int64_t step, bool best) {
    watcher *w = user;
    (void)trainer, (void)best;
    assert_true(w->evaluation_count < MOST_EVENTS);
    w->evaluations[w->evaluation_count++] = step;
    return AN_OK;
}

static an_status after_epoch(void *user, an_trainer *trainer, int64_t epoch) {
    watcher *w = user;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_trainer_step_metrics(trainer, &metrics));
    assert_true(metrics.ends_epoch && metrics.epoch == epoch);
    assert_true(w->epoch_count < MOST_EVENTS);
    w->epochs[w->epoch_count++] = epoch;
    return AN_OK;
}

static an_status after_save(void *user, an_trainer *trainer) {
    watcher *w = user;
    an_save_report report;
    an_save_report_init(&report, sizeof report);
    OK(ctx, an_trainer_save_report(trainer, &report));
    assert_null(report.error);
    assert_true(w->save_count < MOST_EVENTS);
    w->saves[w->save_count++] = report.step;
    return AN_OK;
}

/* One launch of the run, whose events are added to the watcher's. */
static void launch(watcher *w, const char *config, an_status expected) {
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    w->trainer = open_run(config);
    OK(ctx, an_trainer_run_options(w->trainer, &run));
    run.callbacks = &(const an_run_callbacks){.size = sizeof(an_run_callbacks),
                                              .after_step = after_step,
                                              .after_evaluation = after_evaluation,
                                              .after_save = after_save,
                                              .after_epoch = after_epoch,
                                              .user = w};
    assert_int_equal(an_trainer_run(w->trainer, &run, NULL), expected);
}

static void same_steps(const char *what, const int64_t *steps, int count, const char *expected) {
    char list[1024] = "";
    for (int i = 0; i < count; i++) {
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%lld", i ? " " : "", (long long)steps[i]);
    }
    if (strcmp(list, expected) != 0) fail_msg("%s at %s, not at %s", what, list, expected);
}

static void evaluates_at(const char *config, const char *expected) {
    watcher w = {0};
    assert_int_equal(system("rm -rf folder"), 0); /* NOLINT(cert-env33-c) */
    launch(&w, config, AN_OK);
    same_steps("evaluations", w.evaluations, w.evaluation_count, expected);
    an_trainer_destroy(&w.trainer);
}

static void saves_at(const char *config, const char *expected) {
    watcher w = {0};
    assert_int_equal(system("rm -rf folder"), 0); /* NOLINT(cert-env33-c) */
    launch(&w, config, AN_OK);
    same_steps("saves", w.saves, w.save_count, expected);
    an_trainer_destroy(&w.trainer);
}

/* ---- evaluations, saves, log lines ---- */

static void test_evaluations_are_at_the_ends_of_epochs(void **state) {
    (void)state;
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 1 epoch}\n", "3 8 13 33 53");
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 2 epochs}\n", "8 33 53"); /* and after the last step */
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 3 epochs}\n", "13 53");
    evaluates_at(CONFIG DATA_EVAL_DROP "eval: {every: 1 epoch}\n", "2 6 10 29 48");
    evaluates_at(CONFIG DATA_EVAL_DROP "eval: {every: 2 epochs}\n", "6 29 48");
}

/* What a config does not say: after each epoch, unless it is a long one or the run is counted in something else. */
static void test_evaluations_come_by_themselves(void **state) {
    (void)state;
    static const char of_one[] = "model: {type: mlp, hidden: [6]}\nbatch: {global: 1}\nsave: {every: off}\n"
                                 "data: {train: {type: csv, path: long.csv, inputs: [a, b], targets: [sum]}" EVAL "}\n";
    evaluates_at(CONFIG DATA_EVAL, "3 8 13 33 53");
    for (int rows = 2000; rows <= 2001; rows++) {
        char config[512];
        FILE *file = fopen("long.csv", "w");
        assert_non_null(file);
        fputs("a,b,sum\n", file);
        for (int i = 0; i < rows; i++) fprintf(file, "%d,%d,%d\n", i % 3, i % 5, i % 3 + i % 5);
        fclose(file);
        snprintf(config, sizeof config, "run: {dir: folder, epochs: 1}\n%s", of_one);
        evaluates_at(config, rows > 2000 ? "500 1000 1500 2000 2001" : "2000");
        snprintf(config, sizeof config, "run: {dir: folder, steps: 601}\n%s", of_one);
        evaluates_at(config, "500 601");
    }
}

/* The first step at which half an epoch is over, and the last one of the epoch. */
/* 96 samples are an epoch, and 48 half of one, however many steps it has. */
static void test_intervals_in_samples_follow_the_batch(void **state) {
    (void)state;
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 96 samples}\n", "3 8 13 33 53");
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 192 tokens}\n", "8 33 53");
    saves_at(CONFIG DATA "save: {every: 48 samples, keep_last: all}\n", "2 3 6 8 11 13 23 33 43 53");
}

static void test_parts_of_epochs_end_with_the_epoch(void **state) {
    (void)state;
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 0.5 epochs}\n", "2 3 6 8 11 13 23 33 43 53");
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 0.1 epochs}\n",
                 "1 2 3 4 5 6 7 8 9 10 11 12 13 15 17 19 21 23 25 27 29 31 33 35 37 39 41 43 45 47 49 51 53");
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 1.5 epochs}\n", "6 13 43 53");
}

/* However small a part is, it ends at most once a step. */
static void test_parts_shorter_than_a_step(void **state) {
    static const char all[] =
        "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 "
        "35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53";
    (void)state;
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 0.001 epochs}\n", all);
    evaluates_at(CONFIG DATA_EVAL "eval: {every: 1e-300 epochs}\nsave: {every: 1e-300 epochs}\n", all);
}

static void test_saves_are_at_the_ends_of_epochs(void **state) {
    (void)state;
    saves_at(CONFIG DATA "save: {every: 1 epoch}\n", "3 8 13 33 53");
    saves_at(CONFIG DATA "save: {every: 2 epochs}\n", "8 33 53");
    saves_at(CONFIG DATA_DROP "save: {every: 1 epoch}\n", "2 6 10 29 48");
}

static int is_checkpoint(const struct dirent *entry) {
    return !strncmp(entry->d_name, "step-", 5);
}

static void test_every_second_epoch_is_kept(void **state) {
    static const char *const expected[] = {"step-00000008-1", "step-00000033-1", "step-00000053-1"};
    struct dirent **entries;
    (void)state;
    saves_at(CONFIG DATA "save: {every: 1 epoch, keep_last: 1, keep_every: 2 epochs}\n", "3 8 13 33 53");
    assert_int_equal(scandir("folder/checkpoints", &entries, is_checkpoint, alphasort), 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(entries[i]->d_name, expected[i]);
        free(entries[i]);
    }
    free(entries);
}

static void test_log_lines_are_at_the_ends_of_epochs(void **state) {
    int64_t steps[MOST_EVENTS];
    int count = 0;
    an_config *config = NULL;
    an_trainer *trainer = NULL;
    an_folder *folder = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    (void)state;
    write_text("run.yaml", CONFIG DATA "log: {every: 1 epoch}\n");
    options.file = "run.yaml";
    OK(ctx, an_config_create(&config, ctx, &options));
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, NULL));
    OK(ctx, an_folder_create(&folder, trainer, config, NULL));
    while (an_trainer_next_step(trainer) < an_trainer_steps(trainer)) {
        an_step_metrics metrics;
        an_step_metrics_init(&metrics, sizeof metrics);
        bool logged = false;
        OK(ctx, an_trainer_step(trainer, &metrics));
        OK(ctx, an_folder_step(folder, &metrics, &logged));
        if (logged) steps[count++] = metrics.step;
    }
    same_steps("log lines", steps, count, "1 3 8 13 33 53"); /* the first step always */
    an_folder_destroy(&folder);
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
}

/* ---- losses of epochs ---- */

static void test_steps_know_their_epoch_and_its_loss(void **state) {
    watcher w = {0};
    (void)state;
    w.trainer = open_run(CONFIG DATA);
    for (int step = 1; step <= STEPS; step++) {
        an_step_metrics m;
        an_step_metrics_init(&m, sizeof m);
        OK(ctx, an_trainer_step(w.trainer, &m));
        w.losses[step] = m.loss * (double)m.targets;
        w.targets[step] = m.targets;
        const int epoch = epoch_of(step - 1);
        assert_int_equal(m.epoch, epoch + 1);
        assert_int_equal(m.ends_epoch, step == borders[epoch + 1]);
        assert_true(fabs(m.epoch_loss - mean_loss(&w, borders[epoch] + 1, step)) < 1e-12);
    }
    an_trainer_destroy(&w.trainer);
}

/* ---- a run that was interrupted ---- */

/* Whether there is a checkpoint of a step, by any launch. */
static bool has_checkpoint(int step) {
    char name[32];
    struct dirent **entries;
    bool has = false;
    snprintf(name, sizeof name, "step-%08d-", step);
    const int count = scandir("folder/checkpoints", &entries, is_checkpoint, alphasort);
    for (int i = 0; i < count; i++) {
        has = has || !strncmp(entries[i]->d_name, name, strlen(name));
        free(entries[i]);
    }
    free(entries);
    return has;
}

/* Inside the short first epoch, inside a later one, right at borders; by a stop, which saves, and by an end that
 * does not. */
static void test_resumed_inside_an_epoch_acts_at_the_same_steps(void **state) {
    static const char config[] = CONFIG DATA_EVAL "eval: {every: 1 epoch}\nsave: {every: 2 epochs, keep_last: all}\n";
    static const int64_t steps[] = {2, 3, 9, 20, 33, 52};
    char expected[AN_HASH_TEXT], found[AN_HASH_TEXT];
    watcher whole = {0};
    (void)state;
    launch(&whole, config, AN_OK);
    OK(ctx, an_trainer_state_hash(whole.trainer, expected));
    an_trainer_destroy(&whole.trainer);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        for (int dies = 0; dies < 2; dies++) {
            watcher w = {0};
            *(dies ? &w.dies_at : &w.stops_at) = steps[i];
            assert_int_equal(system("rm -rf folder"), 0); /* NOLINT(cert-env33-c) */
            launch(&w, config, dies ? AN_ERR_HOOK : AN_OK);
            an_trainer_destroy(&w.trainer);
            w.dies_at = w.stops_at = 0;
            launch(&w, config, AN_OK);
            OK(ctx, an_trainer_state_hash(w.trainer, found));
            assert_string_equal(found, expected);
            assert_true(has_checkpoint(8) && has_checkpoint(33));
            if (!dies) same_steps("evaluations", w.evaluations, w.evaluation_count, "3 8 13 33 53");
            if (!dies) same_steps("ends of epochs", w.epochs, w.epoch_count, "1 2 3 4 5");
            an_step_metrics last; /* of the epoch too that was begun by another launch */
            an_step_metrics_init(&last, sizeof last);
            OK(ctx, an_trainer_step_metrics(w.trainer, &last));
            assert_true(fabs(last.epoch_loss - mean_loss(&w, borders[EPOCHS - 1] + 1, STEPS)) < 1e-12);
            an_trainer_destroy(&w.trainer);
        }
}

/* ---- lengths of schedules ---- */

static void expect_factors(const char *schedule, const double *expected, int count) {
    char config[1024];
    snprintf(config, sizeof config, "%s%s\n", CONFIG DATA, schedule);
    assert_int_equal(system("rm -rf folder"), 0); /* NOLINT(cert-env33-c) */
    an_trainer *trainer = open_run(config);
    assert_int_equal(an_trainer_steps(trainer), 53);
    for (int t = 0; t < count; t++) {
        const double found = an_schedule_factor(an_trainer_schedule(trainer), t);
        if (!(fabs(found - expected[t]) < 1e-12))
            fail_msg("%s: %.15g at %d, not %.15g", schedule, found, t, expected[t]);
    }
    an_trainer_destroy(&trainer);
}

static void expect_warmup(const char *schedule, int length) {
    double expected[STEPS];
    for (int t = 0; t < STEPS; t++) expected[t] = t < length ? (1 + t * (length - 1.0) / length) / length : 1;
    expect_factors(schedule, expected, STEPS);
}

static void test_warmups_last_whole_epochs(void **state) {
    (void)state;
    expect_warmup("schedule: {type: constant, warmup: 1 epoch}", 3);
    expect_warmup("schedule: {type: constant, warmup: 2 epochs}", 8);
    expect_warmup("schedule: {type: constant, warmup: 0.5 epochs}", 2);
    expect_warmup("schedule: {type: constant, warmup: 1.5 epochs}", 6); /* 3 steps, and half of 5 */
    expect_warmup("schedule: {type: constant, warmup: 3.25 epochs}", 18);
}

/* They count from the end of the warm-up, in the epochs that come then. */
static void test_milestones_are_at_borders_of_epochs(void **state) {
    double expected[STEPS];
    (void)state;
    for (int t = 0; t < STEPS; t++) expected[t] = t < 13 ? 1 : 1 - (t - 13) / 40.0;
    expect_factors("schedule: {type: sequence, milestones: [3 epochs], parts: [constant, linear]}", expected, STEPS);
    for (int t = 0; t < STEPS; t++) expected[t] = t < 3 ? (1 + t * 2.0 / 3) / 3 : t < 33 ? 1 : 1 - (t - 33) / 20.0;
    expect_factors("schedule: {type: sequence, warmup: 1 epoch, milestones: [3 epochs], parts: [constant, linear]}",
                   expected, STEPS);
}

static void test_periods_are_whole_epochs(void **state) {
    double expected[STEPS];
    (void)state;
    for (int t = 0; t < STEPS; t++) expected[t] = pow(0.5, epoch_of(t));
    expect_factors("schedule: {type: step, period: 1 epoch, gamma: 0.5}", expected, STEPS);
    for (int t = 0; t < STEPS; t++) expected[t] = t < 8 ? 1 : t < 33 ? 0.5 : 0.25;
    expect_factors("schedule: {type: step, period: 2 epochs, gamma: 0.5}", expected, STEPS);
    for (int t = 0; t < STEPS; t++) {
        const int begin = borders[epoch_of(t)], end = borders[epoch_of(t) + 1];
        expected[t] = (1 + cos(acos(-1) * (t - begin) / (end - begin))) / 2;
    }
    expect_factors("schedule: {type: cosine_restarts, T_0: 1 epoch}", expected, STEPS);
    for (int t = 0; t < STEPS; t++) { /* waves of 1, 2 and 4 epochs */
        const int begin = t < 3 ? 0 : t < 13 ? 3 : 13, end = t < 3 ? 3 : t < 13 ? 13 : 93;
        expected[t] = (1 + cos(acos(-1) * (t - begin) / (end - begin))) / 2;
    }
    expect_factors("schedule: {type: cosine_restarts, T_0: 1 epoch, T_mult: 2}", expected, STEPS);
}

static void test_the_way_down_is_the_last_epochs(void **state) {
    double expected[STEPS];
    (void)state;
    for (int t = 0; t < STEPS; t++) expected[t] = t < 33 ? 1 : 1 - (t - 33) / 20.0;
    expect_factors("schedule: {type: wsd, decay: 1 epoch}", expected, STEPS);
    for (int t = 0; t < STEPS; t++) expected[t] = t < 8 ? 1 : t < 33 ? 1 - (t - 8) / 25.0 : 0;
    expect_factors("schedule: {type: wsd, stable: 2 epochs, decay: 2 epochs}", expected, STEPS);
}

/* 96 samples are an epoch: a length in samples ends where as many epochs do, wherever it begins. */
static void test_lengths_in_samples_follow_the_batch(void **state) {
    double expected[STEPS];
    (void)state;
    expect_warmup("schedule: {type: constant, warmup: 192 samples}", 8);
    expect_warmup("schedule: {type: constant, warmup: 112 tokens}", 4); /* 96, and a step of 20 */
    for (int t = 0; t < STEPS; t++) expected[t] = t < 3 ? (1 + t * 2.0 / 3) / 3 : t < 33 ? 1 : 1 - (t - 33) / 20.0;
    expect_factors("schedule: {type: sequence, warmup: 1 epoch, milestones: [288 samples], parts: [constant, linear]}",
                   expected, STEPS);
    for (int t = 0; t < STEPS; t++) expected[t] = t < 33 ? 1 : 1 - (t - 33) / 20.0;
    expect_factors("schedule: {type: wsd, decay: 96 samples}", expected, STEPS);
    for (int t = 0; t < STEPS; t++) expected[t] = t < 8 ? 1 : t < 33 ? 1 - (t - 8) / 25.0 : 0;
    expect_factors("schedule: {type: wsd, stable: 192 samples, decay: 192 tokens}", expected, STEPS);
    for (int t = 0; t < STEPS; t++) expected[t] = pow(0.5, epoch_of(t));
    expect_factors("schedule: {type: step, period: 96 samples, gamma: 0.5}", expected, STEPS);
    for (int t = 0; t < STEPS; t++) { /* waves of 1, 2 and 4 epochs */
        const int begin = t < 3 ? 0 : t < 13 ? 3 : 13, end = t < 3 ? 3 : t < 13 ? 13 : 93;
        expected[t] = (1 + cos(acos(-1) * (t - begin) / (end - begin))) / 2;
    }
    expect_factors("schedule: {type: cosine_restarts, T_0: 96 samples, T_mult: 2}", expected, STEPS);
}

/* With drop_last epochs take 80, 80, 80, 95 and 95 samples, in 2, 4, 4, 19 and 19 steps. */
static void test_runs_of_so_many_samples(void **state) {
    static const struct {
        int samples, steps;
    } runs[] = {{1, 1}, {80, 2}, {81, 3}, {160, 6}, {161, 7}, {240, 10}, {241, 11}, {335, 29}, {336, 30}, {525, 67}};
    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        char config[512];
        snprintf(config, sizeof config,
                 "run: {dir: folder, samples: %d}\nmodel: {type: mlp, hidden: [6]}\n" DATA_DROP
                 "batch: {micro: 5, accumulate: {0: 8, 1: 4, 3: 1}, leaves: 1}\n",
                 runs[i].samples);
        an_trainer *trainer = open_run(config);
        assert_int_equal(an_trainer_steps(trainer), runs[i].steps);
        an_trainer_destroy(&trainer);
        assert_int_equal(system("rm -rf folder"), 0); /* NOLINT(cert-env33-c) */
    }
}

static void test_numbers_of_the_run(void **state) {
    an_trainer_info info;
    an_trainer_info_init(&info, sizeof info);
    (void)state;
    an_trainer *trainer = open_run(CONFIG DATA);
    OK(ctx, an_trainer_info_get(trainer, &info));
    assert_true(info.epochs == 5);
    assert_int_equal(info.min_epoch_steps, 3);
    assert_int_equal(info.max_epoch_steps, 20);
    an_trainer_destroy(&trainer);
    trainer = open_run("run: {dir: folder, steps: 10}\nmodel: {type: mlp, hidden: [6]}\n" DATA
                       "batch: {micro: 5, accumulate: {0: 8, 1: 4, 3: 1}, leaves: 1}\n");
    OK(ctx, an_trainer_info_get(trainer, &info));
    assert_true(fabs(info.epochs - 2.4) < 1e-12);
    assert_int_equal(info.max_epoch_steps, 5); /* the fourth epoch never begins */
    an_trainer_destroy(&trainer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_evaluations_are_at_the_ends_of_epochs, start, teardown),
        cmocka_unit_test_setup_teardown(test_evaluations_come_by_themselves, start, teardown),
        cmocka_unit_test_setup_teardown(test_intervals_in_samples_follow_the_batch, start, teardown),
        cmocka_unit_test_setup_teardown(test_parts_of_epochs_end_with_the_epoch, start, teardown),
        cmocka_unit_test_setup_teardown(test_parts_shorter_than_a_step, start, teardown),
        cmocka_unit_test_setup_teardown(test_saves_are_at_the_ends_of_epochs, start, teardown),
        cmocka_unit_test_setup_teardown(test_every_second_epoch_is_kept, start, teardown),
        cmocka_unit_test_setup_teardown(test_log_lines_are_at_the_ends_of_epochs, start, teardown),
        cmocka_unit_test_setup_teardown(test_steps_know_their_epoch_and_its_loss, start, teardown),
        cmocka_unit_test_setup_teardown(test_resumed_inside_an_epoch_acts_at_the_same_steps, start, teardown),
        cmocka_unit_test_setup_teardown(test_warmups_last_whole_epochs, start, teardown),
        cmocka_unit_test_setup_teardown(test_milestones_are_at_borders_of_epochs, start, teardown),
        cmocka_unit_test_setup_teardown(test_periods_are_whole_epochs, start, teardown),
        cmocka_unit_test_setup_teardown(test_the_way_down_is_the_last_epochs, start, teardown),
        cmocka_unit_test_setup_teardown(test_lengths_in_samples_follow_the_batch, start, teardown),
        cmocka_unit_test_setup_teardown(test_runs_of_so_many_samples, start, teardown),
        cmocka_unit_test_setup_teardown(test_numbers_of_the_run, start, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

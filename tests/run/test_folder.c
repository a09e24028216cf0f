/* The folder of a run: what is in it, who may write to it, what a full disk does. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/open.h"
#include "anneal/run.h"
#include "run/folder.h"

#include "open/support.h" /* last, as its ctx would be shadowed */

#define CONFIG                                                                                         \
    "run: {dir: folder, steps: 6, seed: 2}\nmodel: {type: mlp, hidden: [4]}\n"                         \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}}\nbatch: {global: 8}\n" \
    "train: {precision: f32}\nlog: {every: 2 steps}\n"

static an_config *config;
static an_trainer *trainer;

static int open_all(void **state) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    if (setup(state)) return 1;
    if (system("rm -rf folder folder-2 folder-3") != 0) return 1; /* NOLINT(cert-env33-c): the test's own folder */
    write_sums();
    options.file = "run.yaml";
    options.text = CONFIG;
    options.length = strlen(CONFIG);
    return an_config_create(&config, ctx, &options) || an_trainer_open_config(&trainer, ctx, config, NULL);
}

static int close_all(void **state) {
    an_trainer_destroy(&trainer);
    an_config_destroy(&config);
    return teardown(state);
}

static an_folder *make(bool fresh) {
    an_folder_options options;
    an_folder_options_init(&options, sizeof options);
    an_folder *folder = NULL;
    options.fresh = fresh;
    OK(ctx, an_folder_create(&folder, trainer, config, &options));
    return folder;
}

static void refuse_folder(an_status status, const char *words) {
    an_folder *folder = NULL;
    assert_int_equal(an_folder_create(&folder, trainer, config, NULL), status);
    assert_null(folder);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
}

static an_folder_state state_of(const char *path) {
    an_folder_state state;
    OK(ctx, an_folder_look(ctx, path, &state));
    return state;
}

static an_status after_step(void *user, an_trainer *of) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    OK(ctx, an_trainer_step_metrics(of, &metrics));
    return an_folder_step(user, &metrics, NULL);
}

static void run_in(an_folder *folder) {
    an_run_options run;
    an_run_options_init(&run, sizeof run);
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.after_step = after_step;
    callbacks.user = folder;
    run.callbacks = &callbacks;
    OK(ctx, an_trainer_run(trainer, &run, &outcome));
    OK(ctx, an_folder_finish(folder, &outcome, NULL));
}

static void test_states_of_a_folder(void **state) {
    (void)state;
    assert_int_equal(state_of("folder"), AN_FOLDER_EMPTY);
    an_folder *folder = make(false);
    assert_string_equal(an_folder_path(folder), "folder");
    assert_int_equal(state_of("folder"), AN_FOLDER_UNFINISHED);
    run_in(folder);
    an_folder_destroy(&folder);
    assert_int_equal(state_of("folder"), AN_FOLDER_FINISHED);
}

/* A trainer has one folder; one that has a run in it is for who carries on with that run. */
static void test_two_runs_never_share_a_folder(void **state) {
    an_open_options anew;
    an_open_options_init(&anew, sizeof anew);
    (void)state;
    an_folder *folder = make(false);
    refuse_folder(AN_ERR_STATE, "the run is already being written to folder");
    run_in(folder);
    an_folder_destroy(&folder);
    an_trainer_destroy(&trainer);
    anew.fresh = true;
    OK(ctx, an_trainer_open_config(&trainer, ctx, config, &anew));
    refuse_folder(AN_ERR_FILE, "folder: this folder already has a run; add --fresh to start a new one beside it "
                               "(nothing is deleted), or set run.dir to another name");
    folder = make(true);
    assert_string_equal(an_folder_path(folder), "folder-2");
    an_folder_destroy(&folder);
    assert_int_equal(state_of("folder"), AN_FOLDER_FINISHED); /* nothing was deleted */
}

static void expect_changes(const char *setting, const char *expected) {
    char *changes = NULL;
    if (setting) OK(ctx, an_config_set(config, setting));
    OK(ctx, an_folder_compare("folder", config, &changes));
    if (expected && changes)
        assert_string_equal(changes, expected);
    else
        assert_true(!expected && !changes);
    an_string_release(ctx, &changes);
}

/* What a resumed run may change, one without a checkpoint may change too: any strategy, threads and lines, but
 * nothing that its bits depend on. */
static void test_what_makes_a_config_another_run(void **state) {
    (void)state;
    expect_changes(NULL, NULL); /* no folder yet */
    an_folder *folder = make(false);
    an_folder_destroy(&folder);
    expect_changes(NULL, NULL);
    expect_changes("log.every=3 steps", NULL);
    expect_changes("ranks.shard=full", NULL);
    expect_changes("optimizer.lr=0.5", "optimizer.lr is 0.5, was 1e-4");
    OK(ctx, an_config_set(config, "run.seed=77"));
    OK(ctx, an_config_set(config, "optimizer.eps=1e-3"));
    expect_changes("train.clip_norm=0.25",
                   "run.seed is 77, was 2; optimizer.lr is 0.5, was 1e-4; optimizer.eps is 1e-3, was 1e-8; and 1 more");
    FILE *file = fopen("folder/config.yaml", "w");
    assert_non_null(file);
    fprintf(file, "version: 1\n");
    fclose(file);
    expect_changes(NULL, "folder/config.yaml:1:1: 'model' is missing; a config needs at least model and data");
}

/* One line for the first step, every second and the last. */
static void test_metrics_have_a_line_per_logged_step(void **state) {
    char line[512];
    int lines = 0;
    (void)state;
    an_folder *folder = make(false);
    run_in(folder);
    an_folder_destroy(&folder);
    FILE *file = fopen("folder/metrics.jsonl", "r");
    assert_non_null(file);
    static const int expected[] = {1, 2, 4, 6};
    while (fgets(line, sizeof line, file)) {
        char begin[48];
        assert_in_range(lines, 0, 3);
        snprintf(begin, sizeof begin, "{\"step\": %d, \"epoch\": 1, \"loss\": ", expected[lines++]);
        assert_memory_equal(line, begin, strlen(begin));
    }
    fclose(file);
    assert_int_equal(lines, 4);
}

static void test_a_disk_without_room_is_told(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    an_folder *folder = make(false);
    const int full = open("/dev/full", O_WRONLY); /* says what a full disk says */
    assert_true(full >= 0 && dup2(full, folder->metrics) == folder->metrics);
    close(full);
    OK(ctx, an_trainer_step(trainer, &metrics));
    assert_int_equal(an_folder_step(folder, &metrics, NULL), AN_ERR_FILE);
    assert_non_null(strstr(an_last_error(ctx), "folder/metrics.jsonl: cannot be written: No space left on device"));
    an_folder_destroy(&folder);
}

/* What outcome.json says; "": there is none. */
static const char *outcome_text(void) {
    static char text[1024];
    FILE *file = fopen("folder/outcome.json", "r");
    const size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file) fclose(file);
    text[length] = 0;
    return text;
}

static void expect_failed(const char *words) {
    if (!strstr(outcome_text(), "\"end\": \"failed\"") || !strstr(outcome_text(), words))
        fail_msg("outcome.json says: %s", outcome_text());
}

/* As on a disk that is full, nothing can be written beside the file. */
static void test_an_end_needs_no_room(void **state) {
    (void)state;
    an_folder *folder = make(false);
    assert_int_equal(mkdir("folder/outcome.json.new", 0700), 0);
    OK(ctx, an_folder_finish(folder, NULL, "the disk is full"));
    expect_failed("\"error\": \"the disk is full\"}\n");
    OK(ctx, an_folder_finish(folder, NULL, "a"));
    expect_failed("\"error\": \"a\"}\n"); /* which is shorter */
    assert_int_equal(strchr(outcome_text(), '\n')[1], 0);
    /* More than the file has room for leaves it as it was. */
    static char longest[10000];
    memset(longest, 'e', sizeof longest - 1);
    assert_int_equal(an_folder_finish(folder, NULL, longest), AN_ERR_FILE);
    assert_non_null(strstr(an_last_error(ctx), "folder/outcome.json.new: "));
    expect_failed("\"error\": \"a\"}\n");
    an_folder_destroy(&folder);
}

static void test_a_run_without_its_summary_has_failed(void **state) {
    (void)state;
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_folder *folder = make(false);
    OK(ctx, an_trainer_run(trainer, NULL, &outcome));
    assert_int_equal(mkdir("folder/summary.json.new", 0700), 0);
    assert_int_equal(an_folder_finish(folder, &outcome, NULL), AN_ERR_FILE);
    assert_non_null(strstr(an_last_error(ctx), "folder/summary.json.new: "));
    expect_failed("folder/summary.json.new: ");
    assert_int_equal(rmdir("folder/summary.json.new"), 0);
    OK(ctx, an_folder_finish(folder, &outcome, NULL));
    assert_non_null(strstr(outcome_text(), "\"end\": \"done\""));
    an_folder_destroy(&folder);
}

/* Whichever of its files cannot be opened, the folder does not say that the run is under way. */
static void test_a_folder_that_was_not_made_has_failed(void **state) {
    (void)state;
    struct rlimit limit;
    int told = 0;
    const int minimum = dup(0);
    assert_true(minimum > 0 && close(minimum) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t maximum = limit.rlim_cur;
    for (int i = 0; i < 6; i++) {
        an_folder *folder = NULL;
        assert_int_equal(system("rm -rf folder"), 0); /* NOLINT(cert-env33-c): the test's own folder */
        limit.rlim_cur = (rlim_t)minimum + (rlim_t)i;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        const an_status status = an_folder_create(&folder, trainer, config, NULL);
        limit.rlim_cur = maximum;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        an_folder_destroy(&folder);
        if (status == AN_OK || !*outcome_text()) continue;
        assert_non_null(strstr(an_last_error(ctx), "Too many open files"));
        expect_failed("Too many open files");
        told++;
    }
    assert_in_range(told, 1, 6);
}

/* The same run has the same state; another order of samples or another number of steps has not. */
static void test_state_hash_sees_what_a_run_was(void **state) {
    char weights[2][AN_HASH_TEXT], hashes[3][AN_HASH_TEXT];
    (void)state;
    for (int i = 0; i < 2; i++) {
        an_trainer *one = NULL;
        OK(ctx, an_trainer_open_config(&one, ctx, config, NULL));
        train(one);
        OK(ctx, an_trainer_weights_hash(one, weights[i]));
        OK(ctx, an_trainer_state_hash(one, hashes[i]));
        an_trainer_destroy(&one);
    }
    assert_string_equal(weights[0], weights[1]);
    assert_string_equal(hashes[0], hashes[1]);
    assert_string_not_equal(weights[0], hashes[0]);
    OK(ctx, an_config_set(config, "optimizer.lr=0"));
    an_trainer *still = NULL;
    OK(ctx, an_trainer_open_config(&still, ctx, config, NULL));
    OK(ctx, an_trainer_state_hash(still, hashes[0]));
    train(still); /* which changes no weight, but moments, steps and losses */
    OK(ctx, an_trainer_weights_hash(still, weights[0]));
    OK(ctx, an_trainer_state_hash(still, hashes[2]));
    an_trainer_destroy(&still);
    assert_string_not_equal(hashes[0], hashes[2]);
}

/* The reason is the caller's, and only of a stop that was requested. */
static void test_outcome_has_the_reason_of_a_stop(void **state) {
    (void)state;
    char text[512] = "";
    an_run_outcome outcome;
    an_run_outcome_init(&outcome, sizeof outcome);
    an_folder *folder = make(false);
    an_trainer_request_stop(trainer);
    OK(ctx, an_trainer_run(trainer, NULL, &outcome));
    assert_int_equal(outcome.end, AN_RUN_REQUESTED);
    outcome.reason = "the user said \"enough\"";
    OK(ctx, an_folder_finish(folder, &outcome, NULL));
    an_folder_destroy(&folder);
    FILE *file = fopen("folder/outcome.json", "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(text, "\"end\": \"stopped on request\""));
    assert_non_null(strstr(text, "\"reason\": \"the user said \\\"enough\\\"\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_outcome_has_the_reason_of_a_stop, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_states_of_a_folder, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_two_runs_never_share_a_folder, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_what_makes_a_config_another_run, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_metrics_have_a_line_per_logged_step, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_a_disk_without_room_is_told, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_an_end_needs_no_room, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_a_run_without_its_summary_has_failed, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_a_folder_that_was_not_made_has_failed, open_all, close_all),
        cmocka_unit_test_setup_teardown(test_state_hash_sees_what_a_run_was, open_all, close_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

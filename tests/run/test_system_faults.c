/* A system that fails in the middle: the run says so, never loops, and never takes what it cannot see for absent. */
#define _GNU_SOURCE /* fopencookie; NOLINT(bugprone-reserved-identifier) */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/config.h"
#include "anneal/run.h"
#include "open/support.h"

#define CONFIG                                                         \
    "run: {dir: faults, steps: 12}\nmodel: {type: mlp, hidden: [5]}\n" \
    "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}, threads: 0}\n"

/* ---- faults: the linker leads these calls here ---- */

static const char *bad_sync, *bad_folder; /* how the path ends of what fails; NULL: nothing does */

static bool fails(int file, const char *end) {
    char name[64], path[4096];
    if (!end) return false;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length < (ssize_t)strlen(end)) return false;
    path[length] = 0;
    errno = EIO;
    return !strcmp(path + length - strlen(end), end);
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's --wrap asks for these names */
int __real_fsync(int file);
int __wrap_fsync(int file);
int __wrap_fsync(int file) {
    return fails(file, bad_sync) ? -1 : __real_fsync(file);
}

struct dirent *__real_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream) {
    return fails(dirfd(stream), bad_folder) ? NULL : __real_readdir(stream);
}

static bool has_no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *user) {
    return has_no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, user);
}

/* A link that cannot be made, as on file systems without them; a stream that cannot be read. */
static bool has_no_links, has_bad_streams;

int __real_symlink(const char *target, const char *path);
int __wrap_symlink(const char *target, const char *path);
int __wrap_symlink(const char *target, const char *path) {
    errno = EPERM;
    return has_no_links ? -1 : __real_symlink(target, path);
}

static ssize_t read_badly(void *cookie, char *buffer, size_t size) {
    (void)cookie, (void)buffer, (void)size;
    errno = EIO;
    return -1;
}

FILE *__real_fdopen(int file, const char *mode);
FILE *__wrap_fdopen(int file, const char *mode);
FILE *__wrap_fdopen(int file, const char *mode) {
    if (!has_bad_streams) return __real_fdopen(file, mode);
    close(file);
    return fopencookie(NULL, mode, (cookie_io_functions_t){.read = read_badly});
}
/* NOLINTEND(bugprone-reserved-identifier) */

static int no_faults(void **state) {
    bad_sync = bad_folder = NULL;
    has_no_threads = has_no_links = has_bad_streams = false;
    return teardown(state);
}

static void begin(void) {
    assert_int_equal(system("rm -rf faults"), 0); /* NOLINT(cert-env33-c): the test's own folder */
    write_sums();
}

#define EVALUATION ", eval: {type: csv, path: sums.csv, inputs: [a, b], targets: [sum]}"

static an_status count_warnings(void *user, an_trainer *trainer) {
    an_save_report report;
    an_save_report_init(&report, sizeof report);
    OK(ctx, an_trainer_save_report(trainer, &report));
    assert_null(report.error);
    if (report.warning) {
        ++*(int *)user;
        assert_non_null(
            strstr(report.warning, "the link to the best checkpoint cannot be created: Operation not permitted"));
    }
    return AN_OK;
}

static int count_checkpoints(void) {
    int count = 0;
    DIR *stream = opendir("faults/checkpoints");
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = __real_readdir(stream));) count += !strncmp(entry->d_name, "step-", 5);
    closedir(stream);
    return count;
}

/* ---- tests ---- */

/* A save needs the number of its launch. */
static void cannot_be_saved(const char *words) {
    an_trainer *trainer = open_run(CONFIG);
    assert_int_equal(an_trainer_save(trainer, 0), AN_ERR_FILE);
    if (!strstr(an_last_error(ctx), words)) fail_msg("'%s' is not in: %s", words, an_last_error(ctx));
    an_trainer_destroy(&trainer);
}

/* A number that could not be written was taken for another process's, and the next one tried: files without end. */
static void test_launch_that_cannot_be_written(void **state) {
    (void)state;
    begin();
    bad_sync = "/faults/launches/1";
    cannot_be_saved("faults/launches/1: cannot be synced: Input/output error");
    assert_int_not_equal(access("faults/launches/1", F_OK), 0);
}

static void test_launches_that_cannot_be_read(void **state) {
    (void)state;
    begin();
    bad_folder = "/faults/launches";
    cannot_be_saved("faults/launches: the folder cannot be read: Input/output error");
}

/* Such a run began anew, and wrote over the metrics of what was done. */
static void test_checkpoints_that_cannot_be_read(void **state) {
    enum { DONE = 5 };
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    (void)state;
    begin();
    an_trainer *trainer = open_run(CONFIG);
    for (int i = 0; i < DONE; i++) OK(ctx, an_trainer_step(trainer, &metrics));
    OK(ctx, an_trainer_save(trainer, DONE));
    an_trainer_destroy(&trainer);
    bad_folder = "/faults/checkpoints";
    refused(CONFIG, AN_ERR_FILE, "faults/checkpoints: the folder cannot be read: Input/output error");
    bad_folder = NULL;
    trainer = open_run(CONFIG);
    assert_int_equal(an_trainer_next_step(trainer), DONE);
    an_trainer_destroy(&trainer);
}

/* Metrics of earlier launches that cannot be read are not replaced by fewer. */
static void test_metrics_that_cannot_be_read(void **state) {
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_config *config = NULL;
    an_folder *folder = NULL;
    struct stat before, after;
    (void)state;
    begin();
    options.file = "run.yaml";
    for (int launch = 0; launch < 2; launch++) {
        an_trainer *trainer = open_run(CONFIG);
        OK(ctx, an_config_create(&config, ctx, &options));
        has_bad_streams = launch == 1;
        const an_status status = an_folder_create(&folder, trainer, config, NULL);
        assert_int_equal(status, launch == 0 ? AN_OK : AN_ERR_FILE);
        if (launch == 0) {
            OK(ctx, an_trainer_step(trainer, &metrics));
            OK(ctx, an_folder_step(folder, &metrics, NULL));
            OK(ctx, an_trainer_save(trainer, 1));
            assert_int_equal(stat("faults/metrics.jsonl", &before), 0);
        } else {
            assert_non_null(strstr(an_last_error(ctx), "faults/metrics.jsonl: cannot be read: Input/output error"));
        }
        an_folder_destroy(&folder);
        an_config_destroy(&config);
        an_trainer_destroy(&trainer);
    }
    assert_int_equal(stat("faults/metrics.jsonl", &after), 0);
    assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
}

/* The checkpoint is there whether or not `best` can point to it, and old ones go all the same. */
static void test_best_that_cannot_be_linked(void **state) {
    static const char text[] = CONFIG "save: {every: 2 steps, keep_last: 2}\neval: {every: 2 steps}\n"
                                      "log: {tensorboard: off}\noptimizer: {lr: 1e-3}\n";
    an_run_options options;
    an_run_options_init(&options, sizeof options);
    int warnings = 0;
    char with_data[sizeof text + 200];
    (void)state;
    begin();
    snprintf(with_data, sizeof with_data, "%s", text);
    char *data = strstr(with_data, ", threads: 0}");
    memmove(data + strlen(EVALUATION), data, strlen(data) + 1);
    memcpy(data, EVALUATION, strlen(EVALUATION));
    an_trainer *trainer = open_run(with_data);
    has_no_links = true;
    OK(ctx, an_trainer_run_options(trainer, &options));
    an_run_callbacks callbacks;
    an_run_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.after_save = count_warnings;
    callbacks.user = &warnings;
    options.callbacks = &callbacks;
    OK(ctx, an_trainer_run(trainer, &options, NULL));
    an_trainer_destroy(&trainer);
    assert_true(warnings > 2); /* the loss falls: every evaluation is the best */
    assert_int_not_equal(access("faults/best", F_OK), 0);
    assert_int_equal(count_checkpoints(), 2);
}

/* The loader needs the threads that it was given. Everything else does its work on the calling
 * thread, with the same bits. */
static void test_no_threads(void **state) {
    static const char loader[] = "setting data.threads to 0",
                      large[] = "run: {dir: faults, steps: 6}\nbatch: {global: 96}\n"
                                "model: {type: mlp, hidden: [512, 512]}\n"
                                "data: {train: {type: csv, path: sums.csv, inputs: [a, b], "
                                "targets: [sum]}, threads: ";
    char text[sizeof large + 8], hashes[2][AN_HASH_TEXT];
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin();
        has_no_threads = i == 1;
        snprintf(text, sizeof text, "%s1}\n", large);
        if (has_no_threads) refused(text, AN_ERR_MEMORY, loader);
        snprintf(text, sizeof text, "%s0}\n", large);
        an_trainer *trainer = open_run(text);
        train(trainer);
        OK(ctx, an_trainer_save(trainer, 1));
        OK(ctx, an_trainer_state_hash(trainer, hashes[i]));
        an_trainer_destroy(&trainer);
        an_context_destroy(&ctx); /* with the threads that it has */
        OK(NULL, context_with_ledger(&ctx, &counted, 2));
    }
    assert_string_equal(hashes[0], hashes[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_launch_that_cannot_be_written, setup, no_faults),
        cmocka_unit_test_setup_teardown(test_launches_that_cannot_be_read, setup, no_faults),
        cmocka_unit_test_setup_teardown(test_checkpoints_that_cannot_be_read, setup, no_faults),
        cmocka_unit_test_setup_teardown(test_metrics_that_cannot_be_read, setup, no_faults),
        cmocka_unit_test_setup_teardown(test_best_that_cannot_be_linked, setup, no_faults),
        cmocka_unit_test_setup_teardown(test_no_threads, setup, no_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

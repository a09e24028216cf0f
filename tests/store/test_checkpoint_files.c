/* Files of a checkpoint that are missing, are something else, or change while they are read. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "store/manifest_support.h"

static const char part[] = FOLDER "/part-00000.safetensors", config_path[] = FOLDER "/config.yaml";

/* ---- something else in the place of a file ---- */

static void stands_in(const char *path, const char *words) {
    check_refused(OPEN, TRIES, folder_bytes + good_length, words, path);
    assert_int_equal(remove(path), 0);
}

static void test_what_is_no_file(void **state) {
    const char *const paths[] = {manifest_path, part, config_path};
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const char *path = paths[i];
        assert_int_equal(rename(path, "aside"), 0);
        check_refused(i == 0 ? VERIFY : OPEN, TRIES, folder_bytes, "is missing", path);
        assert_int_equal(symlink("../../../aside", path), 0); /* to the very bytes */
        stands_in(path, "not a regular file");
        assert_int_equal(symlink("/dev/zero", path), 0);
        stands_in(path, "not a regular file");
        assert_int_equal(symlink("nowhere", path), 0);
        stands_in(path, "not a regular file");
        assert_int_equal(mkfifo(path, 0666), 0);
        stands_in(path, "not a regular file");
        assert_int_equal(mkdir(path, 0777), 0);
        stands_in(path, "not a regular file");
        write_text(path, "");
        stands_in(path, i == 0 ? "is damaged" : "has 0 bytes");
        write_text(path, ""); /* sparse: it takes no room, and must take no memory */
        assert_int_equal(truncate(path, (off_t)2 << 30), 0);
        stands_in(path, "bytes");
        assert_int_equal(rename("aside", path), 0);
    }
    is_good();
}

/* ---- files that change while they are read ---- */

static atomic_bool changing;

static void *change(void *user) {
    const char *path = user;
    struct stat found;
    if (stat(path, &found)) return NULL;
    while (atomic_load(&changing)) {
        if (truncate(path, found.st_size / 2)) break;
        if (truncate(path, found.st_size)) break;
    }
    return NULL;
}

static void test_files_that_shrink(void **state) {
    enum { TIMES = 300 };
    static char paths[][256] = {FOLDER "/manifest.json", FOLDER "/part-00000.safetensors"};
    int seen = 0;
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        pthread_t thread;
        assert_int_equal(rename(paths[i], "aside"), 0);
        assert_int_equal(system(i ? "cp aside " FOLDER "/part-00000.safetensors" : "cp aside " FOLDER "/manifest.json"),
                         0);
        atomic_store(&changing, true);
        assert_int_equal(pthread_create(&thread, NULL, change, paths[i]), 0);
        for (int k = 0; k < TIMES; k++)
            for (int t = 0; t < TRIES; t++) {
                const an_status status = tries[t]();
                if (status != AN_OK && status != AN_ERR_DAMAGED && status != AN_ERR_FILE)
                    fail_msg("%s: %s", an_status_name(status), an_last_error(ctx));
                if (status != AN_OK && strncmp(an_last_error(ctx), paths[i], strlen(paths[i])) != 0)
                    fail_msg("no file in: %s", an_last_error(ctx));
                seen += status != AN_OK;
                if (t == LOAD && status == AN_OK) renew_reader();
            }
        atomic_store(&changing, false);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(rename("aside", paths[i]), 0);
    }
    assert_true(seen > 0);
    is_good();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_files_that_shrink),
    };
    return cmocka_run_group_tests(tests, make_checkpoint, remove_all);
}

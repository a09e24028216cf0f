/* Holds of checkpoints, and a run that removes a checkpoint between the two calls by which a reader gets its hold. */
#include "store/hold.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/manifest.h"
#include "support/support.h"

static const char folder[] = "held", path[] = "held/" AN_MANIFEST_NAME;
static void (*before_lock)(void);

int __real_flock(int file, int operation);  /* NOLINT(bugprone-reserved-identifier) */
int __wrap_flock(int file, int operation);  /* NOLINT(bugprone-reserved-identifier) */
int __wrap_flock(int file, int operation) { /* NOLINT(bugprone-reserved-identifier) */
    if (before_lock) before_lock();
    return __real_flock(file, operation);
}

static void write_manifest(void) {
    mkdir(folder, 0777);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static void remove_it(void) {
    assert_int_equal(unlink(path), 0);
}

/* Another checkpoint of the same step. */
static void replace_it(void) {
    assert_int_equal(rename(path, "held/older"), 0);
    write_manifest();
}

static void test_readers_and_a_run(void **state) {
    int first, second, run;
    (void)state;
    before_lock = NULL;
    write_manifest();
    assert_true(an_hold_begin(&first, folder));
    assert_true(an_hold_begin(&second, folder));
    assert_false(an_hold_take(&run, folder));
    an_hold_end(&first);
    assert_false(an_hold_take(&run, folder));
    an_hold_end(&second);
    assert_true(an_hold_take(&run, folder));
    assert_false(an_hold_begin(&first, folder));
    assert_int_equal(first, AN_HOLD_NONE);
    an_hold_end(&run);
    remove_it();
    assert_false(an_hold_begin(&first, folder));
    assert_true(an_hold_take(&run, folder)); /* nobody reads what is not there */
    an_hold_end(&run);
}

static void test_removed_before_the_lock(void **state) {
    static void (*const others[])(void) = {remove_it, replace_it};
    (void)state;
    for (int i = 0; i < 2; i++) {
        int hold;
        write_manifest();
        before_lock = others[i];
        assert_false(an_hold_begin(&hold, folder));
        assert_int_equal(hold, AN_HOLD_NONE);
    }
    before_lock = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_readers_and_a_run),
                                       cmocka_unit_test(test_removed_before_the_lock)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

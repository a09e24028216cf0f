/* Limits of memory: what is read of proc and sys, in trees made for it, and what bytes are compared with. */
#include <stdlib.h>
#include <unistd.h>

#include "base/system/limits.h"
#include "support/root.h"

static an_limits read_root(void) {
    an_limits l;
    an_limits_read(root, &l);
    return l;
}

static const int64_t gigabyte = (int64_t)1 << 30;

static void test_smallest_limit_on_the_path(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/job/step/task\n");
    put("/sys/fs/cgroup/job/step/task/memory.max", "max\n");
    put("/sys/fs/cgroup/job/step/memory.max", "3221225472\n");
    put("/sys/fs/cgroup/job/memory.max", "8589934592\n");
    assert_true(read_root().group_memory == 3 * gigabyte);
    put("/sys/fs/cgroup/job/memory.max", "1073741824\n");
    assert_true(read_root().group_memory == gigabyte);
    put("/proc/self/cgroup", "5:memory:/slurm/job_7/step_0\n0::/other\n"); /* version 1 */
    put("/sys/fs/cgroup/memory/slurm/job_7/step_0/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "2147483648\n");
    assert_true(read_root().group_memory == 2 * gigabyte);
}

static void test_hostile_files(void **state) {
    static const char *const texts[] = {"",
                                        "\n",
                                        ":",
                                        "::",
                                        ":::::\n:",
                                        "0::",
                                        "9:memory",
                                        "-1\n",
                                        "999999999999999999999999\n",
                                        "MemTotal: -5 kB\n",
                                        "MemTotal:",
                                        "MemTotal: 99999999999999999999 kB\nSwapTotal: x"};
    static const char *const paths[] = {"/proc/self/cgroup", "/proc/meminfo", "/proc/self/status",
                                        "/sys/fs/cgroup/memory.max"};
    char text[AN_LIMITS_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t k = 0; k < sizeof paths / sizeof *paths; k++) {
            put(paths[k], texts[i]);
            const an_limits l = read_root();
            assert_true(l.memory >= 0 && l.swap >= 0 && l.group_memory >= 0);
            an_limits_compare(&l, INT64_MAX, INT64_MAX / 2, text);
        }
}

static void test_what_cannot_fit_and_what_is_tight(void **state) {
    char text[AN_LIMITS_TEXT];
    an_limits l = {.memory = 8 * gigabyte, .memory_available = 6 * gigabyte, .address_space = -1, .data = -1};
    (void)state;
    assert_int_equal(an_limits_compare(&l, 5 * gigabyte, 0, text), AN_LIMITS_FITS);
    assert_int_equal(an_limits_compare(&l, 7 * gigabyte, 0, text), AN_LIMITS_TIGHT);
    assert_non_null(strstr(text, "only 6.00 GiB are available now"));
    assert_int_equal(an_limits_compare(&l, 9 * gigabyte, 0, text), AN_LIMITS_EXCEEDED);
    assert_string_equal(text, "it needs 9.00 GiB of memory, and this machine has 8.00 GiB");
    l.swap = 2 * gigabyte;
    assert_int_equal(an_limits_compare(&l, 9 * gigabyte, 0, text), AN_LIMITS_TIGHT);
    l.swap = 0;
    l.group_memory = 4 * gigabyte;
    assert_int_equal(an_limits_compare(&l, 5 * gigabyte, 0, text), AN_LIMITS_EXCEEDED);
    assert_non_null(strstr(text, "the cgroup of this process allows 4.00 GiB"));
    assert_int_equal(an_limits_compare(&l, 4 * gigabyte, 0, text), AN_LIMITS_TIGHT);
    l.group_memory = 0;
    l.address_space = 2 * gigabyte; /* that are left */
    assert_int_equal(an_limits_compare(&l, 3 * gigabyte, 0, text), AN_LIMITS_EXCEEDED);
    assert_non_null(strstr(text, "ulimit -v leaves 2.00 GiB"));
    assert_int_equal(an_limits_compare(&l, 3 * gigabyte, 2 * gigabyte, text), AN_LIMITS_FITS); /* part of it is there */
    l.data = 0;
    assert_int_equal(an_limits_compare(&l, gigabyte, 0, text), AN_LIMITS_EXCEEDED);
    assert_non_null(strstr(text, "ulimit -d leaves"));
}

/* Ranks of one host need its memory together; ulimit is of a process. */
static void test_other_ranks_of_the_host(void **state) {
    char text[AN_LIMITS_TEXT];
    an_limits l = {.memory = 16 * gigabyte, .address_space = -1, .data = 8 * gigabyte, .others = 9 * gigabyte};
    (void)state;
    assert_int_equal(an_limits_compare(&l, 5 * gigabyte, 0, text), AN_LIMITS_FITS);
    assert_int_equal(an_limits_compare(&l, 8 * gigabyte, 0, text), AN_LIMITS_EXCEEDED);
    assert_string_equal(text, "it needs 8.00 GiB of memory, and this machine has 16.00 GiB, of which the other ranks "
                              "need 9.00 GiB");
    l.others = 0;
    assert_int_equal(an_limits_compare(&l, 7 * gigabyte, 0, text), AN_LIMITS_FITS);
    l.group_memory = 12 * gigabyte;
    assert_int_equal(an_limits_compare(&l, 7 * gigabyte, 0, text), AN_LIMITS_FITS);
    l.group_others = 6 * gigabyte;
    assert_int_equal(an_limits_compare(&l, 7 * gigabyte, 0, text), AN_LIMITS_EXCEEDED);
    assert_non_null(
        strstr(text, "the cgroup of this process allows 12.00 GiB, of which the other ranks need 6.00 GiB"));
    l.memory_available = 10 * gigabyte;
    l.others = 8 * gigabyte;
    assert_int_equal(an_limits_compare(&l, 4 * gigabyte, 0, text), AN_LIMITS_TIGHT);
    assert_non_null(strstr(text, "it needs 12.00 GiB of memory for all ranks of this host, but only 10.00 GiB"));
}

/* Ranks share the limit of a cgroup if it is the same one. */
static void test_which_group_has_the_limit(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/job/one\n");
    put("/sys/fs/cgroup/job/one/memory.max", "3221225472\n");
    put("/sys/fs/cgroup/job/two/memory.max", "3221225472\n");
    put("/sys/fs/cgroup/job/memory.max", "8589934592\n");
    const uint64_t one = read_root().group;
    put("/proc/self/cgroup", "0::/job/two\n");
    const uint64_t two = read_root().group;
    assert_true(one != 0 && two != 0 && one != two);
    put("/sys/fs/cgroup/job/memory.max", "1073741824\n");
    const uint64_t both = read_root().group;
    put("/proc/self/cgroup", "0::/job/one\n");
    assert_true(both != two && read_root().group == both);
    put("/sys/fs/cgroup/job/memory.max", "max\n");
    put("/sys/fs/cgroup/job/one/memory.max", "max\n");
    assert_true(read_root().group == 0 || read_root().group_memory > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_smallest_limit_on_the_path, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_hostile_files, make_root, remove_root),
        cmocka_unit_test(test_what_cannot_fit_and_what_is_tight),
        cmocka_unit_test(test_other_ranks_of_the_host),
        cmocka_unit_test_setup_teardown(test_which_group_has_the_limit, make_root, remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

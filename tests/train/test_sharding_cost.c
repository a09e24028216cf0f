/* The estimate by which ranks choose between keeping everything and dividing the optimizer's state. */
#include "support/support.h"
#include "train/sharding_cost.h"

enum { BYTES = 4, LOW = 2 };

/* A step of n parameters on ranks of one host (`hosts` 1), or one on each host: 36 bytes of a parameter are read and
 * written by the norm and AdamW. */
static an_step_work work_of(int64_t n, int ranks, int hosts, bool divides, int64_t width) {
    const int64_t share = n / ranks * (ranks - 1); /* what a rank sends of n numbers */
    const int64_t sent = divides ? share * width : 0;
    an_step_work w = {.seconds = 0.1,
                      .updated = (divides ? n / ranks : n) * 36,
                      .sent = sent,
                      .received = sent,
                      .messages = divides ? 40 : 4,
                      .read = share * BYTES,
                      .written = divides ? 0 : share * BYTES,
                      .host_ranks = hosts == 1 ? ranks : 1};
    if (hosts == 1) return w;
    w.linked = w.sent = w.received = sent + w.read + w.written;
    w.read = w.written = 0;
    return w;
}

static double seconds_of(int64_t n, int ranks, int hosts, bool divides, int64_t width) {
    const an_step_work work = work_of(n, ranks, hosts, divides, width);
    return an_step_work_seconds(&work);
}

static void test_what_is_cheaper(void **state) {
    const int64_t large = 124 << 20, small = 4096;
    (void)state;
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        assert_true(seconds_of(large, ranks, 1, true, BYTES) < seconds_of(large, ranks, 1, false, BYTES));
        assert_true(seconds_of(large, ranks, 1, true, LOW) < seconds_of(large, ranks, 1, true, BYTES));
        assert_true(seconds_of(large, ranks, ranks, true, LOW) < seconds_of(large, ranks, ranks, false, LOW));
        assert_true(seconds_of(small, ranks, 1, true, BYTES) >
                    seconds_of(small, ranks, 1, false, BYTES)); /* messages */
    }
}

/* Ranks of a host divide what it has; between hosts, the link is what counts. */
static void test_hosts(void **state) {
    an_step_work w = {.seconds = 1, .host_ranks = 4};
    (void)state;
    assert_true(an_step_work_seconds(&w) == 4);
    w = (an_step_work){.sent = (int64_t)1250000000, .host_ranks = 2};
    assert_true(an_step_work_seconds(&w) < 1);
    w.linked = w.sent;
    assert_true(an_step_work_seconds(&w) > 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_cheaper), cmocka_unit_test(test_hosts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

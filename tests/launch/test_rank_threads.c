/* How the ranks of a host divide its processors. */
#include "launch/rank_threads.h"

#include <omp.h>

#include "support/support.h"

enum { MOST_RANKS = 8 };

static void allow(an_rank_place *place, int first, int count) {
    for (int i = first; i < first + count; i++) place->processors[i / 64] |= 1ULL << i % 64;
}

static int sum_of(const an_rank_place *places, int ranks) {
    int sum = 0;
    for (int r = 0; r < ranks; r++) sum += an_rank_threads(places, ranks, r);
    return sum;
}

/* MPICH binds nothing: all ranks may use all processors. */
static void test_unbound_ranks_divide_the_processors(void **state) {
    (void)state;
    static const struct {
        int processors, ranks, threads;
    } rows[] = {{8, 1, 8}, {8, 2, 4}, {8, 3, 2}, {8, 8, 1}, {2, 4, 1}, {1, 1, 1}, {100, 3, 33}, {3, 3, 1}, {6, 3, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        an_rank_place places[MOST_RANKS] = {0};
        for (int r = 0; r < rows[i].ranks; r++)
            allow(&places[r], 60, rows[i].processors); /* over the border of words */
        for (int r = 0; r < rows[i].ranks; r++)
            assert_int_equal(an_rank_threads(places, rows[i].ranks, r), rows[i].threads);
        assert_int_equal(an_rank_processors(places, rows[i].ranks), rows[i].processors);
    }
}

/* Open MPI binds two ranks to a core each: nothing is left to divide. */
static void test_bound_ranks_keep_their_processors(void **state) {
    (void)state;
    an_rank_place places[3] = {0};
    allow(&places[0], 0, 1);
    allow(&places[1], 1, 1);
    allow(&places[2], 2, 6);
    assert_int_equal(an_rank_threads(places, 3, 0), 1);
    assert_int_equal(an_rank_threads(places, 3, 1), 1);
    assert_int_equal(an_rank_threads(places, 3, 2), 6);
    assert_int_equal(an_rank_processors(places, 3), 8);
}

static void test_overlapping_masks_never_exceed_the_processors(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (int i = 0; i < 2000; i++) {
        an_rank_place places[MOST_RANKS] = {0};
        const int ranks = 1 + i % MOST_RANKS;
        for (int r = 0; r < ranks; r++) {
            seed = seed * 1664525U + 1013904223U;
            allow(&places[r], (int)(seed >> 8) % 16, ranks + (int)(seed >> 16) % 16);
        }
        assert_true(sum_of(places, ranks) <= an_rank_processors(places, ranks));
    }
}

/* A container with 4 processors of time on a machine that has 64. */
static void test_limits_of_cgroups(void **state) {
    (void)state;
    an_rank_place places[4] = {0};
    for (int r = 0; r < 4; r++) {
        allow(&places[r], 0, 64);
        places[r].group = 7;
        places[r].group_processors = 4;
    }
    assert_int_equal(an_rank_threads(places, 1, 0), 4);
    assert_int_equal(an_rank_threads(places, 2, 0), 2);
    assert_int_equal(an_rank_threads(places, 4, 3), 1);
    for (int r = 0; r < 4; r++) places[r].group = (uint64_t)r; /* each in a container of its own */
    assert_int_equal(an_rank_threads(places, 4, 3), 4);
    for (int r = 0; r < 4; r++) places[r].group_processors = 0.5; /* less than one is still one thread */
    assert_int_equal(an_rank_threads(places, 4, 3), 1);
    places[0].group_processors = 2.9;
    assert_int_equal(an_rank_threads(places, 4, 0), 2);
}

/* Used as it is, even if it is too much: the start says so. */
static void test_given_threads_are_used(void **state) {
    (void)state;
    an_rank_place places[2] = {0};
    for (int r = 0; r < 2; r++) allow(&places[r], 0, 4);
    places[1].given = 16;
    assert_int_equal(an_rank_threads(places, 2, 0), 2);
    assert_int_equal(an_rank_threads(places, 2, 1), 16);
}

static void test_this_process(void **state) {
    (void)state;
    an_rank_place place;
    an_rank_place_read(&place, "");
    assert_int_equal(an_rank_processors(&place, 1), omp_get_num_procs());
    assert_true(place.group != 0);
    assert_int_equal(place.given, 0);
    an_rank_place_read(&place, "/nowhere");
    assert_int_equal(place.group, 0);
    assert_true(place.group_processors == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unbound_ranks_divide_the_processors),
        cmocka_unit_test(test_bound_ranks_keep_their_processors),
        cmocka_unit_test(test_overlapping_masks_never_exceed_the_processors),
        cmocka_unit_test(test_limits_of_cgroups),
        cmocka_unit_test(test_given_threads_are_used),
        cmocka_unit_test(test_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

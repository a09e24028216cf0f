/* Who is blamed for what, and who is not: states of ranks in, a sentence out. */
#include "comm/watch/blame.h"

#include "support/support.h"

enum { RANKS = 4, SECOND = 1000 };
static const double report_after = 10;
static an_rank_state ranks[RANKS];

/* Four ranks that wait for each other as they do in any step. */
static void begin(void) {
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (an_rank_state){.rank = i, .process = 100 + i, .step = 7, .collectives = 41, .hash = 5, .bytes = 64};
        snprintf(ranks[i].host, sizeof ranks[i].host, "node%d", i / 2);
        snprintf(ranks[i].place, sizeof ranks[i].place, "backward blocks.%d (attention)", i);
        snprintf(ranks[i].kind, sizeof ranks[i].kind, "step record");
        snprintf(ranks[i].waits_for, sizeof ranks[i].waits_for, "the step record of rank %d", (i + 1) % RANKS);
    }
}

/* All but one wait so many milliseconds, and their hearts stand still for as long. */
static void all_wait_but(int rank, uint32_t time) {
    for (int i = 0; i < RANKS; i++)
        if (i != rank) {
            ranks[i].waits = 1;
            ranks[i].waited = ranks[i].still = time;
        }
}

static an_blame find(void) {
    const an_rank_state *states[RANKS];
    an_blame blame;
    for (int i = 0; i < RANKS; i++) states[i] = &ranks[i];
    an_blame_find(states, RANKS, report_after, &blame);
    return blame;
}

static void expect(an_blame_kind kind, int rank, const char *text) {
    const an_blame blame = find();
    if (blame.kind != kind || blame.rank != rank || (text && strcmp(blame.text, text) != 0))
        fail_msg("kind %d, rank %d: %s", (int)blame.kind, blame.rank, blame.text);
}

static void nobody_is_blamed(void **state) {
    (void)state;
    begin();
    expect(AN_BLAME_NONE, 0, NULL);
    all_wait_but(2, 60 * SECOND); /* a slow rank: its heart beats */
    expect(AN_BLAME_NONE, 0, NULL);
    ranks[2].still = 9 * SECOND;
    expect(AN_BLAME_NONE, 0, NULL);
    begin();
    ranks[2].still = 60 * SECOND; /* nobody waits for it, and others move */
    expect(AN_BLAME_NONE, 0, NULL);
    begin();
    all_wait_but(-1, 9 * SECOND);
    expect(AN_BLAME_NONE, 0, NULL);
    all_wait_but(3, 60 * SECOND);
    ranks[3].waits = 1; /* has just begun to wait: it moves */
    ranks[3].waited = 0;
    ranks[3].still = 0;
    expect(AN_BLAME_NONE, 0, NULL);
    begin();
    all_wait_but(-1, 60 * SECOND);
    ranks[0].silent = 4 * SECOND; /* what it said then may not be true any more */
    expect(AN_BLAME_NONE, 0, NULL);
    begin();
    for (int i = 0; i < RANKS; i++) ranks[i].left = 1;
    expect(AN_BLAME_NONE, 0, NULL);
}

static void a_rank_that_does_not_answer(void **state) {
    (void)state;
    begin();
    all_wait_but(2, 10500);
    ranks[2].silent = 11 * SECOND;
    expect(AN_BLAME_SILENT, 2,
           "rank 2 (process 102 on node1) has not answered for 11 s (a stopped process, a host that is down, or a cut "
           "network). Rank 2 was last at step 7, \"backward blocks.2 (attention)\". Ranks 0, 1 and 3 wait for it: rank "
           "0 for \"the step record of rank 1\", since 10.5 s");
    ranks[3].silent = 12 * SECOND;
    ranks[2].process = 0;
    expect(AN_BLAME_SILENT, 2,
           "ranks 2 and 3 have not answered for 11 s (a stopped process, a host that is down, or a cut network). Rank "
           "2 was never heard of. Ranks 0 and 1 wait for them: rank 0 for \"the step record of rank 1\", since 10.5 s");
    /* It is blamed as soon as it is silent for the time: the others need not have waited as long. */
    begin();
    all_wait_but(2, 3 * SECOND);
    ranks[2].silent = 10 * SECOND;
    expect(AN_BLAME_SILENT, 2, NULL);
}

static void a_rank_that_stands_still(void **state) {
    (void)state;
    begin();
    all_wait_but(1, 10 * SECOND);
    ranks[1].still = 10 * SECOND;
    expect(AN_BLAME_STILL, 1,
           "rank 1 (process 101 on node0) has made no progress for 10 s. Rank 1 is at step 7, \"backward blocks.1 "
           "(attention)\". Ranks 0, 2 and 3 wait for it: rank 0 for \"the step record of rank 1\", since 10 s");
    begin(); /* all of them, at a file server say */
    for (int i = 0; i < RANKS; i++) ranks[i].still = 10 * SECOND;
    expect(AN_BLAME_STILL, 0,
           "ranks 0, 1, 2 and 3 have made no progress for 10 s. Rank 0 (process 100 on node0) is at step 7, \"backward "
           "blocks.0 (attention)\"");
}

static void a_rank_that_has_left(void **state) {
    (void)state;
    begin();
    ranks[3].left = 1;
    all_wait_but(3, 9 * SECOND);
    expect(AN_BLAME_NONE, 0, NULL);
    all_wait_but(3, 10 * SECOND);
    expect(AN_BLAME_LEFT, 3, NULL);
}

static void calls_that_differ(void **state) {
    (void)state;
    begin();
    all_wait_but(-1, 10 * SECOND);
    ranks[0].hash = 6;
    snprintf(ranks[0].kind, sizeof ranks[0].kind, "evaluation");
    expect(AN_BLAME_DIFFERENT, 0,
           "ranks wait for each other in different collective calls, since 10 s: rank 0 in call 41 (evaluation, 64 "
           "bytes) at step 7, \"backward blocks.0 (attention)\"; ranks 1, 2, 3 in call 41 (step record, 64 bytes) at "
           "step 7, \"backward blocks.1 (attention)\". Every rank must make the same collective calls (step, "
           "evaluation, save, export) in the same order: look for one that depends on the rank");
    ranks[0].hash = 5;
    ranks[2].collectives = 42;
    expect(AN_BLAME_DIFFERENT, 2, NULL);
}

static void messages_that_do_not_arrive(void **state) {
    (void)state;
    begin();
    all_wait_but(-1, 10 * SECOND);
    expect(AN_BLAME_MESSAGES, 0,
           "all ranks wait in the same collective call 41 (step record) since 10 s: messages between them do not "
           "arrive. Rank 0 waits for \"the step record of rank 1\" at step 7, \"backward blocks.0 (attention)\", rank "
           "1 for \"the step record of rank 2\"");
}

/* Texts of peers have their largest size, and there may be many ranks: nothing runs over. */
static void long_texts_are_cut(void **state) {
    (void)state;
    enum { MANY = 500 };
    static an_rank_state many[MANY];
    static const an_rank_state *states[MANY];
    an_blame blame;
    for (int i = 0; i < MANY; i++) {
        many[i] = (an_rank_state){.rank = INT32_MAX - MANY + i,
                                  .process = INT32_MAX,
                                  .step = INT64_MAX,
                                  .waits = 1,
                                  .waited = UINT32_MAX,
                                  .collectives = UINT64_MAX - (uint64_t)(i % 7)};
        memset(many[i].host, 'h', sizeof many[i].host - 1);
        memset(many[i].place, 'p', sizeof many[i].place - 1);
        memset(many[i].kind, 'k', sizeof many[i].kind - 1);
        memset(many[i].waits_for, 'w', sizeof many[i].waits_for - 1);
        states[i] = &many[i];
    }
    an_blame_find(states, MANY, report_after, &blame);
    assert_int_equal(blame.kind, AN_BLAME_DIFFERENT);
    assert_int_equal(strlen(blame.text), AN_RANK_TEXT - 1);
    for (int i = 0; i < MANY / 2; i++) many[i].silent = UINT32_MAX;
    an_blame_find(states, MANY, report_after, &blame);
    assert_int_equal(blame.count, MANY / 2);
    assert_non_null(strstr(blame.text, " and 244 more have not answered"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_blamed),         cmocka_unit_test(a_rank_that_does_not_answer),
        cmocka_unit_test(a_rank_that_stands_still), cmocka_unit_test(a_rank_that_has_left),
        cmocka_unit_test(calls_that_differ),        cmocka_unit_test(messages_that_do_not_arrive),
        cmocka_unit_test(long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

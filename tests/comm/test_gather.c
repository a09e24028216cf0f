/* The gathering, with ranks that are threads: every rank has what a plain loop makes, by messages and through shared
 * memory, and bytes are as predicted. */
#include "comm/gather.h"

#include "comm/gather_inside.h"
#include "comm/gathers.h"
#include "support/rank_threads.h"
#include "support/support.h"
#include "support/thread_comm.h"

enum { MOST_RANKS = 8 };

/* ---- ranks as threads ---- */

typedef struct group {
    int ranks, host_ranks;
    /* messages are copied when both sides are there (rank_threads.h), else when they are sent (thread_comm.h) */
    bool is_late;
    gather_setting setting;
    void (*body)(gather_test *t, an_context *ctx, struct group *group);
    int64_t fails_at; /* this call of rank 0's communicator, counted from 1 when its context is there; 0: none */
    uint64_t place;   /* that rank 1 claims for its weights */
    bool is_broken;   /* a rank gives up … */
    bool is_mistake;  /* … by a wrong start */
    rank_hub late;
    thread_hub early;
} group;

typedef struct one_rank {
    group *group;
    int rank;
    pthread_t thread;
    gather_test test;
} one_rank;

static void *run_rank(void *user) {
    one_rank *r = user;
    group *g = r->group;
    an_comm early, *late = g->is_late ? rank_world(&g->late, r->rank) : NULL;
    thread_rank messages;
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    thread_comm_init(&early, &messages, &g->early, r->rank);
    options.communicator = g->is_late ? late : &early;
    options.threads = 1 + r->rank % 2;
    const an_status status = an_context_create(&ctx, &options);
    thread_hub_meet(&g->early);
    if (status != AN_OK) {
        snprintf(r->test.problem, sizeof r->test.problem, "context: %s", an_last_error(NULL));
        return NULL;
    }
    if (g->fails_at && r->rank == 0) messages.fails_at = messages.calls + g->fails_at;
    g->body(&r->test, ctx, g);
    if (g->is_late) rank_barrier(&g->late); /* nobody's memory goes while another may send to it */
    an_context_destroy(&ctx);
    if (late) late->destroy(&late);
    return NULL;
}

/* How many ranks had a problem; problem: one of them. */
static int run_group(group *g, char problem[512]) {
    static one_rank ranks[MOST_RANKS];
    int problems = 0;
    *problem = 0;
    rank_hub_init(&g->late, g->ranks, g->host_ranks);
    thread_hub_init(&g->early, g->ranks, g->host_ranks);
    for (int i = 0; i < g->ranks; i++) {
        ranks[i] = (one_rank){.group = g, .rank = i};
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
    }
    for (int i = 0; i < g->ranks; i++) pthread_join(ranks[i].thread, NULL);
    for (int i = 0; i < g->ranks; i++) {
        if (!*ranks[i].test.problem) continue;
        problems++;
        memcpy(problem, ranks[i].test.problem, sizeof ranks[i].test.problem);
    }
    if (g->is_broken && g->is_late)
        for (int i = 0; i < g->ranks; i++) free(g->late.parts[i]); /* nobody has waited for the others to close */
    thread_hub_destroy(&g->early);
    const int left = rank_hub_destroy(&g->late);
    if (left > 0) fail_msg("%d messages were left behind", left);
    return problems;
}

static void expect_no_problem(group *g) {
    char problem[512];
    const gather_setting *s = &g->setting;
    if (run_group(g, problem) > 0)
        fail_msg("%s, %s, %d in flight: %s", s->uses_window ? "window" : "messages",
                 s->is_in_place ? "in place" : "to another place", s->in_flight, problem);
}

static void run_rounds(gather_test *t, an_context *ctx, group *g) {
    gather_run(t, ctx, &g->setting);
    if (!*t->problem && g->setting.uses_window && g->ranks > 1 && !t->options.window)
        gather_expect(t, false, "the window was not used");
}

/* ---- tests ---- */

static void pieces_are_a_partition(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks++)
        for (int64_t pages = 1; pages <= 50; pages++) {
            const an_page_range unit = {1000, 1000 + pages};
            for (int q = 0; q < ranks; q++)
                for (int turn = 0; turn <= 2 * ranks; turn++) {
                    const an_page_range piece = an_piece(&unit, turn, (q + turn) % ranks, ranks);
                    assert_int_equal(piece.begin, 1000 + q * pages / ranks);
                    assert_int_equal(piece.end, 1000 + (q + 1) * pages / ranks);
                }
        }
    /* rank · pages has more than 64 bits */
    const an_page_range maximum = {0, INT64_MAX};
    const int ranks = INT32_MAX;
    assert_int_equal(an_piece(&maximum, 0, ranks - 1, ranks).end, INT64_MAX);
    assert_int_equal(an_piece(&maximum, 0, ranks - 1, ranks).begin, an_piece(&maximum, 0, ranks - 2, ranks).end);
    assert_true(an_piece(&maximum, 0, ranks - 1, ranks).begin > INT64_MAX - 2 * (INT64_MAX / ranks));
    assert_int_equal(an_piece(&maximum, INT32_MAX - 1, ranks - 2, ranks).end, INT64_MAX); /* the rank before its turn */
}

static void every_rank_has_all(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int kind = 0; kind < 16; kind++) {
            group g = {.ranks = ranks,
                       .host_ranks = ranks,
                       .is_late = kind & 1,
                       .setting = {.page_bytes = {96, 40},
                                   .uses_window = kind & 2,
                                   .is_in_place = kind & 4,
                                   .in_flight = kind & 8 ? 2 : 1},
                       .body = run_rounds};
            expect_no_problem(&g);
        }
}

/* One host's memory does not reach the other: a window is then not used, whether or not it is there. */
static void several_hosts_use_messages(void **state) {
    (void)state;
    group g = {.ranks = 4,
               .host_ranks = 2,
               .is_late = true,
               .setting = {.page_bytes = {96, 40}, .uses_window = true},
               .body = run_rounds};
    expect_no_problem(&g);
}

static void long_messages_are_cut(void **state) {
    (void)state;
    for (size_t bytes = 50; bytes <= 400; bytes += 50) {
        group g = {.ranks = 3,
                   .host_ranks = 1,
                   .is_late = true,
                   .setting = {.page_bytes = {96, 40}, .is_in_place = true, .message_bytes = bytes},
                   .body = run_rounds};
        expect_no_problem(&g);
    }
}

/* More than one call copies, and more than one task. */
static void large_copies_take_several_calls(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        group g = {.ranks = ranks,
                   .host_ranks = ranks,
                   .setting = {.page_bytes = {1 << 16, 1 << 18}, .uses_window = true},
                   .body = run_rounds};
        expect_no_problem(&g);
    }
}

/* ---- what goes wrong ---- */

static void end_by_planted_failure(gather_test *t, an_context *ctx, group *g) {
    an_gathering *gathering = NULL;
    an_status status = AN_OK;
    const size_t held = ctx->bytes;
    gather_init(t, ctx, &g->setting);
    GATHER_EXPECT(an_gathering_create(&gathering, ctx, t->comm, &t->options) == AN_OK);
    for (int round = 0; round < 2 && status == AN_OK; round++) {
        if (round == 1 && t->comm->rank == 1) {
            gather_pause(true);
            if (!g->is_mistake) an_comm_abort(ctx, AN_ERR_KERNEL, "a planted failure");
        }
        status = an_gathering_publish(gathering);
        if (round == 1 && t->comm->rank == 1 && status == AN_OK) status = gather_start(t, gathering, GATHER_UNITS);
        for (int i = 0; i < GATHER_UNITS && status == AN_OK; i++) status = gather_start(t, gathering, i);
        for (int i = 0; i < GATHER_UNITS && status == AN_OK && t->comm->rank % 2 == 0; i++)
            status = an_gathering_wait(gathering, i);
        if (status == AN_OK) status = an_gathering_finish(gathering);
    }
    const an_status expected = g->is_mistake ? AN_ERR_ARGUMENT : AN_ERR_KERNEL;
    const char *words = g->is_mistake ? "rank 1: unit 6 of 6" : "rank 1: a planted failure";
    GATHER_EXPECT(status == expected);
    GATHER_EXPECT(strstr(an_last_error(ctx), t->comm->rank == 1 ? words + strlen("rank 1: ") : words) != NULL);
    GATHER_EXPECT(an_gathering_wait(gathering, 0) == expected);
    GATHER_EXPECT(gather_start(t, gathering, 0) == expected);
end:
    an_gathering_destroy(&gathering);
    if (ctx->bytes != held) gather_expect(t, false, "bytes were not released");
    gather_free_buffers(t);
}

static void a_rank_that_gives_up_is_everyones_end(void **state) {
    (void)state;
    for (int kind = 0; kind < 16; kind++) {
        group g = {.ranks = 4,
                   .host_ranks = 4,
                   .is_late = kind & 1,
                   .setting = {.page_bytes = {96, 40}, .uses_window = kind & 2, .in_flight = kind & 4 ? 2 : 1},
                   .body = end_by_planted_failure,
                   .is_broken = true,
                   .is_mistake = kind & 8};
        expect_no_problem(&g);
    }
}

/* Every message of one rank fails once: then no rank ends well, and none hangs or holds memory. */
static void a_lost_message_is_everyones_end(void **state) {
    (void)state;
    static const int64_t calls[] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char problem[512];
        group g = {.ranks = 3,
                   .host_ranks = 1,
                   .setting = {.page_bytes = {96, 40}},
                   .body = run_rounds,
                   .fails_at = calls[i],
                   .is_broken = true};
        assert_int_equal(run_group(&g, problem), 3);
        if (!strstr(problem, "planted") || strstr(problem, "released")) fail_msg("%s", problem);
    }
}

/* Rank 1 says that its weights lie where its memory is not. */
static void claim_a_place(gather_test *t, an_context *ctx, group *g) {
    an_gathering *gathering = NULL;
    an_status status = AN_OK;
    an_comm_turn turn = {0};
    gather_init(t, ctx, &g->setting);
    gather_expect(t, an_gathering_create(&gathering, ctx, t->comm, &t->options) == AN_OK, "create");
    rank_barrier(&g->late); /* nobody is still at the start when another gives up */
    GATHER_EXPECT(gathering != NULL);
    if (t->comm->rank == 1) {
        char *part = (char *)an_window_part(&t->window, 1);
        ((an_gather_head *)(void *)(part + t->options.head_at))->places[0] = g->place;
        GATHER_EXPECT(an_gathering_publish(gathering) == AN_OK);
        while (status == AN_OK) status = an_comm_turn_take(ctx, &turn, "the others");
    } else {
        status = an_gathering_publish(gathering); /* another rank may have found it by now */
        if (status == AN_OK) status = gather_start(t, gathering, 0);
        if (status == AN_OK) status = an_gathering_wait(gathering, 0);
    }
    GATHER_EXPECT(status == AN_ERR_COMMUNICATION &&
                  strstr(an_last_error(ctx), "rank 1 has weights that are not in its shared memory"));
end:
    an_gathering_destroy(&gathering);
    gather_free_buffers(t);
}

static void places_of_others_are_not_trusted(void **state) {
    (void)state;
    static const uint64_t places[] = {1, (uint64_t)1 << 40, 0 - (uint64_t)64,
                                      12800 /* it begins in its part, and ends behind it */};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        group g = {.ranks = 3,
                   .host_ranks = 3,
                   .setting = {.page_bytes = {96, 40}, .uses_window = true},
                   .body = claim_a_place,
                   .place = places[i],
                   .is_broken = true};
        expect_no_problem(&g);
    }
}

/* Messages have been posted, and no rank waits for them. */
static void start_and_cancel(gather_test *t, an_context *ctx, group *g) {
    an_gathering *gathering = NULL;
    const size_t held = ctx->bytes;
    gather_init(t, ctx, &g->setting);
    GATHER_EXPECT(an_gathering_create(&gathering, ctx, t->comm, &t->options) == AN_OK);
    GATHER_EXPECT(an_gathering_publish(gathering) == AN_OK);
    for (int i = 0; i < GATHER_UNITS && t->comm->rank != 1; i++) GATHER_EXPECT(gather_start(t, gathering, i) == AN_OK);
    an_gathering_cancel(gathering);
    if (t->comm->rank != 1) {
        GATHER_EXPECT(an_gathering_wait(gathering, 0) == AN_ERR_ORDER);
        GATHER_EXPECT(an_gathering_finish(gathering) == AN_ERR_ORDER);
        GATHER_EXPECT(strstr(an_last_error(ctx), "given up") != NULL);
    }
end:
    an_gathering_destroy(&gathering);
    if (ctx->bytes != held) gather_expect(t, false, "bytes were not released");
    rank_barrier(&g->late);
    gather_free_buffers(t);
}

static void nothing_is_left_of_what_is_cancelled(void **state) {
    (void)state;
    for (int in_flight = 1; in_flight <= 3; in_flight++) {
        group g = {.ranks = 3,
                   .host_ranks = 1,
                   .is_late = true,
                   .setting = {.page_bytes = {96, 40}, .in_flight = in_flight},
                   .body = start_and_cancel};
        expect_no_problem(&g);
    }
}

/* ---- one process ---- */

static void wrong_options_are_refused(void **state) {
    (void)state;
    an_context *ctx;
    gather_test t;
    an_gathering *g = NULL;
    OK(NULL, an_context_create(&ctx, NULL));
    gather_init(&t, ctx, &(gather_setting){.page_bytes = {96, 40}});
    an_gather_options o = t.options;
    o.in_flight = AN_GATHER_MOST_IN_FLIGHT + 1;
    FAILS(ctx, an_gathering_create(&g, ctx, t.comm, &o), AN_ERR_ARGUMENT, "65 units in flight");
    o = t.options;
    o.message_bytes = AN_COMM_MAX_BYTES + 1;
    FAILS(ctx, an_gathering_create(&g, ctx, t.comm, &o), AN_ERR_ARGUMENT, "messages have");
    o = t.options;
    o.page_bytes[1] = 0;
    FAILS(ctx, an_gathering_create(&g, ctx, t.comm, &o), AN_ERR_ARGUMENT, "channel 1 has pages of 0 bytes");
    an_gather_run *run = &t.runs[0][0], good = *run;
    run->pages.end = 51;
    FAILS(ctx, an_gathering_create(&g, ctx, t.comm, &t.options), AN_ERR_ARGUMENT,
          "unit first has pages 0 to 50, and a run of it 0 to 51");
    *run = good;
    run->channel = AN_GATHER_CHANNELS;
    FAILS(ctx, an_gathering_create(&g, ctx, t.comm, &t.options), AN_ERR_ARGUMENT, "channel 2 of 2");
    *run = good;
    run->src_at = -1;
    FAILS(ctx, an_gathering_create(&g, ctx, t.comm, &t.options), AN_ERR_ARGUMENT, "byte -1 of src");
    *run = good;
    run->dst_at = INT64_MAX;
    FAILS(ctx, an_gathering_create(&g, ctx, t.comm, &t.options), AN_ERR_ARGUMENT, "of dst");
    *run = good;
    t.units[1].pages.end = t.units[1].pages.begin;
    FAILS(ctx, an_gathering_create(&g, ctx, t.comm, &t.options), AN_ERR_ARGUMENT, "unit one page has pages 60 to 60");
    assert_null(g);
    gather_free_buffers(&t);
    an_context_destroy(&ctx);
}

static void wrong_order_is_refused(void **state) {
    (void)state;
    an_context *ctx;
    gather_test t;
    an_gathering *g = NULL;
    OK(NULL, an_context_create(&ctx, NULL));
    gather_init(&t, ctx, &(gather_setting){.page_bytes = {96, 40}});
    OK(ctx, an_gathering_create(&g, ctx, t.comm, &t.options));
    FAILS(ctx, gather_start(&t, g, 0), AN_ERR_ORDER, "unit first was started before an_gathering_publish");
    OK(ctx, an_gathering_publish(g));
    FAILS(ctx, gather_start(&t, g, GATHER_UNITS), AN_ERR_ARGUMENT, "unit 6 of 6");
    FAILS(ctx, an_gathering_wait(g, -1), AN_ERR_ARGUMENT, "unit -1 of 6");
    OK(ctx, gather_start(&t, g, 0));
    FAILS(ctx, gather_start(&t, g, 0), AN_ERR_ORDER, "unit first was started again before it had come");
    OK(ctx, an_gathering_wait(g, 0));
    OK(ctx, gather_start(&t, g, 0));
    FAILS(ctx, an_gathering_publish(g), AN_ERR_ORDER, "an_gathering_finish comes first");
    OK(ctx, an_gathering_finish(g));
    OK(ctx, an_gathering_publish(g));
    an_gathering_destroy(&g);
    gather_free_buffers(&t);
    an_context_destroy(&ctx);
}

/* Every allocation fails once. */
static void without_memory_nothing_is_made(void **state) {
    (void)state;
    ledger l = {0};
    an_context *ctx;
    gather_test t;
    an_gathering *g = NULL;
    an_status status = AN_ERR_MEMORY;
    OK(NULL, context_with_ledger(&ctx, &l, 1));
    gather_init(&t, ctx, &(gather_setting){.page_bytes = {96, 40}});
    const size_t held = l.held;
    int failures = -1;
    for (long call = 1; status != AN_OK; call++, failures++) {
        l.fail_at = l.calls + call;
        l.once = true;
        status = an_gathering_create(&g, ctx, t.comm, &t.options);
        assert_true(status == AN_OK || (status == AN_ERR_MEMORY && !g && l.held == held));
    }
    assert_int_equal(failures, 6); /* itself and its tables; no requests and no window on one rank */
    an_gathering_destroy(&g);
    assert_int_equal(l.held, held);
    gather_free_buffers(&t);
    an_context_destroy(&ctx);
}

/* What a unit needs is counted by the lengths of pieces; here by the pages of every rank. */
static void pieces_are_counted(void **state) {
    (void)state;
    uint32_t random = 1;
    for (int test = 0; test < 20000; test++) {
        int64_t numbers[6];
        for (int i = 0; i < 6; i++) numbers[i] = (random = random * 1664525 + 1013904223) >> 8;
        const int64_t pages = 1 + numbers[0] % 200, begin = numbers[1] % pages,
                      end = begin + 1 + numbers[2] % (pages - begin);
        const an_gather_run run = {.pages = {7 + begin, 7 + end}};
        const an_gather_unit unit = {
            .pages = {7, 7 + pages}, .turn = (int)(numbers[3] % 40), .run_count = 1, .runs = &run};
        const int ranks = 1 + (int)(numbers[4] % 60);
        an_gather_peers p = {.ranks = ranks,
                             .rank = (int)(numbers[5] % ranks),
                             .page_bytes = {100},
                             .message_bytes = (size_t)(1 + numbers[5] % 700)};
        an_gather_cost cost = {0}, expected = {0};
        int64_t requests = 0;
        for (int rank = 0; rank < ranks; rank++) {
            const an_page_range piece = an_piece(&unit.pages, unit.turn, rank, ranks);
            int64_t bytes = 0;
            for (int64_t page = piece.begin; page < piece.end; page++)
                if (page >= run.pages.begin && page < run.pages.end) bytes += 100;
            const int64_t messages = (bytes + (int64_t)p.message_bytes - 1) / (int64_t)p.message_bytes;
            const int64_t times = rank == p.rank ? ranks - 1 : 1;
            requests += messages * times;
            if (rank != p.rank) expected.received += bytes;
            if (rank == p.rank) expected.sent = bytes * times;
            if (rank == p.rank) expected.messages = messages * times;
        }
        assert_int_equal(an_gather_slot_measure(&p, &unit, &cost), requests);
        assert_memory_equal(&cost, &expected, sizeof cost);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_a_partition),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(wrong_order_is_refused),
        cmocka_unit_test(without_memory_nothing_is_made),
        cmocka_unit_test(every_rank_has_all),
        cmocka_unit_test(several_hosts_use_messages),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(large_copies_take_several_calls),
        cmocka_unit_test(a_rank_that_gives_up_is_everyones_end),
        cmocka_unit_test(a_lost_message_is_everyones_end),
        cmocka_unit_test(places_of_others_are_not_trusted),
        cmocka_unit_test(nothing_is_left_of_what_is_cancelled),
        cmocka_unit_test(pieces_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The scattering, with ranks that are threads: every rank has its pieces of the tree's sum, for all numbers of ranks
 * and leaves, and bytes are as predicted. */
#include "comm/scatter.h"

#include "comm/gather.h"
#include "comm/scatters.h"
#include "support/rank_threads.h"
#include "support/support.h"
#include "support/thread_comm.h"

enum { MOST_RANKS = 8, MOST_LEAVES = 17 };

/* ---- ranks as threads ---- */

typedef struct group {
    int ranks;
    /* messages are copied when both sides are there (rank_threads.h), else when they are sent (thread_comm.h) */
    bool is_late;
    scatter_setting setting;
    void (*body)(scatter_test *t, an_context *ctx, struct group *group);
    int64_t fails_at; /* this call of rank 0's communicator, counted from 1 when its context is there; 0: none */
    bool is_mistake;  /* a rank gives up by a wrong start */
    rank_hub late;
    thread_hub early;
} group;

typedef struct one_rank {
    group *group;
    int rank;
    pthread_t thread;
    scatter_test test;
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
    rank_hub_init(&g->late, g->ranks, 1);
    thread_hub_init(&g->early, g->ranks, 1);
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
    thread_hub_destroy(&g->early);
    const int left = rank_hub_destroy(&g->late);
    if (left > 0) fail_msg("%d messages were left behind", left);
    return problems;
}

static void expect_no_problem(group *g) {
    char problem[512];
    const scatter_setting *s = &g->setting;
    if (run_group(g, problem) > 0)
        fail_msg("leaves %lld to %lld of %lld, %s%s, %d in flight, %s: %s", (long long)s->leaves.begin,
                 (long long)s->leaves.end, (long long)s->leaves.leaves, an_dtype_name(s->dtype),
                 s->is_bf16 ? " by way of bf16" : "", s->in_flight, g->is_late ? "late" : "early", problem);
}

static void run_steps(scatter_test *t, an_context *ctx, group *g) {
    scatter_run(t, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &g->setting);
}

/* ---- tests ---- */

/* All leaves, ranks and types; what else there is changes with them. Under sanitizers, which look at no
 * sums, one type each in turn. */
static void owners_have_the_tree(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int64_t leaves = 1; leaves <= MOST_LEAVES; leaves++)
            for (int type = 0; type < 3; type++) {
                const int kind = (int)(ranks * 5 + leaves * 3 + type);
#ifdef ANNEAL_SANITIZED
                if (type != (ranks + leaves) % 3) continue;
#endif
                group g = {.ranks = ranks,
                           .is_late = kind & 1,
                           .setting = {.leaves = {0, leaves, leaves},
                                       .dtype = type == 1 ? AN_DTYPE_F64 : AN_DTYPE_F32,
                                       .is_bf16 = type == 2,
                                       .in_flight = 1 + kind % 3,
                                       .bucket_pages = kind % 5 * ranks,
                                       .waits_after = kind % SCATTER_UNITS},
                           .body = run_steps};
                expect_no_problem(&g);
            }
}

/* So many nodes wait that the strips which are added at a time are shorter. */
static void deep_trees_are_added(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        group g = {.ranks = kind & 1 ? 3 : 1,
                   .is_late = true,
                   .setting = {.leaves = {0, 260, 260}, .dtype = AN_DTYPE_F32, .is_bf16 = kind & 2, .waits_after = 1},
                   .body = run_steps};
        expect_no_problem(&g);
    }
}

/* The leaves of a host may be several nodes. */
static void owners_have_the_nodes_of_a_range(void **state) {
    (void)state;
    enum { LEAVES = 12 };
    for (int64_t begin = 0; begin < LEAVES; begin++)
        for (int64_t end = begin + 1; end <= LEAVES; end++) {
            const int ranks = 1 + (int)(begin + 3 * end) % 4;
            group g = {.ranks = ranks,
                       .is_late = true,
                       .setting = {.leaves = {begin, end, LEAVES},
                                   .dtype = AN_DTYPE_F32,
                                   .bucket_pages = 2 * ranks,
                                   .waits_after = 1},
                       .body = run_steps};
            expect_no_problem(&g);
        }
}

/* As many pieces wait as the leaves before a round have nodes; the staging has no more than was asked for. */
static void memory_is_bounded(void **state) {
    (void)state;
    const an_reduction_unit table = {.pages = {0, 37632}, .name = "a large table", .turn = 3};
    const an_scatter_options o = {
        .leaves = {0, 8, 8}, .dtype = AN_DTYPE_F32, .pages = 37632, .units = &table, .unit_count = 1};
    static const int waiting[] = {0, 3, 2, 2, 1, 2, 2, 3, 1}; /* the most one-bits of a multiple of the ranks below 8 */
    for (int ranks = 1; ranks <= 8; ranks++)
        for (int rank = 0; rank < ranks; rank++) {
            const an_page_range piece = an_piece(&table.pages, table.turn, rank, ranks);
            const an_scatter_cost cost = an_scatter_predict(&o, rank, ranks);
            assert_int_equal(cost.stack_bytes, (size_t)(waiting[ranks] - 1) * (size_t)(piece.end - piece.begin) * 4096);
            assert_true(cost.bytes < (AN_BUCKETS_IN_FLIGHT + 1) * (size_t)AN_BUCKET_BYTES + 100000);
        }
}

/* ---- beside a gathering ---- */

enum { WEIGHT_PAGE = 64, WEIGHT_UNITS = 3, WEIGHT_PAGES = 2 * WEIGHT_UNITS };

/* One rank waits for gradients while the other waits for weights, and both have more to send than is on its way at a
 * time. */
static void wait_crosswise(scatter_test *t, an_context *ctx, group *g) {
    an_scattering *s = NULL;
    an_gathering *weights = NULL;
    char pages[WEIGHT_PAGES][WEIGHT_PAGE] = {{0}};
    const void *src[AN_GATHER_CHANNELS] = {pages, NULL};
    void *dst[AN_GATHER_CHANNELS] = {pages, NULL};
    an_gather_run runs[WEIGHT_UNITS];
    an_gather_unit units[WEIGHT_UNITS];
    for (int i = 0; i < WEIGHT_UNITS; i++) {
        runs[i] = (an_gather_run){
            .pages = {2 * i, 2 * i + 2}, .src_at = 2L * i * WEIGHT_PAGE, .dst_at = 2L * i * WEIGHT_PAGE};
        units[i] = (an_gather_unit){runs[i].pages, i, &runs[i], 1, "weights"};
    }
    const an_gather_options options = {
        .units = units, .unit_count = WEIGHT_UNITS, .page_bytes = {WEIGHT_PAGE}, .in_flight = 1};
    scatter_init(t, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &g->setting);
    an_comm_set_timeout(ctx, 5);
    SCATTER_EXPECT(an_scattering_create(&s, ctx, t->comm, &t->options) == AN_OK);
    SCATTER_EXPECT(an_gathering_create(&weights, ctx, t->comm, &options) == AN_OK);
    SCATTER_EXPECT(an_scattering_begin(s, t->dst) == AN_OK && an_gathering_publish(weights) == AN_OK);
    for (int i = 0; i < SCATTER_UNITS; i++) SCATTER_EXPECT(an_scattering_start(s, i, 0, NULL) == AN_OK);
    for (int i = 0; i < WEIGHT_UNITS; i++) SCATTER_EXPECT(an_gathering_start(weights, i, src, dst) == AN_OK);
    if (t->comm->rank == 0) SCATTER_EXPECT(an_scattering_finish(s) == AN_OK);
    SCATTER_EXPECT(an_gathering_wait(weights, WEIGHT_UNITS - 1) == AN_OK);
    if (t->comm->rank == 1) SCATTER_EXPECT(an_scattering_finish(s) == AN_OK);
    SCATTER_EXPECT(an_gathering_finish(weights) == AN_OK);
end:
    an_scattering_destroy(&s);
    an_gathering_destroy(&weights);
    rank_barrier(&g->late);
    scatter_free_buffers(t);
}

static void who_waits_moves_all_messages_on(void **state) {
    (void)state;
    group g = {.ranks = 2,
               .is_late = true,
               .setting = {.leaves = {0, 2, 2}, .dtype = AN_DTYPE_F32, .bucket_pages = 2, .in_flight = 1},
               .body = wait_crosswise};
    expect_no_problem(&g);
}

/* ---- what goes wrong ---- */

static void end_by_planted_failure(scatter_test *t, an_context *ctx, group *g) {
    an_scattering *s = NULL;
    an_status status = AN_OK;
    scatter_init(t, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &g->setting);
    const size_t held = ctx->bytes;
    SCATTER_EXPECT(an_scattering_create(&s, ctx, t->comm, &t->options) == AN_OK);
    for (int step = 0; step < SCATTER_STEPS && status == AN_OK; step++) {
        status = an_scattering_begin(s, t->dst);
        if (step == 1 && t->comm->rank == 1) {
            if (status == AN_OK) status = scatter_start(t, s, step, 0, scatter_order[step][0]);
            if (status == AN_OK) status = scatter_wait(t, s, scatter_order[step][0]);
            if (status == AN_OK && g->is_mistake) status = an_scattering_start(s, SCATTER_UNITS, 0, NULL);
            if (!g->is_mistake) an_comm_abort(ctx, AN_ERR_KERNEL, "a planted failure");
        }
        if (status == AN_OK) status = scatter_rounds(t, s, step);
        if (status == AN_OK) status = an_scattering_finish(s);
    }
    const an_status expected = g->is_mistake ? AN_ERR_ARGUMENT : AN_ERR_KERNEL;
    const char *words = g->is_mistake ? "rank 1: unit 4 of 4" : "rank 1: a planted failure";
    SCATTER_EXPECT(status == expected);
    SCATTER_EXPECT(strstr(an_last_error(ctx), t->comm->rank == 1 ? words + strlen("rank 1: ") : words) != NULL);
    SCATTER_EXPECT(an_scattering_wait(s, 0) == expected);
    SCATTER_EXPECT(an_scattering_start(s, 0, 0, NULL) == expected);
    SCATTER_EXPECT(an_scattering_finish(s) == expected);
end:
    an_scattering_destroy(&s);
    if (ctx->bytes != held) scatter_expect(t, false, "bytes were not released");
    scatter_free_buffers(t);
}

static void a_rank_that_gives_up_is_everyones_end(void **state) {
    (void)state;
    for (int kind = 0; kind < 16; kind++) {
        group g = {.ranks = 4,
                   .is_late = kind & 1,
                   .setting = {.leaves = {0, 7, 7},
                               .dtype = AN_DTYPE_F32,
                               .is_bf16 = kind & 2,
                               .bucket_pages = 4,
                               .in_flight = kind & 4 ? 2 : 1},
                   .body = end_by_planted_failure,
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
                   .setting = {.leaves = {0, 8, 8}, .dtype = AN_DTYPE_F32, .bucket_pages = 3},
                   .body = run_steps,
                   .fails_at = calls[i]};
        assert_int_equal(run_group(&g, problem), 3);
        if (!strstr(problem, "planted") || strstr(problem, "released")) fail_msg("%s", problem);
    }
}

/* A rank that has failed gives nothing, and the others get to the end of the step. */
static void give_nothing(scatter_test *t, an_context *ctx, group *g) {
    an_scattering *s = NULL;
    scatter_init(t, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &g->setting);
    SCATTER_EXPECT(an_scattering_create(&s, ctx, t->comm, &t->options) == AN_OK);
    const an_scatter_cost predicted = an_scatter_predict(&t->options, t->comm->rank, t->comm->ranks);
    SCATTER_EXPECT(an_scattering_begin(s, t->dst) == AN_OK);
    for (int64_t round = 0; round < an_scatter_rounds(&t->options, t->comm->ranks); round++)
        for (int unit = 0; unit < SCATTER_UNITS; unit++) {
            SCATTER_EXPECT((t->comm->rank == 1 ? an_scattering_start(s, unit, round, NULL)
                                               : scatter_start(t, s, 0, round, unit)) == AN_OK);
            SCATTER_EXPECT(scatter_wait(t, s, unit) == AN_OK);
        }
    SCATTER_EXPECT(an_scattering_finish(s) == AN_OK);
    SCATTER_EXPECT(an_scattering_count(s).sent == predicted.sent);
end:
    an_scattering_destroy(&s);
    scatter_free_buffers(t);
}

static void a_rank_that_has_failed_takes_part(void **state) {
    (void)state;
    group g = {.ranks = 3,
               .is_late = true,
               .setting = {.leaves = {0, 8, 8}, .dtype = AN_DTYPE_F32, .bucket_pages = 3},
               .body = give_nothing};
    expect_no_problem(&g);
}

/* Messages have been posted, and no rank waits for them. */
static void start_and_cancel(scatter_test *t, an_context *ctx, group *g) {
    an_scattering *s = NULL;
    scatter_init(t, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &g->setting);
    const size_t held = ctx->bytes;
    SCATTER_EXPECT(an_scattering_create(&s, ctx, t->comm, &t->options) == AN_OK);
    SCATTER_EXPECT(an_scattering_begin(s, t->dst) == AN_OK);
    for (int i = 0; i < SCATTER_UNITS && t->comm->rank != 1; i++) SCATTER_EXPECT(scatter_start(t, s, 0, 0, i) == AN_OK);
    an_scattering_cancel(s);
    SCATTER_EXPECT(an_scattering_wait(s, 0) == AN_ERR_ORDER);
    SCATTER_EXPECT(strstr(an_last_error(ctx), "given up") != NULL);
end:
    an_scattering_destroy(&s);
    if (ctx->bytes != held) scatter_expect(t, false, "bytes were not released");
    rank_barrier(&g->late);
    scatter_free_buffers(t);
}

static void nothing_is_left_of_what_is_cancelled(void **state) {
    (void)state;
    for (int in_flight = 1; in_flight <= 3; in_flight++) {
        group g = {.ranks = 3,
                   .is_late = true,
                   .setting = {.leaves = {0, 8, 8}, .dtype = AN_DTYPE_F32, .bucket_pages = 3, .in_flight = in_flight},
                   .body = start_and_cancel};
        expect_no_problem(&g);
    }
}

/* ---- one process ---- */

typedef struct one_process {
    an_context *ctx;
    scatter_test test;
    scatter_setting setting;
    an_scattering *scattering;
} one_process;

static void begin_one(one_process *o) {
    *o = (one_process){.setting = {.leaves = {0, 3, 3}, .dtype = AN_DTYPE_F32}};
    OK(NULL, an_context_create(&o->ctx, NULL));
    scatter_init(&o->test, o->ctx, an_axis_comm(o->ctx, AN_AXIS_DATA), &o->setting);
}

static void end_one(one_process *o) {
    an_scattering_destroy(&o->scattering);
    scatter_free_buffers(&o->test);
    an_context_destroy(&o->ctx);
}

static void refuse(one_process *one, const an_scatter_options *o, an_status status, const char *words) {
    FAILS(one->ctx, an_scattering_create(&one->scattering, one->ctx, one->test.comm, o), status, words);
    assert_null(one->scattering);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    one_process one;
    begin_one(&one);
    an_reduction_unit units[SCATTER_UNITS];
    memcpy(units, scatter_units, sizeof units);
    one.test.options.units = units;
    an_scatter_options o = one.test.options;
    o.dtype = AN_DTYPE_BF16;
    refuse(&one, &o, AN_ERR_DTYPE, "f32 or f64");
    o.dtype = AN_DTYPE_F64;
    o.is_bf16 = true;
    refuse(&one, &o, AN_ERR_DTYPE, "bf16 are added in f32");
    o = one.test.options;
    o.in_flight = AN_MOST_IN_FLIGHT + 1;
    refuse(&one, &o, AN_ERR_ARGUMENT, "65 buckets in flight");
    o = one.test.options;
    o.bucket_bytes = AN_COMM_MAX_BYTES + 1;
    refuse(&one, &o, AN_ERR_ARGUMENT, "buckets have");
    o = one.test.options;
    o.leaves.begin = 3;
    refuse(&one, &o, AN_ERR_ARGUMENT, "leaves 3 to 3 of 3");
    o = one.test.options;
    o.leaves.end = 4;
    refuse(&one, &o, AN_ERR_ARGUMENT, "leaves 0 to 4 of 3");
    o = one.test.options;
    o.pages = 20;
    refuse(&one, &o, AN_ERR_ARGUMENT, "unit last has pages 17 to 24 of 20");
    units[2].pages.begin = 11;
    refuse(&one, &one.test.options, AN_ERR_ARGUMENT, "unit few begins at page 11, and the one before it ends at 12");
    end_one(&one);
}

static void wrong_order_is_refused(void **state) {
    (void)state;
    one_process one;
    begin_one(&one);
    an_context *ctx = one.ctx;
    OK(ctx, an_scattering_create(&one.scattering, ctx, one.test.comm, &one.test.options));
    an_scattering *s = one.scattering;
    FAILS(ctx, an_scattering_start(s, 0, 0, NULL), AN_ERR_ORDER, "unit first was started before an_scattering_begin");
    OK(ctx, an_scattering_begin(s, one.test.dst));
    FAILS(ctx, an_scattering_begin(s, one.test.dst), AN_ERR_ORDER, "before an_scattering_finish");
    FAILS(ctx, an_scattering_start(s, SCATTER_UNITS, 0, NULL), AN_ERR_ARGUMENT, "unit 4 of 4");
    FAILS(ctx, an_scattering_start(s, 0, 3, NULL), AN_ERR_ARGUMENT, "round 3 of 3");
    FAILS(ctx, an_scattering_start(s, 0, 1, NULL), AN_ERR_ORDER, "unit first was started in round 1 instead of 0");
    FAILS(ctx, an_scattering_wait(s, -1), AN_ERR_ARGUMENT, "unit -1 of 4");
    OK(ctx, an_scattering_wait(s, 1)); /* it was not started */
    OK(ctx, an_scattering_start(s, 0, 0, NULL));
    FAILS(ctx, an_scattering_start(s, 0, 1, NULL), AN_ERR_ORDER, "unit first was started again before");
    OK(ctx, an_scattering_wait(s, 0));
    OK(ctx, an_scattering_start(s, 0, 1, NULL));
    FAILS(ctx, an_scattering_finish(s), AN_ERR_ORDER, "after 2 of 3 rounds of unit first");
    FAILS(ctx, an_scattering_begin(s, one.test.dst), AN_ERR_ORDER, "given up");
    end_one(&one);
}

/* Every allocation fails once. */
static void without_memory_nothing_is_made(void **state) {
    (void)state;
    ledger l = {0};
    an_context *ctx;
    scatter_test t;
    an_scattering *s = NULL;
    an_status status = AN_ERR_MEMORY;
    const scatter_setting setting = {.leaves = {0, 8, 8}, .dtype = AN_DTYPE_F32};
    OK(NULL, context_with_ledger(&ctx, &l, 1));
    scatter_init(&t, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &setting);
    const size_t held = l.held;
    int failures = -1;
    for (long call = 1; status != AN_OK; call++, failures++) {
        l.fail_at = l.calls + call;
        l.once = true;
        status = an_scattering_create(&s, ctx, t.comm, &t.options);
        assert_true(status == AN_OK || (status == AN_ERR_MEMORY && !s && l.held == held));
    }
    assert_int_equal(failures, 12); /* itself and its tables; one rank has no requests and no staging */
    an_scattering_destroy(&s);
    assert_int_equal(l.held, held);
    scatter_free_buffers(&t);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(wrong_order_is_refused),
        cmocka_unit_test(without_memory_nothing_is_made),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(owners_have_the_tree),
        cmocka_unit_test(deep_trees_are_added),
        cmocka_unit_test(owners_have_the_nodes_of_a_range),
        cmocka_unit_test(who_waits_moves_all_messages_on),
        cmocka_unit_test(a_rank_that_gives_up_is_everyones_end),
        cmocka_unit_test(a_lost_message_is_everyones_end),
        cmocka_unit_test(a_rank_that_has_failed_takes_part),
        cmocka_unit_test(nothing_is_left_of_what_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

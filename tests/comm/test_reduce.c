/* The reduction, with ranks that are threads: the sum has the bits of the tree on every rank, by messages and
 * through shared memory, and bytes are as predicted. */
#include "comm/reduce.h"

#include "anneal/plan.h"
#include "support/rank_threads.h"
#include "support/support.h"

enum { PAGES = 37, MOST_LEAVES = 16, STEPS = 3 };

/* Not in order, and a page of no unit between two of them. */
static const an_reduction_unit units[] = {
    {{20, 36}, "last", 9}, {{0, 5}, "first", 0}, {{18, 20}, "third", 1}, {{6, 17}, "second", 2}, {{5, 6}, "small", 4}};
enum { UNITS = sizeof units / sizeof *units };
static const int order[STEPS][UNITS] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}};

typedef struct setting {
    an_borders borders;
    an_dtype dtype;
    int host_ranks;
    bool uses_window, cannot_share, is_in_place, scatters;
    int in_flight;
    int bucket_pages;
    const int *radices;
    int rounds;
    int gives_up; /* this rank, in its second step; 0: none */
} setting;

/* ---- the tree, from its definition ---- */

/* Numbers whose sum depends on the order in which they are added; one leaf of a step is absent. */
static double number_of(int step, int64_t leaf, int64_t element) {
    static const double sizes[] = {1e16, -1e16, 1, 3e7, -1e-3};
    uint64_t x = (uint64_t)(step * 1000003 + leaf * 7919 + element) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ULL;
    if (leaf == step + 1) return -0.0;
    return sizes[x >> 60 & 3] / (double)(1 + (x >> 33 & 1023));
}

static double sum_of(const setting *s, int step, int64_t begin, int level, int64_t element) {
    if (begin >= s->borders.leaves) return -0.0;
    if (level == 0) {
        const double x = number_of(step, begin, element);
        return s->dtype == AN_DTYPE_F32 ? (double)(float)x : x;
    }
    const double left = sum_of(s, step, begin, level - 1, element);
    const double right = sum_of(s, step, begin + ((int64_t)1 << (level - 1)), level - 1, element);
    return s->dtype == AN_DTYPE_F32 ? (double)((float)left + (float)right) : left + right;
}

static void fill(const setting *s, int step, const an_tree_node *node, void *flat) {
    for (int64_t i = 0; i < (int64_t)PAGES * AN_PAGE; i++) {
        const double x = sum_of(s, step, node->first, node->level, i);
        if (s->dtype == AN_DTYPE_F32)
            ((float *)flat)[i] = (float)x;
        else
            ((double *)flat)[i] = x;
    }
}

/* ---- one rank ---- */

typedef struct rank_thread {
    const setting *setting;
    rank_hub *hub;
    pthread_t thread;
    int rank;
    void *expected[STEPS]; /* made once, for all ranks */
    char problem[512];
} rank_thread;

#define EXPECT(condition)                                                                   \
    do {                                                                                    \
        if (!(condition) && !t->problem[0])                                                 \
            snprintf(t->problem, sizeof t->problem, "rank %d: %s: %s", t->rank, #condition, \
                     ctx ? an_last_error(ctx) : "");                                        \
    } while (0)

/* The pages of a unit whose sums a rank gets: all, or its piece. */
static an_page_range pages_of(const setting *s, int rank, const an_reduction_unit *unit) {
    const int64_t begin = unit->pages.begin, pages = unit->pages.end - begin, ranks = s->borders.ranks;
    int64_t q = 0;
    while ((q + unit->turn) % ranks != rank) q++;
    return s->scatters ? (an_page_range){begin + pages * q / ranks, begin + pages * (q + 1) / ranks} : unit->pages;
}

static void run_steps(rank_thread *t, an_context *ctx, an_reduction *r, const an_reduction_options *o) {
    const setting *s = t->setting;
    const size_t element = an_dtype_size(s->dtype);
    an_tree_node nodes[AN_FOREST_MOST];
    const an_leaf_range range = an_borders_range(&s->borders, t->rank);
    const int count = an_forest_nodes(&range, nodes);
    EXPECT(an_reduction_nodes(r) == count);
    void *flats[AN_FOREST_MOST + 1];
    for (int i = 0; i < o->buffers; i++) flats[i] = an_reduction_buffer(r, i);
    void *dst = s->is_in_place ? flats[0] : flats[count];
    const int host_ranks = an_reduction_host_ranks(r);
    const an_reduction_cost predicted = an_reduction_predict(o, t->rank, host_ranks);
    for (int step = 0; step < STEPS; step++) {
        const an_reduction_cost before = an_reduction_count(r);
        const int64_t sent = t->hub->sent[t->rank];
        for (int i = 0; i < count; i++) fill(s, step, &nodes[i], flats[i]);
        for (int i = 0; i < UNITS; i++) {
            EXPECT(an_reduction_start(r, order[step][i], flats, dst) == AN_OK);
            for (int calls = (t->rank * 7 + i * 3 + step) % 4; calls > 0; calls--) an_context_progress(ctx);
        }
        EXPECT(an_reduction_finish(r) == AN_OK);
        const an_reduction_cost after = an_reduction_count(r);
        EXPECT(after.sent - before.sent == predicted.sent);
        EXPECT(t->hub->sent[t->rank] - sent == predicted.sent);
        EXPECT(after.received - before.received == predicted.received);
        EXPECT(after.messages - before.messages == predicted.messages);
        EXPECT(after.read - before.read == predicted.read);
        EXPECT(after.written - before.written == predicted.written);
        for (int i = 0; i < UNITS; i++) {
            const an_page_range pages = pages_of(s, t->rank, &units[i]);
            const size_t begin = (size_t)pages.begin * AN_PAGE * element;
            const size_t end = (size_t)pages.end * AN_PAGE * element;
            EXPECT(!memcmp((char *)dst + begin, (char *)t->expected[step] + begin, end - begin));
        }
        rank_barrier(t->hub); /* sent is counted by all */
    }
}

/* One rank gives up where it should start: the others end with its message, whatever they wait for. */
static void run_until_one_gives_up(rank_thread *t, an_context *ctx, an_reduction *r, int buffers) {
    void *flats[AN_FOREST_MOST + 1];
    for (int i = 0; i < buffers; i++) flats[i] = an_reduction_buffer(r, i);
    an_status status = AN_OK;
    for (int step = 0; step < 2 && status == AN_OK; step++) {
        if (step == 1 && t->rank == t->setting->gives_up) an_comm_abort(ctx, AN_ERR_KERNEL, "a planted failure");
        for (int i = 0; i < UNITS && status == AN_OK; i++) status = an_reduction_start(r, i, flats, flats[0]);
        if (status == AN_OK) status = an_reduction_finish(r);
    }
    if (t->rank == t->setting->gives_up) {
        EXPECT(status == AN_ERR_KERNEL);
    } else {
        EXPECT(status == AN_ERR_KERNEL && strstr(an_last_error(ctx), "rank 1: a planted failure"));
    }
}

static void *run_rank(void *user) {
    rank_thread *t = user;
    const setting *s = t->setting;
    an_comm *world = rank_world(t->hub, t->rank);
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.communicator = world;
    options.threads = 1 + t->rank % 2;
    EXPECT(an_context_create(&ctx, &options) == AN_OK);
    const an_leaf_range range = an_borders_range(&s->borders, t->rank);
    an_tree_node nodes[AN_FOREST_MOST];
    const an_reduction_options o = {
        .borders = s->borders,
        .dtype = s->dtype,
        .pages = PAGES,
        .units = units,
        .unit_count = UNITS,
        .buffers = an_forest_nodes(&range, nodes) + !s->is_in_place,
        .scatters = s->scatters,
        .uses_window = s->uses_window,
        .bucket_bytes = (size_t)s->bucket_pages * AN_PAGE * an_dtype_size(s->dtype),
        .in_flight = s->in_flight,
        .radices = s->radices,
        .rounds = s->rounds,
    };
    an_reduction *r = NULL;
    const size_t held = ctx ? ctx->bytes : 0;
    EXPECT(ctx && an_reduction_create(&r, ctx, an_axis_comm(ctx, AN_AXIS_DATA), &o) == AN_OK);
    if (r) {
        const int host_ranks = an_reduction_host_ranks(r);
        const an_reduction_cost predicted = an_reduction_predict(&o, t->rank, host_ranks);
        const bool shares = s->uses_window && !s->cannot_share && (!s->scatters || s->host_ranks == s->borders.ranks);
        EXPECT(host_ranks == (shares ? s->host_ranks : 1));
        EXPECT(ctx->bytes - held ==
               predicted.bytes + (host_ranks > 1 ? predicted.window_bytes : predicted.buffer_bytes));
        if (s->gives_up)
            run_until_one_gives_up(t, ctx, r, o.buffers);
        else
            run_steps(t, ctx, r, &o);
    }
    an_reduction_destroy(&r);
    EXPECT(ctx->bytes == held);
    rank_barrier(t->hub);
    an_context_destroy(&ctx);
    world->destroy(&world);
    return NULL;
}

static void run(const setting *s) {
    rank_hub hub;
    rank_thread threads[RANK_THREADS_MOST] = {{.rank = 0}};
    const int ranks = s->borders.ranks;
    int root = 0;
    while (((int64_t)1 << root) < s->borders.leaves) root++;
    rank_hub_init(&hub, ranks, s->host_ranks);
    hub.cannot_share = s->cannot_share;
    void *expected[STEPS];
    for (int step = 0; step < STEPS; step++) {
        expected[step] = malloc((size_t)PAGES * AN_PAGE * sizeof(double));
        fill(s, step, &(an_tree_node){0, root}, expected[step]);
    }
    for (int i = 0; i < ranks; i++) {
        threads[i] = (rank_thread){.setting = s, .hub = &hub, .rank = i};
        memcpy(threads[i].expected, expected, sizeof expected);
        assert_int_equal(pthread_create(&threads[i].thread, NULL, run_rank, &threads[i]), 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(threads[i].thread, NULL);
    for (int i = 0; i < ranks; i++)
        if (threads[i].problem[0])
            fail_msg("%d ranks, %d a host, %lld leaves, borders %d, %s: %s", ranks, s->host_ranks,
                     (long long)s->borders.leaves, (int)s->borders.kind, s->uses_window ? "window" : "messages",
                     threads[i].problem);
    for (int step = 0; step < STEPS; step++) free(expected[step]);
    for (int i = 0; s->gives_up && i < ranks; i++) free(hub.parts[i]); /* nobody has waited for the others to close */
    assert_int_equal(rank_hub_destroy(&hub), 0);
}

/* ---- tests ---- */

static void messages_give_the_tree(void **state) {
    (void)state;
    static const int twos[] = {2, 2, 2}, mixed[] = {3, 2};
    const setting settings[] = {
        {.borders = {AN_BORDERS_SUBTREE, 1, 4}, .dtype = AN_DTYPE_F32, .bucket_pages = 4},
        {.borders = {AN_BORDERS_SUBTREE, 2, 2}, .dtype = AN_DTYPE_F32, .bucket_pages = 4, .is_in_place = true},
        {.borders = {AN_BORDERS_SUBTREE, 2, 8}, .dtype = AN_DTYPE_F64, .bucket_pages = 100},
        {.borders = {AN_BORDERS_EVEN, 3, 8}, .dtype = AN_DTYPE_F32, .bucket_pages = 3, .is_in_place = true},
        {.borders = {AN_BORDERS_EVEN, 5, 13}, .dtype = AN_DTYPE_F64, .bucket_pages = 7, .in_flight = 3},
        {.borders = {AN_BORDERS_SUBTREE, 8, 16}, .dtype = AN_DTYPE_F32, .bucket_pages = 1, .in_flight = 1},
        {.borders = {AN_BORDERS_SUBTREE, 8, 8}, AN_DTYPE_F32, .bucket_pages = 5, .radices = twos, .rounds = 3},
        {.borders = {AN_BORDERS_EVEN, 7, 16},
         .dtype = AN_DTYPE_F32,
         .bucket_pages = 9,
         .radices = mixed,
         .rounds = 2,
         .is_in_place = true},
        {.borders = {AN_BORDERS_EVEN, 5, 7}, .dtype = AN_DTYPE_F64, .bucket_pages = 9, .radices = twos, .rounds = 3},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        setting s = settings[i];
        s.host_ranks = 1;
        run(&s);
    }
}

static void windows_give_the_tree(void **state) {
    (void)state;
    static const int twos[] = {2, 2};
    const setting settings[] = {
        {.borders = {AN_BORDERS_SUBTREE, 2, 4}, .dtype = AN_DTYPE_F32, .host_ranks = 2, .is_in_place = true},
        {.borders = {AN_BORDERS_EVEN, 3, 8}, .dtype = AN_DTYPE_F64, .host_ranks = 3, .is_in_place = true},
        {.borders = {AN_BORDERS_EVEN, 5, 8}, .dtype = AN_DTYPE_F32, .host_ranks = 5},
        /* several hosts: the window first, then messages; the last host may have fewer ranks */
        {.borders = {AN_BORDERS_SUBTREE, 4, 8}, .dtype = AN_DTYPE_F32, .host_ranks = 2, .is_in_place = true},
        {.borders = {AN_BORDERS_EVEN, 5, 11}, .dtype = AN_DTYPE_F32, .host_ranks = 2, .is_in_place = true},
        {.borders = {AN_BORDERS_SUBTREE, 8, 8}, AN_DTYPE_F64, .host_ranks = 2, .radices = twos, .rounds = 2},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        setting s = settings[i];
        s.uses_window = true;
        s.bucket_pages = 3 + (int)i;
        run(&s);
    }
}

/* Every rank gets the sums of its own pieces alone, whatever the buckets are. */
static void owners_keep_their_pieces(void **state) {
    (void)state;
    const setting settings[] = {
        {.borders = {AN_BORDERS_SUBTREE, 1, 4}, .dtype = AN_DTYPE_F32, .bucket_pages = 4, .host_ranks = 1},
        {.borders = {AN_BORDERS_SUBTREE, 2, 4}, .dtype = AN_DTYPE_F32, .bucket_pages = 4, .host_ranks = 2},
        {.borders = {AN_BORDERS_EVEN, 3, 8}, .dtype = AN_DTYPE_F64, .bucket_pages = 3, .host_ranks = 3},
        {.borders = {AN_BORDERS_EVEN, 5, 13}, AN_DTYPE_F32, .bucket_pages = 7, .in_flight = 3, .host_ranks = 5},
        {.borders = {AN_BORDERS_SUBTREE, 8, 16}, AN_DTYPE_F32, .bucket_pages = 1, .in_flight = 1, .host_ranks = 8},
        {.borders = {AN_BORDERS_EVEN, 7, 7}, .dtype = AN_DTYPE_F64, .bucket_pages = 100, .host_ranks = 7},
        {.borders = {AN_BORDERS_SUBTREE, 4, 8}, .dtype = AN_DTYPE_F32, .bucket_pages = 5, .host_ranks = 2},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        for (int way = 0; way < 4; way++) {
            setting s = settings[i];
            s.scatters = true;
            s.is_in_place = way % 2;
            s.uses_window = way / 2;
            if (!s.uses_window) s.host_ranks = 1;
            run(&s);
        }
    }
}

/* All ranks use messages if the ranks of a host cannot share memory. */
static void without_shared_memory_messages_do(void **state) {
    (void)state;
    const setting s = {.borders = {AN_BORDERS_EVEN, 3, 7},
                       .dtype = AN_DTYPE_F32,
                       .host_ranks = 3,
                       .uses_window = true,
                       .cannot_share = true,
                       .bucket_pages = 4,
                       .is_in_place = true};
    run(&s);
}

static void a_rank_that_gives_up_is_everyones_end(void **state) {
    (void)state;
    const setting s = {.borders = {AN_BORDERS_EVEN, 3, 7},
                       .dtype = AN_DTYPE_F32,
                       .host_ranks = 3,
                       .bucket_pages = 4,
                       .is_in_place = true,
                       .gives_up = 1};
    setting with_window = s, two_hosts = s;
    with_window.uses_window = two_hosts.uses_window = true;
    two_hosts.host_ranks = 2;
    run(&s);
    run(&with_window);
    run(&two_hosts);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    an_context *ctx;
    assert_int_equal(an_context_create(&ctx, NULL), AN_OK);
    an_comm *comm = an_axis_comm(ctx, AN_AXIS_DATA);
    const an_reduction_options good = {.borders = {AN_BORDERS_SUBTREE, 1, 4},
                                       .dtype = AN_DTYPE_F32,
                                       .pages = PAGES,
                                       .units = units,
                                       .unit_count = UNITS,
                                       .buffers = 2};
    an_reduction *r = NULL;
    an_reduction_options o = good;
    o.dtype = AN_DTYPE_BF16;
    FAILS(ctx, an_reduction_create(&r, ctx, comm, &o), AN_ERR_DTYPE, "f32 or f64");
    o = good;
    o.borders.ranks = 2;
    FAILS(ctx, an_reduction_create(&r, ctx, comm, &o), AN_ERR_ARGUMENT, "2 ranks");
    o = good;
    o.pages = 10;
    FAILS(ctx, an_reduction_create(&r, ctx, comm, &o), AN_ERR_ARGUMENT, "unit last has pages 20 to 36 of 10");
    o = good;
    o.bucket_bytes = (size_t)2 << 30;
    FAILS(ctx, an_reduction_create(&r, ctx, comm, &o), AN_ERR_ARGUMENT, "buckets");
    o = good;
    o.radices = (int[]){1};
    o.rounds = 1;
    FAILS(ctx, an_reduction_create(&r, ctx, comm, &o), AN_ERR_ARGUMENT, "radix 1");
    /* one rank: its node is the sum */
    OK(ctx, an_reduction_create(&r, ctx, comm, &good));
    void *node = an_reduction_buffer(r, 0), *dst = an_reduction_buffer(r, 1);
    memset(node, 1, (size_t)PAGES * AN_PAGE * sizeof(float));
    memset(dst, 0, (size_t)PAGES * AN_PAGE * sizeof(float));
    FAILS(ctx, an_reduction_start(r, UNITS, &node, dst), AN_ERR_ARGUMENT, "unit 5 of 5");
    OK(ctx, an_reduction_start(r, 1, &node, dst));
    OK(ctx, an_reduction_finish(r));
    assert_memory_equal(dst, node, (size_t)5 * AN_PAGE * sizeof(float));
    an_reduction_destroy(&r);
    an_context_destroy(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(messages_give_the_tree),
        cmocka_unit_test(windows_give_the_tree),
        cmocka_unit_test(owners_keep_their_pieces),
        cmocka_unit_test(without_shared_memory_messages_do),
        cmocka_unit_test(a_rank_that_gives_up_is_everyones_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Gradients that are in pieces within a host and summed across hosts: each host scatters the gradients of
 * its leaves, and the owners of the same piece on all hosts reduce the nodes of it. The sum has the bits
 * of one process on every host. */
#include "comm/scatters.h"
#include "support/rank_threads.h"
#include "support/support.h"

enum { MOST_HOSTS = 4, MOST_HOST_RANKS = 4 };

/* Three worlds of threads: all ranks, those of each host, and those that own the same pieces on all hosts. */
typedef struct cluster {
    int hosts, host_ranks;
    an_borders borders; /* of hosts */
    an_dtype dtype;
    rank_hub all, within[MOST_HOSTS], across[MOST_HOST_RANKS];
} cluster;

typedef struct one_rank {
    cluster *cluster;
    int host, rank; /* of the host */
    pthread_t thread;
    scatter_test test;
    an_comm *across;
    scatter_setting setting;
    an_reduction_unit pieces[SCATTER_UNITS];
    int piece_count;
} one_rank;

/* The pieces of this rank are the units across hosts; what it owns nothing of is none. */
static an_reduction_options reduction_options(one_rank *r) {
    const cluster *c = r->cluster;
    for (int i = 0; i < SCATTER_UNITS; i++) {
        const an_page_range piece = an_piece(&scatter_units[i].pages, scatter_units[i].turn, r->rank, c->host_ranks);
        if (piece.begin == piece.end) continue;
        r->pieces[r->piece_count++] = (an_reduction_unit){.pages = piece, .name = scatter_units[i].name};
    }
    return (an_reduction_options){.borders = c->borders,
                                  .dtype = c->dtype,
                                  .pages = SCATTER_GRID,
                                  .units = r->pieces,
                                  .unit_count = r->piece_count,
                                  .bucket_bytes = 2 * AN_PAGE * sizeof(double)};
}

/* Each page of this rank is the whole tree's. */
static bool is_right(one_rank *r, int step) {
    const scatter_test *t = &r->test;
    int root = 0;
    while (((int64_t)1 << root) < r->cluster->borders.leaves) root++;
    for (int64_t i = 0; i < (int64_t)SCATTER_GRID * AN_PAGE; i++) {
        double sum;
        if (scatter_owner(i / AN_PAGE, r->cluster->host_ranks) != r->rank) continue;
        if (!scatter_node(&r->setting, step, 0, root, i, &sum)) sum = -0.0;
        if (!scatter_is_same(&r->setting, t->dst, i, sum)) return false;
    }
    return true;
}

/* One step of a hybrid: scatter within the host, reduce across hosts. */
static void run_step(one_rank *r, an_scattering *s, an_reduction *reduction, int step) {
    scatter_test *t = &r->test;
    void *nodes[AN_FOREST_MOST];
    scatter_spoil_dst(t);
    SCATTER_EXPECT(an_scattering_begin(s, t->dst) == AN_OK);
    SCATTER_EXPECT(scatter_rounds(t, s, step) == AN_OK);
    SCATTER_EXPECT(an_scattering_finish(s) == AN_OK);
    SCATTER_EXPECT(an_scattering_nodes(s) == an_reduction_nodes(reduction));
    for (int i = 0; i < an_scattering_nodes(s); i++) nodes[i] = an_scattering_node(s, i);
    for (int i = 0; i < r->piece_count; i++) SCATTER_EXPECT(an_reduction_start(reduction, i, nodes, t->dst) == AN_OK);
    SCATTER_EXPECT(an_reduction_finish(reduction) == AN_OK);
    SCATTER_EXPECT(is_right(r, step));
end:;
}

static void run_steps(one_rank *r, an_context *ctx, an_comm *within) {
    const cluster *c = r->cluster;
    scatter_test *t = &r->test;
    an_scattering *s = NULL;
    an_reduction *reduction = NULL;
    r->setting = (scatter_setting){.leaves = an_borders_range(&c->borders, r->host),
                                   .dtype = c->dtype,
                                   .bucket_pages = 2 * c->host_ranks,
                                   .waits_after = 1};
    scatter_init(t, ctx, within, &r->setting);
    const an_reduction_options options = reduction_options(r);
    SCATTER_EXPECT(an_scattering_create(&s, ctx, within, &t->options) == AN_OK);
    SCATTER_EXPECT(an_reduction_create(&reduction, ctx, r->across, &options) == AN_OK);
    for (int step = 0; step < SCATTER_STEPS && !*t->problem; step++) run_step(r, s, reduction, step);
end:
    an_scattering_destroy(&s);
    an_reduction_destroy(&reduction);
    rank_barrier(&r->cluster->all);
    scatter_free_buffers(t);
}

static void *run_rank(void *user) {
    one_rank *r = user;
    cluster *c = r->cluster;
    an_comm *all = rank_world(&c->all, r->host * c->host_ranks + r->rank);
    an_comm *within = rank_world(&c->within[r->host], r->rank);
    r->across = rank_world(&c->across[r->rank], r->host);
    an_context *ctx = NULL;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.communicator = all;
    options.threads = 1;
    if (an_context_create(&ctx, &options) == AN_OK)
        run_steps(r, ctx, within);
    else
        snprintf(r->test.problem, sizeof r->test.problem, "context: %s", an_last_error(NULL));
    an_context_destroy(&ctx);
    r->across->destroy(&r->across);
    within->destroy(&within);
    all->destroy(&all);
    return NULL;
}

static void run(cluster *c) {
    static one_rank ranks[MOST_HOSTS][MOST_HOST_RANKS];
    rank_hub_init(&c->all, c->hosts * c->host_ranks, c->host_ranks);
    for (int i = 0; i < c->hosts; i++) rank_hub_init(&c->within[i], c->host_ranks, 1);
    for (int i = 0; i < c->host_ranks; i++) rank_hub_init(&c->across[i], c->hosts, 1);
    for (int host = 0; host < c->hosts; host++)
        for (int rank = 0; rank < c->host_ranks; rank++) {
            one_rank *r = &ranks[host][rank];
            *r = (one_rank){.cluster = c, .host = host, .rank = rank};
            assert_int_equal(pthread_create(&r->thread, NULL, run_rank, r), 0);
        }
    for (int host = 0; host < c->hosts; host++)
        for (int rank = 0; rank < c->host_ranks; rank++) pthread_join(ranks[host][rank].thread, NULL);
    int left = rank_hub_destroy(&c->all);
    for (int i = 0; i < c->hosts; i++) left += rank_hub_destroy(&c->within[i]);
    for (int i = 0; i < c->host_ranks; i++) left += rank_hub_destroy(&c->across[i]);
    for (int host = 0; host < c->hosts; host++)
        for (int rank = 0; rank < c->host_ranks; rank++)
            if (*ranks[host][rank].test.problem)
                fail_msg("%d hosts of %d ranks, %lld leaves, borders %d: host %d: %s", c->hosts, c->host_ranks,
                         (long long)c->borders.leaves, (int)c->borders.kind, host, ranks[host][rank].test.problem);
    assert_int_equal(left, 0);
}

static void hosts_have_the_tree(void **state) {
    (void)state;
    static const int shapes[][2] = {{2, 2}, {3, 2}, {2, 3}, {2, 4}, {4, 2}};
    static const int64_t leaves[] = {8, 12, 16};
    bool had_several_nodes = false;
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
        for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++)
            for (an_border_kind kind = 0; kind < AN_BORDER_KINDS; kind++) {
                an_tree_node nodes[AN_FOREST_MOST];
                cluster c = {.hosts = shapes[shape][0],
                             .host_ranks = shapes[shape][1],
                             .borders = {kind, shapes[shape][0], leaves[i]},
                             .dtype = i % 2 ? AN_DTYPE_F64 : AN_DTYPE_F32};
                for (int host = 0; host < c.hosts; host++) {
                    const an_leaf_range range = an_borders_range(&c.borders, host);
                    had_several_nodes |= an_forest_nodes(&range, nodes) > 1;
                }
                run(&c);
            }
    assert_true(had_several_nodes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_have_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Schedules of the reduction, without MPI: all ranks are simulated in memory. The bits are those of the tree by
 * definition, every message is expected by its receiver in the order in which it was sent, and bytes are as predicted.
 *
 * Without an argument: a sample of ranks and leaves. `all`: all P ≤ 64 and G ≤ 256. */
#include "comm/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "support/support.h"

enum { MOST_RANKS = 64, MOST_LEAVES = 256, MOST_PAGES = 200 };

static bool everything;

static uint64_t random_state = 1;
static int64_t below(int64_t limit) {
    random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (int64_t)(random_state >> 33) % limit;
}

/* ---- the tree, from its definition ---- */

/* Numbers whose sum depends on the order in which they are added. A page has one. Some leaves are absent, which is
 * -0.0 */
static double leaves_of[MOST_LEAVES][MOST_PAGES];

static void make_leaves(int64_t leaves, int64_t pages) {
    static const double sizes[] = {1e16, -1e16, 1, 3e7, -1e-3};
    for (int64_t leaf = 0; leaf < leaves; leaf++) {
        const bool absent = below(9) == 0;
        for (int64_t page = 0; page < pages; page++)
            leaves_of[leaf][page] = absent ? -0.0 : sizes[below(5)] / (double)(1 + below(1000));
    }
}

static bool is_absent(double value) {
    return value == 0 && signbit(value);
}

/* An absent leaf is no operand here: a node with one child is that child. */
static double tree_sum(int64_t begin, int level, int64_t leaves, int64_t page) {
    if (begin >= leaves) return -0.0;
    if (level == 0) return leaves_of[begin][page];
    const double left = tree_sum(begin, level - 1, leaves, page);
    const double right = tree_sum(begin + ((int64_t)1 << (level - 1)), level - 1, leaves, page);
    return is_absent(left) ? right : is_absent(right) ? left : left + right;
}

/* ---- the simulation ---- */

typedef struct message {
    struct message *next;
    an_page_range pages;
    int node;
    double values[];
} message;

typedef struct rank_state {
    int nodes;
    double (*values)[MOST_PAGES]; /* by node; only the pages that the rank holds mean something */
    double sum[MOST_PAGES];
    bool has_sum[MOST_PAGES];
    an_traffic traffic;
} rank_state;

typedef struct simulation {
    an_rounds schedule;
    an_page_range bucket;
    rank_state *ranks;
    message *first[MOST_RANKS][MOST_RANKS], *last[MOST_RANKS][MOST_RANKS];
} simulation;

static void send_pages(simulation *s, int from, int to, const an_page_range *pages, int node, const double *values) {
    const size_t bytes = (size_t)(pages->end - pages->begin) * sizeof *values;
    message *m = malloc(sizeof *m + bytes);
    assert_non_null(m);
    *m = (message){NULL, *pages, node};
    memcpy(m->values, values + pages->begin, bytes);
    if (s->last[from][to])
        s->last[from][to]->next = m;
    else
        s->first[from][to] = m;
    s->last[from][to] = m;
    if (node < 0)
        s->ranks[from].traffic.returns_out++;
    else
        s->ranks[from].traffic.gathers_out++;
}

static void receive_pages(simulation *s, int from, int to, const an_page_range *pages, int node, double *values) {
    message *m = s->first[from][to];
    assert_non_null(m);
    if (node < 0)
        s->ranks[to].traffic.returns_in++;
    else
        s->ranks[to].traffic.gathers_in++;
    assert_int_equal(m->pages.begin, pages->begin);
    assert_int_equal(m->pages.end, pages->end);
    assert_int_equal(m->node, node);
    memcpy(values + pages->begin, m->values, (size_t)(pages->end - pages->begin) * sizeof *values);
    s->first[from][to] = m->next;
    if (!m->next) s->last[from][to] = NULL;
    free(m);
}

static int64_t length(const an_page_range *pages) {
    return pages->end - pages->begin;
}

static void gather_send(simulation *s, int rank, int round) {
    rank_state *r = &s->ranks[rank];
    an_cell cell;
    for (int64_t from = s->bucket.begin; an_rounds_cell(&s->schedule, &s->bucket, rank, round, from, &cell);
         from = cell.pages.end)
        for (int group = 0; group < cell.groups; group++) {
            const an_page_range piece = an_cell_piece(&cell, group);
            const int holder = an_cell_holder(&cell, group);
            assert_int_equal(holder == rank, group == cell.mine);
            for (int node = 0; node < r->nodes && group != cell.mine && length(&piece) > 0; node++) {
                send_pages(s, rank, holder, &piece, node, r->values[node]);
                r->traffic.gathered_out += length(&piece);
            }
        }
}

/* Adds all nodes of all groups, in the order that the schedule says. */
static void gather_receive(simulation *s, int rank, int round) {
    rank_state *r = &s->ranks[rank];
    const int64_t count = an_rounds_joins(&s->schedule, rank, round, NULL);
    int *joins = malloc((size_t)(count + 1) * sizeof *joins);
    double(*all)[MOST_PAGES] = malloc((size_t)count * sizeof *all);
    assert_true(joins && all);
    assert_int_equal(an_rounds_joins(&s->schedule, rank, round, joins), count);
    an_cell cell;
    int64_t waiting = 0;
    for (int64_t from = s->bucket.begin; an_rounds_cell(&s->schedule, &s->bucket, rank, round, from, &cell);
         from = cell.pages.end) {
        const an_page_range piece = an_cell_piece(&cell, cell.mine);
        if (length(&piece) == 0) continue;
        waiting = 0;
        int64_t next = 0;
        for (int group = 0; group < cell.groups; group++) {
            const int holder = an_cell_holder(&cell, group);
            an_tree_node nodes[AN_FOREST_MOST];
            const an_leaf_range range = an_rounds_leaves(&s->schedule, holder, round);
            const int more = an_forest_nodes(&range, nodes);
            for (int node = 0; node < more; node++, next++) {
                for (int i = 0; i < joins[next]; i++, waiting--)
                    for (int64_t p = piece.begin; p < piece.end; p++) all[waiting - 2][p] += all[waiting - 1][p];
                if (group == cell.mine) {
                    for (int64_t p = piece.begin; p < piece.end; p++) all[waiting][p] = r->values[node][p];
                } else {
                    receive_pages(s, holder, rank, &piece, node, all[waiting]);
                    r->traffic.gathered_in += length(&piece);
                }
                waiting++;
            }
        }
        assert_int_equal(next, count);
        for (int i = 0; i < joins[count]; i++, waiting--)
            for (int64_t p = piece.begin; p < piece.end; p++) all[waiting - 2][p] += all[waiting - 1][p];
    }
    free(joins);
    free(r->values);
    r->values = all;
    an_tree_node nodes[AN_FOREST_MOST];
    const an_leaf_range range = an_rounds_leaves(&s->schedule, rank, round + 1);
    r->nodes = an_forest_nodes(&range, nodes);
    if (waiting > 0) assert_int_equal(waiting, r->nodes);
}

static void return_pages(simulation *s, int rank, int round, bool sends) {
    rank_state *r = &s->ranks[rank];
    an_cell cell;
    for (int64_t from = s->bucket.begin; an_rounds_cell(&s->schedule, &s->bucket, rank, round, from, &cell);
         from = cell.pages.end)
        for (int group = 0; group < cell.groups; group++) {
            const an_page_range piece = an_cell_piece(&cell, sends ? cell.mine : group);
            const int holder = an_cell_holder(&cell, group);
            if (group == cell.mine || length(&piece) == 0) continue;
            if (sends) {
                for (int64_t p = piece.begin; p < piece.end; p++) assert_true(r->has_sum[p]);
                send_pages(s, rank, holder, &piece, -1, r->sum);
                r->traffic.returned_out += length(&piece);
            } else {
                receive_pages(s, holder, rank, &piece, -1, r->sum);
                r->traffic.returned_in += length(&piece);
                for (int64_t p = piece.begin; p < piece.end; p++) {
                    assert_false(r->has_sum[p]);
                    r->has_sum[p] = true;
                }
            }
        }
}

static void begin_rank(simulation *s, int rank) {
    rank_state *r = &s->ranks[rank];
    an_tree_node nodes[AN_FOREST_MOST];
    const an_leaf_range range = an_borders_range(&s->schedule.borders, rank);
    r->nodes = an_forest_nodes(&range, nodes);
    r->values = calloc((size_t)r->nodes, sizeof *r->values);
    assert_non_null(r->values);
    for (int node = 0; node < r->nodes; node++)
        for (int64_t p = s->bucket.begin; p < s->bucket.end; p++)
            r->values[node][p] = tree_sum(nodes[node].first, nodes[node].level, range.leaves, p);
}

/* Of all rounds. After them a rank holds its share of the pages. */
static an_traffic traffic_of(const an_rounds *schedule, const an_page_range *bucket, int rank) {
    an_traffic all = {0, 0, 0, 0, 0, 0, 0, 0};
    for (int round = 0; round < schedule->rounds; round++) {
        int64_t kept;
        const an_round_nodes nodes = {an_rounds_nodes(schedule, rank, round),
                                      an_rounds_joins(schedule, rank, round, NULL)};
        const an_traffic t = an_rounds_traffic(schedule, &nodes, bucket, &(an_part){0, 1, 0}, rank, round, &kept);
        an_traffic_add(&all, &t);
        if (schedule->rounds == 1)
            assert_in_range(kept, length(bucket) / schedule->borders.ranks,
                            length(bucket) / schedule->borders.ranks + 1);
    }
    return all;
}

static void simulate(const an_borders *borders, const int *radices, int rounds, const an_page_range *bucket) {
    static simulation s;
    static double expected[MOST_PAGES];
    s.schedule = an_rounds_make(borders, radices, rounds);
    s.bucket = *bucket;
    const int ranks = borders->ranks;
    s.ranks = calloc((size_t)ranks, sizeof *s.ranks);
    assert_non_null(s.ranks);
    int root = 0;
    while (((int64_t)1 << root) < borders->leaves) root++;
    for (int64_t p = bucket->begin; p < bucket->end; p++) expected[p] = tree_sum(0, root, borders->leaves, p);
    for (int rank = 0; rank < ranks; rank++) begin_rank(&s, rank);
    for (int round = 0; round < s.schedule.rounds; round++) {
        for (int rank = 0; rank < ranks; rank++) gather_send(&s, rank, round);
        for (int rank = 0; rank < ranks; rank++) gather_receive(&s, rank, round);
    }
    for (int rank = 0; rank < ranks; rank++) { /* pages of the sum: what the rank holds after the last round */
        rank_state *r = &s.ranks[rank];
        assert_int_equal(r->nodes, 1);
        an_cell cell;
        for (int64_t from = bucket->begin;
             an_rounds_cell(&s.schedule, bucket, rank, s.schedule.rounds - 1, from, &cell); from = cell.pages.end) {
            const an_page_range piece = an_cell_piece(&cell, cell.mine);
            for (int64_t p = piece.begin; p < piece.end; p++) r->has_sum[p] = true;
        }
        memcpy(r->sum, r->values[0], sizeof r->sum);
    }
    for (int round = s.schedule.rounds; round-- > 0;) {
        for (int rank = 0; rank < ranks; rank++) return_pages(&s, rank, round, true);
        for (int rank = 0; rank < ranks; rank++) return_pages(&s, rank, round, false);
    }
    for (int rank = 0; rank < ranks; rank++) {
        rank_state *r = &s.ranks[rank];
        const an_traffic predicted = traffic_of(&s.schedule, bucket, rank);
        if (memcmp(r->sum + bucket->begin, expected + bucket->begin, (size_t)length(bucket) * sizeof *expected))
            fail_msg("%d ranks, %lld leaves, borders %d, %d rounds: the sum of rank %d is another one", ranks,
                     (long long)borders->leaves, (int)borders->kind, s.schedule.rounds, rank);
        assert_memory_equal(&predicted, &r->traffic, sizeof predicted);
        for (int to = 0; to < ranks; to++) assert_null(s.first[rank][to]);
        free(r->values);
    }
    free(s.ranks);
}

/* ---- tests ---- */

static void every_schedule_gives_the_tree(void **state) {
    (void)state;
    static const int radices[][6] = {{2, 2, 2, 2, 2, 2}, {3, 3, 3, 3}, {4, 2, 5}, {8, 8}, {2, 64}, {7, 3}};
    static const int lengths[] = {6, 4, 3, 2, 2, 2};
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++)
        for (int64_t leaves = ranks; leaves <= MOST_LEAVES; leaves++) {
            if (!everything && below(40) != 0) continue;
            const int64_t begin = below(4), pages = 1 + below(below(2) ? 20 : MOST_PAGES - 4);
            const an_page_range bucket = {begin, begin + pages};
            make_leaves(leaves, MOST_PAGES);
            for (int kind = 0; kind < AN_BORDER_KINDS; kind++) {
                const an_borders borders = {(an_border_kind)kind, ranks, leaves};
                simulate(&borders, NULL, 0, &bucket);
                const int64_t other = below(6);
                simulate(&borders, radices[other], lengths[other], &bucket);
            }
        }
}

/* Every rank has leaves, they are contiguous, and with subtree borders each rank's are one node. */
static void borders_are_complete(void **state) {
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++)
        for (int64_t leaves = ranks; leaves <= MOST_LEAVES; leaves++)
            for (int kind = 0; kind < AN_BORDER_KINDS; kind++) {
                const an_borders borders = {(an_border_kind)kind, ranks, leaves};
                int64_t at = 0, maximum = 0, fewest = leaves;
                for (int rank = 0; rank < ranks; rank++) {
                    an_tree_node nodes[AN_FOREST_MOST];
                    const an_leaf_range range = an_borders_range(&borders, rank);
                    const int64_t count = range.end - range.begin;
                    assert_int_equal(range.begin, at);
                    assert_true(count > 0);
                    at = range.end;
                    maximum = count > maximum ? count : maximum;
                    fewest = count < fewest ? count : fewest;
                    if (kind == AN_BORDERS_SUBTREE) assert_int_equal(an_forest_nodes(&range, nodes), 1);
                }
                assert_int_equal(at, leaves);
                assert_int_equal(an_borders_cost(&borders).most_leaves, maximum);
                if (kind == AN_BORDERS_EVEN) assert_true(maximum - fewest <= 1);
                /* no subtrees are smaller: with fewer leaves each, there are more nodes than ranks */
                if (kind == AN_BORDERS_SUBTREE && maximum > 1)
                    assert_true((leaves + maximum / 2 - 1) / (maximum / 2) > ranks || maximum % 2);
            }
}

/* Borders by cost: a share that is no larger costs no bytes more, and a smaller largest share wins. */
static void borders_are_chosen_by_cost(void **state) {
    (void)state;
    assert_int_equal(an_borders_choose(8, 4).kind, AN_BORDERS_SUBTREE);
    assert_int_equal(an_borders_choose(8, 5).kind, AN_BORDERS_SUBTREE); /* both have a rank with 2 leaves */
    assert_int_equal(an_borders_choose(8, 3).kind, AN_BORDERS_EVEN);    /* 3 leaves at most instead of 4 */
    const an_borders subtree = {AN_BORDERS_SUBTREE, 3, 8}, even = {AN_BORDERS_EVEN, 3, 8};
    const an_border_cost few = an_borders_cost(&subtree), many = an_borders_cost(&even);
    assert_int_equal(few.most_leaves, 4);
    assert_int_equal(few.most_traffic, 2 * 2 * 2); /* 2n(P - 1)/P each way, in n/3 */
    assert_int_equal(many.most_leaves, 3);
    assert_int_equal(many.most_nodes, 2);
    assert_int_equal(many.most_traffic, 2 * 2 + 3 + 2 + 2);
}

/* One round and subtrees: 2n(P - 1)/P sent and received, which is what the best all-reduce needs. */
static void the_default_is_optimal(void **state) {
    (void)state;
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
        const an_borders borders = {AN_BORDERS_SUBTREE, ranks, 64};
        const an_rounds schedule = an_rounds_make(&borders, NULL, 0);
        assert_int_equal(schedule.rounds, 1);
        const an_page_range bucket = {5, 5 + 3 * ranks};
        for (int rank = 0; rank < ranks; rank++) {
            const an_traffic t = traffic_of(&schedule, &bucket, rank);
            assert_int_equal(t.gathered_out + t.returned_out, 2 * 3 * (ranks - 1));
            assert_int_equal(t.gathered_in + t.returned_in, 2 * 3 * (ranks - 1));
            assert_int_equal(t.gathers_out + t.returns_out, 2 * (ranks - 1));
        }
    }
}

/* Thousands of ranks: few messages, the same bytes, and nothing that takes long. For awkward numbers of ranks, a
 * group of 64 has more than one node, and some more bytes are sent. */
static void many_ranks_need_few_messages(void **state) {
    (void)state;
    static const int counts[] = {4096, 4095, 4000, 1000, 130, 100000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const int ranks = counts[i];
        const an_borders borders = {AN_BORDERS_SUBTREE, ranks, 1 << 17};
        const an_rounds schedule = an_rounds_make(&borders, NULL, 0);
        const int64_t pages = (int64_t)ranks * 64;
        const an_page_range bucket = {0, pages};
        for (int sample = 0; sample < 20; sample++) {
            const int rank = sample < 2 ? sample * (ranks - 1) : (int)below(ranks);
            const an_traffic t = traffic_of(&schedule, &bucket, rank);
            if (ranks == 4096) {
                assert_int_equal(schedule.rounds, 2);
                assert_int_equal(t.gathers_out + t.returns_out, 2 * 126);
                assert_int_equal(t.gathered_in + t.returned_in, 2 * (pages - 64));
            }
            assert_in_range(t.gathered_out, pages - 64 - 64, pages + pages * 29 / 100);
            assert_in_range(t.gathered_in, 0, pages + pages * 29 / 100);
            assert_true(t.gathers_out + t.returns_out < 2000);
        }
    }
}

/* Slices of pieces are counted by their lengths; here one after another. */
static void slices_are_counted(void **state) {
    (void)state;
    for (int test = 0; test < 20000; test++) {
        const int ranks = 2 + (int)below(70);
        const int radices[] = {2 + (int)below(9), 2 + (int)below(9)};
        const an_borders borders = {AN_BORDERS_EVEN, ranks, 200};
        const an_rounds schedule = an_rounds_make(&borders, radices, 1 + (int)below(2));
        const an_page_range bucket = {3, 3 + below(300)};
        const int64_t parts = 1 + below(5);
        const int rank = (int)below(ranks), round = (int)below(schedule.rounds);
        const an_part part = {below(parts), parts, schedule.rounds == 1 ? (int)below(100) : 0};
        const an_round_nodes nodes = {2, 7};
        an_traffic expected = {0, 0, 0, 0, 0, 0, 0, 0};
        an_cell cell;
        for (int64_t from = bucket.begin; an_rounds_cell(&schedule, &bucket, rank, round, from, &cell);
             from = cell.pages.end)
            for (int group = 0; group < cell.groups; group++) {
                const an_page_range slice = an_cell_slice(&cell, group, &part);
                const int64_t pages = length(&slice), others = group == cell.mine ? cell.groups - 1 : 1;
                const an_traffic own = {0, 5 * pages, pages * others, 0, 0, 5 * (pages > 0), 0, 0},
                                 other = {2 * pages, 0, 0, pages, 2 * (pages > 0), 0, 0, pages > 0};
                an_traffic_add(&expected, group == cell.mine ? &own : &other);
                if (group == cell.mine && pages > 0) expected.returns_out += others;
            }
        int64_t kept;
        const an_traffic counted = an_rounds_traffic(&schedule, &nodes, &bucket, &part, rank, round, &kept);
        assert_memory_equal(&counted, &expected, sizeof counted);
    }
}

int main(int count, char **arguments) {
    everything = count > 1 && !strcmp(arguments[1], "all");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders_are_complete),          cmocka_unit_test(borders_are_chosen_by_cost),
        cmocka_unit_test(the_default_is_optimal),        cmocka_unit_test(many_ranks_need_few_messages),
        cmocka_unit_test(every_schedule_gives_the_tree), cmocka_unit_test(slices_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

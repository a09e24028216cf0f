/* Ranges of leaves as lists of tree nodes: the same bits as the tree of one process, however ranges are cut and
 * merged. */
#include "comm/forest.h"

#include <stdlib.h>
#include <string.h>

#include "support/support.h"

enum { MOST_LEAVES = 33 };

/* Numbers whose sum depends on the order in which they are added. */
static double number_of(int64_t leaf) {
    return (leaf % 3 == 0 ? 1e16 : leaf % 3 == 1 ? -1e16 : 1.0) / (double)(leaf + 3);
}

/* The tree, from its definition. */
static double tree_sum(uint64_t absent, int64_t begin, int level, int64_t leaves, bool *is_absent) {
    bool left_absent, right_absent;
    if (begin >= leaves || (level == 0 && (absent >> begin & 1))) {
        *is_absent = true;
        return 0;
    }
    *is_absent = false;
    if (level == 0) return number_of(begin);
    const int64_t half = (int64_t)1 << (level - 1);
    const double left = tree_sum(absent, begin, level - 1, leaves, &left_absent),
                 right = tree_sum(absent, begin + half, level - 1, leaves, &right_absent);
    *is_absent = left_absent && right_absent;
    return left_absent ? right : right_absent ? left : left + right;
}

static an_forest *make(const an_leaf_range *range, uint64_t absent) {
    an_forest *f = malloc(an_forest_bytes(range->leaves, 1));
    assert_non_null(f);
    an_forest_begin(f, range, 1);
    for (int64_t leaf = range->begin; leaf < range->end; leaf++) {
        if (absent >> leaf & 1) continue;
        while (an_forest_must_add(f, leaf)) an_forest_join(f);
        *an_forest_values(f, f->count) = number_of(leaf);
        an_forest_push(f, leaf);
        assert_true(f->count <= an_forest_depth(range, 1) && f->count <= an_forest_capacity(range->leaves));
    }
    while (an_forest_must_add(f, INT64_MAX)) an_forest_join(f);
    return f;
}

static int root_level(int64_t leaves) {
    int level = 0;
    while (((int64_t)1 << level) < leaves) level++;
    return level;
}

/* Three ranges, merged from the left and from the right, with some leaves absent. */
static void every_cut_gives_the_tree(void **state) {
    (void)state;
    uint64_t random = 1;
    for (int64_t leaves = 1; leaves <= MOST_LEAVES; leaves++)
        for (int64_t a = 0; a <= leaves; a++)
            for (int64_t b = a; b <= leaves; b++) {
                random = random * 6364136223846793005ULL + 1442695040888963407ULL;
                const uint64_t absent = (a + b) % 3 ? 0 : random >> 31 & random >> 7;
                const an_leaf_range ranges[] = {{0, a, leaves}, {a, b, leaves}, {b, leaves, leaves}};
                bool none;
                const double expected = tree_sum(absent, 0, root_level(leaves), leaves, &none);
                for (int order = 0; order < 2; order++) {
                    an_forest *f[3];
                    for (int i = 0; i < 3; i++) f[i] = make(&ranges[i], absent);
                    if (order == 0) {
                        an_forest_merge(f[0], f[1]);
                        an_forest_merge(f[0], f[2]);
                    } else {
                        an_forest_merge(f[1], f[2]);
                        an_forest_merge(f[0], f[1]);
                    }
                    assert_true(an_forest_is_valid(f[0], leaves, 1));
                    assert_int_equal(f[0]->count, none ? 0 : 1);
                    if (!none) assert_memory_equal(an_forest_values(f[0], 0), &expected, sizeof expected);
                    for (int i = 0; i < 3; i++) free(f[i]);
                }
            }
}

/* The nodes of a range are those that are left when all of its leaves were added. */
static void nodes_are_what_is_left(void **state) {
    (void)state;
    for (int64_t leaves = 1; leaves <= MOST_LEAVES; leaves++)
        for (int64_t a = 0; a < leaves; a++)
            for (int64_t b = a + 1; b <= leaves; b++) {
                const an_leaf_range range = {a, b, leaves};
                an_tree_node nodes[AN_FOREST_MOST];
                const int count = an_forest_nodes(&range, nodes);
                an_forest *f = make(&range, 0);
                assert_int_equal(count, f->count);
                for (int i = 0; i < count; i++) {
                    const int64_t end = nodes[i].first + ((int64_t)1 << nodes[i].level);
                    assert_true(f->parts[i] >= nodes[i].first && f->parts[i] < end);
                    assert_int_equal(i + 1 < count ? nodes[i + 1].first : b, end < b ? end : b);
                }
                free(f);
            }
}

static void absent_is_negative_zero(void **state) {
    (void)state;
    const float numbers[] = {0.0F, -0.0F, 1e-45F, -1.5F, __builtin_inff(), -__builtin_inff()};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const volatile float x = numbers[i], absent = -0.0F;
        const float left = absent + x, right = x + absent;
        assert_memory_equal(&left, &numbers[i], sizeof left);
        assert_memory_equal(&right, &numbers[i], sizeof right);
    }
}

/* A record of another rank is looked at before it is used. */
static void a_record_that_is_none_is_found(void **state) {
    (void)state;
    const an_leaf_range range = {3, 7, 8};
    an_forest *f = make(&range, 0);
    assert_true(an_forest_is_valid(f, 8, 1));
    assert_false(an_forest_is_valid(f, 16, 1));
    assert_false(an_forest_is_valid(f, 8, 2));
    const an_forest good = *f;
    f->count = 1000;
    assert_false(an_forest_is_valid(f, 8, 1));
    f->count = good.count;
    f->parts[1] = f->parts[0];
    assert_false(an_forest_is_valid(f, 8, 1));
    f->parts[1] = 7;
    assert_false(an_forest_is_valid(f, 8, 1));
    f->parts[1] = good.parts[1];
    f->range.end = 9;
    assert_false(an_forest_is_valid(f, 8, 1));
    free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_gives_the_tree),
        cmocka_unit_test(nodes_are_what_is_left),
        cmocka_unit_test(absent_is_negative_zero),
        cmocka_unit_test(a_record_that_is_none_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

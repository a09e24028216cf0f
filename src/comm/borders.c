#include "comm/borders.h"

#include "base/integer.h"

/* The largest nodes are halved until there is one for each rank: all nodes of one level, and the last few of them in
 * two. So the largest rank has as few leaves as subtrees allow. The very last node cannot be halved if it has
 * leaves in its left half only. */
static an_leaf_range subtree_range(const an_borders *b, int rank) {
    int64_t size = 1;
    while (an_divide_up(b->leaves, size) > b->ranks) size *= 2;
    const int64_t nodes = an_divide_up(b->leaves, size), halved = b->ranks - nodes;
    const int64_t can_be_halved = size > 1 ? an_divide_up(b->leaves, size / 2) - nodes : 0;
    const int64_t whole = can_be_halved - halved; /* before those that are halved */
    int64_t begin, end;
    if (halved == 0 || rank < whole) {
        begin = rank * size;
        end = begin + size;
    } else if (rank < whole + 2 * halved) {
        begin = whole * size + (rank - whole) * (size / 2);
        end = begin + size / 2;
    } else {
        begin = (rank - halved) * size;
        end = begin + size;
    }
    return (an_leaf_range){begin, an_smaller(end, b->leaves), b->leaves};
}

static an_leaf_range even_range(const an_borders *b, int rank) {
    return (an_leaf_range){rank * b->leaves / b->ranks, (rank + 1) * b->leaves / b->ranks, b->leaves};
}

an_leaf_range an_borders_range(const an_borders *borders, int rank) {
    static an_leaf_range (*const ranges[AN_BORDER_KINDS])(const an_borders *, int) = {
        [AN_BORDERS_SUBTREE] = subtree_range, [AN_BORDERS_EVEN] = even_range};
    return ranges[borders->kind](borders, rank);
}

an_border_cost an_borders_cost(const an_borders *borders) {
    an_border_cost c = {0, 0, 0, 0};
    an_tree_node list[AN_FOREST_MOST];
    const int64_t others = borders->ranks - 1;
    int64_t all = 0;
    for (int rank = 0; rank < borders->ranks; rank++) {
        const an_leaf_range range = an_borders_range(borders, rank);
        const int64_t nodes = an_forest_nodes(&range, list);
        all += nodes;
        c.most_leaves = an_larger(c.most_leaves, range.end - range.begin);
        c.most_nodes = an_larger(c.most_nodes, nodes);
    }
    /* of a rank with m nodes: m · others pieces are sent and all - m received; then its sum goes to all others, and
     * theirs come. The most of it where m is largest */
    if (others > 0) c.most_traffic = c.most_nodes * others + (all - c.most_nodes) + 2 * others;
    c.cost = c.most_leaves * AN_LEAF_COST * borders->ranks + c.most_traffic;
    return c;
}

an_border_survey an_borders_survey(int64_t leaves, int ranks) {
    const an_borders subtree = {AN_BORDERS_SUBTREE, ranks, leaves}, even = {AN_BORDERS_EVEN, ranks, leaves};
    an_border_survey s = {
        .costs = {[AN_BORDERS_SUBTREE] = an_borders_cost(&subtree), [AN_BORDERS_EVEN] = an_borders_cost(&even)}};
    s.chosen = s.costs[AN_BORDERS_EVEN].cost < s.costs[AN_BORDERS_SUBTREE].cost ? even : subtree;
    return s;
}

/* Whether both kinds have the same borders, so that there is nothing to choose. */
static bool are_alike(int64_t leaves, int ranks) {
    const int64_t each = leaves / ranks;
    return leaves % ranks == 0 && (each & (each - 1)) == 0;
}

an_borders an_borders_choose(int64_t leaves, int ranks) {
    if (are_alike(leaves, ranks)) return (an_borders){AN_BORDERS_SUBTREE, ranks, leaves};
    return an_borders_survey(leaves, ranks).chosen;
}

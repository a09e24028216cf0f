/* The order in which the parts of a step are added, whoever computed them: one binary tree over their numbers.
 *
 * Parts come in increasing order; some may be absent, and a node with one child is that child. Two parts meet at the
 * level of the highest bit in which their numbers differ. A stack holds the nodes that wait for their right
 * neighbour, at most 1 + log2(parts): before part n begins, everything that does not reach n is added.
 */
#ifndef AN_BASE_TREE_H
#define AN_BASE_TREE_H

#include <stdint.h>

enum { AN_TREE_DEPTH = 64, AN_MOST_LEAVES = 1 << 20 };

typedef struct an_tree {
    int count;
    int64_t parts[AN_TREE_DEPTH]; /* a part of each waiting node */
} an_tree;

/* The most nodes that wait at once, with the part that is being made. */
static inline int an_tree_nodes(int64_t parts) {
    int nodes = 1;
    for (int64_t reach = 1; reach < parts; reach *= 2) nodes++;
    return nodes;
}

/* The level at which two parts meet. */
static inline int an_tree_level(int64_t a, int64_t b) {
    const uint64_t difference = (uint64_t)a ^ (uint64_t)b;
    return difference ? 63 - __builtin_clzll(difference) : -1;
}

/* Whether the two nodes on top are to be added before part `next` is begun. The caller adds the upper to the lower,
 * calls an_tree_added, and asks again. */
static inline int an_tree_must_add(const an_tree *tree, int64_t next) {
    const int top = tree->count - 1;
    return top > 0 && an_tree_level(tree->parts[top - 1], tree->parts[top]) < an_tree_level(tree->parts[top], next);
}

static inline void an_tree_added(an_tree *tree) {
    tree->count--;
}

/* A part is complete; it is on top. */
static inline void an_tree_push(an_tree *tree, int64_t part) {
    tree->parts[tree->count++] = part;
}

#endif

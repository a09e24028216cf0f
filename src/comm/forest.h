/* A contiguous range of leaves as the list of its maximal tree nodes.
 *
 * The leaves of a step are added in one binary tree over their numbers (base/tree.h). A rank that has only leaves begin
 * … end - 1 may add two nodes if the whole aligned block in which they meet lies in its range: of leaves 1, 2 and 3 it
 * may add 2 and 3, but not 1 to them, because 1 belongs to 0. What is left is a list of maximal nodes, at most
 * 2·log2(leaves). Lists of neighbouring ranges merge into the list of both, and the order of merges does not matter.
 *
 * A leaf without samples is absent, and a node with one child is that child. In a buffer of gradients an absent node
 * may also be -0.0 everywhere: x + -0.0 has the bits of x for every x. So what ranks send each other never depends
 * on which leaves are absent. */
#ifndef AN_COMM_FOREST_H
#define AN_COMM_FOREST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tree.h"

enum {
    AN_FOREST_MOST = 2 * 31
}; /* nodes of a range: leaves of a step, or pages of a model, of which there may be 2^31 */

/* Leaves begin … end - 1 of `leaves`. */
typedef struct an_leaf_range {
    int64_t begin, end, leaves;
} an_leaf_range;

/* Leaves first … first + 2^level - 1, as far as there are so many. */
typedef struct an_tree_node {
    int64_t first;
    int level;
} an_tree_node;

/* The maximal nodes of a range, from left to right; how many there are. */
int an_forest_nodes(const an_leaf_range *range, an_tree_node nodes[AN_FOREST_MOST]);

/* Whether the block in which leaves a and b meet lies in the range. Leaves that do not exist do not matter. */
bool an_forest_may_add(const an_leaf_range *range, int64_t a, int64_t b);

/* Whether the last two of `count` nodes are to be added before the node or leaf `next` comes; INT64_MAX: no more
 * come. `parts` has a leaf of each. */
bool an_forest_joins(const an_leaf_range *range, const int64_t *parts, int64_t count, int64_t next);

/* How many leaves, from `leaf` on, a rank with this range makes together if it may make `most` of them, a power of two:
 * a whole block of the tree, as far as leaves exist. */
int64_t an_forest_block(const an_leaf_range *range, int64_t leaf, int64_t maximum);
/* The most nodes that wait at once while the leaves of a range are made one after another, `together` of them at a time
 * where there is a block of so many, with the node that is being made. O(leaves). */
int an_forest_depth(const an_leaf_range *range, int64_t together);
/* The most of all ranges of so many leaves. */
int an_forest_capacity(int64_t leaves);

/* Numbers of nodes: `width` of them each. The record is moved between ranks as bytes. */
typedef struct an_forest {
    an_leaf_range range;
    int64_t width;
    int32_t count;
    /* the first so many numbers are f32, and so are their sums: those of leaves that a program has added itself are */
    int32_t narrow;
    int64_t parts[AN_FOREST_MOST]; /* a leaf of each node */
    double values[];               /* [an_forest_capacity(leaves)][width] */
} an_forest;

size_t an_forest_bytes(int64_t leaves, int64_t width);
void an_forest_begin(an_forest *forest, const an_leaf_range *range, int64_t width);
/* The numbers of node `index`; those of node `count` are of the leaf that is being made. */
static inline double *an_forest_values(an_forest *forest, int64_t index) {
    return forest->values + index * forest->width;
}
/* Whether the last two nodes are to be added before leaf `next` is begun; INT64_MAX: no more leaves come. The caller
 * adds what else it has of them, calls an_forest_join and asks again. */
bool an_forest_must_add(const an_forest *forest, int64_t next);
void an_forest_join(an_forest *forest);
/* The leaf that was being made is a node now. */
void an_forest_push(an_forest *forest, int64_t leaf);

/* forest ← forest and the range that begins where it ends. */
void an_forest_merge(an_forest *forest, const an_forest *next);
/* The forest that lies behind this one in a row of them. */
static inline an_forest *an_forest_next(an_forest *forest) {
    return (an_forest *)(void *)((char *)forest + an_forest_bytes(forest->range.leaves, forest->width));
}
/* Whether a record that came from another rank is one: of these leaves and this width, and with nodes of its range,
 * in order. */
bool an_forest_is_valid(const an_forest *forest, int64_t leaves, int64_t width);

#endif

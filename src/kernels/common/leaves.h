/* Sums by leaves, for kernels with `by_leaves` (anneal/experimental.h).
 *
 * A kernel that adds over samples adds inside each leaf first, and then the sums of the leaves in the tree of
 * base/tree.h. A micro-batch is an aligned group of leaves, so the numbers of its leaves may be counted from 0: they
 * meet at the same levels as the numbers that they have in the step. Rows of samples lie one after another, as many for
 * each sample.
 *
 * A kernel walks over the leaves that have samples:
 *
 *     an_leaf_walk w = an_leaf_walk_begin(cut, rows);
 *     while (an_leaf_walk_next(&w)) {
 *         … add rows w.begin to w.end - 1 into slot w.slot …
 *         for (int i = 0; i < w.joins; i++) … slot w.slot - i - 1 ← slot w.slot - i - 1 + slot w.slot - i …
 *     }
 *
 * Afterwards slot 0 holds the sum. A slot is whatever the kernel keeps its sums in: a tile, a row, a buffer.
 */
#ifndef AN_KERNELS_COMMON_LEAVES_H
#define AN_KERNELS_COMMON_LEAVES_H

#include <stdbool.h>

#include "anneal/experimental.h"
#include "base/tree.h"

typedef struct an_leaf_walk {
    const an_leaf_cut *cut;
    int64_t each; /* rows of a sample */
    int64_t leaf; /* the one under way; its rows are begin … end - 1 */
    int64_t begin, end;
    int slot;  /* where its sums go: below it are those that wait for their right neighbour */
    int joins; /* how many of these are complete with it: the upper is added to the lower, so often */
    an_tree tree;
} an_leaf_walk;

/* Where the next leaf with samples lies; count: there is none. */
static inline int64_t an_leaf_after(const an_leaf_cut *cut, int64_t leaf) {
    const int64_t begin = leaf < 0 ? 0 : cut->ends[leaf];
    int64_t next = leaf + 1;
    while (next < cut->count && cut->ends[next] == begin) next++;
    return next;
}

static inline an_leaf_walk an_leaf_walk_begin(const an_leaf_cut *cut, int64_t rows) {
    return (an_leaf_walk){.cut = cut, .each = rows / cut->samples, .leaf = -1};
}

/* A walk that begins at leaf `first`. With a cut whose count is smaller, it is one over a group of leaves, which
 * keep their numbers. */
static inline an_leaf_walk an_leaf_walk_from(const an_leaf_cut *cut, int64_t rows, int64_t first) {
    an_leaf_walk w = an_leaf_walk_begin(cut, rows);
    w.leaf = first - 1;
    w.end = first ? cut->ends[first - 1] * w.each : 0;
    return w;
}

/* The next leaf that has samples; false: there are no more. */
static inline bool an_leaf_walk_next(an_leaf_walk *w) {
    const int64_t leaf = an_leaf_after(w->cut, w->leaf);
    if (leaf >= w->cut->count) return false;
    const int64_t next = an_leaf_after(w->cut, leaf);
    w->begin = w->end;
    w->end = w->cut->ends[leaf] * w->each;
    w->leaf = leaf;
    w->slot = w->tree.count;
    an_tree_push(&w->tree, leaf);
    for (w->joins = 0; an_tree_must_add(&w->tree, next < w->cut->count ? next : INT64_MAX); w->joins++)
        an_tree_added(&w->tree);
    return true;
}

/* The most slots that a walk over so many leaves uses. */
static inline int an_leaf_slots(int64_t leaves) {
    return an_tree_nodes(leaves);
}

/* The leaves of a call; NULL if all its samples are one leaf, so a kernel may do what it does without leaves. */
static inline const an_leaf_cut *an_call_leaves(const an_call *call) {
    return call->leaves && call->leaves->count > 1 ? call->leaves : NULL;
}

#endif

#include "comm/forest.h"

#include <string.h>

int an_forest_nodes(const an_leaf_range *range, an_tree_node nodes[AN_FOREST_MOST]) {
    int count = 0;
    for (int64_t at = range->begin; at < range->end;) {
        int level = 0;
        /* the largest block that begins here and lies in the range; what lies beyond the last leaf does not matter */
        while (level < 62 && at % ((int64_t)2 << level) == 0 && ((int64_t)1 << level) < range->leaves &&
               (at + ((int64_t)2 << level) <= range->end || range->end == range->leaves))
            level++;
        nodes[count++] = (an_tree_node){at, level};
        at += (int64_t)1 << level;
    }
    return count;
}

bool an_forest_may_add(const an_leaf_range *range, int64_t a, int64_t b) {
    const int level = an_tree_level(a, b) + 1;
    const int64_t begin = a >> level << level, end = begin + ((int64_t)1 << level);
    return begin >= range->begin && (end <= range->end || range->end == range->leaves);
}

int an_forest_capacity(int64_t leaves) {
    int levels = 0;
    for (int64_t reach = 1; reach < leaves; reach *= 2) levels++;
    return levels > 0 ? 2 * levels : 1;
}

size_t an_forest_bytes(int64_t leaves, int64_t width) {
    return sizeof(an_forest) + (size_t)an_forest_capacity(leaves) * (size_t)width * sizeof(double);
}

void an_forest_begin(an_forest *forest, const an_leaf_range *range, int64_t width) {
    memset(forest, 0, an_forest_bytes(range->leaves, width)); /* sent as bytes: none is left as it was */
    forest->range = *range;
    forest->width = width;
}

bool an_forest_joins(const an_leaf_range *range, const int64_t *parts, int64_t count, int64_t next) {
    const int64_t top = count - 1;
    return top > 0 && an_forest_may_add(range, parts[top - 1], parts[top]) &&
           an_tree_level(parts[top - 1], parts[top]) < an_tree_level(parts[top], next);
}

bool an_forest_must_add(const an_forest *forest, int64_t next) {
    return an_forest_joins(&forest->range, forest->parts, forest->count, next);
}

void an_forest_join(an_forest *forest) {
    double *left = an_forest_values(forest, forest->count - 2), *right = left + forest->width;
    for (int64_t i = 0; i < forest->width; i++) left[i] += right[i];
    for (int i = 0; i < forest->narrow; i++)
        left[i] = (double)(float)left[i]; /* the sum of two f32 in f64, rounded, is that in f32 */
    memset(right, 0, (size_t)forest->width * sizeof *right);
    forest->parts[--forest->count] = 0;
}

void an_forest_push(an_forest *forest, int64_t leaf) {
    forest->parts[forest->count++] = leaf;
}

void an_forest_merge(an_forest *forest, const an_forest *next) {
    forest->range.end = next->range.end;
    for (int64_t i = 0; i < next->count; i++) {
        while (an_forest_must_add(forest, next->parts[i])) an_forest_join(forest);
        memcpy(an_forest_values(forest, forest->count), next->values + i * next->width,
               (size_t)next->width * sizeof *next->values);
        an_forest_push(forest, next->parts[i]);
    }
    while (an_forest_must_add(forest, INT64_MAX)) an_forest_join(forest);
}

int64_t an_forest_block(const an_leaf_range *range, int64_t leaf, int64_t maximum) {
    int64_t block = 1;
    while (2 * block <= maximum && leaf % (2 * block) == 0 && block < range->leaves &&
           (leaf + 2 * block <= range->end || range->end == range->leaves))
        block *= 2;
    return block < range->end - leaf ? block : range->end - leaf;
}

int an_forest_depth(const an_leaf_range *range, int64_t together) {
    int64_t parts[AN_FOREST_MOST + 1], count = 0;
    int depth = 1;
    for (int64_t leaf = range->begin; leaf < range->end; leaf += an_forest_block(range, leaf, together)) {
        while (an_forest_joins(range, parts, count, leaf)) count--;
        parts[count++] = leaf;
        if (count > depth) depth = (int)count;
    }
    return depth;
}

bool an_forest_is_valid(const an_forest *forest, int64_t leaves, int64_t width) {
    const an_leaf_range *r = &forest->range;
    if (r->leaves != leaves || forest->width != width || forest->narrow < 0 || forest->narrow > width || r->begin < 0 ||
        r->begin > r->end || r->end > leaves)
        return false;
    if (forest->count < 0 || forest->count > an_forest_capacity(leaves)) return false;
    for (int64_t i = 0; i < forest->count; i++)
        if (forest->parts[i] < (i ? forest->parts[i - 1] + 1 : r->begin) || forest->parts[i] >= r->end) return false;
    return true;
}

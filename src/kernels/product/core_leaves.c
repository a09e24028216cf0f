#include "kernels/product/core_leaves.h"

#include "base/integer.h"
#include "base/memory.h"
#include "kernels/common/leaves.h"

static int64_t most_leaves(const an_leaf_cut *leaves) {
    return an_smaller(leaves->count, leaves->samples);
}

/* A leaf of r rows has at most 1 + r / AN_PRODUCT_PIECE pieces. */
int64_t an_product_most_pieces(int64_t depth, const an_leaf_cut *leaves) {
    if (depth <= AN_PRODUCT_PIECE && leaves->count <= 1 << AN_PRODUCT_LEAF_LEVELS) return 1;
    return depth / AN_PRODUCT_PIECE + most_leaves(leaves);
}

int an_product_most_slots(int64_t depth, const an_leaf_cut *leaves) {
    return (int)an_smaller(an_leaf_slots(leaves->count), an_product_most_pieces(depth, leaves));
}

static size_t pieces_bytes(int64_t depth, const an_leaf_cut *leaves) {
    return an_round_up((size_t)an_product_most_pieces(depth, leaves) * sizeof(an_product_piece), AN_ALIGNMENT);
}

size_t an_product_cut_bytes(int64_t depth, const an_leaf_cut *leaves) {
    const size_t leaf_bytes = (size_t)most_leaves(leaves) * sizeof(an_product_leaf);
    return pieces_bytes(depth, leaves) + an_round_up(leaf_bytes, AN_ALIGNMENT);
}

/* The end of the largest node that begins with `leaf` and fits into a piece; leaves before `begun` are in pieces
 * already. */
static int64_t node_end(const an_leaf_walk *w, int64_t leaf, int64_t begun) {
    int64_t end = leaf + 1;
    for (int level = 1; level <= AN_PRODUCT_LEAF_LEVELS; level++) {
        const int64_t first = leaf >> level << level, last = first + (1 << level);
        const int64_t rows = w->cut->ends[an_smaller(last, w->cut->count) - 1] * w->each - w->begin;
        if (first < begun || rows > AN_PRODUCT_PIECE) break;
        end = an_smaller(last, w->cut->count);
    }
    return end;
}

an_product_cut an_product_cut_make(int64_t depth, const an_leaf_cut *leaves, void *memory) {
    an_product_piece *pieces = memory;
    an_product_leaf *leaf = (an_product_leaf *)(void *)((char *)memory + pieces_bytes(depth, leaves));
    an_product_cut cut = {.pieces = pieces, .slots = 1};
    an_leaf_walk w = an_leaf_walk_begin(leaves, depth);
    for (int64_t begun = 0; an_leaf_walk_next(&w);) {
        an_product_piece piece = {.begin = w.begin, .leaves = leaf, .slot = w.slot};
        const int64_t end = node_end(&w, w.leaf, begun);
        do {
            *leaf++ = (an_product_leaf){.rows = w.end - w.begin, .joins = w.joins};
            piece.leaf_count++;
        } while (an_leaf_after(leaves, w.leaf) < end && an_leaf_walk_next(&w));
        begun = end;
        /* The node's last leaf completes what waits in the piece, and then what waits outside of it. */
        leaf[-1].joins = w.slot - piece.slot;
        const int joins = w.joins - (w.slot - piece.slot);
        for (; piece.begin < w.end; piece.begin += piece.count) {
            piece.count = an_smaller(AN_PRODUCT_PIECE, w.end - piece.begin);
            const bool is_last = piece.begin + piece.count == w.end;
            piece.joins = is_last ? joins : 0;
            pieces[cut.count++] = piece;
            cut.slots = (int)an_larger(cut.slots, piece.slot - piece.joins + 1);
            piece.continues = true;
        }
    }
    return cut;
}

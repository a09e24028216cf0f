#include "kernels/product/amx_leaves.h"

#ifdef __AVX512F__
#include <limits.h>

#include "base/integer.h"

enum { ALIGNMENT = 64 };

static int64_t most_leaves(const an_leaf_cut *maximum) {
    return an_smaller(maximum->count, maximum->samples);
}

/* Each leaf but one adds at most all rows of a step but one as padding, and the last may do so in any case. */
int64_t an_amx_leaves_most_steps(const an_leaf_cut *maximum, int64_t depth) {
    return (depth + most_leaves(maximum) * (AN_AMX_DEPTH - 1)) / AN_AMX_DEPTH;
}

int an_amx_leaves_slots(const an_leaf_cut *maximum) {
    return (int)an_smaller(an_leaf_slots(maximum->count), most_leaves(maximum));
}

static size_t parts_bytes(int64_t leaves) {
    return (size_t)an_next_multiple(leaves * (int64_t)sizeof(an_amx_leaf), ALIGNMENT);
}

/* Every cut of k makes one run more at most. */
size_t an_amx_leaves_bytes(const an_leaf_cut *maximum, int64_t depth) {
    const int64_t leaves = most_leaves(maximum);
    const int64_t chunks =
        an_divide_up(an_amx_leaves_most_steps(maximum, depth), AN_AMX_CHUNK_PIECES * AN_AMX_PIECE_STEPS);
    const int64_t runs = leaves + chunks * AN_AMX_CHUNK_PIECES;
    return parts_bytes(leaves) + (size_t)an_next_multiple(runs * (int64_t)sizeof(an_amx_leaf_run), ALIGNMENT);
}

bool an_amx_leaves_make(an_amx_leaves *l, const an_leaf_cut *cut, int64_t depth, void *scratch) {
    *l = (an_amx_leaves){.slots = an_amx_leaves_slots(cut), .dense = true, .parts = scratch};
    l->runs = (void *)((char *)scratch + parts_bytes(most_leaves(cut)));
    l->bytes = an_amx_leaves_bytes(cut, depth);
    an_leaf_walk w = an_leaf_walk_begin(cut, depth);
    while (depth > 0 && an_leaf_walk_next(&w)) {
        an_amx_leaf *leaf = &l->parts[l->count++];
        *leaf = (an_amx_leaf){
            .begin = w.begin, .rows = w.end - w.begin, .step = l->steps, .slot = w.slot, .joins = w.joins};
        leaf->steps = an_divide_up(leaf->rows, AN_AMX_DEPTH);
        l->dense = l->dense && leaf->begin == leaf->step * AN_AMX_DEPTH;
        l->steps += leaf->steps;
    }
    return l->count > 1;
}

int64_t an_amx_leaf_at(const an_amx_leaves *l, int64_t step) {
    int64_t low = 0, high = l->count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (l->parts[middle].step <= step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int64_t an_amx_run_at(const an_amx_leaves *l, int64_t run_count, int64_t step) {
    int64_t low = 0, high = run_count;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (l->runs[middle].step <= step)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Where the piece of a step ends. */
static int64_t piece_end(int64_t step, int64_t chunk_steps, int64_t piece_steps) {
    const int64_t in_chunk = step % chunk_steps;
    return step - in_chunk + an_smaller(chunk_steps, in_chunk / piece_steps * piece_steps + piece_steps);
}

/* The slots of the runs of a piece. Those that wait since an earlier piece lie in large memory, until something else is
 * put into them; `low` is the lowest that was. What nothing in the piece takes up or replaces goes there. */
static void place_slots(an_amx_leaf_run *runs, int64_t count, bool is_last) {
    int low = INT_MAX;
    for (int64_t i = 0; i < count; i++) {
        runs[i].kept = low;
        low = (int)an_smaller(low, runs[i].slot - runs[i].joins);
    }
    low = is_last ? 0 : INT_MAX;
    for (int64_t i = count - 1; i >= 0; i--) {
        const int slot = runs[i].slot - runs[i].joins;
        runs[i].keeps = slot < low;
        low = (int)an_smaller(low, slot);
    }
}

int64_t an_amx_leaves_cut(const an_amx_leaves *l, int64_t chunk_steps, int64_t piece_steps) {
    int64_t count = 0, first = 0; /* runs, and the first of the piece */
    int64_t end = piece_end(0, chunk_steps, piece_steps);
    for (int64_t i = 0; i < l->count; i++) {
        const an_amx_leaf *leaf = &l->parts[i];
        const int64_t leaf_end = leaf->step + leaf->steps;
        for (int64_t step = leaf->step; step < leaf_end;) {
            if (step == end) {
                place_slots(l->runs + first, count - first, false);
                first = count;
                end = piece_end(step, chunk_steps, piece_steps);
            }
            const int64_t run_end = an_smaller(leaf_end, end);
            l->runs[count++] = (an_amx_leaf_run){.step = step,
                                                 .steps = run_end - step,
                                                 .slot = leaf->slot,
                                                 .joins = run_end == leaf_end ? leaf->joins : 0,
                                                 .begins = step == leaf->step};
            step = run_end;
        }
    }
    place_slots(l->runs + first, count - first, true);
    return count;
}
#endif

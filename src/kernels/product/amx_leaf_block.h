/* A block of 32 × 32 sums with leaves: how tiles compute those of a piece of k, and how nodes are added. For
 * amx_core.c. */
#ifndef AN_KERNELS_PRODUCT_AMX_LEAF_BLOCK_H
#define AN_KERNELS_PRODUCT_AMX_LEAF_BLOCK_H

#include "base/tree.h"
#include "base/unroll.h"
#include "kernels/product/amx_block.h"
#include "kernels/product/amx_leaves.h"

/* Where the sums of a block lie: its slots of large memory, and the small stack. */
typedef struct {
    float *kept, *stack;
    int64_t kept_slot;
} block_slots;

static float *slot_at(const block_slots *s, int slot, bool is_kept) {
    return is_kept ? s->kept + slot * s->kept_slot : s->stack + slot * SUMS;
}

/* to = lower + upper, or lowest + (lower + upper). Quarters are written out, as few instructions have an index then. */
static void join(const float *lower, const float *upper, float *to) {
    for (int quarter = 0; quarter < 4; quarter++, lower += SUMS / 4, upper += SUMS / 4, to += SUMS / 4) {
        AN_UNROLL for (int i = 0; i < SUMS / 4; i += HALF)
            _mm512_store_ps(to + i, _mm512_add_ps(_mm512_load_ps(lower + i), _mm512_load_ps(upper + i)));
    }
}

static void join_twice(const float *lowest, const float *lower, const float *upper, float *to) {
    for (int quarter = 0; quarter < 4;
         quarter++, lowest += SUMS / 4, lower += SUMS / 4, upper += SUMS / 4, to += SUMS / 4) {
        AN_UNROLL for (int i = 0; i < SUMS / 4; i += HALF) {
            const __m512 sum = _mm512_add_ps(_mm512_load_ps(lower + i), _mm512_load_ps(upper + i));
            _mm512_store_ps(to + i, _mm512_add_ps(_mm512_load_ps(lowest + i), sum));
        }
    }
}

/* Where the sums of a run go, and the nodes that are complete with it. */
static float *sums_of(const block_slots *s, const an_amx_leaf_run *run) {
    return slot_at(s, run->slot, run->joins == 0 && run->keeps);
}

static void join_nodes(const block_slots *s, const an_amx_leaf_run *run) {
    float *sums = sums_of(s, run), *to = slot_at(s, run->slot - run->joins, run->keeps);
    int left = run->joins;
    for (int slot = run->slot - 1; left > 0; slot -= 2, left -= 2) {
        const float *lower = slot_at(s, slot, slot < run->kept);
        if (left == 1)
            join(lower, sums, to);
        else
            join_twice(slot_at(s, slot - 1, slot - 1 < run->kept), lower, sums, left == 2 ? to : sums);
    }
}

/* The last run of all: the sums of all leaves go to dst. */
static void store_joined(const an_amx_job *job, dst_block d, bool streams, const block_slots *s,
                         const an_amx_leaf_run *run) {
    const float *below[AN_TREE_DEPTH];
    for (int i = 0, slot = run->slot - 1; i < run->joins; i++, slot--) below[i] = slot_at(s, slot, slot < run->kept);
    store_with_below(job, d, streams, below, run->joins, sums_of(s, run));
}

/* As STAYING_STEPS: the rest of the first-level cache is for slots, which would be read from the second level else. */
enum { STAYING_WITH_LEAVES = 8 };

/* All runs of a piece but for what is done at the end of the last; returns that one. Only the first of them may go on
 * with a leaf. The nodes of a leaf are added after the first step of the next, beside its other steps. */
AN_TILES_INLINE const an_amx_leaf_run *multiply_runs(const an_amx_leaf_run *run, int64_t steps, const char *a,
                                                     const char *b, bool a_stays, const block_slots *s,
                                                     block_ahead ahead) {
    begin_sums(run->begins ? NULL : slot_at(s, run->slot, true));
    multiply_steps(a, b, run->steps, STAYING_WITH_LEAVES, a_stays, &ahead);
    int64_t done = run->steps;
    for (; done < steps; done += run->steps) {
        const char *next_a = a + done * BLOCK_BYTES, *next_b = b + done * BLOCK_BYTES;
        const bool stays = done < STAYING_WITH_LEAVES;
        exchange_sums(sums_of(s, run), next_a, next_b, stays && a_stays, stays && !a_stays, &ahead);
        join_nodes(s, run);
        run++;
        multiply_steps(next_a + BLOCK_BYTES, next_b + BLOCK_BYTES, run->steps - 1, STAYING_WITH_LEAVES - 1 - done,
                       a_stays, &ahead);
    }
    end_sums(sums_of(s, run));
    return run;
}

#endif

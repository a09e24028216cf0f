/* How tests cut samples into leaves. */
#ifndef TESTS_SUPPORT_LEAF_CUT_H
#define TESTS_SUPPORT_LEAF_CUT_H

#include <stdlib.h>

#include "anneal/experimental.h"

/* How `samples` are cut into `count` leaves: as the library cuts a step, so leaves are empty where there are more of
 * them than samples; with a seed, anywhere, so leaves are uneven, and many are empty. */
static inline an_leaf_cut leaf_cut_make(int64_t count, int64_t samples, uint64_t seed) {
    int64_t *ends = malloc((size_t)count * sizeof *ends);
    for (int64_t i = 0; i < count; i++) {
        ends[i] = (i + 1) * samples / count;
        if (!seed) continue;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ends[i] = (int64_t)((seed >> 33) % (uint64_t)(samples + 1));
    }
    for (int64_t i = 0; seed && i < count; i++) /* sorted, by insertion */
        for (int64_t k = i; k > 0 && ends[k - 1] > ends[k]; k--) {
            const int64_t end = ends[k];
            ends[k] = ends[k - 1];
            ends[k - 1] = end;
        }
    ends[count - 1] = samples;
    return (an_leaf_cut){.count = count, .samples = samples, .ends = ends};
}

static inline void leaf_cut_free(an_leaf_cut *cut) {
    free((void *)(uintptr_t)cut->ends);
    cut->ends = NULL;
}

#endif

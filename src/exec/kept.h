/* What a store and its checkpoints keep of each weight that is trained, beside the weight itself. */
#ifndef AN_EXEC_KEPT_H
#define AN_EXEC_KEPT_H

#include "anneal/plan.h"

enum { AN_MOST_MOMENTS = 2 };

/* Every part is a flat buffer with the pages that a rank updates (AN_FLAT_MOMENTS). */
typedef struct an_kept {
    int moments;
    bool average;
} an_kept;

/* The parts that there can be, in the order of checkpoints and hashes. */
enum { AN_KEPT_BEGIN = AN_PART_MOMENT_1, AN_KEPT_END = AN_PART_AVERAGE + 1 };

static inline bool an_kept_has(an_kept kept, an_param_part part) {
    return part == AN_PART_AVERAGE ? kept.average : (int)part - AN_PART_MOMENT_1 < kept.moments;
}

/* How many buffers these are. */
static inline int an_kept_count(an_kept kept) {
    return kept.moments + kept.average;
}

#endif

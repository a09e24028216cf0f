/* Offsets for values of known lives, the largest first: each comes to the smallest gap that holds it, between those
 * that are placed already and live when it does. Values that are much larger than the rest, such as gathered weights,
 * then leave no gaps that only they could fill; an allocator that is played in the order of the step
 * (pass/offsets.h) meets them when the place is already cut up. The time is quadratic in the number of values. */
#ifndef AN_PASS_LARGEST_FIRST_H
#define AN_PASS_LARGEST_FIRST_H

#include "base/memory.h"

typedef struct an_lasting {
    int64_t begin, end, bytes; /* alive from `begin` to `end`, both included */
    int64_t offset;            /* out */
} an_lasting;

/* `bytes` is where the highest of them ends. */
an_status an_place_largest_first(an_context *ctx, an_lasting *values, size_t count, int64_t *bytes);

#endif

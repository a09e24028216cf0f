/* Mixup (Zhang, Cisse, Dauphin and Lopez-Paz 2018): a training sample is blended with another one, its partner. Who the
 * partner is and how much of it there is depends on the run's seed, the epoch and the number of the sample, and on
 * nothing else: not on the batch, nor on the thread or rank that loads it. */
#ifndef AN_DATA_MIXUP_H
#define AN_DATA_MIXUP_H

#include "data/dataset.h"

/* Shares are whole multiples of 2^-24: then both a share and what it leaves for the partner are exact in f32. */
enum { AN_MIX_WHOLE = 1 << 24 };

typedef struct an_mix {
    int64_t partner; /* another sample; the sample itself if there is no other */
    int64_t share;   /* of the sample, 0 to AN_MIX_WHOLE; the rest is the partner's */
} an_mix;

/* One of `count` samples. The share has the distribution Beta(alpha, alpha). */
an_mix an_mix_draw(double alpha, uint64_t seed, uint64_t epoch, int64_t sample, int64_t count);

/* own = share·own + (1 - share)·other, for numbers of f32 or f64. */
void an_mix_blend(an_dtype dtype, int64_t count, int64_t share, void *own, const void *other);

#endif

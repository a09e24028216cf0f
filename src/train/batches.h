/* Which samples each step of a run takes: arithmetic on numbers that belong to the run, never to the launch. All of it is O(1), or
 * O(entries of the table by epoch). */
#ifndef AN_TRAIN_BATCHES_H
#define AN_TRAIN_BATCHES_H

#include "anneal/train.h"

enum { AN_BATCH_TABLE = 64 };

typedef struct an_batches {
    int64_t samples; /* in an epoch */
    int64_t global, micro, leaves;
    bool drop_last;
    int entry_count; /* from epoch entries[i].epoch on, steps have entries[i].global samples */
    struct {
        int64_t epoch, global;
    } entries[AN_BATCH_TABLE];
} an_batches;

/* One step: places begin … begin + count - 1 of the epoch's order. */
typedef struct an_step_batch {
    int64_t epoch, begin, count;
    int64_t epoch_step;   /* of the epoch, from 0 */
    int64_t first_sample; /* of the run: the global number of the first one */
} an_step_batch;

an_status an_batches_make(an_batches *batches, an_context *ctx, int64_t samples, const an_batch_options *options);
int64_t an_batches_steps_in(const an_batches *b, int64_t epoch);
/* Steps before an epoch: how many the first `epochs` take. */
int64_t an_batches_steps_before(const an_batches *b, int64_t epoch);
an_step_batch an_batches_at(const an_batches *b, int64_t step);
/* The largest step of the run. */
int64_t an_batches_largest(const an_batches *b);

/* Places of leaf `leaf` of a step of `count` samples. */
static inline int64_t an_leaf_begin(const an_batches *b, int64_t count, int64_t leaf) {
    return (int64_t)((__int128)leaf * count / b->leaves);
}

#endif

/* Which samples each step of a run takes: arithmetic on numbers that belong to the run, never to the launch. Every
 * question takes O(1), or O(entries of the table by epoch). */
#ifndef AN_DATA_BATCHES_H
#define AN_DATA_BATCHES_H

#include "anneal/data.h"

enum { AN_BATCH_TABLE = 64 };

/* Samples of a stream in an epoch that never ends. */
#define AN_STREAM_SAMPLES ((int64_t)1 << 62)

struct an_batches {
    an_context *ctx;
    int64_t samples; /* in an epoch */
    int64_t global, leaves;
    bool chooses;    /* the run does not say how large a micro-batch is */
    int64_t maximum; /* samples that a micro-batch may have: what the run says, or what fits */
    int64_t micro;   /* … and what a micro-batch has at most: a part of a leaf, or the leaves of a node of the tree */
    bool drop_last;
    int entry_count; /* from epoch entries[i].epoch on, steps have entries[i].global samples */
    struct {
        int64_t epoch, global;
    } entries[AN_BATCH_TABLE];
};

/* One step: places begin … begin + count - 1 of the epoch's order. */
typedef struct an_step_batch {
    int64_t epoch, begin, count;
    int64_t epoch_step;   /* of the epoch, from 0 */
    int64_t first_sample; /* of the run: the global number of the first one */
} an_step_batch;

an_status an_batches_make(an_batches *batches, an_context *ctx, int64_t samples, const an_batch_options *given);
/* At most the samples of a step. A micro-batch has one of them, or a part of one. */
void an_batches_set_leaves(an_batches *b, int64_t leaves);
an_step_batch an_batches_at(const an_batches *b, int64_t step);
/* How many leaves a micro-batch has if it may have up to so many: the most, a power of two, whose samples are no
 * more than b->most in any step. Sets b->micro. */
int64_t an_batches_together(an_batches *b, int64_t leaves);
/* The largest step of the run. */
int64_t an_batches_largest(const an_batches *b);

/* Steps of a length that is computed: a part of a step counts as one. A whole number that rounding made a little
 * larger, as 0.07 × 100, stays what it is. */
int64_t an_whole_steps(double exact);
/* How many steps so many epochs take from step `from` on; a part of a step counts as one. */
int64_t an_batches_steps_for(const an_batches *b, int64_t from, double epochs);
/* How many steps so many samples take from step `from` on. */
int64_t an_batches_steps_taking(const an_batches *b, int64_t from, double samples);
/* How many steps end with step `to` and are as long, in epochs or samples. */
typedef int64_t (*an_steps_of)(const an_batches *b, int64_t from, double amount);
int64_t an_batches_steps_until(const an_batches *b, int64_t to, double amount, an_steps_of steps_of_amount);
/* How many epochs the first `steps` steps are. */
double an_batches_epochs(const an_batches *b, int64_t steps);

/* The fewest samples of a micro-batch, in a run of so many steps that is no stream. */
int64_t an_batches_least_micro(const an_batches *b, int64_t steps);
/* The fewest and the most steps of an epoch, among those that a run of so many steps begins. */
void an_batches_epoch_range(const an_batches *b, int64_t run, int64_t *minimum, int64_t *maximum);

static inline bool an_interval_is_off(const an_interval *interval) {
    return interval->steps == 0 && interval->epochs == 0 && interval->seconds == 0;
}

/* Whether an interval of steps or epochs ends with the `step`-th step, counted from 1. It depends on the step alone, so
 * a run that is resumed does the same things at the same steps. */
bool an_interval_ends(const an_interval *interval, const an_batches *b, int64_t step);

/* Places of leaf `leaf` of a step of `count` samples. */
static inline int64_t an_leaf_begin(const an_batches *b, int64_t count, int64_t leaf) {
    return (int64_t)((__int128)leaf * count / b->leaves);
}

/* Samples first … first + n - 1 of the `total` of a step. */
typedef struct an_batch_part {
    int64_t n, first, total;
    /* they are not those that the leaves of this rank would have of the step: they are cut evenly among these leaves */
    bool own;
} an_batch_part;

/* The leaves of a rank, `count` of them: `each` neighbouring ones from `first` on, as many from first + stride on, … */
typedef struct an_leaf_set {
    int64_t first, stride, count, each;
} an_leaf_set;

/* What they have of a step; n is 0 if none of them has a sample. O(1) if all are neighbours, else O(count). */
an_batch_part an_leaves_part(const an_batches *b, int64_t step, const an_leaf_set *set);
/* The most samples that they can have. A shorter step may give them one more than a longer one does, so this is
 * rounded up. */
int64_t an_leaves_most(const an_batches *b, const an_leaf_set *set);

/* One of them: samples first … first + count - 1 of the step, which are samples at … at + count - 1 of the rank. */
typedef struct an_leaf_samples {
    int64_t index; /* in the set */
    int64_t leaf, first, at, count;
} an_leaf_samples;
/* The next one, which may have no samples; the first after an index of -1. false: there are no more. */
bool an_leaf_set_next(const an_batches *b, const an_leaf_set *set, const an_batch_part *part, an_leaf_samples *leaf);

#endif

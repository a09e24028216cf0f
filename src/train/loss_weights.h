/* What targets weigh in the loss of a step: the weight of their class, times that of their sample, times their share
 * where samples are mixed. The loss is Σ w·l / Σ w over the targets of the step, as PyTorch's cross_entropy with
 * `weight` has it.
 *
 * Only the ratios of weights matter. So they are kept as whole multiples of 2^-40 of a power of two that none exceeds.
 * Their sum is then exact, and the divisor is the same however the targets of a step are divided among
 * micro-batches, leaves and ranks. */
#ifndef AN_TRAIN_LOSS_WEIGHTS_H
#define AN_TRAIN_LOSS_WEIGHTS_H

#include "train/trainer.h"

/* Those that the options say; nothing if there are none. The largest weight of a sample is found by reading them
 * all. */
an_status an_loss_weights_make(an_trainer *t, const an_trainer_options *options);
void an_loss_weights_destroy(an_trainer *t);

/* Whether targets have weights of this kind. The other kind is that of means over samples (means.c). */
static inline bool an_loss_weights_are_on(const an_trainer *t) {
    return t->weighing.class_weight_count > 0 || t->weighing.mixes_classes || t->weighing.field >= 0;
}

/* Adds the weights of the samples to counts->counted. */
an_status an_loss_weights_count(an_trainer *t, const an_batch *samples, an_step_counts *counts);
/* In a step that has begun: sets the divisor from the counts of all ranks. */
an_status an_loss_weights_begin(an_trainer *t, const an_step_counts *counts);
/* Gives the program the weights of samples at … at + count - 1. */
an_status an_loss_weights_set(an_trainer *t, const an_batch *samples, int64_t at, int64_t count);

#endif

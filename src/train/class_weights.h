/* Weights of classes: the loss of a step is Σ w·l / Σ w over its targets, as PyTorch's cross_entropy with `weight` has it.
 *
 * Only the ratios of weights matter. So they are kept as whole multiples of 2^-40 of a power of two that none exceeds. Their sum is then exact, and the
 * divisor is the same however the targets of a step are divided among micro-batches, leaves and ranks. */
#ifndef AN_TRAIN_CLASS_WEIGHTS_H
#define AN_TRAIN_CLASS_WEIGHTS_H

#include "train/trainer.h"

/* A copy of those in the options; nothing if there are none. */
an_status an_class_weights_make(an_trainer *t, const an_trainer_options *options);
void an_class_weights_destroy(an_trainer *t);

/* Adds the weights of the samples to counts->counted. */
an_status an_class_weights_count(an_trainer *t, const an_batch *samples, an_step_counts *counts);
/* In a step that has begun: sets the divisor from the counts of all ranks. */
an_status an_class_weights_begin(an_trainer *t, const an_step_counts *counts);
/* The weight of a sample, relative to that power of two. */
double an_class_weight_at(const an_trainer *t, const an_batch *samples, int64_t index);

#endif

/* How many leaves a run has whose config does not say so (batch.leaves: auto).
 *
 * Leaves are bits, so the number follows from the config alone: from the model, its precision and the samples of a
 * step. It is the largest power of two that leaves each leaf enough rows, as kernels add inside each leaf first
 * (docs/evidence/leaves.md has what that costs): 32 rows in f32 and f64, 512 in bf16 and f16, 256 for adapters in
 * these, and 4 samples of a convolution. It is at most 64, but more if a leaf would otherwise have over 4,096 rows,
 * because less than a leaf cannot run alone with the same bits. It is at least the ranks of the first start. Samples
 * that are evaluated at a time (eval.micro: auto) are bits too: 512 rows, or 32 images, but fewer if these are so large
 * that an evaluation would need far more memory than a step. */
#ifndef AN_TRAIN_DEFAULT_LEAVES_H
#define AN_TRAIN_DEFAULT_LEAVES_H

#include "train/trainer.h"

/* Gives the batches of a trainer their leaves, unless the options say how many; before there is a plan. */
an_status an_default_leaves_choose(an_trainer *t, const an_trainer_options *options);

/* What only a plan shows: a model that cannot have several leaves in a pass, where each would cost a pass, and gradient
 * buffers that a given batch.micro would need. In the first case the run has a leaf for each rank, or for each
 * micro-batch that it asks for; in the second, as many leaves as need little memory, and at least one for each rank. A
 * note says so. *changed: the trainer must be planned again. */
an_status an_default_leaves_settle(an_trainer *t, bool *changed);

#endif

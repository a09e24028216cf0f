/* Random changes of training samples, between the loader and the step: what data/augment.h and data/mixup.h do,
 * for the samples of a step. */
#ifndef AN_TRAIN_CHANGES_H
#define AN_TRAIN_CHANGES_H

#include "train/trainer.h"

/* Checks what the options ask for against the data and the model. */
an_status an_changes_check(an_trainer *t, const an_trainer_options *options);
static inline bool an_changes_are_on(const an_trainer *t) {
    return an_augment_changes_images(&t->samples.augment) || an_augment_mixes(&t->samples.augment);
}

/* For the loader (an_loader_options); `user` is the trainer. */
void an_changes_partners(void *user, int64_t step, int64_t n, const int64_t *indices, int64_t *partners);
void an_changes_make(void *user, const an_batch *batch, void *scratch);

/* The share of a sample in what it was mixed to, of AN_MIX_WHOLE; the rest is its partner's. A sample
 * without a partner is whole. */
int64_t an_changes_share(const an_trainer *t, const an_batch *batch, int64_t index);

#endif

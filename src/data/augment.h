/* Random changes of training samples, between the dataset and the batch: of images here, and mixup in mixup.h. What
 * happens to a sample depends on the run's seed, the epoch and the number of the sample, and on nothing else: not on
 * the thread or rank that loads it, nor on how often the run was stopped. */
#ifndef AN_DATA_AUGMENT_H
#define AN_DATA_AUGMENT_H

#include "data/dataset.h"

typedef struct an_augment {
    an_augment_options options;
    int64_t channels, height, width; /* of an image; 0: images are not changed */
} an_augment;

/* Checks the options (NULL: nothing is changed) against the images of a dataset. */
an_status an_augment_make(an_augment *augment, an_context *ctx, const an_dataset *dataset,
                          const an_augment_options *given);
static inline bool an_augment_changes_images(const an_augment *augment) {
    return augment->channels > 0;
}
static inline bool an_augment_mixes(const an_augment *augment) {
    return augment->options.mixup > 0;
}
/* Bytes of scratch memory that a thread needs to change images. */
static inline size_t an_augment_bytes(const an_augment *a) {
    return (size_t)(a->channels * a->height * a->width) * sizeof(float);
}

/* Changes the image of one sample. */
void an_augment_image(const an_augment *augment, uint64_t seed, uint64_t epoch, uint64_t sample, float *image,
                      float *scratch);

#endif

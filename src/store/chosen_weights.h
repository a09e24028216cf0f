/* A run that keeps a moving average of its weights saves both. Which of them is read as the model? */
#ifndef AN_STORE_CHOSEN_WEIGHTS_H
#define AN_STORE_CHOSEN_WEIGHTS_H

#include "anneal/anneal.h"
#include "store/manifest.h"

/* Whether it is the average, which must then have the shapes and types of its weights. `manifest` NULL: there are
 * only weights. `path` is for messages. */
an_status an_choose_weights(an_context *ctx, const an_manifest *manifest, const char *path, an_model_weights asked,
                            bool *average);

/* Index of the average of a weight; -1: it has none, as a frozen parameter or a run state. O(log tensors). */
int64_t an_manifest_find_average(const an_manifest *manifest, const char *weight);
/* The tensor with the numbers of a weight: with `average`, its average if it has one; or else itself. */
int64_t an_manifest_source(const an_manifest *manifest, int64_t weight, bool average);

#endif

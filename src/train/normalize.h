/* The run states of a model that normalises (models/normalize.h), as a trainer or a predictor has them. */
#ifndef AN_TRAIN_NORMALIZE_H
#define AN_TRAIN_NORMALIZE_H

#include "anneal/train.h"
#include "exec/params.h"
#include "models/normalize.h"
#include "train/feed.h"

/* NULL: the model does not normalise this end. O(parameters). */
const an_stored *an_normalization_find(const an_params *params, int end, int state);
/* All numbers of a state, in f64. */
an_status an_normalization_read(const an_params *params, const an_stored *state, double *numbers);
/* Sets the states of an end: means, scales, least and most numbers, of `features` each, which are converted in
 * place. */
an_status an_normalization_write(an_params *params, int end, int64_t features, double *values);
/* Whether they were set; true for an end that does not normalise. */
an_status an_normalization_is_known(const an_params *params, int end, bool *known);
/* The input of the model that an end is about: of inputs, the only one. */
an_status an_normalization_input(const an_trainer *t, int end, const an_feed_input **input);

/* The states of a feature; true: it never changes, so its scale is 1. */
bool an_normalization_choose(an_dtype dtype, an_scaling scaling, const an_feature_info *info,
                             double numbers[AN_NORMALIZE_STATES]);
/* AN_ERR_OVERFLOW: its scale is too large for the model's type. */
an_status an_normalization_check_scale(an_context *ctx, an_dtype dtype, int end, int64_t feature,
                                       const double numbers[AN_NORMALIZE_STATES]);

/* Notes that the states of an end come with initial weights, whatever data.normalize has asked for. */
an_status an_normalization_note_origin(an_trainer *t, int end, const char *path);

/* Refuses the first step of a model that normalises, if nobody has set its states. */
an_status an_normalization_check(const an_trainer *t);

#endif

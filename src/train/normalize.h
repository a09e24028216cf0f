/* The run states of a model that normalises (models/normalize.h), as a trainer or a predictor has them. */
#ifndef AN_TRAIN_NORMALIZE_H
#define AN_TRAIN_NORMALIZE_H

#include "exec/params.h"
#include "models/normalize.h"

struct an_trainer;

/* NULL: the model does not normalise this end. O(parameters). */
const an_stored *an_normalization_find(const an_params *params, int end, int state);
/* All numbers of a state, in f64. */
an_status an_normalization_read(const an_params *params, const an_stored *state, double *numbers);

/* Refuses the first step of a model that normalises, if nobody has set its states. */
an_status an_normalization_check(const struct an_trainer *t);

#endif

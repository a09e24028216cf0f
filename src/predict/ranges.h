/* The ranges of inputs that training has seen, and how often a predictor was asked about others. */
#ifndef AN_PREDICT_RANGES_H
#define AN_PREDICT_RANGES_H

#include "anneal/predict.h"
#include "exec/params.h"

typedef struct an_ranges {
    const an_params *params;
    int64_t features, each; /* features 0: the model has no ranges; elements of one in a sample */
    double *numbers, *minimum, *maximum;
    int64_t *outside; /* of each feature, in samples */
    int64_t samples, samples_outside;
} an_ranges;

/* For a store that has no weights yet. */
an_status an_ranges_make(an_ranges *ranges, const an_params *params, int64_t input_elements);
void an_ranges_destroy(an_ranges *ranges);
/* Takes them from the store; the counts stay. */
an_status an_ranges_read(an_ranges *ranges);
/* O(numbers), on the calling thread. */
void an_ranges_count(an_ranges *ranges, an_dtype dtype, int64_t n, const void *inputs);

#endif

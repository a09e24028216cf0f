/* Chooses the next token of a sequence from its logits. */
#ifndef AN_PREDICT_SAMPLER_H
#define AN_PREDICT_SAMPLER_H

#include "anneal/generate.h"

typedef struct an_candidate {
    float logit;
    int32_t token;
    double weight; /* its probability, but for a factor that all have */
} an_candidate;

/* Refuses options that mean nothing. */
an_status an_sampling_check(an_context *ctx, const an_sampling_options *options);

/* `tokens` are those of the sequence so far; `logits` and `candidates` have `vocabulary` elements, and are
 * used up. The random number is that of the seed, the sequence's number and `count`, so it does not depend
 * on what is generated beside. */
int32_t an_sample(const an_sampling_options *options, const int32_t *tokens, int64_t count, int64_t vocabulary,
                  float *logits, an_candidate *candidates);

#endif

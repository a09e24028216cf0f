/* Prediction with trained weights.
 *
 * A predictor has its own copy of the weights and its own memory, and allocates nothing in a call. Different threads
 * may use different predictors at the same time, also inside the caller's parallel region, where each predictor runs on
 * the calling thread. A sample's result never depends on the batch it is in. None of these functions is collective.
 */
#ifndef ANNEAL_PREDICT_H
#define ANNEAL_PREDICT_H

#include "anneal/anneal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

typedef struct an_predictor_options {
    size_t size;
    int64_t max_samples;        /* maximum number of samples in one call; 1 by default */
    const char *output;         /* name of the model's output; NULL: the first */
    const char *const *symbols; /* names of symbols, such as "tokens" */
    const int64_t *sizes;       /* and the size of each */
    int threads;                /* 0: those of the context */
    /* the members from here are for an_predictor_open only. Symbols whose sizes the checkpoint does not record, or that
     * are to have another size */
    int symbol_count;
    an_model_weights weights; /* of the checkpoint; a predictor of a trainer uses those of an_trainer_options */
    bool f32_storage; /* as in an_plan_options, for checkpoints of 0.1 that were trained so; later ones record it */
    uint8_t reserved[3];
} an_predictor_options;
AN_API void an_predictor_options_init(an_predictor_options *options, size_t size);

/* Opens a predictor without a trainer, from a checkpoint folder, a run folder (its newest good checkpoint), or a
 * published model (anneal/pretrained.h), whose samples have the tokens of its context unless the options say fewer.
 * Reads the graph and the weights, but neither data nor config. In a context with the run's instruction set and ops,
 * results have the bits of a predictor of the trainer. Checkpoints of 0.1 do not record the sizes of symbols, such as
 * the tokens of a sample: set them in the options. `options` may be NULL. */
AN_API an_status an_predictor_open(an_predictor **predictor, an_context *ctx, const char *path,
                                   const an_predictor_options *options);

/* The number of elements of one sample, of the only input (of each input of a sentence) and of the output; their
 * type. */
AN_API int64_t an_predictor_input_elements(const an_predictor *predictor);
AN_API int64_t an_predictor_output_elements(const an_predictor *predictor);
AN_API an_dtype an_predictor_dtype(const an_predictor *predictor);

/* Predicts n samples of a model that reads tokens. A sample has as many tokens as the context; its result is the logits
 * of the token that follows each. */
AN_API an_status an_predictor_run_tokens(an_predictor *predictor, int64_t n, const int32_t *tokens, float *outputs);

/* Predicts n samples of a model that reads sentences, such as BERT: tokens, their types (of a pair: 0 for the first
 * sentence, 1 for the second), and a mask, 1 for a token and 0 for padding, all as long as the context. A sample's
 * result is what the model predicts: the logits of its classes, or its embedding. */
AN_API an_status an_predictor_run_sentences(an_predictor *predictor, int64_t n, const int32_t *tokens,
                                            const int32_t *token_types, const int32_t *mask, float *outputs);

/* ==== details ==== the rest of the interface */

/* Copies the trainer's present weights, or their moving average (an_trainer_options.weights), into the predictor. Not
 * while the trainer or the predictor is at work. */
AN_API an_status an_predictor_refresh(an_predictor *predictor, const an_trainer *trainer);

/* The samples whose inputs were outside the ranges of the training data, since the predictor was created. A model that
 * normalizes its inputs knows these ranges; predictions beyond them are extrapolated. */
typedef struct an_range_info {
    size_t size;
    /* features with a range: the elements of the input, or the channels of images; 0: the model has no ranges */
    int64_t features;
    int64_t samples;         /* predicted samples; 0 without ranges */
    int64_t outside;         /* predicted samples with a number outside its feature's range, or a NaN */
    int64_t feature;         /* the feature that was outside in most samples; -1: none */
    int64_t feature_outside; /* samples in which this feature was outside */
    double minimum, maximum; /* range of this feature */
} an_range_info;
AN_API void an_range_info_init(an_range_info *info, size_t size);
AN_API an_status an_predictor_range(const an_predictor *predictor, an_range_info *info);

#ifdef __cplusplus
}
#endif
#endif

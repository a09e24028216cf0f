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

typedef struct an_predictor_options {
    size_t size;
    int64_t max_samples;        /* maximum number of samples in one call; 1 by default */
    const char *output;         /* name of the model's output; NULL: the first */
    const char *const *symbols; /* such as "tokens" */
    const int64_t *sizes;       /* and how large each is */
    int threads;                /* 0: those of the context */
    /* Of an_predictor_open only. */
    int symbol_count;         /* symbols of the model whose sizes the checkpoint does not record, or are to be others */
    an_model_weights weights; /* of the checkpoint; a predictor of a trainer takes those of an_trainer_options */
    bool f32_storage; /* as in an_plan_options, of a checkpoint of 0.1 that was trained so; later ones record it */
    uint8_t reserved[3];
} an_predictor_options;
AN_API void an_predictor_options_init(an_predictor_options *options, size_t size);

/* Opens a predictor without a trainer: a checkpoint's folder, or a run's, whose newest good checkpoint is taken. Reads
 * the graph and the weights, and neither data nor config. In a context with the run's instructions and ops, the results
 * have the bits that a predictor of the trainer gives. A published model (anneal/pretrained.h) is opened too, with
 * the tokens of its context in a sample unless the options say fewer. Checkpoints of 0.1 do not record the sizes of
 * symbols, such as the tokens of a sample: these are options. */
AN_API an_status an_predictor_open(an_predictor **predictor, an_context *ctx, const char *path,
                                   const an_predictor_options *options);

/* Copies the trainer's present weights, or their moving average (an_trainer_options.weights). Not while the trainer
 * or the predictor is at work. */
AN_API an_status an_predictor_refresh(an_predictor *predictor, const an_trainer *trainer);

/* Elements of one sample of the only input (of each of the inputs of a sentence) and of the output, and their type. */
AN_API int64_t an_predictor_input_elements(const an_predictor *predictor);
AN_API int64_t an_predictor_output_elements(const an_predictor *predictor);
AN_API an_dtype an_predictor_dtype(const an_predictor *predictor);

/* How many samples had inputs outside of what training has seen, since the predictor was made. A model that normalises
 * its inputs knows their ranges; what it predicts beyond them is extrapolated. */
typedef struct an_range_info {
    size_t size;
    /* that have a range: the elements of the input, of images the channels; 0: the model knows none */
    int64_t features;
    int64_t samples;         /* that were predicted; 0 without ranges */
    int64_t outside;         /* of these, with a number that is outside of its feature's range, or no number */
    int64_t feature;         /* that was outside in most samples; -1: none was */
    int64_t feature_outside; /* samples in which it was */
    double minimum, maximum; /* its range */
} an_range_info;
AN_API void an_range_info_init(an_range_info *info, size_t size);
AN_API an_status an_predictor_range(const an_predictor *predictor, an_range_info *info);

/* For models that read tokens. A sample is as many tokens as the context has; the result is the logits of the
 * token that follows each. */
AN_API an_status an_predictor_run_tokens(an_predictor *predictor, int64_t n, const int32_t *tokens, float *outputs);

/* For models that read sentences, such as BERT: tokens, their types (of a pair: 0 for the first sentence, 1 for the
 * second), and a mask, 1 for a token and 0 for padding, all as long as the context. A sample's result is the logits
 * of its classes, or its embedding: what the model predicts. */
AN_API an_status an_predictor_run_sentences(an_predictor *predictor, int64_t n, const int32_t *tokens,
                                            const int32_t *token_types, const int32_t *mask, float *outputs);

#ifdef __cplusplus
}
#endif
#endif

/* Generation: a model that reads tokens continues sequences of them.
 *
 * A generator has its own copy of the weights, a cache of the keys and values of all sequences that it works on, and
 * its own memory; a step allocates nothing. Different threads may use different generators at the same time. What is
 * generated for a sequence depends on its prompt, its sampling options and the weights, and neither on the sequences
 * beside it nor on the number of threads. None of these functions is collective.
 */
#ifndef ANNEAL_GENERATE_H
#define ANNEAL_GENERATE_H

#include "anneal/anneal.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct an_generator an_generator;

typedef struct an_generator_options {
    size_t size;
    int64_t max_sequences; /* maximum number of sequences at a time; 1 by default */
    int64_t context;       /* tokens of a sequence, with its prompt; 0: as many as the model was trained with */
    int64_t chunk; /* tokens of a prompt that are computed together; 256 by default. The bits do not depend on it */
    const char *output;       /* name of the model's logits; NULL: its first output */
    int threads;              /* 0: those of the context */
    an_dtype precision;       /* F32 or BF16; NONE: as the model was trained */
    an_model_weights weights; /* of a checkpoint; a generator of a trainer takes those of an_trainer_options */
    /* of the model's matrices: Q8_0, or BF16 if that is the precision; NONE: as the model has them. Only for
     * an_generator_open, and not for an adapter, whose run has chosen it (an_lora_options) */
    an_dtype storage;
} an_generator_options;
AN_API void an_generator_options_init(an_generator_options *options, size_t size);

/* Opens a generator without a trainer: a checkpoint's folder, a run's, whose newest good checkpoint is taken, or a
 * published model (anneal/pretrained.h). */
AN_API an_status an_generator_open(an_generator **generator, an_context *ctx, const char *path,
                                   const an_generator_options *options);
/* The model of a trainer, with its present weights. */
AN_API an_status an_generator_create(an_generator **generator, an_trainer *trainer,
                                     const an_generator_options *options);
AN_API void an_generator_destroy(an_generator **generator);

/* Copies the trainer's present weights. Sequences that are being generated end. Not while the trainer or
 * the generator is at work. */
AN_API an_status an_generator_refresh(an_generator *generator, const an_trainer *trainer);

typedef struct an_generator_info {
    size_t size;
    int64_t vocabulary;          /* tokens are 0 to vocabulary - 1 */
    int64_t context;             /* tokens of a sequence, with its prompt */
    int64_t max_sequences, free; /* sequences at a time; how many can be added now */
    /* Bytes that the generator has allocated. peak is the sum. */
    int64_t weights, cache, work, tables;
    int64_t peak;
} an_generator_info;
AN_API void an_generator_info_init(an_generator_info *info, size_t size);
AN_API an_status an_generator_info_get(const an_generator *generator, an_generator_info *info);

/* How the next token is chosen. Logits are changed in this order: repetition_penalty, temperature, top_k, top_p,
 * min_p. */
typedef struct an_sampling_options {
    size_t size;
    double temperature; /* divides the logits; 0 by default: the token with the highest logit is taken */
    int64_t top_k;      /* only so many of the most probable tokens; 0: all */
    double top_p;       /* only the most probable tokens that together have this probability; 1 by default: all */
    double min_p;       /* only tokens with at least this part of the highest probability; 0: all */
    double repetition_penalty; /* of tokens that the sequence has: positive logits are divided by it, others multiplied;
                                  1 by default: none */
    uint64_t seed;
    int64_t sequence;           /* a number for the sequence: the same seed draws other numbers for another sequence */
    int64_t max_tokens;         /* that are generated; 0 by default: until the context is full */
    const int32_t *stop_tokens; /* each of them ends the sequence */
    int stop_count;
    uint32_t reserved;
} an_sampling_options;
AN_API void an_sampling_options_init(an_sampling_options *options, size_t size);

/* Adds a sequence that begins with these tokens, at least one. Fails with AN_ERR_STATE if there is no room
 * (an_generator_info.free). The tokens are computed at the next step. `options` may be NULL. */
AN_API an_status an_generator_add(an_generator *generator, const int32_t *tokens, int64_t count,
                                  const an_sampling_options *options);

/* Why a token is the last one of its sequence. */
typedef enum an_generation_end {
    AN_GENERATION_GOES_ON = 0,
    AN_GENERATION_STOP = 1,    /* it is one of stop_tokens */
    AN_GENERATION_LENGTH = 2,  /* max_tokens were generated */
    AN_GENERATION_CONTEXT = 3, /* the context is full */
    AN_GENERATION_LIMIT = 0x7fffffff
} an_generation_end;

typedef struct an_generated {
    int64_t sequence; /* as in an_sampling_options */
    int32_t token;
    an_generation_end end;
} an_generated;

/* Generates one token for each sequence. `tokens` has room for `most` of them, in the order in which
 * sequences were added; *count is how many there are, 0 when all sequences have ended. A sequence that
 * has ended makes room for another. */
AN_API an_status an_generator_step(an_generator *generator, an_generated *tokens, int64_t *count);

/* Ends a sequence, by its number, because of what was generated. */
AN_API an_status an_generator_stop(an_generator *generator, int64_t sequence);

#ifdef __cplusplus
}
#endif
#endif

/* Generation: a model that reads tokens continues sequences of tokens.
 *
 * A generator has its own copy of the weights, a cache of the keys and values of all sequences that it works on, and
 * its own memory; a step allocates nothing. Different threads may use different generators at the same time. The tokens
 * of a sequence depend on its prompt, its sampling options and the weights, but neither on the other sequences nor on
 * the number of threads. None of these functions is collective.
 */
#ifndef ANNEAL_GENERATE_H
#define ANNEAL_GENERATE_H

#include "anneal/anneal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

typedef struct an_generator an_generator;

typedef struct an_generator_options {
    size_t size;
    int64_t max_sequences; /* maximum number of sequences at a time; 1 by default */
    int64_t context;       /* maximum sequence length, prompt included; 0: as the model was trained */
    int64_t chunk; /* tokens of a prompt that are computed together; 256 by default. The bits do not depend on it */
    const char *output;       /* name of the model's logits; NULL: its first output */
    int threads;              /* 0: those of the context */
    an_dtype precision;       /* F32 or BF16; NONE: as the model was trained */
    an_model_weights weights; /* of a checkpoint; a generator of a trainer uses those of an_trainer_options */
    /* storage of the model's matrices: Q8_0, or BF16 if that is the precision; NONE: unchanged. Only for
     * an_generator_open, and not for an adapter, whose run has chosen it (an_lora_options) */
    an_dtype storage;
} an_generator_options;
AN_API void an_generator_options_init(an_generator_options *options, size_t size);

/* Opens a generator without a trainer, from a checkpoint folder, a run folder (its newest good checkpoint), or a
 * published model (anneal/pretrained.h). `options` may be NULL. */
AN_API an_status an_generator_open(an_generator **generator, an_context *ctx, const char *path,
                                   const an_generator_options *options);

AN_API void an_generator_destroy(an_generator **generator);

/* How the next token is chosen. Logits are changed in this order: repetition_penalty, temperature, top_k, top_p,
 * min_p. */
typedef struct an_sampling_options {
    size_t size;
    double temperature; /* divides the logits; 0 by default: the token with the highest logit is taken */
    int64_t top_k;      /* choose among this many most probable tokens; 0: all */
    double top_p; /* choose among the most probable tokens that together have this probability; 1 by default: all */
    double min_p; /* choose among tokens with at least this fraction of the highest probability; 0: all */
    /* for tokens that the sequence already has: positive logits are divided by it, others multiplied; 1 by default: no
     * penalty */
    double repetition_penalty;
    uint64_t seed;
    int64_t sequence;           /* the sequence's own number, part of its random numbers beside the seed */
    int64_t max_tokens;         /* maximum number of generated tokens; 0 by default: until the context is full */
    const int32_t *stop_tokens; /* each of them ends the sequence */
    int stop_count;
    uint32_t reserved;
} an_sampling_options;
AN_API void an_sampling_options_init(an_sampling_options *options, size_t size);

/* Adds a sequence that begins with these tokens, at least one; they are copied, and computed at the next step.
 * `options` may be NULL. AN_ERR_STATE: the generator has max_sequences already (an_generator_info.free is 0). */
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

/* Generates one token for each sequence, in the order in which sequences were added. `tokens` has room for
 * max_sequences of them. *count is the number of tokens; 0: all sequences have ended. A sequence that has ended makes
 * room for another. */
AN_API an_status an_generator_step(an_generator *generator, an_generated *tokens, int64_t *count);

/* ==== details ==== the rest of the interface */

/* Creates a generator of a trainer's model, with its present weights. `options` may be NULL. */
AN_API an_status an_generator_create(an_generator **generator, an_trainer *trainer,
                                     const an_generator_options *options);

/* Copies the trainer's present weights into the generator, and ends all its sequences. Not while the trainer or the
 * generator is at work. */
AN_API an_status an_generator_refresh(an_generator *generator, const an_trainer *trainer);

/* Ends a sequence, by its number, before its generation is complete. */
AN_API an_status an_generator_stop(an_generator *generator, int64_t sequence);

typedef struct an_generator_info {
    size_t size;
    int64_t vocabulary;          /* tokens are 0 to vocabulary - 1 */
    int64_t context;             /* maximum sequence length, prompt included */
    int64_t max_sequences, free; /* sequences at a time; how many can be added now */
    /* bytes that the generator has allocated; peak is the sum */
    int64_t weights, cache, work, tables;
    int64_t peak;
} an_generator_info;
AN_API void an_generator_info_init(an_generator_info *info, size_t size);
AN_API an_status an_generator_info_get(const an_generator *generator, an_generator_info *info);

#ifdef __cplusplus
}
#endif
#endif

/* Published models: a Hugging Face model directory (config.json and safetensors) or a GGUF file, with a description of
 * the model and its weights.
 *
 *     an_pretrained_open(&p, ctx, "SmolLM2-135M");
 *     an_pretrained_graph(p, &graph, NULL);        a graph like that of an_model_llama
 *     an_trainer_create(&trainer, graph, …);
 *     an_trainer_load_weights(trainer, &options);  the weights, with options.path = "SmolLM2-135M"
 *
 * None of these functions is collective. */
#ifndef ANNEAL_PRETRAINED_H
#define ANNEAL_PRETRAINED_H

#include "anneal/chat.h"
#include "anneal/models.h"
#include "anneal/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

typedef struct an_pretrained an_pretrained;

/* Reads the description of a model; its weights stay on disk. A folder without weights can be planned, but not trained.
 * AN_ERR_UNSUPPORTED: the family is not supported, or the description has keys that no model here supports; the message
 * names them. */
AN_API an_status an_pretrained_open(an_pretrained **pretrained, an_context *ctx, const char *path);
AN_API void an_pretrained_close(an_pretrained **pretrained);

typedef struct an_pretrained_options {
    size_t size;
    /* for BERT: number of classes. 0: as the folder says; without a classifier there, the output is an embedding if the
     * folder says how tokens are pooled, and hidden states otherwise */
    int64_t classes;
    double dropout; /* for BERT and GPT-2, in training */
    an_dtype dtype; /* of the parameters; NONE: f32 */
    int pooling;    /* for BERT: 1 + an_bert_pooling; 0: as the folder says, or else the pooler */
    bool documents; /* as in an_gpt2_options */
    uint8_t reserved[7];
} an_pretrained_options;
AN_API void an_pretrained_options_init(an_pretrained_options *options, size_t size);
/* Builds the model. Parameters have the names that Hugging Face gives them. The graph is the caller's. `options` may be
 * NULL. */
AN_API an_status an_pretrained_graph(const an_pretrained *pretrained, an_graph **graph,
                                     const an_pretrained_options *options);

/* Opens a model's tokenizer: that of a folder or of a file tokenizer.json, as an_tokenizer_open reads it, or the one in
 * a GGUF file. */
AN_API an_status an_pretrained_tokenizer(an_tokenizer **tokenizer, an_context *ctx, const char *path);
/* Finds how conversations are written for a model, as an_chat_open does, also for a GGUF file. */
AN_API an_status an_pretrained_chat(an_chat_format *format, an_context *ctx, const char *path,
                                    char memory[AN_CHAT_SYSTEM_BYTES]);

/* ==== details ==== the rest of the interface */

typedef struct an_pretrained_info {
    size_t size;
    const char *path;
    const char *family; /* "llama" */
    int64_t layers, heads, kv_heads, head_size, width, hidden, vocabulary;
    int64_t context;      /* maximum number of tokens in a sample */
    int64_t window;       /* maximum number of tokens that a token sees; 0: all */
    int64_t tensors;      /* in the files; 0: none */
    int64_t elements;     /* of all tensors */
    double rotary_base;   /* 0: positions are not rotary */
    double rotary_factor; /* of Llama 3.1's scaling; 0: none */
    int64_t classes;      /* of the classifier; 0: it has none */
    double dropout;       /* of the publisher's training; 0: none or unknown */
    bool is_gguf;         /* a GGUF file; otherwise a folder */
    bool tied;            /* the output layer is the token table */
    uint8_t reserved[6];
} an_pretrained_info;
AN_API void an_pretrained_info_init(an_pretrained_info *info, size_t size);
AN_API an_status an_pretrained_info_get(const an_pretrained *pretrained, an_pretrained_info *info);

enum { AN_PRETRAINED_STOPS = 32, AN_PRETRAINED_IGNORED = 256 };
/* How the publisher generates with the model: generation_config.json of a folder, or the keys of a GGUF file. Members
 * are as in an_sampling_options (anneal/generate.h). */
typedef struct an_pretrained_sampling {
    size_t size;
    /* 0: the token with the highest logit is taken. This and the next four members are -1 if they are not given */
    double temperature;
    double top_p, min_p, repetition_penalty;
    int64_t top_k;
    int32_t stop_tokens[AN_PRETRAINED_STOPS];
    int stop_count; /* 0: not given; the tokenizer has an end token too */
    /* keys of generation_config.json that ask for something else, as a list; "": none */
    char ignored[AN_PRETRAINED_IGNORED];
    uint8_t reserved[4];
} an_pretrained_sampling;
AN_API void an_pretrained_sampling_init(an_pretrained_sampling *sampling, size_t size);
/* Reads these values as transformers does: without do_sample, a temperature has no effect. AN_ERR_DAMAGED: a value is
 * out of range; the message names its key. */
AN_API an_status an_pretrained_sampling_get(const an_pretrained *pretrained, an_pretrained_sampling *sampling);

/* The name of a supported family, "gpt2" and so on; NULL after the last. */
AN_API const char *an_pretrained_family(int index);

#ifdef __cplusplus
}
#endif
#endif

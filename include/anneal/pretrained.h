/* Published models: a folder as Hugging Face has them (config.json and safetensors), or a GGUF file, says what the
 * model is and has its weights.
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

typedef struct an_pretrained an_pretrained;

/* Reads what the model is; its weights stay on disk. A folder without weights can be planned, but not trained.
 * AN_ERR_UNSUPPORTED: it is of a family that anneal does not have, or its description has keys that no model here
 * can do; the message names them. */
AN_API an_status an_pretrained_open(an_pretrained **pretrained, an_context *ctx, const char *path);
AN_API void an_pretrained_close(an_pretrained **pretrained);

typedef struct an_pretrained_info {
    size_t size;
    const char *path;
    const char *family; /* "llama" */
    int64_t layers, heads, kv_heads, head_size, width, hidden, vocabulary;
    int64_t context;      /* most tokens in a sample */
    int64_t window;       /* tokens that a token sees; 0: all */
    int64_t tensors;      /* in the files; 0: there are none */
    int64_t elements;     /* of all tensors */
    double rotary_base;   /* 0: positions are not rotary */
    double rotary_factor; /* of Llama 3.1's scaling; 0: none */
    int64_t classes;      /* of a classifier; 0: it has none */
    double dropout;       /* that the folder trains with; 0: none, or it does not say */
    bool is_gguf;         /* or else a folder */
    bool tied;            /* the output layer is the token table */
    uint8_t reserved[6];
} an_pretrained_info;
AN_API void an_pretrained_info_init(an_pretrained_info *info, size_t size);
AN_API an_status an_pretrained_info_get(const an_pretrained *pretrained, an_pretrained_info *info);

typedef struct an_pretrained_options {
    size_t size;
    /* of BERT: logits of so many classes. 0: as the folder says, and without a classifier there, an embedding if it
     * says how tokens are pooled, or else hidden states */
    int64_t classes;
    double dropout; /* of BERT and GPT-2, in training */
    an_dtype dtype; /* of the parameters; NONE: f32 */
    int pooling;    /* of BERT: 1 + an_bert_pooling; 0: as the folder says, or else the pooler */
    bool documents; /* as in an_gpt2_options */
    uint8_t reserved[7];
} an_pretrained_options;
AN_API void an_pretrained_options_init(an_pretrained_options *options, size_t size);
/* Builds the model. Parameters have the names that Hugging Face gives them. */
AN_API an_status an_pretrained_graph(const an_pretrained *pretrained, an_graph **graph,
                                     const an_pretrained_options *options);

/* Its tokenizer: that of a folder or of a file tokenizer.json, as an_tokenizer_open reads it, or the one in a GGUF
 * file. */
AN_API an_status an_pretrained_tokenizer(an_tokenizer **tokenizer, an_context *ctx, const char *path);
/* How conversations are written for it: the same of an_chat_open. */
AN_API an_status an_pretrained_chat(an_chat_format *format, an_context *ctx, const char *path,
                                    char memory[AN_CHAT_SYSTEM_BYTES]);

/* How its publisher generates with it: generation_config.json of a folder, or the keys of a GGUF file. Members are
 * as in an_sampling_options (anneal/generate.h). */
enum { AN_PRETRAINED_STOPS = 32, AN_PRETRAINED_IGNORED = 256 };
typedef struct an_pretrained_sampling {
    size_t size;
    /* 0: the token with the highest logit is taken. This and the next four: -1 if nothing says it */
    double temperature;
    double top_p, min_p, repetition_penalty;
    int64_t top_k;
    int32_t stop_tokens[AN_PRETRAINED_STOPS];
    int stop_count; /* 0: nothing says it; the tokenizer has an end token too */
    char ignored
        [AN_PRETRAINED_IGNORED]; /* keys of generation_config.json that ask for something else, as a list; "": none */
    uint8_t reserved[4];
} an_pretrained_sampling;
AN_API void an_pretrained_sampling_init(an_pretrained_sampling *sampling, size_t size);
/* Values are taken as transformers takes them: without do_sample, a temperature has no effect. A value that is out
 * of its range is AN_ERR_DAMAGED, by the name of its key. */
AN_API an_status an_pretrained_sampling_get(const an_pretrained *pretrained, an_pretrained_sampling *sampling);

/* The names of the families, "gpt2" and so on; NULL after the last. */
AN_API const char *an_pretrained_family(int index);

#ifdef __cplusplus
}
#endif
#endif

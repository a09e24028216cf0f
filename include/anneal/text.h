/* Tokenizers: text to tokens and back.
 *
 * A tokenizer is read from a tokenizer.json, or built from the parts in a GGUF file. It never changes, and any number
 * of threads may use it at the same time. Each thread that encodes has an encoder, which holds the memory for encoding.
 * an_last_error(NULL) has the message of their errors. None of these functions is collective.
 *
 *     an_tokenizer *tokenizer = NULL;
 *     an_encoder *encoder = NULL;
 *     const int32_t *tokens;
 *     int64_t count;
 *     int ok = an_tokenizer_open(&tokenizer, ctx, "SmolLM2-135M") == AN_OK &&
 *              an_encoder_create(&encoder, tokenizer) == AN_OK &&
 *              an_encoder_run(encoder, "Hello", 5, NULL, &tokens, &count) == AN_OK;
 *
 * Text is UTF-8. A byte that is not part of a character is encoded as U+FFFD, as other tokenizers do.
 */
#ifndef ANNEAL_TEXT_H
#define ANNEAL_TEXT_H

#include "anneal/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* ---- tokenizers ---- */

typedef struct an_tokenizer an_tokenizer;

/* Opens a file tokenizer.json, or a folder that contains it. A tokenizer_config.json beside it is read too. Anything in
 * the files that this library does not support is refused by name. */
AN_API an_status an_tokenizer_open(an_tokenizer **tokenizer, an_context *ctx, const char *path);

/* Destroys a tokenizer and sets the pointer to NULL. Destroy its encoders and decoders first. */
AN_API void an_tokenizer_destroy(an_tokenizer **tokenizer);

typedef struct an_tokenizer_info {
    size_t size;
    int64_t count;              /* ids are below it; an id may have no token */
    int32_t bos, eos, unk, pad; /* -1: there is none, or the files do not say */
    const char *model;          /* "bpe" or "wordpiece" */
    bool lossless;              /* decoding gives back every valid text that was encoded without added special tokens */
    uint8_t reserved[7];
} an_tokenizer_info;
AN_API void an_tokenizer_info_init(an_tokenizer_info *info, size_t size);
AN_API an_status an_tokenizer_info_get(const an_tokenizer *tokenizer, an_tokenizer_info *info);

/* ---- text to tokens ---- */

typedef struct an_encoder an_encoder;

typedef struct an_encode_options {
    size_t size;
    const char *pair; /* a second text, for models that read two; NULL: none */
    size_t pair_length;
    bool special; /* add the tokens that the model expects around a text ("[CLS]"); true by default */
    /* special tokens written in the text ("<|im_end|>") become their ids; true by default. Otherwise they are text like
     * any other; use this for text from users */
    bool parse;
    uint8_t reserved[6];
} an_encode_options;
AN_API void an_encode_options_init(an_encode_options *options, size_t size);

/* Creates an encoder for one thread. The tokenizer must outlive it. */
AN_API an_status an_encoder_create(an_encoder **encoder, const an_tokenizer *tokenizer);
AN_API void an_encoder_destroy(an_encoder **encoder);
/* Encodes a text of less than 2^31 bytes, in O(n log n) for any n bytes. The tokens belong to the encoder and are valid
 * until its next call. `options` may be NULL. */
AN_API an_status an_encoder_run(an_encoder *encoder, const char *text, size_t length, const an_encode_options *options,
                                const int32_t **tokens, int64_t *count);

/* ---- tokens to text ---- */

/* Decodes tokens. *length is the number of bytes; at most `capacity` of them are written. With capacity 0, `text` may
 * be NULL. Ids without a token are left out, and special tokens too unless `special`. The bytes are those of the
 * tokens, so the text may end inside a character. */
AN_API an_status an_tokenizer_decode(const an_tokenizer *tokenizer, const int32_t *tokens, int64_t count, bool special,
                                     char *text, size_t capacity, size_t *length);

/* Decodes tokens one by one, as a model makes them, into whole characters. */
typedef struct an_decoder an_decoder;
AN_API an_status an_decoder_create(an_decoder **decoder, const an_tokenizer *tokenizer, bool special);
AN_API void an_decoder_destroy(an_decoder **decoder);
/* Gives the characters that this token completes; none if it ends inside a character. Invalid bytes become U+FFFD. The
 * text belongs to the decoder, ends with NUL, and is valid until its next call. */
AN_API an_status an_decoder_push(an_decoder *decoder, int32_t token, const char **text, size_t *length);
/* Ends a text: gives an incomplete last character as U+FFFD. The decoder then begins a new text. */
AN_API an_status an_decoder_end(an_decoder *decoder, const char **text, size_t *length);

/* ==== details ==== the rest of the interface */

/* ---- tokenizers from memory, and their tokens ---- */

/* Creates a tokenizer from the bytes of a tokenizer.json, which are copied. `config` is the text of
 * tokenizer_config.json, which names the special tokens; NULL: there is none. Anything in the files that this library
 * does not support is refused by name. */
AN_API an_status an_tokenizer_create(an_tokenizer **tokenizer, an_context *ctx, const char *json, size_t length,
                                     const char *config, size_t config_length);

/* The kind of a token of an_tokenizer_parts; the numbers are those of GGUF. */
typedef enum an_token_kind {
    AN_TOKEN_NORMAL = 1,
    AN_TOKEN_UNKNOWN = 2,
    /* special: never made from plain text, left out when text is decoded without special tokens */
    AN_TOKEN_CONTROL = 3,
    AN_TOKEN_USER = 4, /* found in text before anything else */
    AN_TOKEN_UNUSED = 5,
    AN_TOKEN_BYTE = 6,
    AN_TOKEN_KIND_LIMIT = 0x7fffffff
} an_token_kind;

/* The keys tokenizer.ggml.* of a GGUF file. */
typedef struct an_tokenizer_parts {
    size_t size;
    const char *model;         /* "gpt2": byte-level BPE; "bert": WordPiece */
    const char *pre;           /* name of the pre-tokenizer: "gpt-2", "smollm", "llama-bpe" or "qwen2"; NULL: "gpt-2" */
    const char *const *tokens; /* texts of the tokens, in the order of their ids */
    const int32_t *types;      /* an_token_kind of each; NULL: all are normal */
    const char *const *merges; /* "left right", by descending priority; for BPE */
    int64_t token_count, merge_count;
    int32_t bos, eos, unk, pad; /* -1, the default: there is none */
    bool add_bos, add_eos;      /* around a text, with an_encode_options.special */
    uint8_t reserved[6];
} an_tokenizer_parts;
AN_API void an_tokenizer_parts_init(an_tokenizer_parts *parts, size_t size);
/* Creates a tokenizer from parts, which are copied. */
AN_API an_status an_tokenizer_create_parts(an_tokenizer **tokenizer, an_context *ctx, const an_tokenizer_parts *parts);

/* The text of a token as the vocabulary writes it; byte-level BPE has one character for each byte ("Ġthe"). It lives as
 * long as the tokenizer. NULL: the id has no token. `length` may be NULL. */
AN_API const char *an_tokenizer_token(const an_tokenizer *tokenizer, int32_t id, size_t *length);
/* The id of such a text; -1: there is none. */
AN_API int32_t an_tokenizer_id(const an_tokenizer *tokenizer, const char *token, size_t length);
AN_API bool an_tokenizer_is_special(const an_tokenizer *tokenizer, int32_t id);

/* For each token of the last call, the text that it belongs to: 0, or 1 for the second text of a pair. */
AN_API const int32_t *an_encoder_types(const an_encoder *encoder);

/* ---- making a tokenizer ---- */

/* Makes a vocabulary from texts by byte-level BPE: starting with the 256 bytes, the two adjacent tokens that appear
 * most often within words become one token, until there are enough. Of pairs that appear equally often, the one with
 * the lower ids comes first, as in the package tokenizers. Ids are in this order: special tokens, bytes in the order of
 * the characters that represent them, merges. The result depends on the words of all texts together, but neither on
 * their order nor on the number of threads. */
typedef struct an_bpe_trainer an_bpe_trainer;

typedef struct an_bpe_options {
    size_t size;
    int64_t vocabulary;         /* total number of tokens: 256 bytes, special tokens and merges */
    int64_t minimum;            /* a pair that appears less often does not become a token; 2 by default */
    const char *pre;            /* name of the pre-tokenizer, as in an_tokenizer_parts; NULL: "gpt-2" */
    const char *const *special; /* tokens that are never made from plain text, such as "<|endoftext|>" */
    int64_t special_count;
} an_bpe_options;
AN_API void an_bpe_options_init(an_bpe_options *options, size_t size);

AN_API an_status an_bpe_trainer_create(an_bpe_trainer **trainer, an_context *ctx, const an_bpe_options *options);
AN_API void an_bpe_trainer_destroy(an_bpe_trainer **trainer);
/* Counts the words of texts of less than 2^31 bytes each, with the context's threads. The texts are not kept. Call it
 * any number of times. */
AN_API an_status an_bpe_trainer_add(an_bpe_trainer *trainer, const char *const *texts, const size_t *lengths,
                                    int64_t count);
/* Makes a tokenizer.json from the counted words; release it with an_string_release. *tokens is its number of tokens;
 * `tokens` may be NULL. There are fewer tokens than options.vocabulary if no other pair appears options.minimum
 * times. */
AN_API an_status an_bpe_trainer_run(an_bpe_trainer *trainer, char **json, int64_t *tokens);

#ifdef __cplusplus
}
#endif
#endif

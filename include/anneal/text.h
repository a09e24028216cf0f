/* Tokenizers: text to tokens and back.
 *
 * A tokenizer is read from a tokenizer.json, or put together from the parts that a GGUF file has. It never changes, and
 * any number of threads may use it at the same time. Each thread that encodes has an encoder, which holds the memory
 * that encoding needs. Their errors are the thread's: an_last_error(NULL). None of these functions is collective.
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

/* ---- tokenizers ---- */

typedef struct an_tokenizer an_tokenizer;

/* From the bytes of a tokenizer.json, which are copied. `config` is the text of tokenizer_config.json, which names the
 * special tokens; NULL: there is none. Anything in the files that this library does not do is refused by name. */
AN_API an_status an_tokenizer_create(an_tokenizer **tokenizer, an_context *ctx, const char *json, size_t length,
                                     const char *config, size_t config_length);
/* From a file tokenizer.json, or a folder that contains it. A tokenizer_config.json beside it is read too. */
AN_API an_status an_tokenizer_open(an_tokenizer **tokenizer, an_context *ctx, const char *path);

/* What a token of an_tokenizer_parts is; the numbers are those of GGUF. */
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
    const char *const *merges; /* "left right", the first has priority; for BPE */
    int64_t token_count, merge_count;
    int32_t bos, eos, unk, pad; /* -1, the default: there is none */
    bool add_bos, add_eos;      /* around a text, with an_encode_options.special */
    uint8_t reserved[6];
} an_tokenizer_parts;
AN_API void an_tokenizer_parts_init(an_tokenizer_parts *parts, size_t size);
/* Everything is copied. */
AN_API an_status an_tokenizer_create_parts(an_tokenizer **tokenizer, an_context *ctx, const an_tokenizer_parts *parts);

/* Destroy its encoders and decoders first. */
AN_API void an_tokenizer_destroy(an_tokenizer **tokenizer);

typedef struct an_tokenizer_info {
    size_t size;
    int64_t count;              /* ids are below it; some of them may have no token */
    int32_t bos, eos, unk, pad; /* -1: there is none, or the files do not say */
    const char *model;          /* "bpe" or "wordpiece" */
    bool lossless; /* decoding gives back every valid text that was encoded without adding special tokens */
    uint8_t reserved[7];
} an_tokenizer_info;
AN_API void an_tokenizer_info_init(an_tokenizer_info *info, size_t size);
AN_API an_status an_tokenizer_info_get(const an_tokenizer *tokenizer, an_tokenizer_info *info);

/* The text of a token as its vocabulary writes it, in byte-level BPE with one character for each byte ("Ġthe"); it
 * lives as long as the tokenizer. NULL: the id has no token. `length` may be NULL. */
AN_API const char *an_tokenizer_token(const an_tokenizer *tokenizer, int32_t id, size_t *length);
/* The id of such a text; -1: there is none. */
AN_API int32_t an_tokenizer_id(const an_tokenizer *tokenizer, const char *token, size_t length);
AN_API bool an_tokenizer_is_special(const an_tokenizer *tokenizer, int32_t id);

/* ---- text to tokens ---- */

typedef struct an_encoder an_encoder;

typedef struct an_encode_options {
    size_t size;
    const char *pair; /* a second text, for models that read two; NULL: none */
    size_t pair_length;
    bool special; /* adds the tokens that the model expects around a text ("[CLS]"); true by default */
    /* special tokens that are written in the text ("<|im_end|>") become their ids; true by default. Otherwise they
     * are text like any other, as they should be in what users write */
    bool parse;
    uint8_t reserved[6];
} an_encode_options;
AN_API void an_encode_options_init(an_encode_options *options, size_t size);

AN_API an_status an_encoder_create(an_encoder **encoder, const an_tokenizer *tokenizer);
AN_API void an_encoder_destroy(an_encoder **encoder);
/* Encodes a text of less than 2^31 bytes. The tokens are the encoder's, and valid until its next call. Takes O(n log n)
 * for n bytes, whatever they are. `options` may be NULL. */
AN_API an_status an_encoder_run(an_encoder *encoder, const char *text, size_t length, const an_encode_options *options,
                                const int32_t **tokens, int64_t *count);
/* Of each token of the last call, which text it belongs to, as the model numbers them: 0 or 1. */
AN_API const int32_t *an_encoder_types(const an_encoder *encoder);

/* ---- tokens to text ---- */

/* Decodes tokens. *length is the number of bytes; at most `capacity` of them are written. With capacity 0, `text` may
 * be NULL. Ids without a token are left out, and special tokens too unless `special`. The bytes are those of the
 * tokens: where these do not end with a character, neither does the text. */
AN_API an_status an_tokenizer_decode(const an_tokenizer *tokenizer, const int32_t *tokens, int64_t count, bool special,
                                     char *text, size_t capacity, size_t *length);

/* Decodes tokens one by one, as a model makes them, into whole characters. */
typedef struct an_decoder an_decoder;
AN_API an_status an_decoder_create(an_decoder **decoder, const an_tokenizer *tokenizer, bool special);
AN_API void an_decoder_destroy(an_decoder **decoder);
/* The characters that this token completes; none if it ends inside of one. Bytes that are no character become U+FFFD.
 * The text is the decoder's, ends in NUL, and is valid until its next call. */
AN_API an_status an_decoder_push(an_decoder *decoder, int32_t token, const char **text, size_t *length);
/* What is left of a character that never ended, as U+FFFD. The decoder then begins a new text. */
AN_API an_status an_decoder_end(an_decoder *decoder, const char **text, size_t *length);

/* ---- making a tokenizer ---- */

/* Makes a vocabulary from texts by byte-level BPE: from the 256 bytes on, the two adjacent tokens that appear most
 * often within words become one token, until there are enough. Of pairs that appear equally often, the one with the
 * lower ids comes first, which the package tokenizers does too. Ids are those of the special tokens, of the bytes in
 * the order of the characters that stand for them, and of the merges. The result depends on the words of all texts
 * together, and neither on their order nor on the number of threads. */
typedef struct an_bpe_trainer an_bpe_trainer;

typedef struct an_bpe_options {
    size_t size;
    int64_t vocabulary;         /* tokens in all: those of 256 bytes, special ones and merges */
    int64_t minimum;            /* a pair that appears less often is no token; 2 by default */
    const char *pre;            /* what cuts texts into words: a name as in an_tokenizer_parts; NULL: "gpt-2" */
    const char *const *special; /* tokens that are never made from plain text, such as "<|endoftext|>" */
    int64_t special_count;
} an_bpe_options;
AN_API void an_bpe_options_init(an_bpe_options *options, size_t size);

AN_API an_status an_bpe_trainer_create(an_bpe_trainer **trainer, an_context *ctx, const an_bpe_options *options);
AN_API void an_bpe_trainer_destroy(an_bpe_trainer **trainer);
/* Counts the words of texts of less than 2^31 bytes each, which are not kept; the context's threads share them. Call
 * it as often as there is text. */
AN_API an_status an_bpe_trainer_add(an_bpe_trainer *trainer, const char *const *texts, const size_t *lengths,
                                    int64_t count);
/* Makes the tokenizer.json of what was counted; release it with an_string_release. It has fewer tokens than asked for
 * if no pair appears `least` times any more. `tokens`, which may be NULL, is how many. */
AN_API an_status an_bpe_trainer_run(an_bpe_trainer *trainer, char **json, int64_t *tokens);

#ifdef __cplusplus
}
#endif
#endif

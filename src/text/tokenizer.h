/* What a tokenizer is made of. It does not change once it is made. */
#ifndef AN_TEXT_TOKENIZER_H
#define AN_TEXT_TOKENIZER_H

#include "anneal/text.h"
#include "text/added.h"
#include "text/vocabulary.h"

typedef enum an_text_model { AN_TEXT_BPE, AN_TEXT_WORDPIECE } an_text_model;

/* A part of what is around a text: a special token, or one of the texts. */
typedef enum an_template_kind { AN_TEMPLATE_TOKEN, AN_TEMPLATE_FIRST, AN_TEMPLATE_SECOND } an_template_kind;
typedef struct an_template_part {
    an_template_kind kind;
    int32_t token, type;
} an_template_part;
typedef struct an_template {
    an_template_part *parts;
    size_t count, capacity;
} an_template;

struct an_tokenizer {
    an_context *ctx;
    an_arena arena;
    char *text; /* the file, in which the strings lie; NULL: in the arena */
    size_t text_bytes;
    an_text_model model;
    an_vocabulary vocabulary;
    an_steps normalizers, splitters, decoders;
    an_added_tokens added[AN_ADDED_STAGES];
    an_template single, pair;
    int32_t bos, eos, unk, pad;
    int32_t model_unk; /* that the model has for what it does not know; AN_NO_TOKEN: none */
    size_t longest;    /* bytes of the longest text of a token */

    /* BPE */
    bool byte_level;          /* symbols are bytes; otherwise characters */
    bool byte_fallback;       /* characters without a token are bytes: <0x0A> */
    bool fuse_unk;            /* adjacent unknown characters are one token */
    bool ignore_merges;       /* a word that is a token is that token */
    int32_t byte_tokens[256]; /* of a byte; byte level and byte fallback */

    /* WordPiece */
    an_bytes prefix; /* of what continues a word */
    int64_t most_characters;
};

/* The characters that stand for bytes in byte-level vocabularies. */
uint32_t an_byte_character(unsigned char byte);
/* The bytes of such a text; false: it has a character that stands for none. `to` has room for `length` bytes. */
bool an_byte_level_bytes(const char *text, size_t length, char *to, size_t *bytes);

/* An empty tokenizer, which an_tokenizer_finish makes usable when its tokens, merges and steps are there. */
an_status an_tokenizer_begin(an_tokenizer **tokenizer, an_context *ctx);
/* Puts a token at its id. Ids are at most `most`. */
an_status an_tokenizer_put(an_tokenizer *tokenizer, int64_t id, const char *text, size_t length, int64_t maximum);
/* After all tokens and steps: their bytes, and the index of texts. */
an_status an_tokenizer_index(an_tokenizer *tokenizer, uint64_t seed);
/* A merge of two texts; its rank is their number. What is not in the vocabulary is refused. */
an_status an_tokenizer_merge(an_tokenizer *tokenizer, an_bytes left, an_bytes right, uint32_t rank);
/* After everything: tokens that are found in texts. */
an_status an_tokenizer_finish(an_tokenizer *tokenizer, const an_added_token *added, size_t count);

an_status an_template_add(an_context *ctx, an_template *template, an_template_kind kind, int32_t token, int32_t type);

#endif

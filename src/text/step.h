/* The parts of a tokenizer as data: what is done to a text before its words are looked up, and after. A tokenizer.json
 * names them; the names that GGUF has for pre-tokenizers stand for the same. */
#ifndef AN_TEXT_STEP_H
#define AN_TEXT_STEP_H

#include "base/memory.h"
#include "text/matcher.h"

typedef struct an_bytes {
    const char *bytes;
    size_t length;
} an_bytes;
/* Of a string constant. */
#define AN_BYTES(text) ((an_bytes){(text), sizeof(text) - 1})

typedef enum an_step_kind {
    /* normalizers: they change the text */
    AN_STEP_NFC,
    AN_STEP_NFD,
    AN_STEP_NFKC,
    AN_STEP_NFKD,
    AN_STEP_LOWERCASE,
    AN_STEP_STRIP_ACCENTS,
    AN_STEP_STRIP, /* white space at the ends */
    AN_STEP_PREPEND,
    AN_STEP_REPLACE,
    AN_STEP_BERT_NORMALIZER,
    /* pre-tokenizers: they cut the text */
    AN_STEP_BYTE_LEVEL,
    AN_STEP_SPLIT,
    AN_STEP_DIGITS,
    AN_STEP_PUNCTUATION,
    AN_STEP_WHITESPACE,
    AN_STEP_WHITESPACE_SPLIT,
    AN_STEP_BERT_SPLIT,
    /* decoders: they change the texts of tokens */
    AN_STEP_DECODE_BYTE_LEVEL,
    AN_STEP_DECODE_WORDPIECE,
    AN_STEP_DECODE_REPLACE,
    AN_STEP_DECODE_BYTES, /* <0x0A> is a byte */
    AN_STEP_DECODE_FUSE,
    AN_STEP_DECODE_STRIP
} an_step_kind;

/* What becomes of the places where a pattern matches. */
typedef enum an_split_behavior {
    AN_SPLIT_REMOVED,
    AN_SPLIT_ISOLATED,
    AN_SPLIT_WITH_PREVIOUS,
    AN_SPLIT_WITH_NEXT,
    AN_SPLIT_CONTIGUOUS
} an_split_behavior;

typedef struct an_step {
    an_step_kind kind;
    an_split_behavior behavior;
    an_matcher matcher;                  /* split, replace */
    an_bytes text;                       /* replace: by what; prepend; prefix of continued words; strip: what */
    bool invert;                         /* split: the matches are the pieces between */
    bool prefix_space;                   /* byte level: in front of a piece that has none */
    bool individual;                     /* digits: each by itself */
    bool left, right;                    /* strip */
    bool clean, chinese, accents, lower; /* of BertNormalizer */
    bool cleanup;                        /* of WordPiece's decoder */
    int64_t start, stop;                 /* strip of a decoder: how many at most */
} an_step;

typedef struct an_steps {
    an_step *steps;
    size_t count, capacity;
} an_steps;

an_status an_steps_add(an_context *ctx, an_steps *steps, const an_step *step);
void an_steps_release(an_context *ctx, an_steps *steps);

#endif

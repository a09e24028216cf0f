/* What a byte-level tokenizer is, as other files say it: in the keys of GGUF, and in tokenizer.json. */
#ifndef AN_TEXT_DESCRIBE_H
#define AN_TEXT_DESCRIBE_H

#include "anneal/text.h"
#include "base/text/text.h"
#include "text/matcher.h"

/* A pre-tokenizer that GGUF has a name for. */
typedef struct an_pre {
    const char *name;
    const char *pattern;
    an_scanner scanner; /* of the pattern */
    bool digits;        /* each by itself, before the pattern */
    bool nfc;           /* a normalizer before */
    bool ignore_merges; /* a word that is a token is that token */
} an_pre;
/* NULL: "gpt-2". Gives NULL if there is none of this name. */
const an_pre *an_pre_find(const char *name);
const an_pre *an_pre_at(int index); /* NULL after the last */

/* The parts that make the same tokenizer; they live as long as the tokenizer and the arena. AN_ERR_UNSUPPORTED: GGUF
 * has no name for what it does. */
an_status an_tokenizer_describe(const an_tokenizer *tokenizer, an_arena *arena, an_tokenizer_parts *parts);
/* Adds the text of a tokenizer.json. */
an_status an_tokenizer_write(an_text *text, const an_tokenizer_parts *parts);

#endif

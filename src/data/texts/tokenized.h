/* Texts as tokens, one after another, each with whether a model is to learn it. */
#ifndef AN_DATA_TEXTS_TOKENIZED_H
#define AN_DATA_TEXTS_TOKENIZED_H

#include "anneal/text.h"
#include "base/memory.h"
#include "text/chat/chat.h"

enum { AN_MOST_AROUND = 8 };

typedef struct an_tokenized {
    an_context *ctx;
    const an_tokenizer *tokenizer;
    an_tokenizer_info info;
    an_encoder *encoder;
    int32_t *bytes;                                        /* of each token, + 1; 0: not known yet */
    int32_t before[AN_MOST_AROUND], after[AN_MOST_AROUND]; /* tokens that the model expects around a text */
    int before_count, after_count;

    int32_t *tokens;
    uint8_t *learned; /* of each token */
    size_t count, token_capacity, learned_capacity;
} an_tokenized;

an_status an_tokenized_init(an_tokenized *t, an_context *ctx, const an_tokenizer *tokenizer);
/* Releases what encoding needs; the tokens stay. */
void an_tokenized_finish(an_tokenized *t);
void an_tokenized_destroy(an_tokenized *t);

/* Adds a text as the tokenizer of the model would give it whole; tokens with a byte in one of the spans are learned.
 * `around`: with the tokens that the model expects around a text, and the one that ends it, which is learned. */
an_status an_tokenized_add(an_tokenized *t, const char *text, size_t length, const an_chat_span *spans,
                           int64_t span_count, bool around);

#endif

/* Conversations as text: what the datasets need beyond anneal/chat.h. */
#ifndef AN_TEXT_CHAT_CHAT_H
#define AN_TEXT_CHAT_CHAT_H

#include "anneal/chat.h"
#include "base/text/text.h"
#include "text/step.h"

/* Bytes of a text that the assistant says, with the token that ends its turn: what a model is to learn. */
typedef struct an_chat_span {
    size_t begin, end;
} an_chat_span;

/* Adds a conversation to the text. `spans` has room for one of each message, and gets those of the assistant;
 * NULL: they are not wanted. */
an_status an_chat_write(an_text *text, const an_chat_format *format, const an_chat_message *messages, int64_t count,
                        bool prompt, an_chat_span *spans, int64_t *span_count);

/* The same with the places of the template's own tokens, bos and eos among them: at most AN_CHAT_TOKENS of a message,
 * of the system message that the format adds, and of the beginning of an answer. */
enum { AN_CHAT_TOKENS = 4 };
an_status an_chat_write_tokens(an_text *text, const an_chat_format *format, const an_chat_message *messages,
                               int64_t count, bool prompt, an_chat_span *tokens, int64_t *token_count);

/* Refuses what is NULL. */
an_status an_chat_check(an_context *ctx, const an_chat_message *messages, int64_t count);

/* A token that the template cannot do without; NULL after the last. */
const char *an_chat_token(an_chat_template type, int index);

#endif

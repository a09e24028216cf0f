/* What the readers of records for fine-tuning share. */
#ifndef AN_DATA_TEXTS_CHAT_READING_H
#define AN_DATA_TEXTS_CHAT_READING_H

#include "base/text/json_message.h"
#include "data/texts/chat.h"

typedef struct an_chat_reading {
    an_context *ctx;
    an_pieces *pieces;
    const an_chat_source *source;
    an_lines *lines;
    an_text text;              /* of the conversation, or of prompt and completion */
    an_chat_message *messages; /* of the record */
    an_chat_span *spans;       /* with room for as many */
    size_t message_count, message_capacity, span_capacity;
    int64_t record;
} an_chat_reading;

/* Adds the messages of a list to those of the record. */
an_status an_chat_read_messages(an_chat_reading *r, an_json *json);
/* Adds the tokens of the record's messages, of which the first `given` are not learned; `at` is their place in the
 * record. */
an_status an_chat_add_conversation(an_chat_reading *r, size_t at, size_t given);
/* Adds the tokens of two texts, one after the other, of which the second is learned. */
an_status an_chat_add_completion(an_chat_reading *r, const an_json_string *prompt, const an_json_string *completion);

/* Whether one of `length` tokens is learned; the first is no target. */
bool an_chat_learns(const an_chat_reading *r, size_t begin, int64_t length);
an_status an_chat_keep_piece(an_chat_reading *r, size_t begin, int64_t length);

/* Reads a record of two answers, {"prompt", "chosen", "rejected"}, as two pieces. */
an_status an_chat_read_pair(an_chat_reading *r);

#endif

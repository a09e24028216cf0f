#include "data/texts/chat_reading.h"

#include <string.h>

/* ---- JSON ---- */

an_status an_chat_read_messages(an_chat_reading *r, an_json *json) {
    an_context *ctx = r->ctx;
    const size_t before = r->message_count;
    if (an_json_peek(json) != '[') an_json_refuse(json, json->at, "messages are a list");
    if (json->problem || !an_json_array(json)) return AN_OK;
    while (an_json_element(json)) {
        AN_TRY_RETURN(
            an_grow(ctx, (void **)&r->messages, &r->message_capacity, r->message_count + 1, sizeof *r->messages));
        if (!an_json_message(json, &r->messages[r->message_count++])) break;
    }
    if (!json->problem && r->message_count == before) an_json_refuse(json, json->at, "there are no messages");
    return AN_OK;
}

/* ---- tokens ---- */

static int64_t count_assistant(const an_chat_message *messages, size_t count) {
    int64_t said = 0;
    for (size_t i = 0; i < count; i++) said += !strcmp(messages[i].role, "assistant");
    return said;
}

an_status an_chat_add_conversation(an_chat_reading *r, size_t at, size_t given) {
    an_context *ctx = r->ctx;
    int64_t count = 0;
    if (!r->source->format)
        return an_lines_refuse(
            r->lines, r->record, at,
            r->source->no_format ? r->source->no_format
                                 : "this is a conversation, but nothing says how the model writes one; give a template",
            "");
    AN_TRY_RETURN(an_grow(ctx, (void **)&r->spans, &r->span_capacity, r->message_count, sizeof *r->spans));
    const an_status status =
        an_chat_write(&r->text, r->source->format, r->messages, (int64_t)r->message_count, false, r->spans, &count);
    if (status == AN_ERR_MEMORY) return status;
    if (status != AN_OK) return an_lines_refuse(r->lines, r->record, at, an_last_error(ctx), "");
    /* There is a span for each message of the assistant. */
    const int64_t skipped = count_assistant(r->messages, given);
    return an_tokenized_add(&r->pieces->tokenized, r->text.bytes, r->text.length, r->spans + skipped, count - skipped,
                            false);
}

an_status an_chat_add_completion(an_chat_reading *r, const an_json_string *prompt, const an_json_string *completion) {
    an_chat_span span;
    an_text_bytes(&r->text, prompt->bytes, prompt->length);
    an_text_bytes(&r->text, completion->bytes, completion->length);
    if (r->text.status != AN_OK) return r->text.status;
    span = (an_chat_span){prompt->length, r->text.length};
    return an_tokenized_add(&r->pieces->tokenized, r->text.bytes, r->text.length, &span, 1, true);
}

bool an_chat_learns(const an_chat_reading *r, size_t begin, int64_t length) {
    for (int64_t i = 1; i < length; i++)
        if (r->pieces->tokenized.learned[begin + (size_t)i]) return true;
    return false;
}

an_status an_chat_keep_piece(an_chat_reading *r, size_t begin, int64_t length) {
    an_context *ctx = r->ctx;
    an_pieces *p = r->pieces;
    AN_TRY_RETURN(an_grow(ctx, (void **)&p->pieces, &p->capacity, p->count + 1, sizeof *p->pieces));
    p->pieces[p->count++] = (an_piece){.begin = (int64_t)begin, .record = r->record, .length = (int32_t)length};
    return AN_OK;
}

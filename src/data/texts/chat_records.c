/* Reads records for fine-tuning: {"text"}, {"prompt", "completion"} or {"messages": [{"role", "content"}, …]}. Other
 * members may be anything. */
#include <string.h>

#include "data/texts/chat_reading.h"

typedef struct {
    an_json_string text, prompt, completion;
    bool has_messages;
    size_t messages_at;
} members;

typedef an_chat_reading reading;

/* ---- JSON ---- */

static an_status read_members(reading *r, an_json *json, members *m) {
    an_json_string key;
    *m = (members){.has_messages = false};
    r->message_count = 0;
    if (!an_json_object(json)) return AN_OK;
    while (an_json_member(json, &key))
        if (!strcmp(key.bytes, "text"))
            an_json_string_once(json, &m->text, "'text' is one text");
        else if (!strcmp(key.bytes, "prompt"))
            an_json_string_once(json, &m->prompt, "'prompt' is one text; write a conversation as 'messages'");
        else if (!strcmp(key.bytes, "completion"))
            an_json_string_once(json, &m->completion, "'completion' is one text; write a conversation as 'messages'");
        else if (!strcmp(key.bytes, "messages")) {
            if (m->has_messages) an_json_refuse(json, json->at, "'messages' appears twice");
            m->has_messages = true;
            m->messages_at = json->at;
            AN_TRY_RETURN(an_chat_read_messages(r, json));
        } else
            an_json_skip(json);
    an_json_end(json);
    const int kinds = (m->text.bytes != NULL) + (m->prompt.bytes || m->completion.bytes) + m->has_messages;
    if (json->problem) return AN_OK;
    if (kinds != 1)
        an_json_refuse(json, 0,
                       "a record has 'text', or 'prompt' and 'completion', or 'messages', and only one of these");
    else if (!m->prompt.bytes != !m->completion.bytes)
        an_json_refuse(json, 0, "a record with 'prompt' needs 'completion', and the other way round");
    return AN_OK;
}

/* ---- tokens ---- */

static an_status add_text(reading *r, const members *m) {
    const an_chat_span span = {0, m->text.length};
    return an_tokenized_add(&r->pieces->tokenized, m->text.bytes, m->text.length, &span, 1, true);
}

/* Cuts what was added to a sample's length, and keeps it if there is something to learn. */
static an_status keep_record(reading *r, size_t begin) {
    an_pieces *p = r->pieces;
    an_tokenized *t = &p->tokenized;
    const int64_t maximum = r->source->context + 1; /* the last token is only a target */
    int64_t length = (int64_t)(t->count - begin);
    p->all_tokens += length;
    if (length > maximum) {
        p->cut++;
        p->cut_tokens += length - maximum;
        length = maximum;
    }
    for (int64_t i = 1; i < length && r->source->prompts; i++) t->learned[begin + (size_t)i] = 1;
    t->count = begin;
    if (an_chat_learns(r, begin, length)) {
        AN_TRY_RETURN(an_chat_keep_piece(r, begin, length));
        t->count = begin + (size_t)length;
    } else {
        p->left_out++;
    }
    return AN_OK;
}

static an_status read_record(reading *r) {
    an_json json;
    members m;
    const size_t begin = r->pieces->tokenized.count;
    AN_TRY_RETURN(an_lines_read(r->lines, r->record, &json));
    AN_TRY_RETURN(read_members(r, &json, &m));
    if (json.problem) return an_lines_refuse(r->lines, r->record, json.at, json.problem, "");
    r->text.length = 0;
    if (m.has_messages)
        AN_TRY_RETURN(an_chat_add_conversation(r, m.messages_at, 0));
    else if (m.prompt.bytes)
        AN_TRY_RETURN(an_chat_add_completion(r, &m.prompt, &m.completion));
    else
        AN_TRY_RETURN(add_text(r, &m));
    return keep_record(r, begin);
}

an_status an_pieces_read(an_pieces *pieces, an_context *ctx, const an_chat_source *source, an_lines *lines) {
    an_status status;
    reading r = {.ctx = ctx, .pieces = pieces, .source = source, .lines = lines};
    an_text_init(&r.text, ctx);
    *pieces = (an_pieces){.records = lines->last - lines->first};
    AN_TRY(an_tokenized_init(&pieces->tokenized, ctx, source->tokenizer));
    for (r.record = lines->first; r.record < lines->last; r.record++)
        AN_TRY(source->pairs ? an_chat_read_pair(&r) : read_record(&r));
    an_tokenized_finish(&pieces->tokenized);
    AN_CHECK(ctx, pieces->count > 0, AN_ERR_ARGUMENT,
             "%s: none of its %lld records has a token to learn within the first %lld tokens", source->path,
             (long long)pieces->records, (long long)source->context + 1);
    status = AN_OK;
fail:
    an_text_destroy(&r.text);
    an_release(ctx, (void **)&r.messages, r.message_capacity, sizeof *r.messages);
    an_release(ctx, (void **)&r.spans, r.span_capacity, sizeof *r.spans);
    if (status != AN_OK) an_pieces_destroy(pieces);
    return status;
}

void an_pieces_destroy(an_pieces *pieces) {
    an_context *ctx = pieces->tokenized.ctx;
    if (!ctx) return;
    an_release(ctx, (void **)&pieces->pieces, pieces->capacity, sizeof *pieces->pieces);
    an_tokenized_destroy(&pieces->tokenized);
}

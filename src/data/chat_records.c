/* Reads records for fine-tuning: {"text"}, {"prompt", "completion"} or {"messages": [{"role", "content"}, …]}. Other members may be anything. */
#include <string.h>

#include "data/chat.h"

typedef struct {
    an_json_string text, prompt, completion;
    bool has_messages;
    size_t messages_at;
} members;

typedef struct {
    an_context *ctx;
    an_pieces *pieces;
    const an_chat_source *source;
    an_lines *lines;
    an_text text;              /* of the conversation, or of prompt and completion */
    an_chat_message *messages; /* of the record */
    an_chat_span *spans;       /* with room for as many */
    size_t message_count, message_capacity, span_capacity;
    int64_t record;
} reading;

/* ---- JSON ---- */

static bool read_message(an_json *json, an_chat_message *message) {
    an_json_string key, role = {NULL, 0}, content = {NULL, 0};
    const size_t at = json->at;
    if (an_json_peek(json) != '{' || !an_json_object(json)) return an_json_refuse(json, at, "a message is an object");
    while (an_json_member(json, &key))
        if (!strcmp(key.bytes, "role"))
            an_lines_string(json, &role, "the role of a message is one text");
        else if (!strcmp(key.bytes, "content"))
            an_lines_string(json, &content, "the content of a message is one text");
        else if (!strcmp(key.bytes, "tool_calls"))
            an_json_refuse(json, json->at, "messages with tool_calls are not supported; write them as text");
        else
            an_json_skip(json);
    if (!json->problem && (!role.bytes || !content.bytes))
        an_json_refuse(json, at, "a message needs a role and a content");
    *message = (an_chat_message){role.bytes, content.bytes};
    return !json->problem;
}

static an_status read_messages(reading *r, an_json *json) {
    an_context *ctx = r->ctx;
    if (an_json_peek(json) != '[') an_json_refuse(json, json->at, "messages are a list");
    if (json->problem || !an_json_array(json)) return AN_OK;
    r->message_count = 0;
    while (an_json_element(json)) {
        AN_TRY_RETURN(
            an_grow(ctx, (void **)&r->messages, &r->message_capacity, r->message_count + 1, sizeof *r->messages));
        if (!read_message(json, &r->messages[r->message_count++])) break;
    }
    if (!json->problem && r->message_count == 0) an_json_refuse(json, json->at, "there are no messages");
    return AN_OK;
}

static an_status read_members(reading *r, an_json *json, members *m) {
    an_context *ctx = r->ctx;
    an_json_string key;
    *m = (members){.has_messages = false};
    if (!an_json_object(json)) return AN_OK;
    while (an_json_member(json, &key))
        if (!strcmp(key.bytes, "text"))
            an_lines_string(json, &m->text, "'text' is one text");
        else if (!strcmp(key.bytes, "prompt"))
            an_lines_string(json, &m->prompt, "'prompt' is one text; write a conversation as 'messages'");
        else if (!strcmp(key.bytes, "completion"))
            an_lines_string(json, &m->completion, "'completion' is one text; write a conversation as 'messages'");
        else if (!strcmp(key.bytes, "messages")) {
            if (m->has_messages) an_json_refuse(json, json->at, "'messages' appears twice");
            m->has_messages = true;
            m->messages_at = json->at;
            AN_TRY_RETURN(read_messages(r, json));
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

static an_status add_conversation(reading *r, const members *m) {
    an_context *ctx = r->ctx;
    int64_t count = 0;
    if (!r->source->format)
        return an_lines_refuse(
            r->lines, r->record, m->messages_at,
            r->source->no_format ? r->source->no_format
                                 : "this is a conversation, but nothing says how the model writes one; give a template",
            "");
    AN_TRY_RETURN(an_grow(ctx, (void **)&r->spans, &r->span_capacity, r->message_count, sizeof *r->spans));
    const an_status status =
        an_chat_write(&r->text, r->source->format, r->messages, (int64_t)r->message_count, false, r->spans, &count);
    if (status == AN_ERR_MEMORY) return status;
    if (status != AN_OK) return an_lines_refuse(r->lines, r->record, m->messages_at, an_last_error(ctx), "");
    return an_tokenized_add(&r->pieces->tokenized, r->text.bytes, r->text.length, r->spans, count, false);
}

static an_status add_completion(reading *r, const members *m) {
    an_chat_span span;
    an_text_bytes(&r->text, m->prompt.bytes, m->prompt.length);
    an_text_bytes(&r->text, m->completion.bytes, m->completion.length);
    if (r->text.status != AN_OK) return r->text.status;
    span = (an_chat_span){m->prompt.length, r->text.length};
    return an_tokenized_add(&r->pieces->tokenized, r->text.bytes, r->text.length, &span, 1, true);
}

static an_status add_text(reading *r, const members *m) {
    const an_chat_span span = {0, m->text.length};
    return an_tokenized_add(&r->pieces->tokenized, m->text.bytes, m->text.length, &span, 1, true);
}

/* Cuts what was added to a sample's length, and keeps it if there is something to learn. */
static an_status keep_piece(reading *r, size_t begin) {
    an_context *ctx = r->ctx;
    an_pieces *p = r->pieces;
    an_tokenized *t = &p->tokenized;
    const int64_t most = r->source->context + 1; /* the last token is only a target */
    int64_t length = (int64_t)(t->count - begin);
    p->all_tokens += length;
    if (length > most) {
        p->cut++;
        p->cut_tokens += length - most;
        length = most;
    }
    bool learns = false;
    for (int64_t i = 1; i < length; i++) {
        if (r->source->prompts) t->learned[begin + (size_t)i] = 1;
        learns = learns || t->learned[begin + (size_t)i];
    }
    t->count = begin + (learns ? (size_t)length : 0);
    if (!learns) {
        p->left_out++;
        return AN_OK;
    }
    AN_TRY_RETURN(an_grow(ctx, (void **)&p->pieces, &p->capacity, p->count + 1, sizeof *p->pieces));
    p->pieces[p->count++] = (an_piece){.begin = (int64_t)begin, .record = r->record, .length = (int32_t)length};
    return AN_OK;
}

static an_status read_record(reading *r) {
    an_context *ctx = r->ctx;
    an_json json;
    members m;
    const size_t begin = r->pieces->tokenized.count;
    AN_TRY_RETURN(an_lines_read(r->lines, r->record, &json));
    AN_TRY_RETURN(read_members(r, &json, &m));
    if (json.problem) return an_lines_refuse(r->lines, r->record, json.at, json.problem, "");
    r->text.length = 0;
    if (m.has_messages)
        AN_TRY_RETURN(add_conversation(r, &m));
    else if (m.prompt.bytes)
        AN_TRY_RETURN(add_completion(r, &m));
    else
        AN_TRY_RETURN(add_text(r, &m));
    return keep_piece(r, begin);
}

an_status an_pieces_read(an_pieces *pieces, an_context *ctx, const an_chat_source *source, an_lines *lines) {
    an_status status;
    reading r = {.ctx = ctx, .pieces = pieces, .source = source, .lines = lines};
    an_text_init(&r.text, ctx);
    *pieces = (an_pieces){.records = lines->last - lines->first};
    AN_TRY(an_tokenized_init(&pieces->tokenized, ctx, source->tokenizer));
    for (r.record = lines->first; r.record < lines->last; r.record++) AN_TRY(read_record(&r));
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

#include "text/chat/chat.h"

#include <string.h>

#include "base/guard.h"
#include "text/chat/record.h"
#include "text/structs.h"

static const an_chat_record *const templates[] = {
#define AN_CHAT(name) &an_chat_template_##name,
#include "text/chat/templates.def"
#undef AN_CHAT
};
enum { TEMPLATES = sizeof templates / sizeof *templates };

const an_chat_record *an_chat_record_at(int template) {
    return template >= 0 && template <TEMPLATES ? templates[template] : NULL;
}

const char *an_chat_template_name(int index) {
    const an_chat_record *record = an_chat_record_at(index);
    return record ? record->name : NULL;
}

const char *an_chat_token(an_chat_template type, int index) {
    return templates[type]->tokens[index];
}

static an_status write_all(an_chat_writing *w) {
    an_context *ctx = w->text->ctx;
    w->record = an_chat_record_at((int)w->format->type);
    if (!w->record)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "type is %d, which is not a value of an_chat_template",
                        (int)w->format->type);
    AN_TRY_RETURN(w->record->write(w));
    return w->text->status;
}

an_status an_chat_write(an_text *text, const an_chat_format *format, const an_chat_message *messages, int64_t count,
                        bool prompt, an_chat_span *spans, int64_t *span_count) {
    an_chat_writing w = {
        .text = text, .format = format, .messages = messages, .count = count, .prompt = prompt, .spans = spans};
    const an_status status = write_all(&w);
    if (span_count) *span_count = w.span_count;
    return status;
}

an_status an_chat_write_tokens(an_text *text, const an_chat_format *format, const an_chat_message *messages,
                               int64_t count, bool prompt, an_chat_span *tokens, int64_t *token_count) {
    an_chat_writing w = {
        .text = text, .format = format, .messages = messages, .count = count, .prompt = prompt, .tokens = tokens};
    const an_status status = write_all(&w);
    *token_count = w.token_count;
    return status;
}

an_status an_chat_check(an_context *ctx, const an_chat_message *messages, int64_t count) {
    an_status status;
    AN_CHECK(ctx, count >= 0 && (count == 0 || messages), AN_ERR_ARGUMENT,
             "messages is NULL, or its count of %lld below 0", (long long)count);
    for (int64_t i = 0; i < count; i++)
        AN_CHECK(ctx, messages[i].role && messages[i].content, AN_ERR_ARGUMENT, "message %lld: role or content is NULL",
                 (long long)i + 1);
    return AN_OK;
fail:
    return status;
}

const char *an_chat_end(const an_chat_format *format) {
    AN_NEED_OR(NULL, format);
    an_chat_format own;
    if (an_chat_format_read(NULL, &own, format) != AN_OK) return NULL;
    const an_chat_record *record = an_chat_record_at((int)own.type);
    if (!record || record->ends_with_eos) return record ? own.eos : NULL;
    const char *last = NULL;
    for (int i = 0; record->tokens[i]; i++) last = record->tokens[i];
    return last;
}

an_status an_chat_render(an_context *ctx, const an_chat_format *format, const an_chat_message *messages, int64_t count,
                         bool prompt, char *text, size_t capacity, size_t *length) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, format, length);
    an_status status;
    an_chat_format own;
    an_text written;
    an_text_init(&written, ctx);
    AN_TRY(an_chat_format_read(ctx, &own, format));
    AN_TRY(an_chat_check(ctx, messages, count));
    AN_CHECK(ctx, capacity == 0 || text, AN_ERR_ARGUMENT, "text is NULL, but its capacity is %zu", capacity);
    AN_TRY(an_chat_write(&written, &own, messages, count, prompt, NULL, NULL));
    *length = written.length;
    const size_t copied = written.length < capacity ? written.length : capacity;
    if (copied > 0) memcpy(text, written.bytes, copied);
    status = AN_OK;
fail:
    an_text_destroy(&written);
    return status;
}

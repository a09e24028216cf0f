/* Tokens of a conversation, in which only the template makes special tokens. */
#include "base/guard.h"
#include "text/chat/chat.h"
#include "text/encoder.h"
#include "text/structs.h"

static an_status add_text(an_context *ctx, an_encoder *e, const an_text *text, size_t begin, size_t end) {
    if (begin == end || an_encoder_add_text(e, (an_bytes){text->bytes + begin, end - begin}) == AN_OK) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s", e->error);
}

static an_status add_token(an_context *ctx, an_encoder *e, const an_chat_format *format, const char *token,
                           size_t length) {
    const int32_t id = an_tokenizer_id(e->tokenizer, token, length);
    if (id < 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "the tokenizer has no token '%.*s', which the chat template %s needs; choose another template",
                        (int)length, token, an_chat_template_name((int)format->type));
    return an_encoder_add_token(e, id) == AN_OK ? AN_OK : AN_ERROR(ctx, AN_ERR_MEMORY, "%s", e->error);
}

/* Text between two tokens is encoded as one, as it is when the whole conversation is. */
static an_status encode(an_context *ctx, an_encoder *e, const an_chat_format *format, const an_text *text,
                        const an_chat_span *tokens, int64_t count) {
    size_t done = 0;
    an_encoder_clear(e);
    for (int64_t i = 0; i < count; i++) {
        AN_TRY_RETURN(add_text(ctx, e, text, done, tokens[i].begin));
        done = tokens[i].end;
        AN_TRY_RETURN(add_token(ctx, e, format, text->bytes + tokens[i].begin, done - tokens[i].begin));
    }
    return add_text(ctx, e, text, done, text->length);
}

an_status an_chat_encode(an_context *ctx, an_encoder *encoder, const an_chat_format *format,
                         const an_chat_message *messages, int64_t count, bool prompt, const int32_t **tokens,
                         int64_t *token_count) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, encoder, format, tokens, token_count);
    an_status status;
    an_chat_format own;
    an_text text;
    an_chat_span *marks = NULL;
    int64_t mark_count = 0;
    size_t room = 0;
    an_text_init(&text, ctx);
    *tokens = NULL;
    *token_count = 0;
    AN_TRY(an_chat_format_read(ctx, &own, format));
    AN_TRY(an_chat_check(ctx, messages, count));
    room = ((size_t)count + 2) * AN_CHAT_TOKENS;
    AN_TRY(an_alloc(ctx, (void **)&marks, room, sizeof *marks));
    AN_TRY(an_chat_write_tokens(&text, &own, messages, count, prompt, marks, &mark_count));
    AN_TRY(encode(ctx, encoder, &own, &text, marks, mark_count));
    *tokens = encoder->result.ids;
    *token_count = (int64_t)encoder->result.count;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&marks, room, sizeof *marks);
    an_text_destroy(&text);
    return status;
}

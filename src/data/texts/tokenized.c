#include "data/texts/tokenized.h"

#include <string.h>

static an_status push(an_tokenized *t, int32_t token, bool learned) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_grow(ctx, (void **)&t->tokens, &t->token_capacity, t->count + 1, sizeof *t->tokens));
    AN_TRY_RETURN(an_grow(ctx, (void **)&t->learned, &t->learned_capacity, t->count + 1, sizeof *t->learned));
    t->tokens[t->count] = token;
    t->learned[t->count++] = learned;
    return AN_OK;
}

static an_status encode(an_tokenized *t, const char *text, size_t length, bool special, const int32_t **tokens,
                        int64_t *count) {
    an_encode_options options;
    an_encode_options_init(&options, sizeof options);
    options.special = special;
    const an_status status = an_encoder_run(t->encoder, text, length, &options, tokens, count);
    return status == AN_OK ? AN_OK : AN_ERROR(t->ctx, status, "%s", an_last_error(NULL));
}

/* ---- what stands around a text ---- */

/* The tokens of a short text with and without what is around it tell the difference. */
static an_status find_around(an_tokenized *t) {
    static const char text[] = "a";
    an_context *ctx = t->ctx;
    enum { MOST = 16 };
    int32_t plain[MOST];
    const int32_t *tokens;
    int64_t count, own;
    AN_TRY_RETURN(encode(t, text, 1, false, &tokens, &own));
    if (own > MOST) return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the tokenizer makes %lld tokens of 'a'", (long long)own);
    memcpy(plain, tokens, (size_t)own * sizeof *plain);
    AN_TRY_RETURN(encode(t, text, 1, true, &tokens, &count));
    int64_t at = 0;
    while (at + own <= count && memcmp(tokens + at, plain, (size_t)own * sizeof *plain) != 0) at++;
    if (at + own > count || at > AN_MOST_AROUND || count - at - own > AN_MOST_AROUND)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the tokenizer does not keep a text as it is between special tokens");
    t->before_count = (int)at;
    t->after_count = (int)(count - at - own);
    memcpy(t->before, tokens, (size_t)at * sizeof *tokens);
    memcpy(t->after, tokens + at + own, (size_t)t->after_count * sizeof *tokens);
    return AN_OK;
}

an_status an_tokenized_init(an_tokenized *t, an_context *ctx, const an_tokenizer *tokenizer) {
    an_status status;
    *t = (an_tokenized){.ctx = ctx, .tokenizer = tokenizer};
    an_tokenizer_info_init(&t->info, sizeof t->info);
    AN_TRY(an_tokenizer_info_get(tokenizer, &t->info));
    AN_TRY(an_encoder_create(&t->encoder, tokenizer));
    AN_TRY(an_alloc(ctx, (void **)&t->bytes, (size_t)t->info.count, sizeof *t->bytes));
    AN_TRY(find_around(t));
    return AN_OK;
fail:
    an_tokenized_destroy(t);
    return status;
}

void an_tokenized_finish(an_tokenized *t) {
    an_encoder_destroy(&t->encoder);
    an_release(t->ctx, (void **)&t->bytes, (size_t)t->info.count, sizeof *t->bytes);
}

void an_tokenized_destroy(an_tokenized *t) {
    if (!t->ctx) return;
    an_tokenized_finish(t);
    an_release(t->ctx, (void **)&t->tokens, t->token_capacity, sizeof *t->tokens);
    an_release(t->ctx, (void **)&t->learned, t->learned_capacity, sizeof *t->learned);
}

/* ---- where tokens lie in their text ---- */

static an_status bytes_of(an_tokenized *t, int32_t token, size_t *bytes) {
    an_context *ctx = t->ctx;
    *bytes = 0;
    if (token < 0 || token >= t->info.count)
        return AN_ERROR(ctx, AN_ERR_STATE, "the tokenizer made the token %d, but it has %lld", (int)token,
                        (long long)t->info.count);
    if (t->bytes[token] == 0) {
        AN_TRY_RETURN(an_tokenizer_decode(t->tokenizer, &token, 1, true, NULL, 0, bytes));
        if (*bytes < INT32_MAX) t->bytes[token] = (int32_t)*bytes + 1;
        return AN_OK;
    }
    *bytes = (size_t)t->bytes[token] - 1;
    return AN_OK;
}

static bool touches(size_t begin, size_t end, const an_chat_span *spans, int64_t span_count) {
    for (int64_t i = 0; i < span_count; i++)
        if (begin < spans[i].end && end > spans[i].begin) return true;
    return false;
}

/* The bytes of the tokens, one after another, are the text, unless the tokenizer has changed it. *kept is false
 * then, and nothing is added. */
static an_status add_whole(an_tokenized *t, const char *text, size_t length, const an_chat_span *spans,
                           int64_t span_count, bool *kept) {
    const int32_t *tokens;
    int64_t count;
    size_t at = 0, bytes;
    AN_TRY_RETURN(encode(t, text, length, false, &tokens, &count));
    for (int64_t i = 0; i < count; i++, at += bytes) AN_TRY_RETURN(bytes_of(t, tokens[i], &bytes));
    *kept = at == length;
    at = 0;
    for (int64_t i = 0; i < count && *kept; i++, at += bytes) {
        AN_TRY_RETURN(bytes_of(t, tokens[i], &bytes));
        AN_TRY_RETURN(push(t, tokens[i], touches(at, at + bytes, spans, span_count)));
    }
    return AN_OK;
}

static an_status add_piece(an_tokenized *t, const char *text, size_t length, bool learned) {
    const int32_t *tokens;
    int64_t count;
    if (length == 0) return AN_OK;
    AN_TRY_RETURN(encode(t, text, length, false, &tokens, &count));
    for (int64_t i = 0; i < count; i++) AN_TRY_RETURN(push(t, tokens[i], learned));
    return AN_OK;
}

/* A text that the tokenizer changes, such as by NFC, is cut where spans begin and end. */
static an_status add_pieces(an_tokenized *t, const char *text, size_t length, const an_chat_span *spans,
                            int64_t span_count) {
    size_t at = 0;
    for (int64_t i = 0; i < span_count; i++) {
        AN_TRY_RETURN(add_piece(t, text + at, spans[i].begin - at, false));
        AN_TRY_RETURN(add_piece(t, text + spans[i].begin, spans[i].end - spans[i].begin, true));
        at = spans[i].end;
    }
    return add_piece(t, text + at, length - at, false);
}

an_status an_tokenized_add(an_tokenized *t, const char *text, size_t length, const an_chat_span *spans,
                           int64_t span_count, bool around) {
    bool kept = true;
    for (int i = 0; i < t->before_count && around; i++) AN_TRY_RETURN(push(t, t->before[i], false));
    if (length > 0) AN_TRY_RETURN(add_whole(t, text, length, spans, span_count, &kept));
    if (!kept) AN_TRY_RETURN(add_pieces(t, text, length, spans, span_count));
    if (!around) return AN_OK;
    for (int i = 0; i < t->after_count; i++) AN_TRY_RETURN(push(t, t->after[i], true));
    const bool ended = t->after_count > 0 && t->after[t->after_count - 1] == t->info.eos;
    return t->info.eos >= 0 && !ended ? push(t, t->info.eos, true) : AN_OK;
}

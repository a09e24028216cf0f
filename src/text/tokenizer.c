/* Making a tokenizer of its parts, and asking it. */
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "text/encoder.h"
#include "text/normalize.h"
#include "text/structs.h"
#include "text/unicode.h"

/* ---- bytes as characters ---- */

static bool is_own_character(unsigned b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
}

/* The other 68 are U+0100 and what follows, in order. */
uint32_t an_byte_character(unsigned char byte) {
    uint32_t before = 0;
    if (is_own_character(byte)) return byte;
    for (unsigned b = 0; b < byte; b++) before += !is_own_character(b);
    return 256 + before;
}

static int byte_of(uint32_t c) {
    if (c < 256) return is_own_character(c) ? (int)c : -1;
    if (c >= 256 + 68) return -1;
    unsigned byte = 0;
    for (uint32_t left = c - 256;; byte++)
        if (!is_own_character(byte) && left-- == 0) return (int)byte;
}

bool an_byte_level_bytes(const char *text, size_t length, char *to, size_t *bytes) {
    *bytes = 0;
    for (size_t at = 0; at < length;) {
        const int byte = byte_of(an_character_next(text, &at));
        if (byte < 0) return false;
        to[(*bytes)++] = (char)byte;
    }
    return true;
}

/* ---- making ---- */

an_status an_steps_add(an_context *ctx, an_steps *s, const an_step *step) {
    AN_TRY_RETURN(an_grow(ctx, (void **)&s->steps, &s->capacity, s->count + 1, sizeof *s->steps));
    s->steps[s->count++] = *step;
    return AN_OK;
}

void an_steps_release(an_context *ctx, an_steps *s) {
    for (size_t i = 0; i < s->count; i++) an_matcher_release(&s->steps[i].matcher);
    an_release(ctx, (void **)&s->steps, s->capacity, sizeof *s->steps);
}

an_status an_template_add(an_context *ctx, an_template *t, an_template_kind kind, int32_t token, int32_t type) {
    AN_TRY_RETURN(an_grow(ctx, (void **)&t->parts, &t->capacity, t->count + 1, sizeof *t->parts));
    t->parts[t->count++] = (an_template_part){kind, token, type};
    return AN_OK;
}

an_status an_tokenizer_begin(an_tokenizer **tokenizer, an_context *ctx) {
    an_tokenizer *t = NULL;
    *tokenizer = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    t->ctx = ctx;
    t->bos = t->eos = t->unk = t->pad = t->model_unk = AN_NO_TOKEN;
    for (int i = 0; i < 256; i++) t->byte_tokens[i] = AN_NO_TOKEN;
    an_arena_init(&t->arena, ctx);
    *tokenizer = t;
    return AN_OK;
}

void an_tokenizer_destroy(an_tokenizer **tokenizer) {
    if (!tokenizer || !*tokenizer) return;
    an_tokenizer *t = *tokenizer;
    an_context *ctx = t->ctx;
    an_vocabulary_release(ctx, &t->vocabulary);
    an_steps_release(ctx, &t->normalizers);
    an_steps_release(ctx, &t->splitters);
    an_steps_release(ctx, &t->decoders);
    for (int i = 0; i < AN_ADDED_STAGES; i++) an_added_tokens_release(ctx, &t->added[i]);
    an_release(ctx, (void **)&t->single.parts, t->single.capacity, sizeof *t->single.parts);
    an_release(ctx, (void **)&t->pair.parts, t->pair.capacity, sizeof *t->pair.parts);
    an_release(ctx, (void **)&t->text, t->text_bytes, 1);
    an_arena_destroy(&t->arena);
    an_release(ctx, (void **)tokenizer, 1, sizeof *t);
}

an_status an_tokenizer_put(an_tokenizer *t, int64_t id, const char *text, size_t length, int64_t maximum) {
    an_context *ctx = t->ctx;
    an_vocabulary *v = &t->vocabulary;
    if (id < 0 || id > maximum)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "the id %lld of a token is not possible in a file of this size",
                        (long long)id);
    AN_TRY_RETURN(an_grow(ctx, (void **)&v->tokens, &v->capacity, (size_t)id + 1, sizeof *v->tokens));
    if ((size_t)id >= v->count) v->count = (size_t)id + 1;
    an_token *token = &v->tokens[id];
    if (token->text && (token->text_length != length || memcmp(token->text, text, length) != 0))
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "two tokens have the id %lld", (long long)id);
    *token = (an_token){.text = text, .bytes = text, .text_length = (uint32_t)length, .byte_length = (uint32_t)length};
    if (length > t->longest) t->longest = length;
    return AN_OK;
}

/* What tokens stand for, where their texts are bytes written as characters. */
static an_status find_bytes(an_tokenizer *t) {
    an_vocabulary *v = &t->vocabulary;
    char *bytes = NULL;
    size_t total = 0;
    for (size_t i = 0; i < v->count; i++) total += v->tokens[i].text_length;
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&bytes, total + 1, 1));
    for (size_t i = 0; i < v->count; i++) {
        an_token *token = &v->tokens[i];
        size_t length;
        if (!token->text || !an_byte_level_bytes(token->text, token->text_length, bytes, &length)) continue;
        token->bytes = bytes;
        token->byte_length = (uint32_t)length;
        bytes += length;
    }
    for (int i = 0; i < 256; i++) {
        char character[AN_UTF8_MOST];
        const size_t length = an_character_put(an_byte_character((unsigned char)i), character);
        const int32_t token = an_index_find(&v->by_text, v, character, length);
        t->byte_tokens[i] = token == AN_NO_TOKEN || v->tokens[token].added ? AN_NO_TOKEN : token;
    }
    return AN_OK;
}

static void find_fallback(an_tokenizer *t) {
    for (int i = 0; i < 256; i++) {
        char text[8];
        const int length = snprintf(text, sizeof text, "<0x%02X>", (unsigned)i);
        t->byte_tokens[i] = an_index_find(&t->vocabulary.by_text, &t->vocabulary, text, (size_t)length);
    }
}

an_status an_tokenizer_index(an_tokenizer *t, uint64_t seed) {
    an_context *ctx = t->ctx;
    an_vocabulary *v = &t->vocabulary;
    AN_TRY_RETURN(an_index_make(ctx, &v->by_text, v, false, seed));
    if (t->byte_level)
        AN_TRY_RETURN(find_bytes(t));
    else if (t->byte_fallback)
        find_fallback(t);
    if (!t->byte_level || t->ignore_merges) AN_TRY_RETURN(an_index_make(ctx, &v->by_bytes, v, true, seed));
    return AN_OK;
}

static an_status merge_part(const an_tokenizer *t, an_bytes text, uint32_t rank, int32_t *token) {
    an_context *ctx = t->ctx;
    *token = an_index_find(&t->vocabulary.by_text, &t->vocabulary, text.bytes, text.length);
    if (*token != AN_NO_TOKEN) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_DAMAGED, "merge %lu: '%.*s' is not in the vocabulary", (unsigned long)rank + 1,
                    (int)(text.length < 40 ? text.length : 40), text.bytes);
}

an_status an_tokenizer_merge(an_tokenizer *t, an_bytes left, an_bytes right, uint32_t rank) {
    enum { MOST = 4096 }; /* bytes of a token that merges make */
    an_context *ctx = t->ctx;
    char both[MOST];
    int32_t tokens[3];
    if (left.length + right.length > MOST)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "merge %lu makes a token of more than %d bytes",
                        (unsigned long)rank + 1, MOST);
    memcpy(both, left.bytes, left.length);
    memcpy(both + left.length, right.bytes, right.length);
    AN_TRY_RETURN(merge_part(t, left, rank, &tokens[0]));
    AN_TRY_RETURN(merge_part(t, right, rank, &tokens[1]));
    AN_TRY_RETURN(merge_part(t, (an_bytes){both, left.length + right.length}, rank, &tokens[2]));
    an_merges_put(&t->vocabulary.merges, tokens[0], tokens[1], rank, tokens[2]);
    return AN_OK;
}

/* The contents of tokens that are looked for in the normalized text are normalized too. */
static an_status normalize_content(an_tokenizer *t, an_encoder *e, an_added_token *token) {
    an_context *ctx = t->ctx;
    an_bytes content;
    const char *copy;
    an_text_normalize_begin(e, token->content.length);
    const an_status status = an_text_normalize(e, token->content, &content);
    if (status) return AN_ERROR(ctx, status, "%s", e->error);
    AN_TRY_RETURN(an_arena_string(&t->arena, &copy, content.bytes, content.length));
    token->content = (an_bytes){copy, content.length};
    return AN_OK;
}

an_status an_tokenizer_finish(an_tokenizer *t, const an_added_token *added, size_t count) {
    an_context *ctx = t->ctx;
    an_status status;
    an_added_token *of_stage = NULL;
    an_encoder *e = NULL;
    AN_TRY(an_alloc(ctx, (void **)&of_stage, count, sizeof *of_stage));
    AN_TRY(an_encoder_create(&e, t));
    for (int stage = 0; stage < AN_ADDED_STAGES; stage++) {
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
            if (added[i].normalized != (stage == AN_ADDED_NORMALIZED)) continue;
            an_added_token *token = &of_stage[n++];
            *token = added[i];
            if (token->normalized) AN_TRY(normalize_content(t, e, token));
            AN_CHECK(ctx, token->content.length <= AN_ADDED_LONGEST, AN_ERR_UNSUPPORTED,
                     "an added token has more than %d bytes", AN_ADDED_LONGEST);
        }
        AN_TRY(an_added_tokens_make(ctx, &t->added[stage], of_stage, n));
    }
    for (size_t i = 0; i < count; i++) {
        an_token *token = &t->vocabulary.tokens[added[i].id];
        token->special |= added[i].special;
        token->bytes = token->text; /* it is what it says, also among bytes */
        token->byte_length = token->text_length;
    }
    status = AN_OK;
fail:
    an_encoder_destroy(&e);
    an_release(ctx, (void **)&of_stage, count, sizeof *of_stage);
    return status;
}

/* ---- asking ---- */

an_status an_tokenizer_info_get(const an_tokenizer *tokenizer, an_tokenizer_info *info) {
    const an_tokenizer *t = tokenizer;
    AN_NEED(tokenizer, info);
    an_tokenizer_info own = {.size = sizeof own,
                             .count = (int64_t)t->vocabulary.count,
                             .bos = t->bos,
                             .eos = t->eos,
                             .unk = t->unk,
                             .pad = t->pad,
                             .model = t->model == AN_TEXT_BPE ? "bpe" : "wordpiece",
                             .lossless = t->byte_level && t->normalizers.count == 0};
    for (int i = 0; i < 256 && t->byte_level; i++) own.lossless &= t->byte_tokens[i] != AN_NO_TOKEN;
    return an_tokenizer_info_write(t->ctx, info, &own);
}

static const an_token *token_of(const an_tokenizer *t, int32_t id) {
    if (id < 0 || (size_t)id >= t->vocabulary.count) return NULL;
    const an_token *token = &t->vocabulary.tokens[id];
    return token->text ? token : NULL;
}

const char *an_tokenizer_token(const an_tokenizer *tokenizer, int32_t id, size_t *length) {
    AN_NEED_OR(NULL, tokenizer);
    const an_token *token = token_of(tokenizer, id);
    if (length) *length = token ? token->text_length : 0;
    return token ? token->text : NULL;
}

int32_t an_tokenizer_id(const an_tokenizer *tokenizer, const char *token, size_t length) {
    AN_NEED_OR(AN_NO_TOKEN, tokenizer, token);
    return an_index_find(&tokenizer->vocabulary.by_text, &tokenizer->vocabulary, token, length);
}

bool an_tokenizer_is_special(const an_tokenizer *tokenizer, int32_t id) {
    AN_NEED_OR(false, tokenizer);
    const an_token *token = token_of(tokenizer, id);
    return token && token->special;
}

/* Makes a tokenizer from texts: words are counted by threads, then merges are found, then tokenizer.json is written. */
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/parallel.h"
#include "base/text/text.h"
#include "text/bpe_merges.h"
#include "text/describe.h"
#include "text/encoder.h"
#include "text/structs.h"
#include "text/unicode.h"

enum { BYTES = 256, MOST_TOKENS = 1 << 24 };

struct an_bpe_trainer {
    an_context *ctx;
    an_arena arena;
    an_bpe_options options;
    const char **special;
    an_words reserved; /* special tokens, by the bytes that they would be in a text */
    unsigned char bytes[BYTES];
    an_tokenizer *tokenizer; /* of single bytes: it cuts texts into words */
    int threads;
    an_encoder **encoders; /* of each thread */
    an_words *counts;
};

/* ---- what the tokenizer is made of ---- */

/* The characters that stand for the bytes of a token, in memory of the trainer. */
static an_status text_of(an_bpe_trainer *t, const an_words *tokens, size_t token, const char **text) {
    const an_word *w = &tokens->words[token];
    char *to = NULL;
    size_t length = 0;
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&to, 2 * (size_t)w->length + AN_UTF8_MOST + 1, 1));
    for (size_t i = 0; i < w->length; i++)
        length += an_character_put(an_byte_character((unsigned char)tokens->bytes[w->begin + i]), to + length);
    to[length] = 0;
    *text = to;
    return AN_OK;
}

static an_status text_of_merge(an_bpe_trainer *t, const char *left, const char *right, const char **text) {
    char *to = NULL;
    const size_t bytes = strlen(left) + strlen(right) + 2;
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&to, bytes, 1));
    snprintf(to, bytes, "%s %s", left, right);
    *text = to;
    return AN_OK;
}

/* Special tokens come first, then those of bytes, then those of merges. */
static an_status make_parts(an_bpe_trainer *t, const an_bpe_merges *m, an_tokenizer_parts *parts) {
    const size_t first = (size_t)t->options.special_count, count = first + m->tokens.count;
    const char **tokens = NULL, **merges = NULL;
    int32_t *types = NULL;
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&tokens, count, sizeof *tokens));
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&types, count, sizeof *types));
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&merges, m->count + 1, sizeof *merges));
    for (size_t i = 0; i < count; i++) {
        types[i] = i < first ? AN_TOKEN_CONTROL : AN_TOKEN_NORMAL;
        if (i < first)
            tokens[i] = t->special[i];
        else
            AN_TRY_RETURN(text_of(t, &m->tokens, i - first, &tokens[i]));
    }
    for (size_t i = 0; i < m->count; i++)
        AN_TRY_RETURN(text_of_merge(t, tokens[first + (size_t)m->merges[i].left],
                                    tokens[first + (size_t)m->merges[i].right], &merges[i]));
    an_tokenizer_parts_init(parts, sizeof *parts);
    parts->model = "gpt2";
    parts->pre = t->options.pre;
    parts->tokens = tokens;
    parts->types = types;
    parts->merges = merges;
    parts->token_count = (int64_t)count;
    parts->merge_count = (int64_t)m->count;
    return AN_OK;
}

/* ---- making a trainer ---- */

/* Bytes in the order of the characters that stand for them, which the ids of their tokens have. */
static void order_bytes(unsigned char bytes[BYTES]) {
    for (int i = 0; i < BYTES; i++) {
        int at = i;
        for (; at > 0 && an_byte_character(bytes[at - 1]) > an_byte_character((unsigned char)i); at--)
            bytes[at] = bytes[at - 1];
        bytes[at] = (unsigned char)i;
    }
}

static an_status take_special(an_bpe_trainer *t, const an_bpe_options *o) {
    an_status status;
    an_context *ctx = t->ctx;
    an_words seen = {.count = 0};
    AN_TRY(an_arena_alloc(&t->arena, (void **)&t->special, (size_t)o->special_count + 1, sizeof *t->special));
    for (int64_t i = 0; i < o->special_count; i++) {
        const char *text = o->special ? o->special[i] : NULL;
        const size_t length = text ? strlen(text) : 0;
        char *bytes = NULL;
        size_t count = 0;
        AN_CHECK(ctx, length > 0 && an_utf8_valid_bytes(text, length) == length, AN_ERR_ARGUMENT,
                 "special token %lld is NULL, empty, or not UTF-8", (long long)i + 1);
        AN_CHECK(ctx, an_words_find(&seen, text, length) < 0, AN_ERR_ARGUMENT, "the special token '%s' appears twice",
                 AN_QUOTE(text));
        AN_TRY(an_arena_string(&t->arena, &t->special[i], text, length));
        AN_TRY(an_arena_alloc(&t->arena, (void **)&bytes, length, 1));
        AN_CHECK(ctx, an_words_add(&seen, text, length, 0), AN_ERR_MEMORY, "out of memory for special tokens");
        if (!an_byte_level_bytes(text, length, bytes, &count)) continue; /* no merge can make it */
        AN_CHECK(ctx, count > 1, AN_ERR_ARGUMENT, "the special token '%s' is the token of a byte", AN_QUOTE(text));
        AN_CHECK(ctx, an_words_add(&t->reserved, bytes, count, 0), AN_ERR_MEMORY, "out of memory for special tokens");
    }
    status = AN_OK;
fail:
    an_words_release(&seen);
    return status;
}

/* A tokenizer without merges, of what would be written: words are those that its users will have. */
static an_status make_splitter(an_bpe_trainer *t) {
    an_status status;
    an_context *ctx = t->ctx;
    an_tokenizer_parts parts;
    an_bpe_merges none = {.count = 0};
    const an_words words = {.count = 0};
    AN_CHECK(ctx, an_bpe_merges_find(&none, &words, t->bytes, &t->reserved, BYTES, 1), AN_ERR_MEMORY,
             "out of memory for the tokens of bytes");
    AN_TRY(make_parts(t, &none, &parts));
    AN_TRY(an_tokenizer_create_parts(&t->tokenizer, ctx, &parts));
    status = AN_OK;
fail:
    an_bpe_merges_release(&none);
    return status;
}

static an_status make_counters(an_bpe_trainer *t) {
    an_context *ctx = t->ctx;
    t->threads = an_context_threads(ctx);
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&t->encoders, (size_t)t->threads, sizeof *t->encoders));
    AN_TRY_RETURN(an_arena_alloc(&t->arena, (void **)&t->counts, (size_t)t->threads, sizeof *t->counts));
    memset(t->encoders, 0, (size_t)t->threads * sizeof *t->encoders);
    memset(t->counts, 0, (size_t)t->threads * sizeof *t->counts);
    for (int i = 0; i < t->threads; i++) {
        if (an_encoder_create(&t->encoders[i], t->tokenizer) != AN_OK)
            return AN_ERROR(ctx, AN_ERR_MEMORY, "%s", an_last_error(NULL));
        t->encoders[i]->counts = &t->counts[i];
    }
    return AN_OK;
}

static an_status check_options(an_context *ctx, const an_bpe_options *o) {
    an_status status;
    AN_CHECK(ctx, an_pre_find(o->pre), AN_ERR_UNSUPPORTED,
             "the pre-tokenizer '%s' is not supported: gpt-2, smollm, llama-bpe and qwen2 are", AN_QUOTE(o->pre));
    AN_CHECK(ctx, o->special_count >= 0 && o->special_count <= MOST_TOKENS && (o->special_count == 0 || o->special),
             AN_ERR_ARGUMENT, "special is NULL, or its count of %lld is not possible", (long long)o->special_count);
    AN_CHECK(ctx, o->vocabulary >= BYTES + o->special_count && o->vocabulary <= MOST_TOKENS, AN_ERR_ARGUMENT,
             "the vocabulary has %lld tokens, but must have %lld (256 bytes and the special tokens) to %d",
             (long long)o->vocabulary, (long long)(BYTES + o->special_count), MOST_TOKENS);
    AN_CHECK(ctx, o->minimum >= 1, AN_ERR_ARGUMENT, "least is %lld, but must be 1 or more", (long long)o->minimum);
    return AN_OK;
fail:
    return status;
}

an_status an_bpe_trainer_create(an_bpe_trainer **trainer, an_context *ctx, const an_bpe_options *options) {
    AN_GUARD;
    AN_NEED_IN(ctx, trainer, ctx, options);
    an_status status;
    an_bpe_trainer *t = NULL;
    an_bpe_options o;
    *trainer = NULL;
    AN_TRY(an_bpe_options_read(ctx, &o, options));
    AN_TRY(check_options(ctx, &o));
    AN_TRY(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    t->ctx = ctx;
    t->options = o;
    an_arena_init(&t->arena, ctx);
    if (o.pre) AN_TRY(an_arena_string(&t->arena, &t->options.pre, o.pre, strlen(o.pre)));
    order_bytes(t->bytes);
    AN_TRY(take_special(t, &o));
    AN_TRY(make_splitter(t));
    AN_TRY(make_counters(t));
    *trainer = t;
    return AN_OK;
fail:
    an_bpe_trainer_destroy(&t);
    return status;
}

void an_bpe_trainer_destroy(an_bpe_trainer **trainer) {
    if (!trainer || !*trainer) return;
    an_bpe_trainer *t = *trainer;
    an_context *ctx = t->ctx;
    for (int i = 0; t->counts && i < t->threads; i++) {
        an_encoder_destroy(&t->encoders[i]);
        an_words_release(&t->counts[i]);
    }
    an_words_release(&t->reserved);
    an_tokenizer_destroy(&t->tokenizer);
    an_arena_destroy(&t->arena);
    an_release(ctx, (void **)trainer, 1, sizeof *t);
}

/* ---- training ---- */

typedef struct {
    an_bpe_trainer *trainer;
    const char *const *texts;
    const size_t *lengths;
    an_status *failed; /* of each thread */
} counting;

static void count_words(void *user, int64_t index, int thread) {
    const counting *c = user;
    an_encoder *e = c->trainer->encoders[thread];
    if (c->failed[thread] != AN_OK) return;
    an_encoder_clear(e);
    c->failed[thread] = an_encoder_add_text(e, (an_bytes){c->texts[index], c->lengths[index]});
}

an_status an_bpe_trainer_add(an_bpe_trainer *trainer, const char *const *texts, const size_t *lengths, int64_t count) {
    AN_GUARD;
    AN_NEED_IN(AN_CONTEXT_OF(trainer), trainer, texts, lengths);
    an_status status;
    an_context *ctx = trainer->ctx;
    counting c = {.trainer = trainer, .texts = texts, .lengths = lengths};
    AN_CHECK(ctx, count >= 0, AN_ERR_ARGUMENT, "the count of texts is %lld", (long long)count);
    for (int64_t i = 0; i < count; i++)
        AN_CHECK(ctx, texts[i] || lengths[i] == 0, AN_ERR_ARGUMENT, "text %lld is NULL", (long long)i + 1);
    AN_TRY(an_alloc(ctx, (void **)&c.failed, (size_t)trainer->threads, sizeof *c.failed));
    an_parallel(ctx, count, count_words, &c);
    for (int i = 0; i < trainer->threads; i++)
        AN_CHECK(ctx, c.failed[i] == AN_OK, c.failed[i], "%s", trainer->encoders[i]->error);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&c.failed, (size_t)trainer->threads, sizeof *c.failed);
    return status;
}

/* All words, with the first thread's. */
static an_status join_counts(an_bpe_trainer *t) {
    for (int i = 1; i < t->threads; i++) {
        const an_words *from = &t->counts[i];
        for (size_t k = 0; k < from->count; k++)
            if (!an_words_add(&t->counts[0], from->bytes + from->words[k].begin, from->words[k].length,
                              from->words[k].count))
                return AN_ERROR(t->ctx, AN_ERR_MEMORY, "out of memory for %zu words", t->counts[0].count);
        an_words_release(&t->counts[i]);
    }
    return AN_OK;
}

an_status an_bpe_trainer_run(an_bpe_trainer *trainer, char **json, int64_t *tokens) {
    AN_GUARD;
    AN_NEED_IN(AN_CONTEXT_OF(trainer), trainer, json);
    an_status status;
    an_bpe_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_bpe_merges merges = {.count = 0};
    an_tokenizer_parts parts;
    an_text text;
    an_text_init(&text, ctx);
    *json = NULL;
    AN_TRY(join_counts(t));
    AN_CHECK(ctx,
             an_bpe_merges_find(&merges, &t->counts[0], t->bytes, &t->reserved,
                                t->options.vocabulary - t->options.special_count, t->options.minimum),
             AN_ERR_MEMORY, "out of memory: there are %zu different words", t->counts[0].count);
    AN_TRY(make_parts(t, &merges, &parts));
    AN_TRY(an_tokenizer_write(&text, &parts));
    if (tokens) *tokens = t->options.special_count + (int64_t)merges.tokens.count;
    AN_TRY(an_text_take(&text, json));
    status = AN_OK;
fail:
    an_bpe_merges_release(&merges);
    an_text_destroy(&text);
    return status;
}

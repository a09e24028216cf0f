#include "text/encoder.h"

#include <stdlib.h>
#include <string.h>

#include "text/bpe.h"
#include "text/normalize.h"
#include "text/split.h"
#include "text/structs.h"
#include "text/unicode.h"
#include "text/wordpiece.h"
#include "text/words.h"

an_status an_encoder_create(an_encoder **encoder, const an_tokenizer *tokenizer) {
    AN_NEED_IN(tokenizer ? tokenizer->ctx : NULL, encoder, tokenizer);
    an_encoder *e = calloc(1, sizeof *e);
    *encoder = NULL;
    if (e && an_match_space_make(&e->space) && (e->cache = calloc(AN_CACHED_WORDS, sizeof *e->cache))) {
        e->tokenizer = tokenizer;
        *encoder = e;
        return AN_OK;
    }
    an_encoder_destroy(&e);
    return AN_ERROR(NULL, AN_ERR_MEMORY, "out of memory: an encoder needs %zu bytes",
                    sizeof *e + AN_CACHED_WORDS * sizeof *e->cache);
}

void an_encoder_destroy(an_encoder **encoder) {
    if (!encoder || !*encoder) return;
    an_encoder *e = *encoder;
    an_match_space_release(&e->space);
    an_characters *const texts[] = {&e->valid, &e->normal[0], &e->normal[1], &e->folded, &e->shaped, &e->key};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]->bytes);
    an_ids *const ids[] = {&e->tokens, &e->other, &e->result, &e->types};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) free(ids[i]->ids);
    for (int i = 0; i < 2; i++) free(e->pieces[i].pieces);
    free(e->points);
    free(e->symbols);
    free(e->heap);
    free(e->cache);
    free(e);
    *encoder = NULL;
}

const int32_t *an_encoder_types(const an_encoder *encoder) {
    AN_NEED_OR(NULL, encoder);
    return encoder->types.ids;
}

/* ---- words ---- */

static an_status add_tokens(an_encoder *e, const int32_t *tokens, size_t count) {
    an_ids *to = &e->tokens;
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&to->ids, &to->capacity, to->count + count, sizeof *to->ids));
    for (size_t i = 0; i < count; i++) to->ids[to->count + i] = tokens[i];
    to->count += count;
    return AN_OK;
}

static an_status add_word(an_encoder *e, const char *word, size_t length) {
    an_cached_word *cached = NULL;
    if (length <= AN_CACHED_BYTES) {
        cached = &e->cache[an_text_hash(word, length, 0) & (AN_CACHED_WORDS - 1)];
        if (cached->length == length && !memcmp(cached->word, word, length))
            return add_tokens(e, cached->tokens, (size_t)cached->count);
    }
    if (e->tokenizer->model == AN_TEXT_BPE)
        AN_STEP_TRY(an_bpe_word(e, word, length));
    else
        AN_STEP_TRY(an_wordpiece_word(e, word, length));
    if (cached && e->other.count <= AN_CACHED_TOKENS) {
        memcpy(cached->word, word, length);
        cached->length = (uint8_t)length;
        cached->count = (int32_t)e->other.count;
        for (size_t i = 0; i < e->other.count; i++) cached->tokens[i] = e->other.ids[i];
    }
    return add_tokens(e, e->other.ids, e->other.count);
}

static an_status add_words(an_encoder *e, an_bytes text) {
    const an_pieces *words;
    AN_STEP_TRY(an_text_split(e, text, &text, &words));
    for (size_t i = 0; i < words->count; i++) {
        const an_piece word = words->pieces[i];
        if (e->counts) {
            if (!an_words_add(e->counts, text.bytes + word.begin, word.end - word.begin, 1))
                return AN_NOTE(an_encoder_note(e), AN_ERR_MEMORY, "out of memory for the words of a text");
            continue;
        }
        AN_STEP_TRY(add_word(e, text.bytes + word.begin, word.end - word.begin));
    }
    return AN_OK;
}

/* ---- texts ---- */

typedef an_status text_function(an_encoder *e, an_bytes text, bool special);

/* The added tokens of one stage, and what is between them. */
static an_status add_between(an_encoder *e, an_added_stage stage, an_bytes text, bool special, text_function *between) {
    const an_added_tokens *added = &e->tokenizer->added[stage];
    an_added_match match = {.next = 0};
    size_t taken = 0;
    if (added->count == 0) return between(e, text, special);
    for (;;) {
        an_added_tokens_find(added, text.bytes, text.length, match.next, taken, special, &match);
        const size_t end = match.token ? match.begin : text.length;
        if (taken < end) AN_STEP_TRY(between(e, (an_bytes){text.bytes + taken, end - taken}, special));
        if (!match.token) return AN_OK;
        AN_STEP_TRY(an_ids_add(e, &e->tokens, match.token->id));
        taken = match.end;
    }
}

static an_status add_plain(an_encoder *e, an_bytes text, bool special) {
    (void)special;
    return add_words(e, text);
}

static an_status add_normalized(an_encoder *e, an_bytes text, bool special) {
    AN_STEP_TRY(an_text_normalize(e, text, &text));
    return add_between(e, AN_ADDED_NORMALIZED, text, special, add_plain);
}

/* The text with U+FFFD in the place of what is no character. */
static an_status repair(an_encoder *e, an_bytes *text) {
    size_t at = an_utf8_valid_bytes(text->bytes, text->length), begin = 0;
    if (at == text->length) return AN_OK;
    e->valid.length = 0;
    while (begin < text->length) {
        AN_STEP_TRY(an_characters_add(e, &e->valid, text->bytes + begin, at - begin));
        if (at == text->length) break;
        size_t length;
        bool partial;
        an_character_valid(text->bytes + at, text->length - at, &length, &partial);
        AN_STEP_TRY(an_characters_put(e, &e->valid, 0xfffd));
        begin = at + length;
        at = begin + an_utf8_valid_bytes(text->bytes + begin, text->length - begin);
    }
    *text = (an_bytes){e->valid.bytes, e->valid.length};
    return AN_OK;
}

static an_status encode(an_encoder *e, an_bytes text, bool special) {
    e->tokens.count = 0;
    AN_STEP_TRY(repair(e, &text));
    an_text_normalize_begin(e, text.length);
    return add_between(e, AN_ADDED_PLAIN, text, special, add_normalized);
}

/* ---- the call ---- */

static an_status add_result(an_encoder *e, const int32_t *tokens, size_t count, int32_t type) {
    an_ids *r = &e->result, *t = &e->types;
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&r->ids, &r->capacity, r->count + count, sizeof *r->ids));
    AN_STEP_TRY(an_encoder_reserve(e, (void **)&t->ids, &t->capacity, t->count + count, sizeof *t->ids));
    for (size_t i = 0; i < count; i++) r->ids[r->count++] = tokens[i], t->ids[t->count++] = type;
    return AN_OK;
}

void an_encoder_clear(an_encoder *e) {
    e->error[0] = 0;
    e->result.count = e->types.count = 0;
}

an_status an_encoder_add_text(an_encoder *e, an_bytes text) {
    if (text.length == 0) return AN_OK;
    if (text.length >= AN_MOST_TEXT)
        return AN_NOTE(an_encoder_note(e), AN_ERR_OVERFLOW, "a text has 2^31 bytes or more: encode it in parts");
    AN_STEP_TRY(encode(e, text, false));
    return add_result(e, e->tokens.ids, e->tokens.count, 0);
}

an_status an_encoder_add_token(an_encoder *e, int32_t token) {
    return add_result(e, &token, 1, 0);
}

static an_status run(an_encoder *e, an_bytes text, const an_encode_options *o) {
    static an_template_part plain_single[] = {{AN_TEMPLATE_FIRST, 0, 0}};
    static an_template_part plain_pair[] = {{AN_TEMPLATE_FIRST, 0, 0}, {AN_TEMPLATE_SECOND, 0, 1}};
    const an_template *template = o->pair ? &e->tokenizer->pair : &e->tokenizer->single;
    const an_template plain = o->pair ? (an_template){plain_pair, 2, 0} : (an_template){plain_single, 1, 0};
    if (template->count == 0) template = &plain;
    an_encoder_clear(e);
    for (size_t i = 0; i < template->count; i++) {
        const an_template_part *part = &template->parts[i];
        if (part->kind == AN_TEMPLATE_TOKEN) {
            if (o->special) AN_STEP_TRY(add_result(e, &part->token, 1, part->type));
            continue;
        }
        AN_STEP_TRY(encode(e, part->kind == AN_TEMPLATE_FIRST ? text : (an_bytes){o->pair, o->pair_length}, o->parse));
        AN_STEP_TRY(add_result(e, e->tokens.ids, e->tokens.count, part->type));
    }
    return AN_OK;
}

static an_status encode_given(an_encoder *e, an_bytes text, const an_encode_options *given) {
    an_encode_options options;
    e->error[0] = 0;
    if (an_encode_options_read(NULL, &options, given))
        return AN_NOTE(an_encoder_note(e), AN_ERR_ARGUMENT, "%s", an_last_error(NULL));
    if (text.length >= AN_MOST_TEXT || options.pair_length >= AN_MOST_TEXT)
        return AN_NOTE(an_encoder_note(e), AN_ERR_OVERFLOW, "a text has 2^31 bytes or more: encode it in parts");
    return run(e, text, &options);
}

an_status an_encoder_run(an_encoder *encoder, const char *text, size_t length, const an_encode_options *options,
                         const int32_t **tokens, int64_t *count) {
    an_encoder *e = encoder;
    AN_NEED_IN(NULL, encoder, text, tokens, count);
    *tokens = NULL;
    *count = 0;
    const an_status status = encode_given(e, (an_bytes){text, length}, options);
    if (status != AN_OK) return AN_ERROR(NULL, status, "%s", e->error);
    *tokens = e->result.ids;
    *count = (int64_t)e->result.count;
    return AN_OK;
}

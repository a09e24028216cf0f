/* Tokens to text. */
#include <stdlib.h>
#include <string.h>

#include "base/context.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

/* Takes what fits, and counts all. */
typedef struct sink {
    char *to;
    size_t capacity, length;
} sink;

static void put(sink *s, const char *bytes, size_t length) {
    if (s->length < s->capacity) {
        const size_t room = s->capacity - s->length;
        memcpy(s->to + s->length, bytes, length < room ? length : room);
    }
    s->length += length;
}

/* Where a text is. */
typedef struct progress {
    bool begun;     /* a token was decoded */
    int64_t strip;  /* how many characters at the beginning may still be left out */
    bool stripping; /* nothing else has been there */
} progress;

static progress progress_begin(const an_tokenizer *t) {
    progress p = {.begun = false};
    for (size_t i = 0; i < t->decoders.count; i++)
        if (t->decoders.steps[i].kind == AN_STEP_DECODE_STRIP) p.strip = t->decoders.steps[i].start, p.stripping = true;
    return p;
}

static bool begins_with(an_bytes text, const char *with) {
    const size_t length = strlen(with);
    return text.length >= length && !memcmp(text.bytes, with, length);
}

/* Whether the space before a word is left out: before marks, and the second half of contractions. */
static bool is_attached(an_bytes word) {
    static const char *const beginnings[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (begins_with(word, beginnings[i])) return true;
    return false;
}

static void put_wordpiece(const an_step *step, an_bytes token, bool first, sink *s) {
    if (!first) {
        if (step->text.length <= token.length && !memcmp(token.bytes, step->text.bytes, step->text.length)) {
            put(s, token.bytes + step->text.length, token.length - step->text.length);
            return;
        }
        if (!step->cleanup || !is_attached(token)) put(s, " ", 1);
    }
    put(s, token.bytes, token.length);
}

static int hexadecimal(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* <0x0A> */
static int fallback_byte(an_bytes token) {
    if (token.length != 6 || memcmp(token.bytes, "<0x", 3) != 0 || token.bytes[5] != '>') return -1;
    const int high = hexadecimal(token.bytes[3]), low = hexadecimal(token.bytes[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Leaves out what the beginning of a text has of the character that is stripped. */
static void put_stripped(const an_step *strip, progress *p, const char *bytes, size_t length, sink *s) {
    const an_bytes out = strip ? strip->text : AN_BYTES("");
    while (p->stripping && p->strip > 0 && out.length > 0 && length >= out.length &&
           !memcmp(bytes, out.bytes, out.length))
        bytes += out.length, length -= out.length, p->strip--;
    if (length > 0) p->stripping = false;
    put(s, bytes, length);
}

static void put_replaced(const an_step *replace, const an_step *strip, progress *p, an_bytes token, sink *s) {
    const an_matcher *m = replace ? &replace->matcher : NULL;
    for (size_t at = 0; at < token.length;) {
        bool found = false;
        size_t begin = token.length, end = token.length;
        if (m && m->length > 0)
            (void)an_matcher_find(m, NULL, token.bytes, token.length, at, &found, &begin, &end, (an_note){0});
        if (!found) begin = end = token.length;
        put_stripped(strip, p, token.bytes + at, begin - at, s);
        if (found) put_stripped(strip, p, replace->text.bytes, replace->text.length, s);
        at = end;
    }
}

static void put_steps(const an_tokenizer *t, progress *p, an_bytes token, sink *s) {
    const an_step *replace = NULL, *strip = NULL;
    bool bytes = false;
    for (size_t i = 0; i < t->decoders.count; i++) {
        const an_step *step = &t->decoders.steps[i];
        if (step->kind == AN_STEP_DECODE_REPLACE) replace = step;
        if (step->kind == AN_STEP_DECODE_STRIP) strip = step;
        bytes |= step->kind == AN_STEP_DECODE_BYTES;
    }
    const int byte = bytes ? fallback_byte(token) : -1;
    const char one = (char)byte;
    if (byte >= 0)
        put_stripped(strip, p, &one, 1, s);
    else
        put_replaced(replace, strip, p, token, s);
}

static void put_token(const an_tokenizer *t, progress *p, int32_t id, bool special, sink *s) {
    if (id < 0 || (size_t)id >= t->vocabulary.count) return;
    const an_token *token = &t->vocabulary.tokens[id];
    if (!token->text || (token->special && !special)) return;
    const bool first = !p->begun;
    p->begun = true;
    const an_step *step = t->decoders.count > 0 ? &t->decoders.steps[0] : NULL;
    if (!step) { /* words without anything between them */
        if (!first) put(s, " ", 1);
        put(s, token->text, token->text_length);
    } else if (step->kind == AN_STEP_DECODE_BYTE_LEVEL) {
        put(s, token->bytes, token->byte_length);
    } else if (step->kind == AN_STEP_DECODE_WORDPIECE) {
        put_wordpiece(step, (an_bytes){token->text, token->text_length}, first, s);
    } else {
        put_steps(t, p, (an_bytes){token->text, token->text_length}, s);
    }
}

an_status an_tokenizer_decode(const an_tokenizer *tokenizer, const int32_t *tokens, int64_t count, bool special,
                              char *text, size_t capacity, size_t *length) {
    AN_NEED(tokenizer, length);
    if (count < 0 || (count > 0 && !tokens) || (capacity > 0 && !text))
        return AN_ERROR(NULL, AN_ERR_ARGUMENT, "an_tokenizer_decode: tokens or text is NULL, or count is negative");
    sink s = {text, capacity, 0};
    progress p = progress_begin(tokenizer);
    for (int64_t i = 0; i < count; i++) put_token(tokenizer, &p, tokens[i], special, &s);
    *length = s.length;
    return AN_OK;
}

/* ---- as a stream ---- */

struct an_decoder {
    const an_tokenizer *tokenizer;
    bool special;
    progress progress;
    char *raw; /* the bytes of a character that is not whole, and those of the token */
    size_t raw_length, raw_capacity;
    char *text;
    size_t text_capacity;
};

an_status an_decoder_create(an_decoder **decoder, const an_tokenizer *tokenizer, bool special) {
    AN_NEED_IN(tokenizer ? tokenizer->ctx : NULL, decoder, tokenizer);
    an_decoder *d = calloc(1, sizeof *d);
    *decoder = d;
    if (!d) return AN_ERROR(NULL, AN_ERR_MEMORY, "out of memory: a decoder needs %zu bytes", sizeof *d);
    d->tokenizer = tokenizer;
    d->special = special;
    d->progress = progress_begin(tokenizer);
    return AN_OK;
}

void an_decoder_destroy(an_decoder **decoder) {
    if (!decoder || !*decoder) return;
    free((*decoder)->raw);
    free((*decoder)->text);
    free(*decoder);
    *decoder = NULL;
}

static bool grow(char **memory, size_t *capacity, size_t needed) {
    if (needed <= *capacity) return true;
    char *const grown = realloc(*memory, 2 * needed);
    if (!grown) return false;
    *memory = grown;
    *capacity = 2 * needed;
    return true;
}

/* Moves what is whole from the raw bytes to the text. */
static void take_characters(an_decoder *d, bool end, size_t *length) {
    size_t at = 0;
    *length = 0;
    while (at < d->raw_length) {
        size_t step;
        bool partial;
        const bool whole = an_character_valid(d->raw + at, d->raw_length - at, &step, &partial);
        if (!whole && partial && !end) break;
        if (whole)
            memcpy(d->text + *length, d->raw + at, step), *length += step;
        else
            *length += an_character_put(0xfffd, d->text + *length);
        at += step;
    }
    memmove(d->raw, d->raw + at, d->raw_length - at);
    d->raw_length -= at;
    d->text[*length] = 0;
}

/* A byte becomes three at most: U+FFFD. */
static an_status make_room(an_decoder *d, size_t raw) {
    if (grow(&d->raw, &d->raw_capacity, raw + 1) && grow(&d->text, &d->text_capacity, 3 * raw + 1)) return AN_OK;
    return AN_ERROR(NULL, AN_ERR_MEMORY, "out of memory: a token has %zu bytes", raw);
}

an_status an_decoder_push(an_decoder *decoder, int32_t token, const char **text, size_t *length) {
    an_decoder *d = decoder;
    AN_NEED_IN(NULL, decoder, text, length);
    progress p = d->progress;
    sink count = {NULL, 0, 0};
    put_token(d->tokenizer, &p, token, d->special, &count);
    const an_status status = make_room(d, d->raw_length + count.length);
    if (status) return status;
    sink s = {d->raw + d->raw_length, count.length, 0};
    put_token(d->tokenizer, &d->progress, token, d->special, &s);
    d->raw_length += s.length;
    take_characters(d, false, length);
    *text = d->text;
    return AN_OK;
}

an_status an_decoder_end(an_decoder *decoder, const char **text, size_t *length) {
    an_decoder *d = decoder;
    AN_NEED_IN(NULL, decoder, text, length);
    const an_status status = make_room(d, d->raw_length);
    if (status) return status;
    take_characters(d, true, length);
    d->progress = progress_begin(d->tokenizer);
    *text = d->text;
    return AN_OK;
}

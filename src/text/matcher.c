#include "text/matcher.h"

#include <string.h>

#include "text/unicode.h"

/* In classes, the characters with the property White_Space: PCRE2's \s has others, U+180E among them. */
#define WHITE_SPACE \
    "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
/* Oniguruma's \w: with letters in circles and squares, and the numbers of Latin-1. */
#define WORD                                                                                                        \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{" \
    "1f189}\\x{b2}\\x{b3}\\x{b9}\\x{"                                                                               \
    "bc}-\\x{be}"

enum {
    MOST_PATTERN = 4096,
    MATCH_LIMIT = 1 << 22, /* steps of one match; the patterns of published tokenizers take a few for each character */
    STACK_FIRST = 32 << 10,
    STACK_MOST = 1 << 20
};

typedef struct translation {
    char text[MOST_PATTERN * 2];
    size_t length;
} translation;

static bool put(translation *t, const char *text, size_t length) {
    if (length >= sizeof t->text - t->length) return false;
    memcpy(t->text + t->length, text, length);
    t->text[t->length += length] = 0;
    return true;
}

static bool put_text(translation *t, const char *text) {
    return put(t, text, strlen(text));
}

/* An escape, whose letter is at p[1]. Gives what is wrong, or NULL. */
static bool put_escape(translation *t, const char *p, bool in_class) {
    switch (p[1]) {
    case 's': return put_text(t, in_class ? WHITE_SPACE : "[" WHITE_SPACE "]");
    case 'S': return !in_class && put_text(t, "[^" WHITE_SPACE "]");
    case 'w': return put_text(t, in_class ? WORD : "[" WORD "]");
    case 'W': return !in_class && put_text(t, "[^" WORD "]");
    case 'd': return put_text(t, "\\p{Nd}");
    case 'D': return put_text(t, "\\P{Nd}");
    case 'p':
    case 'P':
    case 'r':
    case 'n':
    case 't':
    case 'f': return put(t, p, 2);
    default: return strchr("\\/.*+?()[]{}|^$-'\"#&~!,:;<>=@`%_ ", p[1]) != NULL && p[1] && put(t, p, 2);
    }
}

/* Oniguruma's syntax to PCRE2's. */
static an_status translate(translation *t, const char *pattern, size_t length, an_note note) {
    bool in_class = false, fits = true;
    if (length > MOST_PATTERN)
        return AN_NOTE(note, AN_ERR_UNSUPPORTED, "a pattern of %zu bytes is longer than %d", length, MOST_PATTERN);
    for (size_t i = 0; i < length && fits; i++) {
        const char c = pattern[i], next = i + 1 < length ? pattern[i + 1] : 0;
        if (c == '\\') {
            if (!next) return AN_NOTE(note, AN_ERR_PARSE, "a pattern ends in a backslash");
            if (!put_escape(t, pattern + i, in_class))
                return AN_NOTE(note, AN_ERR_UNSUPPORTED, "the pattern has '\\%c'%s, which is not supported", next,
                               in_class ? " in a class" : "");
            i++;
            if ((next == 'p' || next == 'P') && i + 1 < length &&
                pattern[i + 1] == '{') { /* {Lu}: its } ends no repetition */
                const char *end = memchr(pattern + i, '}', length - i);
                const size_t name = end ? (size_t)(end - (pattern + i)) : 0;
                fits = put(t, pattern + i + 1, name);
                i += name;
            }
            continue;
        }
        if (in_class && (c == '[' || (c == '&' && next == '&')))
            return AN_NOTE(note, AN_ERR_UNSUPPORTED, "the pattern has a class within a class, which is not supported");
        if (!in_class && c == '}' && next == '+') /* of one it is possessive, of the other repeated again */
            return AN_NOTE(note, AN_ERR_UNSUPPORTED, "the pattern has '}+', which is not supported");
        if (!in_class && c == '(' && next == '?') {
            const char kind = i + 2 < length ? pattern[i + 2] : 0;
            if (!kind || !strchr(":=!<>i", kind))
                return AN_NOTE(note, AN_ERR_UNSUPPORTED, "the pattern has '(?%c', which is not supported", kind);
        }
        if (c == '[') in_class = true;
        if (c == ']') in_class = false;
        fits = put(t, &c, 1);
    }
    return fits ? AN_OK : AN_NOTE(note, AN_ERR_UNSUPPORTED, "a pattern is too long");
}

static bool is_text(const char *pattern, size_t length, const char *text) {
    return length == strlen(text) && !memcmp(pattern, text, length);
}

an_status an_matcher_compile(an_matcher *m, const char *pattern, size_t length, bool scanned, an_note note) {
    translation t = {.length = 0};
    int error;
    PCRE2_SIZE at;
    *m = (an_matcher){.scanner = AN_SCANNER_NONE};
    if (scanned) {
        m->scanner = is_text(pattern, length, AN_PATTERN_GPT2)     ? AN_SCANNER_GPT2
                     : is_text(pattern, length, AN_PATTERN_LLAMA3) ? AN_SCANNER_LLAMA3
                     : is_text(pattern, length, AN_PATTERN_QWEN2)  ? AN_SCANNER_QWEN2
                                                                   : AN_SCANNER_NONE;
        if (m->scanner) return AN_OK;
    }
    const an_status status = translate(&t, pattern, length, note);
    if (status) return status;
    m->code = an_pattern_compile(t.text, PCRE2_UTF, &error, &at);
    if (!m->code) {
        char text[128];
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
        return AN_NOTE(note, error == PCRE2_ERROR_NOMEMORY ? AN_ERR_MEMORY : AN_ERR_PARSE, "the pattern '%.60s': %s",
                       t.text, text);
    }
    pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE); /* without it, or where there is none, the same result */
    return AN_OK;
}

an_matcher an_matcher_of_string(const char *string, size_t length) {
    return (an_matcher){.string = string, .length = length};
}

void an_matcher_release(an_matcher *m) {
    pcre2_code_free(m->code);
    m->code = NULL;
}

bool an_match_space_make(an_match_space *space) {
    *space = (an_match_space){.data = pcre2_match_data_create(1, NULL), .limits = pcre2_match_context_create(NULL)};
    if (!space->data || !space->limits) {
        an_match_space_release(space);
        return false;
    }
    pcre2_set_match_limit(space->limits, MATCH_LIMIT);
    space->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, NULL);
    if (space->stack) pcre2_jit_stack_assign(space->limits, NULL, space->stack);
    return true;
}

void an_match_space_release(an_match_space *space) {
    pcre2_match_data_free(space->data);
    pcre2_match_context_free(space->limits);
    pcre2_jit_stack_free(space->stack);
    *space = (an_match_space){.data = NULL};
}

static an_status find_pattern(const an_matcher *m, an_match_space *space, const char *text, size_t length, size_t from,
                              bool *found, size_t *begin, size_t *end, an_note note) {
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(space->data);
    while (from < length) {
        const int result = pcre2_match(m->code, (PCRE2_SPTR)text, length, from, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                                       space->data, space->limits);
        if (result == PCRE2_ERROR_NOMATCH) break;
        if (result < 0)
            return AN_NOTE(note, result == PCRE2_ERROR_NOMEMORY ? AN_ERR_MEMORY : AN_ERR_UNSUPPORTED,
                           "byte %zu: a pattern of the tokenizer takes too many steps (PCRE2's error %d)", from,
                           result);
        if (place[0] > place[1] || place[1] <= from) break; /* \K can put the end before the beginning */
        *begin = place[0] < from ? from : place[0];
        *end = place[1];
        *found = true;
        return AN_OK;
    }
    *found = false;
    return AN_OK;
}

static const char *find_string(const char *text, size_t length, const char *wanted, size_t size) {
    if (size == 0) return NULL;
    for (const char *p = text; length - (size_t)(p - text) >= size; p++) {
        p = memchr(p, wanted[0], length - (size_t)(p - text) - size + 1);
        if (!p) return NULL;
        if (!memcmp(p, wanted, size)) return p;
    }
    return NULL;
}

an_status an_matcher_find(const an_matcher *m, an_match_space *space, const char *text, size_t length, size_t from,
                          bool *found, size_t *begin, size_t *end, an_note note) {
    if (m->scanner) {
        *found = from < length;
        *begin = from;
        if (*found) *end = an_scanner_next(m->scanner, text, length, from);
        return AN_OK;
    }
    if (m->code) return find_pattern(m, space, text, length, from, found, begin, end, note);
    const char *at = from <= length ? find_string(text + from, length - from, m->string, m->length) : NULL;
    *found = at != NULL;
    if (at) *begin = (size_t)(at - text), *end = *begin + m->length;
    return AN_OK;
}

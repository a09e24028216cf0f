/* Scanners for the regular expressions of GPT-2, Llama 3 and Qwen2. Each alternative of an expression is one of the
 * functions below, tried in the same order. tests/text/test_scanner.c compares them with the expressions. */
#include "text/matcher.h"
#include "text/unicode.h"

typedef struct scan {
    const char *text;
    size_t length;
} scan;

/* The character at `at`, and where it ends; SPACE is also what no character is at the end of the text. */
static an_character_kind kind_at(const scan *s, size_t at, size_t *end) {
    *end = at;
    return an_character_kind_of(an_character_next(s->text, end));
}

static size_t run_of(const scan *s, an_character_kind kind, size_t at, size_t maximum) {
    for (size_t end; maximum > 0 && at < s->length && kind_at(s, at, &end) == kind; at = end) maximum--;
    return at;
}

/* 's, 't, 're, 've, 'm, 'll or 'd behind an apostrophe at `at`: where it ends, or `at` without one. In any
 * case, U+017F is an s too. */
static size_t contraction(const scan *s, size_t at, bool any_case) {
    const char *p = s->text + at;
    const size_t left = s->length - at;
    if (left < 2 || p[0] != '\'') return at;
    const int fold = any_case ? 32 : 0, first = p[1] | fold, second = left > 2 ? p[2] | fold : 0;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
        return at + 3;
    if (any_case && left > 2 && (unsigned char)p[1] == 0xc5 && (unsigned char)p[2] == 0xbf) return at + 3;
    return at;
}

/* White space: all of it at the end of the text, all but the last before something else, or that last. */
static size_t spaces(const scan *s, size_t at) {
    size_t end = at, last = at;
    for (size_t next; end < s->length && kind_at(s, end, &next) == AN_CHARACTER_SPACE; end = next) last = end;
    return end == s->length || last == at ? end : last;
}

static size_t gpt2(const scan *s, size_t at) {
    size_t next;
    const size_t end = contraction(s, at, false);
    if (end > at) return end;
    an_character_kind kind = kind_at(s, at, &next);
    if (s->text[at] == ' ' && next < s->length) {
        size_t after;
        kind = kind_at(s, next, &after);
        if (kind != AN_CHARACTER_SPACE) next = after;
    }
    return kind == AN_CHARACTER_SPACE ? spaces(s, at) : run_of(s, kind, next, SIZE_MAX);
}

/* Up to the last line break of the white space here; `at` without one. */
static size_t lines(const scan *s, size_t at) {
    size_t end = at;
    for (size_t next; at < s->length && kind_at(s, at, &next) == AN_CHARACTER_SPACE; at = next)
        if (s->text[at] == '\r' || s->text[at] == '\n') end = next;
    return end;
}

static size_t llama3(const scan *s, size_t at, size_t most_digits) {
    size_t next, after = 0;
    const size_t end = contraction(s, at, true);
    if (end > at) return end;
    const an_character_kind kind = kind_at(s, at, &next);
    if (kind == AN_CHARACTER_LETTER) return run_of(s, kind, next, SIZE_MAX);
    if (kind == AN_CHARACTER_NUMBER) return run_of(s, kind, next, most_digits - 1);
    const bool line = s->text[at] == '\r' || s->text[at] == '\n';
    const an_character_kind second = next < s->length ? kind_at(s, next, &after) : AN_CHARACTER_SPACE;
    if (!line && second == AN_CHARACTER_LETTER) return run_of(s, second, after, SIZE_MAX);
    if (kind == AN_CHARACTER_OTHER || (s->text[at] == ' ' && second == AN_CHARACTER_OTHER)) {
        size_t stop = run_of(s, AN_CHARACTER_OTHER, next, SIZE_MAX);
        while (stop < s->length && (s->text[stop] == '\r' || s->text[stop] == '\n')) stop++;
        return stop;
    }
    const size_t broken = lines(s, at);
    return broken > at ? broken : spaces(s, at);
}

size_t an_scanner_next(an_scanner scanner, const char *text, size_t length, size_t from) {
    const scan s = {text, length};
    if (scanner == AN_SCANNER_GPT2) return gpt2(&s, from);
    return llama3(&s, from, scanner == AN_SCANNER_LLAMA3 ? 3 : 1);
}

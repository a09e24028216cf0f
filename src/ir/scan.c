#include "ir/scan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"
#include "base/word.h"

enum {
    LONGEST_NUMBER = 64, /* the shortest exact form of any double has 24 characters */
    SHOWN = 40           /* bytes of a token that a message repeats */
};

static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name_part(char c) {
    return is_name_start(c) || an_is_digit(c);
}

static bool is_printable(char c) {
    return c >= ' ' && c <= '~';
}

/* ---- messages ---- */

an_status an_scan_error(const an_scanner *s, const an_token *at, const char *format, ...) {
    char message[AN_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return an_scan_locate(s, at, AN_ERR_PARSE, message);
}

an_status an_scan_locate(const an_scanner *s, const an_token *at, an_status status, const char *message) {
    return AN_ERROR(s->ctx, status, "%d:%d: %s", at->line, at->column, message);
}

an_status an_scan_unexpected(const an_scanner *s, const char *what) {
    const an_token *t = &s->token;
    int shown = t->length < SHOWN ? (int)t->length : SHOWN;
    switch (t->kind) {
    case AN_TOKEN_END: return an_scan_error(s, t, "expected %s, not the end of the text", what);
    case AN_TOKEN_NEWLINE: return an_scan_error(s, t, "expected %s, not the end of the line", what);
    case AN_TOKEN_STRING: return an_scan_error(s, t, "expected %s, not a string", what);
    case AN_TOKEN_VALUE: return an_scan_error(s, t, "expected %s, not %%%.*s", what, shown, t->start);
    case AN_TOKEN_NAME:
    case AN_TOKEN_NUMBER:
    case AN_TOKEN_MARK: break;
    }
    return an_scan_error(s, t, "expected %s, not '%.*s'", what, shown, t->start);
}

/* ---- tokens ---- */

static an_status scan_name(an_scanner *s, bool value) {
    const char *at = s->at;
    while (at < s->end && (is_name_part(*at) || (value && *at == '.'))) at++;
    s->token.length = (size_t)(at - s->at);
    if (s->token.length == 0)
        return an_scan_error(s, &s->token, "expected a name of letters, digits, _ and . after %%");
    if (s->token.length > AN_LONGEST_NAME)
        return an_scan_error(s, &s->token, "a name has at most %d characters", AN_LONGEST_NAME);
    s->at = at;
    return AN_OK;
}

/* digits [ . digits ] [ e [+-] digits ] */
static an_status scan_number(an_scanner *s) {
    const char *at = s->at;
    while (at < s->end && an_is_digit(*at)) at++;
    if (at < s->end && *at == '.')
        for (at++; at < s->end && an_is_digit(*at); at++) {
        }
    if (at < s->end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < s->end && (*at == '+' || *at == '-')) at++;
        if (at == s->end || !an_is_digit(*at)) return an_scan_error(s, &s->token, "a number's exponent has no digits");
        while (at < s->end && an_is_digit(*at)) at++;
    }
    s->token.length = (size_t)(at - s->at);
    if (s->token.length > LONGEST_NUMBER)
        return an_scan_error(s, &s->token, "a number has at most %d characters", LONGEST_NUMBER);
    if (at < s->end && (is_name_part(*at) || *at == '.'))
        return an_scan_error(s, &s->token, "a number cannot be followed by '%c'", *at);
    s->at = at;
    return AN_OK;
}

static int hex_digit(char c) {
    return an_is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads one byte of a string at `*at`; false if there is no such escape. */
static bool read_byte(const char **at, const char *end, char *byte) {
    static const char escapes[] = "\"\\ntr", meanings[] = "\"\\\n\t\r";
    const char *a = *at, *found;
    if (*a != '\\') {
        *byte = *a;
        *at = a + 1;
        return true;
    }
    if (end - a >= 4 && a[1] == 'x' && hex_digit(a[2]) >= 0 && hex_digit(a[3]) >= 0) {
        *byte = (char)(hex_digit(a[2]) * 16 + hex_digit(a[3]));
        *at = a + 4;
        return true;
    }
    found = end - a >= 2 && a[1] ? strchr(escapes, a[1]) : NULL;
    if (!found) return false;
    *byte = meanings[found - escapes];
    *at = a + 2;
    return true;
}

static an_status scan_string(an_scanner *s) {
    const char *start = s->at + 1, *at = start;
    an_token place = s->token;
    int length = 0;
    while (at < s->end && *at != '"') {
        char byte;
        place.column = (int)(at - s->line_start) + 1;
        if (*at == '\n' || *at == '\r') break;
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return an_scan_error(s, &place, "byte 0x%02x in a string: write it as \\x%02x", (unsigned char)*at,
                                 (unsigned char)*at);
        if (!read_byte(&at, s->end, &byte))
            return an_scan_error(
                s, &place, "a \\ in a string must be followed by \" \\ n t r, or by x and two hexadecimal digits");
        if (byte == 0) return an_scan_error(s, &place, "a string cannot hold the byte 0");
        if (++length > AN_LONGEST_STRING)
            return an_scan_error(s, &s->token, "a string has at most %d bytes", AN_LONGEST_STRING);
    }
    if (at == s->end || *at != '"') return an_scan_error(s, &s->token, "a string has no closing quote on its line");
    s->token.start = start;
    s->token.length = (size_t)(at - start);
    s->at = at + 1;
    return AN_OK;
}

an_status an_scan_next(an_scanner *s) {
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t')) s->at++;
    if (s->at < s->end && *s->at == '#')
        while (s->at < s->end && *s->at != '\n') s->at++;
    s->token = (an_token){.start = s->at, .length = 1, .line = s->line, .column = (int)(s->at - s->line_start) + 1};
    if (s->at == s->end) {
        s->token.kind = AN_TOKEN_END;
        s->token.length = 0;
        return AN_OK;
    }
    char c = *s->at;
    if (c == '\n' || (c == '\r' && s->at + 1 < s->end && s->at[1] == '\n')) {
        s->token.kind = AN_TOKEN_NEWLINE;
        s->at += c == '\r' ? 2 : 1;
        s->line_start = s->at;
        s->line++;
        return AN_OK;
    }
    if (is_name_start(c)) {
        s->token.kind = AN_TOKEN_NAME;
        return scan_name(s, false);
    }
    if (c == '%') {
        s->token.kind = AN_TOKEN_VALUE;
        s->token.start = ++s->at;
        return scan_name(s, true);
    }
    if (an_is_digit(c)) {
        s->token.kind = AN_TOKEN_NUMBER;
        return scan_number(s);
    }
    if (c == '"') {
        s->token.kind = AN_TOKEN_STRING;
        return scan_string(s);
    }
    if (c != 0 && strchr("()[]{},=:+-*", c)) {
        s->token.kind = AN_TOKEN_MARK;
        s->at++;
        return AN_OK;
    }
    if (is_printable(c)) return an_scan_error(s, &s->token, "'%c' has no meaning here", c);
    return an_scan_error(s, &s->token, "byte 0x%02x has no meaning outside a string", (unsigned char)c);
}

an_status an_scan_begin(an_scanner *s, an_context *ctx, const char *text, size_t length) {
    *s = (an_scanner){.ctx = ctx, .at = text, .end = text + length, .line_start = text, .line = 1};
    return an_scan_next(s);
}

bool an_scan_is(const an_scanner *s, char mark) {
    return s->token.kind == AN_TOKEN_MARK && *s->token.start == mark;
}

bool an_token_is(const an_token *token, const char *name) {
    return token->kind == AN_TOKEN_NAME && token->length == strlen(name) && !memcmp(token->start, name, token->length);
}

an_status an_scan_expect(an_scanner *s, char mark, const char *place) {
    char what[SHOWN * 2];
    if (an_scan_is(s, mark)) return an_scan_next(s);
    snprintf(what, sizeof what, "'%c' %s", mark, place);
    return an_scan_unexpected(s, what);
}

an_status an_scan_expect_line(an_scanner *s) {
    if (s->token.kind == AN_TOKEN_END) return AN_OK;
    if (s->token.kind != AN_TOKEN_NEWLINE) return an_scan_unexpected(s, "the end of the line");
    return an_scan_next(s);
}

/* ---- values ---- */

/* The sign of a number, stepped over. */
static an_status scan_sign(an_scanner *s, bool *negative) {
    *negative = an_scan_is(s, '-');
    return *negative ? an_scan_next(s) : AN_OK;
}

an_status an_scan_int(an_scanner *s, int64_t *number) {
    const an_token first = s->token;
    bool negative;
    uint64_t magnitude = 0;
    AN_TRY_RETURN(scan_sign(s, &negative));
    if (s->token.kind != AN_TOKEN_NUMBER) return an_scan_unexpected(s, "an integer");
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    for (size_t i = 0; i < s->token.length; i++) {
        if (!an_is_digit(s->token.start[i])) return an_scan_unexpected(s, "an integer");
        uint64_t digit = (uint64_t)(s->token.start[i] - '0');
        if (magnitude > (limit - digit) / 10) return an_scan_error(s, &first, "the integer does not fit in 64 bits");
        magnitude = magnitude * 10 + digit;
    }
    *number = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return an_scan_next(s);
}

an_status an_scan_float(an_scanner *s, double *number) {
    const an_token first = s->token;
    bool negative;
    double magnitude;
    AN_TRY_RETURN(scan_sign(s, &negative));
    if (an_token_is(&s->token, "inf")) {
        magnitude = INFINITY;
    } else if (an_token_is(&s->token, "nan") && !negative) {
        magnitude = NAN;
    } else if (s->token.kind == AN_TOKEN_NUMBER) {
        magnitude = an_text_double(s->token.start, s->token.length);
        if (isinf(magnitude))
            return an_scan_error(s, &first, "the number does not fit in 64 bits; infinity is written inf");
    } else {
        return an_scan_unexpected(s, "a number");
    }
    *number = negative ? -magnitude : magnitude;
    return an_scan_next(s);
}

an_status an_scan_bool(an_scanner *s, bool *flag) {
    *flag = an_token_is(&s->token, "true");
    if (!*flag && !an_token_is(&s->token, "false")) return an_scan_unexpected(s, "true or false");
    return an_scan_next(s);
}

an_status an_scan_string(an_scanner *s, an_arena *arena, const char **string) {
    void *copy = NULL;
    if (s->token.kind != AN_TOKEN_STRING) return an_scan_unexpected(s, "a string");
    AN_TRY_RETURN(an_arena_alloc(arena, &copy, s->token.length + 1, 1)); /* zeroed, so it ends in NUL */
    char *to = copy;
    for (const char *at = s->token.start, *end = at + s->token.length; at < end;)
        if (!read_byte(&at, end, to++)) return an_scan_unexpected(s, "a string"); /* was checked when it was scanned */
    *string = copy;
    return an_scan_next(s);
}

/* Numbers as people write them: 1,234.5 and 1.234,5, 1 234 and 1'234, with a currency or percent sign before or behind.
 *
 * A sign is a unit. It is dropped, and the number stays as it is written: 12.5 % is 12.5, and predictions are
 * percent. */
#include <stdio.h>
#include <string.h>

#include "base/word.h"
#include "data/tables/notation.h"

/* ---- signs ---- */

/* The first is none. */
static const char *const signs[] = {"",    "%",   "€",   "$",   "£",   "¥",   "US$", "₹",   "₩",   "₽",
                                    "₺",   "₪",   "฿",   "R$",  "zł",  "Kč",  "kr",  "EUR", "USD", "GBP",
                                    "JPY", "CHF", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK",
                                    "PLN", "CZK", "HUF", "BRL", "MXN", "KRW", "ZAR", "TRY", "SGD", "HKD"};
enum { SIGNS = sizeof signs / sizeof *signs };

/* Blanks inside cells: a space, and no-break, narrow no-break and thin spaces. */
static const char *const blanks[] = {" ", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x80\x89", NULL};
static const char *const apostrophes[] = {"'", "\xe2\x80\x99", NULL};
static const char *const points[] = {".", NULL}, *const commas[] = {",", NULL}, *const none[] = {NULL};

typedef struct {
    const char *at, *end;
} span;

static size_t match_begin(span s, const char *text) {
    const size_t length = strlen(text);
    return length > 0 && (size_t)(s.end - s.at) >= length && !memcmp(s.at, text, length) ? length : 0;
}

static size_t match_end(span s, const char *text) {
    const size_t length = strlen(text);
    return length > 0 && (size_t)(s.end - s.at) >= length && !memcmp(s.end - length, text, length) ? length : 0;
}

static size_t match_any(span s, const char *const *texts, size_t (*match)(span s, const char *text)) {
    size_t length = 0;
    while (*texts && !length) length = match(s, *texts++);
    return length;
}

/* The longest sign there, and its length. */
static size_t find_sign(span s, size_t (*match)(span s, const char *text), uint8_t *sign) {
    size_t longest = 0;
    for (int i = 1; i < SIGNS; i++) {
        const size_t length = match(s, signs[i]);
        if (length <= longest) continue;
        longest = length;
        *sign = (uint8_t)i;
    }
    return longest;
}

static char take_minus(span *s) {
    return s->at < s->end && (*s->at == '-' || *s->at == '+') ? *s->at++ : 0;
}

/* Takes the sign off, and a plus or minus before or after it. */
static span take_signs(const char *text, size_t length, uint8_t *sign, char *minus) {
    span s = {text, text + length};
    *sign = 0;
    *minus = take_minus(&s);
    const size_t before = find_sign(s, match_begin, sign);
    s.at += before;
    for (size_t blank; before && (blank = match_any(s, blanks, match_begin)) > 0;) s.at += blank;
    if (before && !*minus) *minus = take_minus(&s);
    const size_t after = before ? 0 : find_sign(s, match_end, sign);
    s.end -= after;
    for (size_t blank; after && (blank = match_any(s, blanks, match_end)) > 0;) s.end -= blank;
    return s;
}

/* ---- styles ---- */

/* AN_STYLES_POINT and AN_STYLES_COMMA are the first and the last four. */
static const struct {
    const char *sample;
    char mark;
    const char *const *separators; /* between groups of three digits */
} styles[] = {{"1234.5", '.', none}, {"1,234.5", '.', commas}, {"1 234.5", '.', blanks}, {"1'234.5", '.', apostrophes},
              {"1234,5", ',', none}, {"1.234,5", ',', points}, {"1 234,5", ',', blanks}, {"1'234,5", ',', apostrophes}};
enum { STYLES = sizeof styles / sizeof *styles, COMMA_WITH_POINTS = 5, GROUP = 3 };

/* Copies the digits before the decimal mark, without separators. False: the groups are not those of thousands. */
static bool take_whole(span *s, const char *const *separators, char **to) {
    const char *const begin = *to;
    size_t run = 0, groups = 0;
    while (s->at < s->end) {
        const size_t separator = match_any(*s, separators, match_begin);
        if (an_is_digit(*s->at)) {
            *(*to)++ = *s->at++;
            run++;
        } else if (separator && run >= 1 && (groups ? run == GROUP : run <= GROUP && *begin != '0')) {
            s->at += separator;
            groups++;
            run = 0;
        } else {
            break;
        }
    }
    return groups == 0 || run == GROUP;
}

static an_number_result read_style(span s, char minus, unsigned style, double *number) {
    char text[AN_LONGEST_NUMBER + 2], *to = text;
    if (s.end - s.at > AN_LONGEST_NUMBER || s.at == s.end) return AN_NUMBER_TEXT;
    if (minus) *to++ = minus;
    if (!take_whole(&s, styles[style].separators, &to)) return AN_NUMBER_TEXT;
    if (s.at < s.end && *s.at == styles[style].mark) {
        *to++ = '.';
        s.at++;
    } else if (s.at < s.end && *s.at != 'e' && *s.at != 'E') {
        return AN_NUMBER_TEXT;
    }
    while (s.at < s.end) *to++ = *s.at++;
    return an_number_read(text, (size_t)(to - text), number);
}

/* 1.234, which could be 1234: one to three digits that do not begin with 0, and three behind the point. */
static bool could_be_thousands(span s, const char *point) {
    const ptrdiff_t whole = point - s.at;
    const char *at = point + 1;
    while (at < s.end && an_is_digit(*at)) at++;
    return whole >= 1 && whole <= GROUP && *s.at != '0' && s.end - point == GROUP + 1 && at == s.end;
}

/* Most cells are plain, and need no trying. */
static uint8_t styles_of_plain(span s, bool *has_mark) {
    if (s.at < s.end && (*s.at == '-' || *s.at == '+')) s.at++;
    const char *point = memchr(s.at, '.', (size_t)(s.end - s.at));
    *has_mark = point != NULL;
    if (!point) return AN_STYLES_POINT | AN_STYLES_COMMA;
    return (uint8_t)(AN_STYLES_POINT | (could_be_thousands(s, point) ? 1U << COMMA_WITH_POINTS : 0));
}

uint8_t an_number_styles(const char *text, size_t length, uint8_t *sign, bool *has_mark) {
    double number;
    char minus;
    uint8_t found = 0;
    *sign = 0;
    if (an_number_read(text, length, &number) != AN_NUMBER_TEXT)
        return styles_of_plain((span){text, text + length}, has_mark);
    const span s = take_signs(text, length, sign, &minus);
    if (s.at == s.end || !(an_is_digit(*s.at) || *s.at == '.' || *s.at == ',')) return 0;
    for (unsigned i = 0; i < STYLES; i++)
        if (read_style(s, minus, i, &number) != AN_NUMBER_TEXT) found |= (uint8_t)(1U << i);
    *has_mark = memchr(s.at, '.', (size_t)(s.end - s.at)) || memchr(s.at, ',', (size_t)(s.end - s.at));
    return found;
}

an_number_result an_notation_number(const an_notation *notation, const char *text, size_t length, double *number) {
    uint8_t sign;
    char minus;
    if (notation->kind == AN_NOTATION_PLAIN) return an_number_read(text, length, number);
    const span s = take_signs(text, length, &sign, &minus);
    return sign == notation->sign ? read_style(s, minus, notation->style, number) : AN_NUMBER_TEXT;
}

/* ---- as text ---- */

void an_number_describe(const an_notation *notation, char *text, size_t capacity) {
    const char *sign = signs[notation->sign];
    snprintf(text, capacity, "%s%s%s", styles[notation->style].sample, *sign ? " " : "", sign);
}

bool an_number_parse(const char *text, an_notation *notation) {
    char described[AN_NOTATION_BYTES];
    for (int style = 0; style < STYLES; style++)
        for (int sign = style == AN_STYLE_PLAIN; sign < SIGNS; sign++) {
            *notation = (an_notation){.kind = AN_NOTATION_NUMBER, .style = (uint8_t)style, .sign = (uint8_t)sign};
            an_number_describe(notation, described, sizeof described);
            if (!strcmp(described, text)) return true;
        }
    return false;
}

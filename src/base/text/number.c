#include "base/text/number.h"

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word.h"

void an_text_rounded(char *buffer, size_t capacity, double number, int digits) {
    const char *point = localeconv()->decimal_point;
    snprintf(buffer, capacity, "%.*g", digits, number);
    char *found = point[0] && strcmp(point, ".") ? strstr(buffer, point) : NULL;
    if (found) {
        *found = '.';
        memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
    }
}

void an_text_number(char *buffer, size_t capacity, double number) {
    static const int shortest = 1, enough = 17; /* 17 digits identify any double */
    static const double largest_plain = 1e15;   /* integers below it have at most as many digits as are exact */
    if (isnan(number) || isinf(number)) {
        snprintf(buffer, capacity, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    if (number > -largest_plain && number < largest_plain && number == (double)(int64_t)number) {
        snprintf(buffer, capacity, "%.0f", number); /* 10000, and not 1e+04 */
        return;
    }
    for (int digits = shortest; digits <= enough; digits++) {
        an_text_rounded(buffer, capacity, number, digits);
        if (an_text_double(buffer, strlen(buffer)) == number) break;
    }
}

/* strtod reads the decimal point of the host's locale, so it is given that one. */
double an_text_double(const char *text, size_t length) {
    enum { LONGEST_POINT = 16 };
    const char *point = localeconv()->decimal_point;
    char buffer[AN_LONGEST_NUMBER + LONGEST_POINT + 1];
    size_t at = 0, point_length = strlen(point);
    if (point_length == 0 || point_length > LONGEST_POINT) {
        point = ".";
        point_length = 1;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.') {
            memcpy(buffer + at, point, point_length);
            at += point_length;
        } else {
            buffer[at++] = text[i];
        }
    }
    buffer[at] = 0;
    return strtod(buffer, NULL);
}

typedef struct {
    const char *at, *end;
} cursor;

static bool digit(const cursor *c) {
    return c->at < c->end && an_is_digit(*c->at);
}

/* Adds the digits here to the mantissa, as long as it is exact. Gives how many there were. */
static int64_t digits(cursor *c, uint64_t *mantissa, bool *exact) {
    const char *start = c->at;
    for (; digit(c); c->at++) {
        *exact = *exact && *mantissa < (UINT64_C(1) << 53) / 10;
        if (*exact) *mantissa = *mantissa * 10 + (uint64_t)(*c->at - '0');
    }
    return c->at - start;
}

an_number_result an_number_read(const char *text, size_t length, double *number) {
    /* Powers of ten that are doubles: with a mantissa below 2^53, one operation rounds once (Clinger 1990). */
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { POWERS = sizeof powers / sizeof *powers, FAR = 100000 };
    cursor c = {text, text + length};
    uint64_t mantissa = 0;
    bool exact = true, negative = false;
    int64_t whole, part = 0, exponent = 0;
    if (c.at < c.end && (*c.at == '+' || *c.at == '-')) negative = *c.at++ == '-';
    const char *unsigned_text = c.at;
    whole = digits(&c, &mantissa, &exact);
    if (c.at < c.end && *c.at == '.') {
        c.at++;
        part = digits(&c, &mantissa, &exact);
    }
    if (whole + part == 0) return AN_NUMBER_TEXT;
    if (c.at < c.end && (*c.at == 'e' || *c.at == 'E')) {
        bool down = false;
        c.at++;
        if (c.at < c.end && (*c.at == '+' || *c.at == '-')) down = *c.at++ == '-';
        if (!digit(&c)) return AN_NUMBER_TEXT;
        for (; digit(&c); c.at++)
            if (exponent < FAR) exponent = exponent * 10 + (*c.at - '0');
        if (down) exponent = -exponent;
    }
    if (c.at != c.end) return AN_NUMBER_TEXT;
    exponent -= part;
    if (exact && exponent > -POWERS && exponent < POWERS) {
        *number = exponent < 0 ? (double)mantissa / powers[-exponent] : (double)mantissa * powers[exponent];
    } else {
        if (c.end - unsigned_text > AN_LONGEST_NUMBER) return AN_NUMBER_RANGE;
        *number = an_text_double(unsigned_text, (size_t)(c.end - unsigned_text));
    }
    if (*number > 1.7976931348623157e308) return AN_NUMBER_RANGE;
    if (negative) *number = -*number;
    return AN_NUMBER_OK;
}

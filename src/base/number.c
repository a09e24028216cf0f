#include "base/number.h"

#include <stdint.h>

#include "base/text.h"

typedef struct {
    const char *at, *end;
} cursor;

static bool digit(const cursor *c) {
    return c->at < c->end && *c->at >= '0' && *c->at <= '9';
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

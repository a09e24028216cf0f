#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void an_text_init(an_text *text, an_context *ctx) {
    *text = (an_text){.ctx = ctx};
}

void an_text_bytes(an_text *text, const char *bytes, size_t length) {
    if (text->status != AN_OK) return;
    text->status = an_grow(text->ctx, (void **)&text->bytes, &text->capacity, text->length + length + 1, 1);
    if (text->status != AN_OK) return;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

void an_text_add(an_text *text, const char *format, ...) {
    char piece[AN_MESSAGE_BYTES];
    va_list arguments, again;
    int length;
    if (text->status != AN_OK) return;
    va_start(arguments, format);
    va_copy(again, arguments);
    length = vsnprintf(piece, sizeof piece, format, arguments);
    if (length >= 0 && (size_t)length < sizeof piece) {
        an_text_bytes(text, piece, (size_t)length);
    } else if (length >= 0) { /* long names: print into place */
        text->status = an_grow(text->ctx, (void **)&text->bytes, &text->capacity, text->length + (size_t)length + 1, 1);
        if (text->status == AN_OK) {
            vsnprintf(text->bytes + text->length, (size_t)length + 1, format, again);
            text->length += (size_t)length;
        }
    }
    va_end(again);
    va_end(arguments);
}

void an_text_destroy(an_text *text) {
    an_release(text->ctx, (void **)&text->bytes, text->capacity, 1);
    text->length = text->capacity = 0;
}

an_status an_text_take(an_text *text, char **string) {
    an_context *ctx = text->ctx;
    void *copy = NULL;
    AN_TRY_RETURN(text->status);
    AN_TRY_RETURN(an_alloc(ctx, &copy, text->length + 1, 1));
    if (text->length) memcpy(copy, text->bytes, text->length);
    *string = copy;
    an_text_destroy(text);
    return AN_OK;
}

void an_string_release(an_context *ctx, char **text) {
    AN_NEED_OR(, ctx);
    if (text && *text) an_release(ctx, (void **)text, strlen(*text) + 1, 1);
}

void an_text_number(char *buffer, size_t capacity, double number) {
    static const int shortest = 1, enough = 17; /* 17 digits identify any double */
    static const double largest_plain = 1e15;   /* integers below it have at most as many digits as are exact */
    const char *point = localeconv()->decimal_point;
    if (isnan(number) || isinf(number)) {
        snprintf(buffer, capacity, "%s", isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    if (number > -largest_plain && number < largest_plain && number == (double)(int64_t)number) {
        snprintf(buffer, capacity, "%.0f", number); /* 10000, and not 1e+04 */
        return;
    }
    for (int digits = shortest; digits <= enough; digits++) {
        snprintf(buffer, capacity, "%.*g", digits, number);
        if (strtod(buffer, NULL) == number) break;
    }
    char *found = point[0] && strcmp(point, ".") ? strstr(buffer, point) : NULL;
    if (found) {
        *found = '.';
        memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
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

uint64_t an_hash(const void *bytes, size_t length, uint64_t seed) {
    const unsigned char *b = bytes;
    uint64_t h = 0xcbf29ce484222325u ^ seed; /* FNV-1a's offset and prime */
    for (size_t i = 0; i < length; i++) h = (h ^ b[i]) * 0x100000001b3u;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu; /* MurmurHash3's finaliser: FNV's low bits alone are weak */
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

an_quote_text an_quote_describe(const char *text) {
    an_quote_text out;
    enum { MOST = 60 }; /* bytes */
    size_t at = 0;
    for (; text[at] && at < MOST; at++) {
        const unsigned char c = (unsigned char)text[at];
        out.text[at] = c < ' ' || c == 0x7f ? '?' : (char)c;
    }
    if (text[at]) {
        while (at > 0 && ((unsigned char)text[at] & 0xc0) == 0x80) at--; /* not inside of a character */
        memcpy(out.text + at, "...", 3);
        at += 3;
    }
    out.text[at] = 0;
    return out;
}

#include "base/text/utf8.h"

#include <string.h>

/* The rows are those of Unicode's table 3-7: no overlong forms, no surrogates, nothing beyond U+10FFFF. */
size_t an_utf8_length(const char *bytes, size_t left) {
    static const struct {
        unsigned char first, last, low, high; /* of the first byte; of the second */
        size_t length;
    } rows[] = {{0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    const unsigned char *b = (const unsigned char *)bytes;
    size_t r = 0;
    while (r < sizeof rows / sizeof *rows && !(b[0] >= rows[r].first && b[0] <= rows[r].last)) r++;
    if (r == sizeof rows / sizeof *rows || rows[r].length > left) return 0;
    if (rows[r].length > 1 && (b[1] < rows[r].low || b[1] > rows[r].high)) return 0;
    for (size_t i = 2; i < rows[r].length; i++)
        if ((b[i] & 0xc0) != 0x80) return 0;
    return rows[r].length;
}

size_t an_utf8_length_in_text(const char *text) {
    enum { LONGEST = 4 };
    return an_utf8_length(text, LONGEST); /* the NUL continues no character, so nothing beyond it is looked at */
}

bool an_utf8_is_valid(const char *text) {
    size_t length = 1;
    for (; *text && length > 0; text += length) length = an_utf8_length_in_text(text);
    return length > 0;
}

bool an_utf8_is_shown(const char *text) {
    const unsigned char *c = (const unsigned char *)text;
    const size_t length = an_utf8_length_in_text(text);
    if (length < 2) return length == 1 && c[0] >= ' ' && c[0] != 0x7f;
    if (c[0] == 0xc2) return c[1] >= 0xa0; /* U+0080 to U+009F are control characters */
    if (c[0] != 0xe2 || (c[1] != 0x80 && c[1] != 0x81)) return true;
    return c[1] == 0x80 ? c[2] < 0xa8 || c[2] > 0xae : c[2] < 0xa6 || c[2] > 0xa9; /* U+2028 to 202E, 2066 to 2069 */
}

const char *an_utf8_show(char *out, size_t maximum, const char *text) {
    size_t used = 0;
    while (*text) {
        const size_t length = an_utf8_length_in_text(text);
        const bool shown = an_utf8_is_shown(text);
        const size_t bytes = shown ? length : 1;
        if (used + bytes > maximum) break;
        memcpy(out + used, shown ? text : "?", bytes);
        used += bytes;
        text += length ? length : 1;
    }
    out[used] = 0;
    return text;
}

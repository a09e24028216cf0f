/* Tests of characters and words that C does not have, or has only in a form that depends on the locale. */
#ifndef AN_BASE_WORD_H
#define AN_BASE_WORD_H

#include <stdbool.h>
#include <string.h>

static inline bool an_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static inline bool an_ends_in(const char *text, const char *end) {
    const size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && !strcmp(text + length - wanted, end);
}

#endif

/* Characters: UTF-8 in and out, and the classes of characters that tokenizers ask for. The tables are utf8proc's. */
#ifndef AN_TEXT_UNICODE_H
#define AN_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AN_UTF8_MOST = 4 }; /* bytes of a character */

/* What the patterns of byte-level BPE tell apart. */
typedef enum an_character_kind {
    AN_CHARACTER_OTHER,
    AN_CHARACTER_LETTER, /* L */
    AN_CHARACTER_NUMBER, /* N */
    AN_CHARACTER_SPACE   /* White_Space */
} an_character_kind;

/* The character at *at of a valid text, which is moved behind it. */
static inline uint32_t an_character_next(const char *text, size_t *at) {
    const unsigned char *p = (const unsigned char *)text + *at;
    if (p[0] < 0x80) return *at += 1, p[0];
    if (p[0] < 0xe0) return *at += 2, (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
    if (p[0] < 0xf0) return *at += 3, (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    return *at += 4,
           (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 | (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
}
/* The character that ends at *at, which is moved to its beginning. */
uint32_t an_character_before(const char *text, size_t *at);
/* Writes a character; gives its bytes. */
size_t an_character_put(uint32_t character, char *to);

/* The length of the character that begins here. Without one, *length is what a decoder replaces by one U+FFFD: the
 * bytes that began a character, at least one. *partial: they are all that is left, and more might complete it. */
bool an_character_valid(const char *bytes, size_t left, size_t *length, bool *partial);
/* How many bytes from here on are valid UTF-8. */
size_t an_utf8_valid_bytes(const char *bytes, size_t length);

an_character_kind an_character_kind_of(uint32_t character);
bool an_character_is_space(uint32_t character);
bool an_character_is_word(uint32_t character); /* \w: alphabetic, marks, digits, connectors, joiners */
bool an_character_is_mark(uint32_t character); /* M */
bool an_character_is_nonspacing(uint32_t character);
bool an_character_is_other(uint32_t character); /* control, format, private use */
bool an_character_is_punctuation(uint32_t character);

/* Lower case, of one character two at most. */
size_t an_character_lower(uint32_t character, uint32_t to[2]);

#endif

#include "text/unicode.h"

#include <string.h>
#include <utf8proc.h>

#include "text/versions.h"

uint32_t an_character_before(const char *text, size_t *at) {
    do *at -= 1;
    while (*at > 0 && ((unsigned char)text[*at] & 0xc0) == 0x80);
    size_t here = *at;
    return an_character_next(text, &here);
}

size_t an_character_put(uint32_t c, char *to) {
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)to);
}

bool an_character_valid(const char *bytes, size_t left, size_t *length, bool *partial) {
    const unsigned char *p = (const unsigned char *)bytes;
    const unsigned char lead = p[0];
    *partial = false;
    *length = 1;
    if (lead < 0x80) return true;
    if (lead < 0xc2 || lead > 0xf4) return false;
    const size_t wanted = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : AN_UTF8_MOST;
    /* The second byte excludes what has a shorter form, surrogates, and what is beyond U+10FFFF. */
    unsigned char minimum = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char maximum = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < wanted; i++, minimum = 0x80, maximum = 0xbf) {
        *length = i;
        if (i == left) return *partial = true, false;
        if (p[i] < minimum || p[i] > maximum) return false;
    }
    *length = wanted;
    return true;
}

size_t an_utf8_valid_bytes(const char *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        uint64_t eight;
        if (length - at >= sizeof eight) {
            memcpy(&eight, bytes + at, sizeof eight);
            if (!(eight & 0x8080808080808080u)) {
                at += sizeof eight;
                continue;
            }
        }
        size_t step;
        bool partial;
        if (!an_character_valid(bytes + at, length - at, &step, &partial)) break;
        at += step;
    }
    return at;
}

bool an_character_is_space(uint32_t c) {
    if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

static bool is_between(uint32_t c, utf8proc_category_t first, utf8proc_category_t last) {
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= first && category <= last;
}

an_character_kind an_character_kind_of(uint32_t c) {
    if (c < 0x80)
        return (c | 32) >= 'a' && (c | 32) <= 'z' ? AN_CHARACTER_LETTER
               : c >= '0' && c <= '9'             ? AN_CHARACTER_NUMBER
               : an_character_is_space(c)         ? AN_CHARACTER_SPACE
                                                  : AN_CHARACTER_OTHER;
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) return AN_CHARACTER_LETTER;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return AN_CHARACTER_NUMBER;
    if (category == UTF8PROC_CATEGORY_CN) { /* it may be newer than utf8proc */
        const unsigned flags = an_version_flags(c);
        return flags & AN_VERSION_LETTER   ? AN_CHARACTER_LETTER
               : flags & AN_VERSION_NUMBER ? AN_CHARACTER_NUMBER
                                           : AN_CHARACTER_OTHER;
    }
    return an_character_is_space(c) ? AN_CHARACTER_SPACE : AN_CHARACTER_OTHER;
}

bool an_character_is_word(uint32_t c) {
    return is_between(c, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_NL) ||
           is_between(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PC) || c == 0x200c || c == 0x200d || /* joiners */
           (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
           (c >= 0x1f170 && c <= 0x1f189); /* letters in circles and squares */
}

bool an_character_is_mark(uint32_t c) {
    return an_version_choose(c, AN_VERSION_MARK, AN_VERSION_NOT_MARK,
                             is_between(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME));
}

bool an_character_is_nonspacing(uint32_t c) {
    return an_version_choose(c, AN_VERSION_NONSPACING, AN_VERSION_NOT_NONSPACING,
                             is_between(c, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MN));
}

bool an_character_is_other(uint32_t c) {
    return is_between(c, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO) && !(an_version_flags(c) & AN_VERSION_NOT_OTHER);
}

bool an_character_is_punctuation(uint32_t c) {
    if (c < 0x80) return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7f);
    return an_version_choose(c, AN_VERSION_PUNCTUATION, AN_VERSION_NOT_PUNCTUATION,
                             is_between(c, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO));
}

size_t an_character_lower(uint32_t c, uint32_t to[2]) {
    enum { I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 }; /* the only one whose lower case is two characters */
    to[0] = c == I_WITH_DOT ? 'i' : (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    if (to[0] == c && c >= 0x80) to[0] = an_version_lower(c);
    to[1] = DOT_ABOVE;
    return c == I_WITH_DOT ? 2 : 1;
}

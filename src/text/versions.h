/* What the package `tokenizers`, with which published models were trained, takes a character for. Its tables are of
 * several versions of Unicode (8 for BERT's rules, 9 for normalization forms, 16 for patterns), and utf8proc has
 * one; for the few characters on which they differ, a table says what the package does. */
#ifndef AN_TEXT_VERSIONS_H
#define AN_TEXT_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    AN_VERSION_PLAIN = 1, /* normalization does not know it: no class, no parts, and nothing is composed with it */
    AN_VERSION_LETTER = 2,
    AN_VERSION_NUMBER = 4,
    AN_VERSION_NONSPACING = 8,
    AN_VERSION_NOT_NONSPACING = 16,
    AN_VERSION_MARK = 32,
    AN_VERSION_NOT_MARK = 64,
    AN_VERSION_PUNCTUATION = 128,
    AN_VERSION_NOT_PUNCTUATION = 256,
    AN_VERSION_NOT_OTHER = 512
};

/* A set of these; 0 for nearly all characters: utf8proc is right. */
unsigned an_version_flags(uint32_t character);
/* Whether a character is of a class: as the flags say it, or else as utf8proc does. */
bool an_version_choose(uint32_t character, unsigned is, unsigned is_not, bool otherwise);
/* The lower case of a character for which utf8proc has none. */
uint32_t an_version_lower(uint32_t character);

#endif

/* Where a pattern matches in a text: a string, a regular expression, or a scanner that is written by hand for one of
 * the regular expressions that nearly every byte-level tokenizer has. The scanners give what the expressions
 * give, several times as fast. */
#ifndef AN_TEXT_MATCHER_H
#define AN_TEXT_MATCHER_H

#include "base/note.h"
#include "base/pattern.h"

typedef enum an_scanner {
    AN_SCANNER_NONE,
    AN_SCANNER_GPT2,
    AN_SCANNER_LLAMA3, /* numbers of up to three digits */
    AN_SCANNER_QWEN2   /* single digits */
} an_scanner;

typedef struct an_matcher {
    an_scanner scanner;
    pcre2_code *code; /* NULL: a string, or a scanner */
    const char *string;
    size_t length;
} an_matcher;

/* What a thread needs to match. */
typedef struct an_match_space {
    pcre2_match_data *data;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
} an_match_space;

#define AN_PATTERN_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define AN_PATTERN_LLAMA3                                                      \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| " \
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!"                      \
    "\\S)|\\s+"
#define AN_PATTERN_QWEN2                                                  \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| " \
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|"            \
    "\\s+"

/* A matcher of a regular expression in Oniguruma's syntax. What PCRE2 would read differently is translated or refused.
 * `scanned`: a scanner may take its place. */
an_status an_matcher_compile(an_matcher *matcher, const char *pattern, size_t length, bool scanned, an_note note);
/* A matcher of a string, which must outlive it. */
an_matcher an_matcher_of_string(const char *string, size_t length);
void an_matcher_release(an_matcher *matcher);

bool an_match_space_make(an_match_space *space);
void an_match_space_release(an_match_space *space);

/* The first match at or after `from`: false if there is none. The text is valid UTF-8. An empty match is passed
 * over. */
an_status an_matcher_find(const an_matcher *matcher, an_match_space *space, const char *text, size_t length,
                          size_t from, bool *found, size_t *begin, size_t *end, an_note note);

/* Where the piece that begins at `from` ends: the scanners' patterns match everywhere. */
size_t an_scanner_next(an_scanner scanner, const char *text, size_t length, size_t from);

#endif

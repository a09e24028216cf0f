/* A growing text, for printers. An error is remembered and returned by an_text_take. */
#ifndef AN_BASE_TEXT_H
#define AN_BASE_TEXT_H

#include "base/memory.h"
#include "base/text/json_write.h"
#include "base/text/number.h"

typedef struct an_text {
    an_context *ctx;
    char *bytes; /* always ends in NUL once something was written */
    size_t length, capacity;
    an_status status;
} an_text;

void an_text_init(an_text *text, an_context *ctx);
void an_text_add(an_text *text, const char *format, ...) AN_PRINTF(2, 3);
void an_text_bytes(an_text *text, const char *bytes, size_t length);
void an_text_destroy(an_text *text);
/* A writer that adds to the text. */
an_json_writer an_text_json(an_text *text, an_json_layout layout);
/* Hands the text over, cut to its length, for an_string_release. */
an_status an_text_take(an_text *text, char **string);

/* User's text for a message: cut, and without what a terminal would obey. */
typedef struct an_quote_text {
    char text[72];
} an_quote_text;
an_quote_text an_quote_describe(const char *text);
#define AN_QUOTE(string) (an_quote_describe(string).text)

/* A 64-bit hash of bytes (FNV-1a with a final mix): names of random sites, interning. Not for hostile keys. */
uint64_t an_hash(const void *bytes, size_t length, uint64_t seed);

#endif

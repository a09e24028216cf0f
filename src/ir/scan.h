/* The tokens of the text form (docs/ang-format.md). Every byte may be hostile: nothing is copied or believed before it
 * was checked, and the text need not end in NUL. */
#ifndef AN_IR_SCAN_H
#define AN_IR_SCAN_H

#include "base/memory.h"

enum { AN_LONGEST_NAME = 255, AN_LONGEST_STRING = 65535 }; /* bytes, escapes replaced */

typedef enum an_token_kind {
    AN_TOKEN_END,
    AN_TOKEN_NEWLINE,
    AN_TOKEN_NAME,   /* product, batch, f32, _ */
    AN_TOKEN_VALUE,  /* %12, %fc.weight: without the % */
    AN_TOKEN_NUMBER, /* without a sign */
    AN_TOKEN_STRING, /* what stands between the quotes, escapes checked but not yet replaced */
    AN_TOKEN_MARK    /* one of ( ) [ ] { } , = : + - * */
} an_token_kind;

typedef struct an_token {
    an_token_kind kind;
    const char *start;
    size_t length;
    int line, column; /* from 1; a column is a byte */
} an_token;

typedef struct an_scanner {
    an_context *ctx;
    const char *at, *end, *line_start;
    int line;
    an_token token; /* the one to look at; an_scan_next goes on */
} an_scanner;

/* Begins at the first token. */
an_status an_scan_begin(an_scanner *s, an_context *ctx, const char *text, size_t length);
an_status an_scan_next(an_scanner *s);

bool an_scan_is(const an_scanner *s, char mark);
bool an_token_is(const an_token *token, const char *name); /* a name, and this one */

/* Steps over a mark, or says what it was expected for: "after the inputs". */
an_status an_scan_expect(an_scanner *s, char mark, const char *place);
/* Steps over the end of a line. */
an_status an_scan_expect_line(an_scanner *s);

/* Read a value and step over it. A string is put into the arena, replaced escapes and all. */
an_status an_scan_int(an_scanner *s, int64_t *number);
an_status an_scan_float(an_scanner *s, double *number);
an_status an_scan_bool(an_scanner *s, bool *flag);
an_status an_scan_string(an_scanner *s, an_arena *arena, const char **string);

/* AN_ERR_PARSE with "line:column: " in front. */
an_status an_scan_error(const an_scanner *s, const an_token *at, const char *format, ...) AN_PRINTF(3, 4);
/* "expected <what>, not <the current token>". */
an_status an_scan_unexpected(const an_scanner *s, const char *what);
/* The same place in front of an error that another part of the library left on the context; keeps its status. */
an_status an_scan_locate(const an_scanner *s, const an_token *at, an_status status, const char *message);

#endif

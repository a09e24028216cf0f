/* Reads JSON (RFC 8259, strictly) from a text in memory, value by value. Needs no context. base/text/json_write.h
 * writes JSON.
 *
 * The reader is our own because files are hostile: a library that builds a tree can be made to allocate sixteen times
 * the size of the text, and readers of checkpoints promise at most twice. This one allocates nothing: strings are
 * decoded in place, and nesting takes one bit per level. Duplicate keys must be detected by the caller, who knows
 * which keys exist.
 */
#ifndef AN_BASE_JSON_H
#define AN_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AN_JSON_DEPTH = 64 }; /* objects and arrays that may be open at once: a bit each */

typedef struct an_json {
    char *text;
    size_t length, at;
    int depth;
    uint64_t objects, begun; /* of each level: it is an object; it has had a member or element */
    const char *problem; /* NULL: none. The first one sticks, and `at` is where it is; every call then gives false. */
} an_json;

/* Lies in the text and ends in NUL there, has no other NUL, and is valid UTF-8. */
typedef struct an_json_string {
    const char *bytes;
    size_t length;
} an_json_string;

/* The text is the caller's, is changed by reading, and must stay for as long as strings of it are used. It
 * needs no NUL at its end. */
void an_json_init(an_json *json, char *text, size_t length);

/*     if (an_json_object(&json))
 *         while (an_json_member(&json, &key)) … read or skip one value …
 * At the end, or after a problem, an_json_member and an_json_element give false. */
bool an_json_object(an_json *json);
bool an_json_member(an_json *json, an_json_string *key);
bool an_json_array(an_json *json);
bool an_json_element(an_json *json);

bool an_json_string_value(an_json *json, an_json_string *string);
bool an_json_bool(an_json *json, bool *value);
/* Whole numbers, written without fraction and exponent: 0 … 2^63-1, 0 … 2^64-1, -2^63 … 2^63-1. */
bool an_json_count(an_json *json, int64_t *count);
bool an_json_u64(an_json *json, uint64_t *number);
bool an_json_integer(an_json *json, int64_t *number);
/* Any number that a double can hold, with the bits that an_text_number wrote; null is NaN. */
bool an_json_real(an_json *json, double *number);

/* The first character of the next value, which is not read: '{', '[', '"', '-', a digit, or a letter of true, false and
 * null; -1 at the end. White space before it is passed. */
int an_json_peek(an_json *json);
bool an_json_skip(an_json *json); /* any value */
bool an_json_end(an_json *json);  /* nothing but white space follows */

/* Makes a problem of what the caller does not like about the value at `at`. Gives false. */
bool an_json_refuse(an_json *json, size_t at, const char *problem);

#endif

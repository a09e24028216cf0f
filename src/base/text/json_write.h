/* Writes JSON to anything that takes bytes: a file, or a growing text (an_text_json). Needs no context.
 *
 * Keys are NULL for the elements of an array and for the outermost value. Bytes of keys and strings that are not
 * UTF-8 become U+FFFD, so the output can always be read back.
 */
#ifndef AN_BASE_JSON_WRITE_H
#define AN_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum an_json_layout {
    AN_JSON_FLAT,    /* all on one line */
    AN_JSON_LINES,   /* each member and element on its own line, indented by two blanks a level */
    AN_JSON_MARGIN,  /* the same without indentation */
    AN_JSON_COMPACT, /* all on one line, without blanks */
} an_json_layout;

typedef struct an_json_writer {
    void (*put)(void *to, const char *bytes, size_t length);
    void *to;
    an_json_layout layout; /* may change between values: it holds for what follows */
    int depth;
    int count;        /* members so far of the innermost object or array */
    uint64_t objects; /* of each level: it is an object, and no array */
} an_json_writer;

an_json_writer an_json_to_file(FILE *file, an_json_layout layout);

/* At most 64 of them are open at once. */
void an_json_write_object(an_json_writer *writer, const char *key);
void an_json_write_array(an_json_writer *writer, const char *key);
void an_json_write_end(an_json_writer *writer);    /* of the innermost object or array */
void an_json_write_finish(an_json_writer *writer); /* of the outermost one, with a newline */

void an_json_write_string(an_json_writer *writer, const char *key, const char *value); /* NULL becomes null */
void an_json_write_integer(an_json_writer *writer, const char *key, int64_t value);
void an_json_write_whole(an_json_writer *writer, const char *key, double value); /* may need more than 63 bits */
void an_json_write_bool(an_json_writer *writer, const char *key, bool value);
void an_json_write_null(an_json_writer *writer, const char *key);
/* Numbers that are not finite become null. */
void an_json_write_real(an_json_writer *writer, const char *key,
                        double value); /* the shortest that gives the same bits */
void an_json_write_exact(an_json_writer *writer, const char *key, double value); /* the same bits, from all 17 digits */
void an_json_write_rounded(an_json_writer *writer, const char *key, double value); /* to nine digits */

#endif

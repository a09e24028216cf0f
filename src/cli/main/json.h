/* Writing one JSON object. Keys are ours, NULL for an element of an array; values are escaped. */
#ifndef AN_CLI_MAIN_JSON_H
#define AN_CLI_MAIN_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
    FILE *file;
    int depth;
    int count;    /* members so far of the innermost object or array */
    bool is_flat; /* all on one line */
} json;

json json_begin(FILE *file);
json json_begin_flat(FILE *file);
void json_end(json *j); /* of the whole, with a newline */

void json_object_begin(json *j, const char *key);
void json_object_end(json *j);
void json_array_begin(json *j, const char *key);
void json_array_end(json *j);

void json_string(json *j, const char *key, const char *value);
void json_integer(json *j, const char *key, int64_t value);
void json_whole(json *j, const char *key, double value); /* a whole number that may need more than 63 bits */
void json_real(json *j, const char *key, double value);  /* a finite one, to nine digits */
void json_exact(json *j, const char *key, double value); /* the same with all digits: it reads back to the same bits */
void json_null(json *j, const char *key);

#endif

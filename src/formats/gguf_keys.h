/* The keys of a GGUF file. They were checked when it was opened, so what is there can be read without errors; whether a
 * key is of the kind that is wanted is not known before it is asked for. Nothing is copied: strings are those of the
 * file, and have no NUL behind them. */
#ifndef AN_FORMATS_GGUF_KEYS_H
#define AN_FORMATS_GGUF_KEYS_H

#include "formats/gguf.h"

typedef struct an_gguf_key an_gguf_key;

typedef enum an_gguf_kind {
    AN_GGUF_KIND_INTEGER,
    AN_GGUF_KIND_REAL,
    AN_GGUF_KIND_BOOL,
    AN_GGUF_KIND_STRING
} an_gguf_kind;

typedef struct an_gguf_value {
    an_gguf_kind kind;
    int64_t integer;   /* also of a bool; one that has 64 bits and is too large is INT64_MAX */
    double real;       /* also of an integer or a bool */
    const char *bytes; /* of a string: any bytes */
    size_t length;
} an_gguf_value;

/* In the order of the file. */
size_t an_gguf_key_count(const an_gguf *file);
const an_gguf_key *an_gguf_key_at(const an_gguf *file, size_t index);
/* NULL: there is none. O(keys). */
const an_gguf_key *an_gguf_find(const an_gguf *file, const char *name);

const char *an_gguf_key_name(const an_gguf *file, const an_gguf_key *key); /* valid UTF-8, with a NUL */
an_gguf_kind an_gguf_key_kind(const an_gguf_key *key);                     /* of its elements */
bool an_gguf_key_is_array(const an_gguf_key *key);
uint64_t an_gguf_key_elements(const an_gguf_key *key); /* 1 unless it is an array */

/* The elements of a key one after the other; a single value is the only one. */
typedef struct an_gguf_cursor {
    const an_gguf *file;
    const an_gguf_key *key;
    uint64_t index; /* of the next element */
    size_t at;
} an_gguf_cursor;
an_gguf_cursor an_gguf_values(const an_gguf *file, const an_gguf_key *key);
bool an_gguf_next(an_gguf_cursor *cursor, an_gguf_value *value); /* false: there are no more */

/* A single value of this kind; an integer is also a real number. An absent key leaves *value as it is. AN_ERR_DAMAGED:
 * the key is of another kind, or an array. */
an_status an_gguf_integer(const an_gguf *file, const char *name, int64_t *value);
an_status an_gguf_real(const an_gguf *file, const char *name, double *value);
an_status an_gguf_bool(const an_gguf *file, const char *name, bool *value);
an_status an_gguf_string(const an_gguf *file, const char *name, const char **bytes, size_t *length);
/* The elements of an array of this kind; *cursor has no elements if the key is absent. */
an_status an_gguf_array(const an_gguf *file, const char *name, an_gguf_kind kind, an_gguf_cursor *cursor);

#endif

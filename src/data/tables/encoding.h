/* How columns become numbers. An encoding is made once, from the training data, and then never changes. */
#ifndef AN_DATA_TABLES_ENCODING_H
#define AN_DATA_TABLES_ENCODING_H

#include "anneal/data.h"
#include "base/memory.h"
#include "data/tables/notation.h"

/* The longest name of a category or class, in bytes, and how many of them there may be in a column. */
enum { AN_NAME_BYTES = 1000, AN_MOST_CATEGORIES = 1000, AN_MOST_CLASSES = 10000 };

/* Sorted by their bytes, each once. The number of a name is its place. */
typedef struct an_name_list {
    int64_t count;
    const char **texts;
} an_name_list;

/* O(log names); -1: it is not among them. */
int64_t an_name_list_find(const an_name_list *names, const char *text, size_t length);

typedef enum an_column_kind {
    AN_COLUMN_NUMBER,
    AN_COLUMN_CATEGORY, /* one number for each name: 1 for the cell's own, 0 for all others */
    AN_COLUMN_CLASS,    /* the number of the name */
    AN_COLUMN_DATE      /* the numbers of data/tables/notation.h */
} an_column_kind;

typedef struct an_column {
    const char *name; /* NULL: it has none */
    an_column_kind kind;
    bool has_fill;
    double fill;        /* in the place of a missing number; a missing category is none of the names */
    an_name_list names; /* of categories or classes */
    an_notation notation;
    int64_t begin; /* of its numbers in a sample */
} an_column;

static inline bool an_column_has_names(const an_column *column) {
    return column->kind == AN_COLUMN_CATEGORY || column->kind == AN_COLUMN_CLASS;
}

/* How many numbers of a sample the column becomes. */
static inline int64_t an_column_width(const an_column *column) {
    return column->kind == AN_COLUMN_CATEGORY ? column->names.count
           : column->kind == AN_COLUMN_DATE   ? an_date_width(&column->notation)
                                              : 1;
}

enum { AN_ENCODED_INPUTS, AN_ENCODED_TARGETS, AN_ENCODED_KINDS };

struct an_encoding {
    an_context *ctx;
    an_arena arena; /* of all that it points to */
    int64_t counts[AN_ENCODED_KINDS];
    an_column *columns[AN_ENCODED_KINDS];
};

/* Columns of numbers, without names. */
an_status an_encoding_create(an_encoding **encoding, an_context *ctx, int64_t inputs, int64_t targets);
/* Of data without columns of inputs, whose target is one of these classes; `target` is its name, or NULL. Names are
 * copied. *encoding is NULL if a checkpoint could not hold them: too many, too long, not sorted, or not UTF-8. */
an_status an_encoding_of_classes(an_encoding **encoding, an_context *ctx, const char *target, const char *const *names,
                                 int64_t count);
/* Sets where each column begins. Called once, when all names are known. */
void an_encoding_place(an_encoding *encoding);
/* Whether a sample depends on more than the numbers in the file. */
bool an_encoding_is_plain(const an_encoding *encoding);

/* ---- names that are being collected ---- Each gets a number when it is first seen; at the end they are
 * numbered anew, in sorted order. */

typedef struct an_name_entry {
    const char *text;
    int32_t number; /* as it was seen */
} an_name_entry;

typedef struct an_name_set {
    an_name_entry *entries; /* sorted by text */
    size_t count, capacity;
} an_name_set;

/* *number is that of this text, which is added if it is new. */
an_status an_name_set_add(an_name_set *set, an_arena *arena, const char *text, size_t length, int32_t *number);
/* Sets the final names; numbers[i] becomes the final number of what was number i. */
an_status an_name_set_finish(const an_name_set *set, an_arena *arena, an_name_list *names, int32_t *numbers);
void an_name_set_destroy(an_name_set *set, an_context *ctx);

#endif

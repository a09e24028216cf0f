/* A table of the names that a text has defined. Keys are pieces of the text itself, which outlives the table. */
#ifndef AN_IR_NAMES_H
#define AN_IR_NAMES_H

#include "base/memory.h"
#include "base/text/nearest.h"

typedef struct an_name {
    const char *text; /* not ended by NUL */
    size_t length;
    uint64_t hash;
    int line;         /* where it was defined */
    uint64_t meaning; /* an an_value, or an an_dim */
} an_name;

typedef struct an_names {
    an_name *names; /* in order of definition */
    size_t count, capacity;
    int32_t *slots; /* open addressing over names; 0 is empty, else the number of a name plus 1 */
    size_t slot_count;
} an_names;

void an_names_destroy(an_names *names, an_context *ctx);

/* NULL: not there. */
const an_name *an_names_find(const an_names *names, const char *text, size_t length);

/* Adds a name that is not there yet. AN_ERR_OVERFLOW if the table is full or somebody chose names that collide. */
an_status an_names_add(an_names *names, an_context *ctx, const an_name *name);

/* Offers every name to the search for the nearest. */
void an_names_consider(const an_names *names, an_nearest *nearest);

#endif

/* What a program has added to a context by name: optimizers and metrics. The layers that use them know what their
 * records are; this list keeps a copy of each, so that the config, which is below those layers, can ask for names. */
#ifndef AN_BASE_ADDED_H
#define AN_BASE_ADDED_H

#include "base/context.h"

enum { AN_ADDED_NAME = 32 }; /* bytes of a name, with its end */

typedef struct an_added {
    struct an_added *next;
    size_t bytes; /* of the record */
    char name[AN_ADDED_NAME];
    _Alignas(max_align_t) char record[];
} an_added;

/* A letter, then letters, digits and underscores, lower case: what a config, a file of metrics and a tool can all
 * read. */
bool an_added_is_name(const char *name);

/* Adds a copy of a record at the end of the list of its kind. The caller has checked that the name is a new one, and
 * lets the record's own name point to that of the item. */
an_status an_added_add(an_context *ctx, an_added_kind kind, const char *name, const void *record, size_t bytes,
                       an_added **added);

/* By name, and one after the other in the order in which they were added; NULL: there is none. */
const an_added *an_added_find(const an_context *ctx, an_added_kind kind, const char *name);
const an_added *an_added_at(const an_context *ctx, an_added_kind kind, int index);

/* Releases all lists. */
void an_added_release(an_context *ctx);

#endif

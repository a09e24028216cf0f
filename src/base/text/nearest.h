/* The nearest of some names to one that is not among them, for messages: "there is no op 'prodct'; did you mean
 * 'product'?". */
#ifndef AN_BASE_NEAREST_H
#define AN_BASE_NEAREST_H

#include <stddef.h>

typedef struct an_nearest {
    const char *name; /* what was asked for; not ended by NUL */
    size_t length;
    const char *best; /* NULL: nothing is near */
    size_t best_length;
    const char *near; /* by the fewest edits; NULL: none */
    size_t near_length;
    int distance; /* of it; candidates must be nearer */
    /* the first of those that begin with the name: 'acc' is 'accuracy' and not 'auc', if it is the only one */
    const char *begun;
    size_t begun_length;
    int begun_count;
} an_nearest;

void an_nearest_init(an_nearest *nearest, const char *name, size_t length);
void an_nearest_consider(an_nearest *nearest, const char *candidate, size_t length);

/* "; did you mean 'product'?", or "" if nothing is near; lives as long as the expression it is in. */
typedef struct an_nearest_text {
    char text[96];
} an_nearest_text;
an_nearest_text an_nearest_describe(const an_nearest *nearest);
#define AN_NEAREST(nearest) (an_nearest_describe(nearest).text)

#endif

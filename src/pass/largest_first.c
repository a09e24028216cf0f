#include "pass/largest_first.h"

#include <stdlib.h>

#include "base/status.h"

/* Those that are placed are linked by offset. */
typedef struct placed {
    an_lasting *value;
    struct placed *next;
} placed;

/* Of two as large, the one that lives longer: there are fewer places for it. The last rule makes every plan the
 * same. */
static int larger_first(const void *a, const void *b) {
    const an_lasting *x = ((const placed *)a)->value, *y = ((const placed *)b)->value;
    const int64_t lives_x = x->end - x->begin, lives_y = y->end - y->begin;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (lives_x != lives_y) return lives_x > lives_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int64_t find_gap(const placed *first, const an_lasting *value) {
    int64_t end = 0, found = -1, smallest = INT64_MAX; /* `end`: of those so far that live when it does */
    for (const placed *p = first; p; p = p->next) {
        const an_lasting *other = p->value;
        if (other->end < value->begin || other->begin > value->end) continue;
        const int64_t gap = other->offset - end;
        if (gap >= value->bytes && gap < smallest) {
            smallest = gap;
            found = end;
        }
        if (other->offset + other->bytes > end) end = other->offset + other->bytes;
    }
    return found >= 0 ? found : end;
}

an_status an_place_largest_first(an_context *ctx, an_lasting *values, size_t count, int64_t *bytes) {
    placed *list = NULL, *first = NULL;
    *bytes = 0;
    if (count == 0) return AN_OK;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&list, count, sizeof *list));
    for (size_t i = 0; i < count; i++) list[i].value = &values[i];
    qsort(list, count, sizeof *list, larger_first);
    for (size_t i = 0; i < count; i++) {
        an_lasting *value = list[i].value;
        placed **at = &first;
        value->offset = find_gap(first, value);
        while (*at && (*at)->value->offset <= value->offset) at = &(*at)->next;
        list[i].next = *at;
        *at = &list[i];
        if (value->offset + value->bytes > *bytes) *bytes = value->offset + value->bytes;
    }
    an_release(ctx, (void **)&list, count, sizeof *list);
    return AN_OK;
}

#include "step/schedules/keep.h"

#include <string.h>

#include "base/status.h"

an_status an_schedule_keep(an_arena *arena, const void **kept, const void *given, size_t count, size_t element) {
    void *copy = NULL;
    if (count == 0) return AN_OK;
    AN_TRY_RETURN(an_arena_alloc(arena, &copy, count, element));
    memcpy(copy, given, count * element);
    *kept = copy;
    return AN_OK;
}

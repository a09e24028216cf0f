/* Copies of arrays that options point to. */
#ifndef AN_STEP_SCHEDULES_KEEP_H
#define AN_STEP_SCHEDULES_KEEP_H

#include "base/memory.h"

an_status an_schedule_keep(an_arena *arena, const void **kept, const void *given, size_t count, size_t element);

#endif

#ifndef AN_STEP_SCHEDULE_H
#define AN_STEP_SCHEDULE_H

#include "anneal/train.h"
#include "base/memory.h"

struct an_schedule {
    an_context *ctx;
    an_arena arena;
    an_schedule_options options; /* what it points to lies in the arena */
    an_schedule **parts;         /* of a sequence */
};

#endif

/* Schedules. Each is a file of this folder with one record, and a line in anneal/schedules.def. The record has its
 * name, its options of the config, what it needs, and its formula. Step t counts from 0; u is t without the warm-up,
 * and length the steps that are left after it. */
#ifndef AN_STEP_SCHEDULES_KIND_H
#define AN_STEP_SCHEDULES_KIND_H

#include "anneal/optimizer.h"
#include "base/memory.h"
#include "base/options/kind.h"

typedef struct an_schedule_kind {
    an_kind kind;
    /* The factor on the peak rate, a pure function; NULL: it has parts, one after another, whose factors these are. */
    double (*factor)(const an_schedule_options *o, int64_t u, int64_t length);
    /* beta_1, or the momentum; 0: left as it is. In the warm-up u is below 0. NULL: always left. */
    double (*momentum)(const an_schedule_options *o, int64_t u, int64_t length);
    bool needs_steps, needs_period;
    const char *gamma_per; /* from one what to the next it is multiplied by gamma; NULL: it has no gamma */
    /* Refuses options; NULL: none but those that all schedules refuse. */
    an_status (*check)(an_context *ctx, const an_schedule_options *o);
    /* Copies what only its own options point to; NULL: nothing. */
    an_status (*keep)(an_arena *arena, an_schedule_options *kept, const an_schedule_options *given);
} an_schedule_kind;

#define AN_SCHEDULE(type, name) extern const an_schedule_kind an_schedule_kind_##name;
#include "anneal/schedules.def"
#undef AN_SCHEDULE

#endif

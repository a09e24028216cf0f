/* linear: a straight line from 1 to min_ratio. */
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    return an_schedule_above(o->min_ratio, 1 - an_schedule_progress(u, length));
}

static const an_option options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_linear = {
    .kind = {.name = "linear", .options = options},
    .factor = factor,
    .needs_steps = true,
};

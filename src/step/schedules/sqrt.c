/* sqrt: 1 - sqrt(t/T), down to min_ratio. It falls fast at first and slowly at the end: the cooldown of a run at a
 * constant rate (Hägele et al., "Scaling Laws and Compute-Optimal Training Beyond Fixed Training Durations", 2024), as
 * the last part of a sequence. */
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    return an_schedule_above(o->min_ratio, 1 - __builtin_sqrt(an_schedule_progress(u, length)));
}

static const an_option options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_sqrt = {
    .kind = {.name = "sqrt", .options = options},
    .factor = factor,
    .needs_steps = true,
};

/* cosine: half a wave from 1 to min_ratio. */
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    const double share = an_schedule_half_cosine(an_schedule_progress(u, length));
    if (!o->clamp) return an_schedule_above(o->min_ratio, share);
    return share > o->min_ratio ? share : o->min_ratio;
}

static const an_option options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTION_AT(
        30, "schedule.floor", CHOICE, "scale", "scale|clamp", ANY, FIXED(RATE), INTO(IN(an_schedule_options, clamp)),
        "how min_ratio acts: scale lets the wave end at min_ratio; clamp lets it fall towards 0 and cuts it off at "
        "min_ratio, as many hand-written schedules do"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_cosine = {
    .kind = {.name = "cosine", .options = options},
    .factor = factor,
    .needs_steps = true,
};

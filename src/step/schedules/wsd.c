/* wsd: warm-up, stable, decay. */
#include "base/status.h"
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    const int64_t stable = length - o->decay_steps;
    return u < stable ? 1 : an_schedule_above(o->min_ratio, 1 - an_schedule_progress(u - stable, o->decay_steps));
}

static an_status check(an_context *ctx, const an_schedule_options *o) {
    if (o->decay_steps > 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the schedule 'wsd' needs the number of steps of its decay");
}

static const an_option options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTION_AT(130, "schedule.stable", LENGTH, NONE, "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
              DERIVED, "length of the phase at the peak; what schedule.decay leaves by default"),
    OPTION_AT(140, "schedule.decay", LENGTH, "10%", "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
              DERIVED, "length of the fall at the end; 10% is the usual share"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_wsd = {
    .kind = {.name = "wsd", .options = options},
    .factor = factor,
    .needs_steps = true,
    .check = check,
};

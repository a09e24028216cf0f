/* cosine_restarts: waves of T_0, T_0·T_mult, T_0·T_mult², … steps: at most 63 of them if they grow. */
#include "base/integer.h"
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    const int64_t growth = o->period_growth;
    const int index = an_schedule_period_at(o, &u);
    int64_t period = o->period;
    (void)length;
    if (index < o->border_count) period = o->borders[index] - (index ? o->borders[index - 1] : 0);
    if (growth == 1) u %= period;
    while (u >= period) {
        u -= period;
        if (!an_multiply_i64(period, growth, &period)) period = INT64_MAX; /* no run reaches its end */
    }
    return an_schedule_above(o->min_ratio, an_schedule_half_cosine((double)u / (double)period));
}

static const an_option options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTION_AT(40, "schedule.T_0", LENGTH, REQUIRED, "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
              DERIVED, "length of the first wave"),
    OPTION_AT(50, "schedule.T_mult", COUNT, "1", "", FROM(1), FIXED(RATE), INTO(IN(an_schedule_options, period_growth)),
              "factor by which each wave is longer than the one before; same as PyTorch"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_cosine_restarts = {
    .kind = {.name = "cosine_restarts", .options = options},
    .factor = factor,
    .needs_period = true,
};

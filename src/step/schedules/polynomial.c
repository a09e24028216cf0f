/* polynomial: (1 - t/T)^power, down to min_ratio. */
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    return an_schedule_above(o->min_ratio, an_pow_f64(1 - an_schedule_progress(u, length), o->power));
}

static const an_option options[] = {
    MIN_RATIO_OPTION,
    MIN_LR_OPTION,
    OPTION_AT(180, "schedule.power", REAL, "1", "", ABOVE(0), FIXED(RATE), INTO(IN(an_schedule_options, power)),
              "exponent of the remaining share of the run; same as PyTorch"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_polynomial = {
    .kind = {.name = "polynomial", .options = options},
    .factor = factor,
    .needs_steps = true,
};

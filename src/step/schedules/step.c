/* step: times gamma after every period. */
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    (void)length;
    const int index = an_schedule_period_at(o, &u);
    const int64_t periods = index < o->border_count ? index : index + u / o->period;
    return an_pow_f64(o->gamma, (double)periods);
}

static const an_option options[] = {
    OPTION_AT(150, "schedule.period", LENGTH, REQUIRED, "", UNITS("steps|epochs|tokens|samples|share"), FIXED(RATE),
              DERIVED,
              "interval between drops of the learning rate, counted from the end of the warm-up; 2 epochs means after "
              "every two epochs"),
    OPTION_AT(160, "schedule.gamma", REAL, "0.1", "", ABOVE(0), FIXED(RATE), INTO(IN(an_schedule_options, gamma)),
              "factor on the learning rate after every period; same as PyTorch"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_step = {
    .kind = {.name = "step", .options = options},
    .factor = factor,
    .needs_period = true,
    .gamma_per = "period",
};

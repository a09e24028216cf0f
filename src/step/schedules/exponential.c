/* exponential: times gamma after every step. */
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"
#include "step/schedules/shapes.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    (void)length;
    return an_pow_f64(o->gamma, (double)u);
}

static const an_option options[] = {
    OPTION_AT(170, "schedule.gamma", REAL, REQUIRED, "", ABOVE(0), FIXED(RATE), INTO(IN(an_schedule_options, gamma)),
              "factor on the learning rate after every step"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_exponential = {
    .kind = {.name = "exponential", .options = options},
    .factor = factor,
    .gamma_per = "step",
};

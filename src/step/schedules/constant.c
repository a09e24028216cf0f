/* constant: the peak rate. */
#include "step/schedules/kind.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    (void)o, (void)u, (void)length;
    return 1;
}

const an_schedule_kind an_schedule_kind_constant = {
    .kind = {.name = "constant"},
    .factor = factor,
};

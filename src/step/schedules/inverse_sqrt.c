/* inverse_sqrt: sqrt(warmup ÷ step), as in transformers, whose time scale without a warm-up it has. */
#include "step/schedules/kind.h"

enum { DEFAULT_TIMESCALE = 10000 };

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    const double scale = o->warmup > 0 ? (double)o->warmup : DEFAULT_TIMESCALE;
    (void)length;
    return 1 / __builtin_sqrt(((double)u + scale) / scale);
}

const an_schedule_kind an_schedule_kind_inverse_sqrt = {
    .kind = {.name = "inverse_sqrt"},
    .factor = factor,
};

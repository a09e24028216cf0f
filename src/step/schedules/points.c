/* points: straight lines between points, constant before the first and after the last. */
#include "base/status.h"
#include "step/schedules/keep.h"
#include "step/schedules/kind.h"
#include "step/schedules/rows.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    const int64_t *at = o->point_steps;
    const double *factors = o->point_factors;
    int next = 0;
    (void)length;
    while (next < o->point_count && at[next] <= u) next++;
    if (next == 0) return factors[0];
    if (next == o->point_count) return factors[next - 1];
    const double p = (double)(u - at[next - 1]) / (double)(at[next] - at[next - 1]);
    return factors[next - 1] + (factors[next] - factors[next - 1]) * p;
}

static an_status check(an_context *ctx, const an_schedule_options *o) {
    an_status status;
    AN_CHECK(ctx, o->point_count > 0 && o->point_steps && o->point_factors, AN_ERR_ARGUMENT,
             "a schedule of type points needs at least one point");
    for (int i = 0; i < o->point_count; i++) {
        AN_CHECK(ctx, o->point_steps[i] >= 0 && (i == 0 || o->point_steps[i] > o->point_steps[i - 1]), AN_ERR_ARGUMENT,
                 "point %d of the schedule is at step %lld, but each point must be later than the one before", i,
                 (long long)o->point_steps[i]);
        AN_CHECK(ctx, o->point_factors[i] >= 0 && __builtin_isfinite(o->point_factors[i]), AN_ERR_ARGUMENT,
                 "point %d of the schedule has the factor %g; factors cannot be negative", i, o->point_factors[i]);
    }
    return AN_OK;
fail:
    return status;
}

static an_status keep(an_arena *arena, an_schedule_options *kept, const an_schedule_options *given) {
    const size_t count = (size_t)given->point_count;
    AN_TRY_RETURN(an_schedule_keep(arena, (const void **)&kept->point_steps, given->point_steps, count,
                                   sizeof *given->point_steps));
    return an_schedule_keep(arena, (const void **)&kept->point_factors, given->point_factors, count,
                            sizeof *given->point_factors);
}

static const an_option options[] = {
    OPTION_AT(
        190, "schedule.points", REAL_MAP, REQUIRED, "", FROM(0), FIXED(RATE), DERIVED,
        "map of steps to factors on the learning rate, with straight lines between them, such as {0: 0, 500: 1, 20000: "
        "0.1}; steps count from the end of the warm-up"),
    OPTIONS_END,
};

const an_schedule_kind an_schedule_kind_points = {
    .kind = {.name = "points", .options = options},
    .factor = factor,
    .check = check,
    .keep = keep,
};

/* custom: a function of the caller's, which no config can name. */
#include "base/status.h"
#include "step/schedules/kind.h"

static double factor(const an_schedule_options *o, int64_t u, int64_t length) {
    (void)length;
    return o->custom(o->custom_user, u);
}

static an_status check(an_context *ctx, const an_schedule_options *o) {
    if (o->custom) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the schedule 'custom' has no function");
}

const an_schedule_kind an_schedule_kind_custom = {
    .kind = {.name = "custom", .flags = AN_KIND_OF_CALLS},
    .factor = factor,
    .check = check,
};

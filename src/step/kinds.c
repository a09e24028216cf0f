#include "step/kinds.h"

#include "step/optimizers/kind.h"
#include "step/optimizers/rows.h"
#include "step/schedules/kind.h"

/* An optimizer that a program has added to the context. */
static const an_option own_options[] = {
    OPTION_AT(30, "optimizer.betas", REALS, "auto", "auto", BELOW(0, 1), FIXED(UPDATE),
              INTO(RANGE(an_optimizer_options, beta_1, beta_2)), "two numbers; auto is the default of the optimizer"),
    OPTION_AT(40, "optimizer.eps", REAL, "1e-8", "", ABOVE(0), FIXED(UPDATE), INTO(IN(an_optimizer_options, epsilon)),
              "as the optimizer uses it; the usual number"),
    OPTION_AT(120, "optimizer.weight_decay", REAL, "auto", "auto", FROM(0), FIXED(UPDATE),
              INTO(IN(an_group_options, weight_decay)),
              "as the optimizer uses it; auto is the default of the optimizer"),
    OPTIONS_END,
};
static const an_kind own_optimizer = {.name = "own", .options = own_options, .flags = AN_KIND_UNNAMED};

static const an_kind *const optimizers[] = {
#define AN_OPTIMIZER(type, name) &an_optimizer_kind_##name.kind,
#include "anneal/optimizers.def"
#undef AN_OPTIMIZER
    &own_optimizer, NULL};

static const an_kind *const schedules[] = {
#define AN_SCHEDULE(type, name) &an_schedule_kind_##name.kind,
#include "anneal/schedules.def"
#undef AN_SCHEDULE
    NULL};

void an_context_add_step_kinds(an_context *ctx) {
    ctx->kinds[AN_KINDS_OPTIMIZER] = optimizers;
    ctx->kinds[AN_KINDS_SCHEDULE] = schedules;
}

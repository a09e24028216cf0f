/* sgd, as PyTorch's SGD: momentum starts as the first gradient. */
#include "base/status.h"
#include "step/optimizers/kind.h"
#include "step/optimizers/rows.h"

#define DEFINE_PAGE(name, real)                                                                                   \
    static void name(const an_update_attributes *a, const an_update_run *run, real *restrict g, real *restrict w, \
                     real *const *moments) {                                                                      \
        const real rate = (real)run->rate, decay = (real)run->weight_decay;                                       \
        const real momentum = (real)a->momentum, undamped = (real)(1 - a->dampening);                             \
        real *restrict m = moments[0];                                                                            \
        for (int i = 0; i < AN_PAGE; i++) g[i] = g[i] + decay * w[i];                                             \
        if (m && a->first)                                                                                        \
            for (int i = 0; i < AN_PAGE; i++) m[i] = g[i];                                                        \
        else if (m)                                                                                               \
            for (int i = 0; i < AN_PAGE; i++) m[i] = momentum * m[i] + undamped * g[i];                           \
        if (m && a->options->nesterov)                                                                            \
            for (int i = 0; i < AN_PAGE; i++) g[i] = g[i] + momentum * m[i];                                      \
        const real *direction = m && !a->options->nesterov ? m : g;                                               \
        for (int i = 0; i < AN_PAGE; i++) w[i] = w[i] - rate * direction[i];                                      \
    }
DEFINE_PAGE(page_f32, float)
DEFINE_PAGE(page_f64, double)

static int moments_of(const an_optimizer_options *o) {
    return o->momentum != 0;
}

static an_status check(an_context *ctx, const an_optimizer_options *o) {
    if (!o->nesterov || (o->momentum > 0 && o->dampening == 0)) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "nesterov needs sgd with momentum and without dampening");
}

static const an_option options[] = {
    MOMENTUM_OPTION,
    OPTION_AT(70, "optimizer.dampening", REAL, "0", "", FROM(0), FIXED(UPDATE),
              INTO(IN(an_optimizer_options, dampening)), "dampening of the momentum; same as PyTorch"),
    OPTION_AT(80, "optimizer.nesterov", BOOL, "off", "", ANY, FIXED(UPDATE), INTO(IN(an_optimizer_options, nesterov)),
              "Nesterov momentum; same as PyTorch"),
    WEIGHT_DECAY_OPTION,
    OPTIONS_END,
};

AN_OPTIMIZER_KIND(sgd) = {
    AN_OPTIMIZER_NAMED("sgd", options, .version = 1, .moments = 1, .beta_1 = 0.9, .beta_2 = 0.999),
    .rule = {.page_f32 = page_f32, .page_f64 = page_f64},
    .check = check,
    .moments = moments_of,
};

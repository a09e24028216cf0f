/* rmsprop (Hinton, 2012), as PyTorch's RMSprop. With decay, momentum and centred at will:
 *
 *     g = g + decay·w
 *     s = alpha·s + (1 - alpha)·g²
 *     a = alpha·a + (1 - alpha)·g             centered
 *     d = g / (sqrt(s - a²) + eps)            a = 0 if it is not centered
 *     b = momentum·b + d                      w = w - rate·b, or w - rate·d without momentum
 *
 * alpha is beta_2 of the options. The first moment is s, the second a or b: a store has room for two. */
#include "base/status.h"
#include "step/optimizers/kind.h"
#include "step/optimizers/root.h"
#include "step/optimizers/rows.h"

/* Rounding can make a² larger than s, whose root would be NaN. */
#define DEFINE_PAGE(name, real, square_root)                                                                      \
    static void name(const an_update_attributes *a, const an_update_run *run, real *restrict g, real *restrict w, \
                     real *const *moments) {                                                                      \
        const real rate = (real)run->rate, decay = (real)run->weight_decay, epsilon = (real)a->epsilon;           \
        const real alpha = (real)a->beta_2, rest = (real)(1 - a->beta_2), momentum = (real)a->momentum;           \
        real *restrict s = moments[0], *restrict second = moments[1];                                             \
        for (int i = 0; i < AN_PAGE; i++) {                                                                       \
            g[i] = g[i] + decay * w[i];                                                                           \
            s[i] = alpha * s[i] + rest * (g[i] * g[i]);                                                           \
        }                                                                                                         \
        if (second && !a->options->centered)                                                                      \
            for (int i = 0; i < AN_PAGE; i++) {                                                                   \
                second[i] = momentum * second[i] + g[i] / (square_root(s[i]) + epsilon);                          \
                w[i] = w[i] - rate * second[i];                                                                   \
            }                                                                                                     \
        else if (second)                                                                                          \
            for (int i = 0; i < AN_PAGE; i++) {                                                                   \
                second[i] = alpha * second[i] + rest * g[i];                                                      \
                const real variance = s[i] - second[i] * second[i];                                               \
                w[i] = w[i] - rate * (g[i] / (square_root(variance > 0 ? variance : 0) + epsilon));               \
            }                                                                                                     \
        else                                                                                                      \
            for (int i = 0; i < AN_PAGE; i++) w[i] = w[i] - rate * (g[i] / (square_root(s[i]) + epsilon));        \
    }
DEFINE_PAGE(page_f32, float, an_square_root_f32)
DEFINE_PAGE(page_f64, double, an_square_root_f64)

static int moments_of(const an_optimizer_options *o) {
    return o->momentum != 0 || o->centered ? 2 : 1;
}

static an_status check(an_context *ctx, const an_optimizer_options *o) {
    if (o->momentum == 0 || !o->centered) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "rmsprop has momentum or is centered, not both: weights have room for two moments; set momentum "
                    "to 0 or centered to off");
}

static const an_option options[] = {
    EPS_OPTION,
    MOMENTUM_OPTION,
    OPTION_AT(85, "optimizer.alpha", REAL, "0.99", "", BELOW(0, 1), FIXED(UPDATE),
              INTO(IN(an_optimizer_options, beta_2)), "decay rate of the mean of squares; same as PyTorch"),
    OPTION_AT(86, "optimizer.centered", BOOL, "off", "", ANY, FIXED(UPDATE), INTO(IN(an_optimizer_options, centered)),
              "subtract the square of the gradient's mean from the mean of squares; same as PyTorch, but not together "
              "with momentum"),
    WEIGHT_DECAY_OPTION,
    OPTIONS_END,
};

AN_OPTIMIZER_KIND(rmsprop) = {
    AN_OPTIMIZER_NAMED("rmsprop", options, .version = 1, .moments = 2, .beta_2 = 0.99),
    .rule = {.page_f32 = page_f32, .page_f64 = page_f64},
    .check = check,
    .moments = moments_of,
};

/* lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023): every weight moves by the rate, in the
 * direction of a mean of gradients. Each weight has one moment. Its functions are those of a program's record.
 *
 *     c = beta_1·m + (1 - beta_1)·g
 *     w = w - rate·(sign(c) + decay·w)      sign(0) = 0
 *     m = beta_2·m + (1 - beta_2)·g
 *
 * It has no decay by default, as in the authors' code. The paper takes a rate 3 to 10 times smaller than AdamW's, and a
 * decay as many times larger. */
#include "step/optimizers/kind.h"
#include "step/optimizers/rows.h"

#define DEFINE_UPDATE(name, real)                                                                      \
    static void name(void *user, const an_optimizer_numbers *n, int64_t count, const real *restrict g, \
                     real *restrict w, real *restrict m, real *moment_2) {                             \
        const real rate = (real)n->rate, decay = (real)n->weight_decay;                                \
        const real beta_1 = (real)n->beta_1, rest_1 = (real)(1 - n->beta_1);                           \
        const real beta_2 = (real)n->beta_2, rest_2 = (real)(1 - n->beta_2);                           \
        (void)user, (void)moment_2;                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                          \
            const real c = beta_1 * m[i] + rest_1 * g[i];                                              \
            const real sign = (c > 0 ? (real)1 : 0) - (c < 0 ? (real)1 : 0);                           \
            w[i] = w[i] - rate * (sign + decay * w[i]);                                                \
            m[i] = beta_2 * m[i] + rest_2 * g[i];                                                      \
        }                                                                                              \
    }
DEFINE_UPDATE(update_f32, float)
DEFINE_UPDATE(update_f64, double)

static const an_option options[] = {
    OPTION_AT(20, "optimizer.betas", REALS, "[0.9, 0.99]", "", BELOW(0, 1), FIXED(UPDATE),
              INTO(RANGE(an_optimizer_options, beta_1, beta_2)), "of the direction and of the moment; as in its paper"),
    OPTION_AT(
        110, "optimizer.weight_decay", REAL, "0", "", FROM(0), FIXED(UPDATE), INTO(IN(an_group_options, weight_decay)),
        "apart from the gradient; none, as in its authors' code. With a rate of a tenth of adamw's, ten times adamw's "
        "decay is as strong"),
    OPTIONS_END,
};

AN_OPTIMIZER_KIND(lion) = {
    AN_OPTIMIZER_NAMED("lion", options, .version = 1, .moments = 1, .beta_1 = 0.9, .beta_2 = 0.99,
                       .update_f32 = update_f32, .update_f64 = update_f64),
};

/* lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023): every weight moves by the rate, in the
 * direction of a mean of gradients. Each weight has one moment. It is described by the same record as the optimizer of
 * a program, one for each level of instructions.
 *
 *     c = beta_1·m + (1 - beta_1)·g
 *     w = w - rate·(sign(c) + decay·w)      sign(0) = 0
 *     m = beta_2·m + (1 - beta_2)·g
 *
 * It has no decay by default, as in the authors' code. The paper takes a rate 3 to 10 times smaller than AdamW's, and a
 * decay as many times larger. */
#include "kernels/update/update.h"

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

const an_optimizer_record AN_LEVELED(an_optimizer_lion) = {.name = "lion",
                                                           .version = 1,
                                                           .moments = 1,
                                                           .beta_1 = 0.9,
                                                           .beta_2 = 0.99,
                                                           .update_f32 = update_f32,
                                                           .update_f64 = update_f64};

/* adamw (Loshchilov and Hutter, 2019), as PyTorch's AdamW: the weights decay by themselves. */
#include "step/optimizers/kind.h"
#include "step/optimizers/root.h"
#include "step/optimizers/rows.h"

enum { DECOUPLED = true };
#define AN_TEMPLATE "step/optimizers/adam_template.h"
#include "kernels/common/instantiate.h"

static const an_option options[] = {
    BETAS_OPTION,
    EPS_OPTION,
    OPTION_AT(90, "optimizer.weight_decay", REAL, "0.01", "", FROM(0), FIXED(UPDATE),
              INTO(IN(an_group_options, weight_decay)),
              "weight decay, applied separately from the gradient; same as PyTorch's AdamW"),
    OPTIONS_END,
};

AN_OPTIMIZER_KIND(adamw) = {
    AN_OPTIMIZER_NAMED("adamw", options, .version = 1, .moments = 2, .beta_1 = 0.9, .beta_2 = 0.999,
                       .weight_decay = 0.01),
    .rule = {.page_f32 = page_f32, .page_f64 = page_f64},
};

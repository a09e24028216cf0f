/* adam (Kingma and Ba, 2015), as PyTorch's Adam: the weight decay is added to the gradient. */
#include "step/optimizers/kind.h"
#include "step/optimizers/root.h"
#include "step/optimizers/rows.h"

enum { DECOUPLED = false };
#define AN_TEMPLATE "step/optimizers/adam_template.h"
#include "kernels/common/instantiate.h"

static const an_option options[] = {
    BETAS_OPTION,
    EPS_OPTION,
    WEIGHT_DECAY_OPTION,
    OPTIONS_END,
};

AN_OPTIMIZER_KIND(adam) = {
    AN_OPTIMIZER_NAMED("adam", options, .version = 1, .moments = 2, .beta_1 = 0.9, .beta_2 = 0.999),
    .rule = {.page_f32 = page_f32, .page_f64 = page_f64},
};

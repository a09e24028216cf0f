/* Options that several optimizers have (base/options/option_rows.h). */
#ifndef AN_STEP_OPTIMIZERS_ROWS_H
#define AN_STEP_OPTIMIZERS_ROWS_H

#include "anneal/optimizer.h"
#include "base/options/option_rows.h"

#define BETAS_OPTION                                                                        \
    OPTION_AT(10, "optimizer.betas", REALS, "[0.9, 0.999]", "", BELOW(0, 1), FIXED(UPDATE), \
              INTO(RANGE(an_optimizer_options, beta_1, beta_2)), "decay rates of the two moments; same as PyTorch")

#define EPS_OPTION                                                                                                     \
    OPTION_AT(50, "optimizer.eps", REAL, "1e-8", "", ABOVE(0), FIXED(UPDATE), INTO(IN(an_optimizer_options, epsilon)), \
              "value added to the square root of the second moment; same as PyTorch")

#define MOMENTUM_OPTION                                                            \
    OPTION_AT(60, "optimizer.momentum", REAL, "0", "", BELOW(0, 1), FIXED(UPDATE), \
              INTO(IN(an_optimizer_options, momentum)), "momentum factor; same as PyTorch")

#define WEIGHT_DECAY_OPTION                                                         \
    OPTION_AT(100, "optimizer.weight_decay", REAL, "0", "", FROM(0), FIXED(UPDATE), \
              INTO(IN(an_group_options, weight_decay)),                             \
              "weight decay, added to the gradient (L2); none, same as PyTorch")

#endif

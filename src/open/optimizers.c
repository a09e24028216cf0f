/* Types of optimizers: names and options. */
#include "anneal/optimizer.h"
#include "base/option_rows.h"
#include "open/kinds.h"

#define BETAS_OPTION                                                                                 \
    OPTION_AT(10, "optimizer.betas", REALS, "[0.9, 0.999]", "", BELOW(0, 1), FIXED(UPDATE), DERIVED, \
              "decay rates of the two moments; same as PyTorch")

#define EPS_OPTION                                                                                                     \
    OPTION_AT(50, "optimizer.eps", REAL, "1e-8", "", ABOVE(0), FIXED(UPDATE), INTO(IN(an_optimizer_options, epsilon)), \
              "value added to the square root of the second moment; same as PyTorch")

#define WEIGHT_DECAY_OPTION                                                         \
    OPTION_AT(100, "optimizer.weight_decay", REAL, "0", "", FROM(0), FIXED(UPDATE), \
              INTO(IN(an_group_options, weight_decay)),                             \
              "weight decay, added to the gradient (L2); none, same as PyTorch")

static const an_option adamw_options[] = {
    BETAS_OPTION,
    EPS_OPTION,
    OPTION_AT(90, "optimizer.weight_decay", REAL, "0.01", "", FROM(0), FIXED(UPDATE),
              INTO(IN(an_group_options, weight_decay)),
              "weight decay, applied separately from the gradient; same as PyTorch's AdamW"),
    OPTIONS_END,
};

static const an_option adam_options[] = {
    BETAS_OPTION,
    EPS_OPTION,
    WEIGHT_DECAY_OPTION,
    OPTIONS_END,
};

static const an_option sgd_options[] = {
    OPTION_AT(60, "optimizer.momentum", REAL, "0", "", BELOW(0, 1), FIXED(UPDATE),
              INTO(IN(an_optimizer_options, momentum)), "momentum factor; same as PyTorch"),
    OPTION_AT(70, "optimizer.dampening", REAL, "0", "", FROM(0), FIXED(UPDATE),
              INTO(IN(an_optimizer_options, dampening)), "dampening of the momentum; same as PyTorch"),
    OPTION_AT(80, "optimizer.nesterov", BOOL, "off", "", ANY, FIXED(UPDATE), INTO(IN(an_optimizer_options, nesterov)),
              "Nesterov momentum; same as PyTorch"),
    WEIGHT_DECAY_OPTION,
    OPTIONS_END,
};

static const an_option lion_options[] = {
    OPTION_AT(20, "optimizer.betas", REALS, "[0.9, 0.99]", "", BELOW(0, 1), FIXED(UPDATE), DERIVED,
              "of the direction and of the moment; as in its paper"),
    OPTION_AT(
        110, "optimizer.weight_decay", REAL, "0", "", FROM(0), FIXED(UPDATE), INTO(IN(an_group_options, weight_decay)),
        "apart from the gradient; none, as in its authors' code. With a rate of a tenth of adamw's, ten times adamw's "
        "decay is as strong"),
    OPTIONS_END,
};

static const an_option own_options[] = {
    OPTION_AT(30, "optimizer.betas", REALS, "auto", "auto", BELOW(0, 1), FIXED(UPDATE), DERIVED,
              "two numbers; auto is the default of the optimizer"),
    OPTION_AT(40, "optimizer.eps", REAL, "1e-8", "", ABOVE(0), FIXED(UPDATE), INTO(IN(an_optimizer_options, epsilon)),
              "as the optimizer uses it; the usual number"),
    OPTION_AT(120, "optimizer.weight_decay", REAL, "auto", "auto", FROM(0), FIXED(UPDATE),
              INTO(IN(an_group_options, weight_decay)),
              "as the optimizer uses it; auto is the default of the optimizer"),
    OPTIONS_END,
};

const an_kind an_optimizer_kind_adamw = {.name = "adamw", .options = adamw_options};
const an_kind an_optimizer_kind_adam = {.name = "adam", .options = adam_options};
const an_kind an_optimizer_kind_sgd = {.name = "sgd", .options = sgd_options};
const an_kind an_optimizer_kind_lion = {.name = "lion", .options = lion_options};
const an_kind an_optimizer_kind_own = {.name = "own", .options = own_options, .flags = AN_KIND_UNNAMED};

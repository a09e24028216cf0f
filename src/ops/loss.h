/* What losses add to programs. */
#ifndef AN_OPS_LOSS_H
#define AN_OPS_LOSS_H

#include "ir/graph.h"
#include "kernels/loss/loss.h"

/* The output that an_count_right adds. */
#define AN_OUTPUT_RIGHT "right_targets"

/* The input that says which of two answers is preferred (pass/dpo.c), and the output that the program pass adds to
 * evaluations: the sum over samples of the rewards of each, [2]. */
#define AN_INPUT_PREFERRED "preferred"
#define AN_OUTPUT_REWARDS "rewards_sum"

/* For evaluations of a model whose loss is a cross entropy and that does not store its logits, such as a language
 * model: adds an output of how many targets have the largest logit. Adds nothing to other models: where logits are
 * an output, the host can compare them. */
void an_count_right(an_graph *g);

#endif

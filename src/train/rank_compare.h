/* That the ranks of a run would compute the same bits. */
#ifndef AN_TRAIN_RANK_COMPARE_H
#define AN_TRAIN_RANK_COMPARE_H

#include "train/trainer.h"

/* `status` is how the trainer was made on this rank; `t` is NULL if it was not. Every rank gets the error of a rank
 * that has one, or one that names the first difference: of the binary, the data, the instruction set, the kernels
 * and how a step is divided. Collective; nothing on one rank. */
an_status an_ranks_compare(an_trainer *t, an_context *ctx, an_status status);

/* A rank computes whole leaves, so there cannot be more ranks than leaves. The message says what a run
 * with enough of them costs. */
an_status an_ranks_check_leaves(an_trainer *t);

#endif

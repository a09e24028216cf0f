/* What random ops share: their site, and what their random numbers depend on. */
#ifndef AN_OPS_DROPOUT_H
#define AN_OPS_DROPOUT_H

#include "ops/common.h"

/* The site of a random op that is about to be added: a hash of the open path and of how many random ops there are.
 * It is an attribute of the op, so that the same model draws the same numbers however it came to be. */
int64_t an_random_site(const an_graph *g);

/* A share of elements that is dropped: at least 0 and below 1. */
an_status an_expect_rate(an_graph *g, const an_node *node, double rate);

/* Inputs first, first + 1 and first + 2 are the samples of the batch and the scalars seed and step. */
an_status an_expect_random(an_graph *g, const an_node *node, int first, an_dim batch);

#endif

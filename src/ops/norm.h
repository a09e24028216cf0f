/* What ops with statistics among their outputs share. */
#ifndef AN_OPS_NORM_H
#define AN_OPS_NORM_H

#include "ops/common.h"

/* What is added to a variance: at least 0 and below 1. */
an_status an_expect_epsilon(an_graph *g, const an_node *node, double epsilon);

/* Outputs after the first are there for gradient ops; nothing flows back through them. True, after a mistake, if
 * something should. */
bool an_refuse_statistics(an_graph *g, const an_node *node, const an_value *diff_dst);

#endif

/* How long instructions take, for comparing plans of one model. The unit is a second of the machine that the rates in
 * cost.c were measured on; on another only ratios of such times mean something. */
#ifndef AN_PASS_COST_H
#define AN_PASS_COST_H

#include "ir/graph.h"

/* At the symbols' current values; 0 for what is no instruction. */
double an_node_seconds(const an_graph *g, const an_node *node);

#endif

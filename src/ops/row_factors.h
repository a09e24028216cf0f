/* For the pass that adds adapters: no model calls it, so it is no public builder. */
#ifndef AN_OPS_ROW_FACTORS_H
#define AN_OPS_ROW_FACTORS_H

#include "ir/graph.h"

/* The factors of the outputs of a layer (ops/row_factors.c). */
an_value an_row_factors(an_graph *g, an_value weight, an_value first, an_value second, an_value magnitude,
                        double scale);

#endif

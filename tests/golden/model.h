/* The models of golden cases that have no graph of their own: built from the options in the case. */
#ifndef GOLDEN_MODEL_H
#define GOLDEN_MODEL_H

#include "anneal/graph.h"
#include "golden/golden.h"

/* The name of a case begins with its model's: mlp.batch_norm. AN_ERR_UNKNOWN if there is no such model. */
an_status golden_model(an_graph **graph, an_context *ctx, const golden_case *c, an_dtype dtype);

#endif

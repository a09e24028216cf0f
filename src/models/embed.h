/* Categories as rows of learned tables. */
#ifndef AN_MODELS_EMBED_H
#define AN_MODELS_EMBED_H

#include "anneal/models.h"

enum { AN_MOST_EMBEDDED = 256 };

/* Refuses columns that overlap, are out of order or not among the inputs, and widths below 1. */
an_status an_model_check_embedded(an_context *ctx, const char *model, const an_embedded_column *columns, int count,
                                  int64_t inputs);

/* x (batch, inputs) with each of these columns replaced by its row of a table. All other inputs are taken from
 * `numbers`, which is x, normalised or not. The columns have been checked. */
an_value an_model_embed(an_graph *g, an_value x, an_value numbers, const an_embedded_column *columns, int count);

#endif

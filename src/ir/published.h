/* Names of parameters in published files. Most classes of Hugging Face have the name of the model's body before every
 * name of it: "transformer." in GPT-2's, "bert." in BERT's. Ours have not. */
#ifndef AN_IR_PUBLISHED_H
#define AN_IR_PUBLISHED_H

#include "ir/graph.h"

/* The name of a tensor or a layer without the name of the body. */
const char *an_published_bare(const char *name);
/* What the published class of a model has before the name of a parameter or a layer; "" if nothing. */
const char *an_published_prefix(const an_graph *graph, const char *name);

#endif

/* Adapters in PEFT's format. */
#ifndef AN_INTERCHANGE_ADAPTER_H
#define AN_INTERCHANGE_ADAPTER_H

#include "ir/graph.h"

/* Whether adapter_config.json of a folder says what the adapter of the model is. */
an_status an_adapter_check(an_context *ctx, const an_graph *graph, const char *folder);

#endif

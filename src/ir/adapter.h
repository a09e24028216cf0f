/* Which parameters of a model are those of an adapter: by their names, which are PEFT's without its prefix, so that a
 * graph that was read from a text has it too. */
#ifndef AN_IR_ADAPTER_H
#define AN_IR_ADAPTER_H

#include "ir/graph.h"

#define AN_ADAPTER_FIRST ".lora_A.weight"
#define AN_ADAPTER_SECOND ".lora_B.weight"
#define AN_ADAPTER_MAGNITUDE ".lora_magnitude_vector" /* of DoRA */

/* Whether a parameter of this name is a part of an adapter. */
bool an_adapter_has(const char *parameter);
/* Whether a model has an adapter. O(parameters). */
bool an_graph_has_adapter(const an_graph *graph);
/* What the change of a layer is multiplied by: alpha ÷ rank, or alpha ÷ √rank. */
double an_adapter_scale(const an_adapter *adapter);

#endif

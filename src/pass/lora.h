/* Adapters of low rank: which parameters are theirs. */
#ifndef AN_PASS_LORA_H
#define AN_PASS_LORA_H

#include "anneal/optimizer.h"
#include "ir/graph.h"

/* Whether a parameter of this name is a part of an adapter. */
bool an_lora_has(const char *parameter);

/* What the change of a layer is multiplied by: alpha ÷ rank, or alpha ÷ √rank. */
double an_lora_scale(const an_lora_options *options);

#endif

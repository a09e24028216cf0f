/* What an adapter_config.json of PEFT says about the adapter that its folder holds. */
#ifndef AN_PASS_LORA_CONFIG_H
#define AN_PASS_LORA_CONFIG_H

#include "anneal/adapter.h"
#include "base/memory.h"

/* Fills targets, rank, alpha, rslora and dora from the folder options->from; what is allocated lies in the arena.
 * Other keys are checked when its weights are loaded. */
an_status an_lora_config_read(an_lora_options *options, an_arena *arena);

#endif

/* Adapters in PEFT's format. */
#ifndef AN_TRAIN_ADAPTER_H
#define AN_TRAIN_ADAPTER_H

#include "train/trainer.h"

/* Whether adapter_config.json of a folder says what the adapter of the trainer's model is. */
an_status an_adapter_check(const an_trainer *trainer, const char *folder);

#endif

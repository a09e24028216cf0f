/* Adapters in PEFT's format. */
#ifndef AN_TRAIN_ADAPTER_H
#define AN_TRAIN_ADAPTER_H

#include "train/trainer.h"

/* Whether adapter_config.json of a folder says what the adapter of the trainer's model is. */
an_status an_adapter_check(const an_trainer *trainer, const char *folder);

/* Reads the weights that an adapter was trained on into a store of its model, and compares their hash;
 * `checkpoint` is for messages. */
an_status an_base_load(an_params *params, const an_saved_adapter *saved, const char *checkpoint);

/* Reads the weights of a published model (anneal/pretrained.h), all of them and no others. */
an_status an_weights_load(an_params *params, const char *path, an_model_weights weights);

#endif

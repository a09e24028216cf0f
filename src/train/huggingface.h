/* The config.json of a Hugging Face folder, checked against the model that takes its weights. */
#ifndef AN_TRAIN_HUGGINGFACE_H
#define AN_TRAIN_HUGGINGFACE_H

#include "anneal/config.h"
#include "train/trainer.h"

/* Refuses the folder if its config.json contradicts the model, and names every key that does. Values that Hugging Face assumes for absent
 * keys count too. Keys that nobody here knows, and a folder without config.json, are logged as warnings. *gpt2 says whether
 * the folder holds a GPT-2. */
an_status an_huggingface_check(an_trainer *trainer, an_config *config, const char *folder, bool *gpt2);

#endif

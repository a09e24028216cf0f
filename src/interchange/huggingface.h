/* The config.json of a Hugging Face folder, checked against the model that takes its weights. */
#ifndef AN_INTERCHANGE_HUGGINGFACE_H
#define AN_INTERCHANGE_HUGGINGFACE_H

#include "interchange/model_facts.h"

/* Refuses the folder if its config.json contradicts the model, and names every key that does. Values that Hugging Face
 * assumes for absent keys count too. Keys that nobody here knows, and a folder without config.json, are logged as
 * warnings. *gpt2 says whether the folder holds a GPT-2. model_type is what the config calls the model, NULL where it
 * comes from elsewhere; `taken` is how many bytes of the message the caller will add. */
an_status an_huggingface_check(an_context *ctx, const an_model_facts *model, const char *folder, const char *model_type,
                               size_t taken, bool *gpt2);

#endif

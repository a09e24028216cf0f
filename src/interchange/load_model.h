/* Loads the weights of a published model, all of them, into a store. */
#ifndef AN_INTERCHANGE_LOAD_MODEL_H
#define AN_INTERCHANGE_LOAD_MODEL_H

#include "anneal/checkpoint.h"
#include "exec/params.h"
#include "store/adapter_record.h"

/* Reads the weights that an adapter was trained on into a store of its model, and compares their hash;
 * `checkpoint` is for messages. */
an_status an_base_load(an_params *params, const an_saved_adapter *saved, const char *checkpoint);

/* Reads the weights of a published model (anneal/pretrained.h), all of them and no others. */
an_status an_weights_load(an_params *params, const char *path, an_model_weights weights);

#endif

/* What a checkpoint of an adapter says of it, and of the model that it was trained on, which it does not hold. */
#ifndef AN_STORE_ADAPTER_RECORD_H
#define AN_STORE_ADAPTER_RECORD_H

#include "base/text/json.h"
#include "base/text/json_write.h"
#include "exec/params.h"

typedef struct an_saved_adapter {
    an_adapter adapter; /* rank 0: there is none */
    /* what its weights were read from, of the manifest's text or of the trainer; "": they were random, or set by the
     * program */
    const char *base;
    uint64_t hash[2]; /* of its weights as they were stored */
} an_saved_adapter;

/* As members of a JSON object, and back. */
void an_adapter_write(an_json_writer *json, const an_saved_adapter *saved);
bool an_adapter_read(an_json *json, an_saved_adapter *saved);

/* The hash of the frozen parameters, in the order of the model. O(their bytes). */
an_status an_base_hash(const an_params *params, uint64_t hash[2]);

#endif

/* Hashes of what a run has learned. */
#include <stdio.h>
#include <xxhash.h>

#include "train/trainer.h"

enum { PART_BYTES = 1 << 20 }; /* what is copied from the device at a time */

/* Adds one parameter, without the padding behind it. */
static an_status add_parameter(const an_params *p, const an_stored *e, void *part, XXH3_state_t *state) {
    an_context *ctx = p->ctx;
    const char *from = (const char *)an_params_base(p, e->storage) + e->offset;
    const size_t bytes = (size_t)e->elements * an_dtype_size(e->dtype);
    for (size_t done = 0; done < bytes; done += PART_BYTES) {
        const size_t some = bytes - done < PART_BYTES ? bytes - done : PART_BYTES;
        AN_TRY_RETURN(p->device->copy(p->device, ctx, part, from + done, some, AN_COPY_FROM_DEVICE));
        AN_TRY_RETURN(p->device->synchronize(p->device, ctx));
        XXH3_128bits_update(state, part, some);
    }
    return AN_OK;
}

an_status an_trainer_weights_hash(const an_trainer *trainer, char text[AN_HASH_TEXT]) {
    an_status status;
    an_context *ctx = trainer->ctx;
    const an_params *p = trainer->params;
    void *part = NULL;
    XXH3_state_t *state = XXH3_createState();
    AN_CHECK(ctx, state, AN_ERR_MEMORY, "no memory for a hash");
    AN_TRY(an_alloc_raw(ctx, &part, PART_BYTES));
    XXH3_128bits_reset(state);
    for (size_t i = 0; i < p->parameter_count; i++) AN_TRY(add_parameter(p, &p->entries[i], part, state));
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    snprintf(text, AN_HASH_TEXT, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    status = AN_OK;
fail:
    an_release(ctx, &part, PART_BYTES, 1);
    XXH3_freeState(state);
    return status;
}

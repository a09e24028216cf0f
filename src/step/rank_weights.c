#include "step/rank_weights.h"

#include <xxhash.h>

#include "base/status.h"

enum {
    PART_BYTES = 4096,
    SOME_BYTES = 256
}; /* what is copied from the device at a time; what is looked at in a step */

static an_status add(const an_params *p, const an_stored *e, size_t begin, size_t bytes, uint64_t *number) {
    an_context *ctx = p->ctx;
    unsigned char part[PART_BYTES];
    const char *base = (const char *)an_params_base(p, e->storage) + e->offset;
    for (size_t at = begin, end = begin + bytes, some; at < end; at += some) {
        some = end - at < sizeof part ? end - at : sizeof part;
        AN_TRY_RETURN(p->device->copy(p->device, ctx, part, base + at, some, AN_COPY_FROM_DEVICE));
        AN_TRY_RETURN(p->device->synchronize(p->device, ctx));
        *number = XXH3_64bits_withSeed(part, some, *number);
    }
    return AN_OK;
}

static size_t bytes_of(const an_stored *e) {
    return (size_t)e->elements * an_dtype_size(e->dtype);
}

/* What ranks divide has one owner, from whom the others get it, and cannot differ. */
static bool is_everywhere(const an_params *p, const an_stored *e) {
    return !p->pieces.shards || e->storage != AN_STORAGE_MASTER;
}

an_status an_rank_weights_all(const an_params *params, uint64_t *number) {
    an_context *ctx = params->ctx;
    *number = 0;
    for (size_t i = 0; i < params->entry_count; i++)
        if (is_everywhere(params, &params->entries[i]))
            AN_TRY_RETURN(add(params, &params->entries[i], 0, bytes_of(&params->entries[i]), number));
    return AN_OK;
}

/* A window that moves on with the steps, so that every element is looked at sooner or later. */
an_status an_rank_weights_some(const an_params *params, int64_t step, uint64_t *number) {
    an_context *ctx = params->ctx;
    *number = 0;
    for (size_t i = 0; i < params->entry_count; i++) {
        if (!is_everywhere(params, &params->entries[i])) continue;
        const size_t bytes = bytes_of(&params->entries[i]), windows = (bytes + SOME_BYTES - 1) / SOME_BYTES;
        const size_t begin = windows ? (size_t)step % windows * SOME_BYTES : 0;
        const size_t some = bytes - begin < SOME_BYTES ? bytes - begin : SOME_BYTES;
        AN_TRY_RETURN(add(params, &params->entries[i], begin, some, number));
    }
    return AN_OK;
}

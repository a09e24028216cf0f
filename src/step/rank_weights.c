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

enum { EVERY_STEP = -1 };

/* Bytes begin … begin + bytes - 1 of an entry: all, or a window that moves on with the steps, so that every element
 * is looked at sooner or later. */
static an_status add_window(const an_params *p, const an_stored *e, size_t begin, size_t bytes, int64_t step,
                            uint64_t *number) {
    if (step == EVERY_STEP) return add(p, e, begin, bytes, number);
    const size_t windows = (bytes + SOME_BYTES - 1) / SOME_BYTES,
                 at = windows ? (size_t)step % windows * SOME_BYTES : 0;
    return add(p, e, begin + at, bytes - at < SOME_BYTES ? bytes - at : SOME_BYTES, number);
}

/* What ranks divide has one owner in each group, from whom the others of it get it, and cannot differ among them. */
static bool is_everywhere(const an_params *p, const an_stored *e) {
    return !p->pieces.shards || e->storage != AN_STORAGE_MASTER;
}

static an_status add_whole(const an_params *params, int64_t step, uint64_t *number) {
    *number = 0;
    for (size_t i = 0; i < params->entry_count; i++) {
        const an_stored *e = &params->entries[i];
        if (is_everywhere(params, e))
            AN_TRY_RETURN(add_window(params, e, 0, (size_t)an_dtype_bytes(e->dtype, e->elements), step, number));
    }
    return AN_OK;
}

static an_status add_pieces(const an_params *params, int64_t step, uint64_t *number) {
    *number = 0;
    for (size_t i = 0; i < params->entry_count; i++) {
        const an_stored *e = &params->entries[i];
        const size_t size = an_dtype_size(e->dtype);
        if (is_everywhere(params, e)) continue;
        for (int64_t first, end = 0; an_params_next(params, e, AN_FLAT_MASTERS, end, &first, &end);)
            AN_TRY_RETURN(add_window(params, e, (size_t)first * size, (size_t)(end - first) * size, step, number));
    }
    return AN_OK;
}

an_status an_rank_weights_all(const an_params *params, uint64_t *number) {
    return add_whole(params, EVERY_STEP, number);
}

an_status an_rank_weights_some(const an_params *params, int64_t step, uint64_t *number) {
    return add_whole(params, step, number);
}

an_status an_rank_weights_pieces_all(const an_params *params, uint64_t *number) {
    return add_pieces(params, EVERY_STEP, number);
}

an_status an_rank_weights_pieces_some(const an_params *params, int64_t step, uint64_t *number) {
    return add_pieces(params, step, number);
}

/* Hashes of the weights and of the whole state of a run. */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "train/trainer.h"

enum { PART_BYTES = 1 << 20 }; /* what is copied from the device at a time */

/* A hash that is being made, and room for what is copied from the device. */
typedef struct {
    const an_params *params;
    XXH3_state_t *state;
    void *part;
} hashing;

static an_status hashing_begin(hashing *h, const an_trainer *t) {
    an_status status;
    an_context *ctx = t->ctx;
    *h = (hashing){.params = t->params, .state = XXH3_createState()};
    AN_CHECK(ctx, t->params, AN_ERR_STATE, "this trainer was opened only for its plan and has no weights");
    AN_CHECK(ctx, h->state, AN_ERR_MEMORY, "out of memory: a hash cannot be computed");
    AN_TRY(an_alloc_raw(ctx, &h->part, PART_BYTES));
    XXH3_128bits_reset(h->state);
    return AN_OK;
fail:
    return status;
}

static void hashing_end(hashing *h, an_context *ctx) {
    an_release(ctx, &h->part, PART_BYTES, 1);
    XXH3_freeState(h->state);
}

static void write_digest(const hashing *h, char text[AN_HASH_TEXT]) {
    const XXH128_hash_t hash = XXH3_128bits_digest(h->state);
    snprintf(text, AN_HASH_TEXT, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

/* Adds what belongs to one parameter or state in a buffer of its grid, without the padding behind it. */
static an_status add_entry(const hashing *h, const an_stored *e, const void *base) {
    const an_params *p = h->params;
    an_context *ctx = p->ctx;
    const char *from = (const char *)base + e->offset;
    const size_t bytes = (size_t)e->elements * an_dtype_size(e->dtype);
    for (size_t done = 0; done < bytes; done += PART_BYTES) {
        const size_t some = bytes - done < PART_BYTES ? bytes - done : PART_BYTES;
        AN_TRY_RETURN(p->device->copy(p->device, ctx, h->part, from + done, some, AN_COPY_FROM_DEVICE));
        AN_TRY_RETURN(p->device->synchronize(p->device, ctx));
        XXH3_128bits_update(h->state, h->part, some);
    }
    return AN_OK;
}

static an_status add_entries(const hashing *h, size_t count) {
    an_context *ctx = h->params->ctx;
    for (size_t i = 0; i < count; i++) {
        const an_stored *e = &h->params->entries[i];
        AN_TRY_RETURN(add_entry(h, e, an_params_base(h->params, e->storage)));
    }
    return AN_OK;
}

static an_status add_moments(const hashing *h) {
    const an_params *p = h->params;
    an_context *ctx = p->ctx;
    for (int m = 0; m < p->moment_count; m++)
        for (size_t i = 0; i < p->parameter_count; i++)
            if (p->entries[i].storage == AN_STORAGE_MASTER) AN_TRY_RETURN(add_entry(h, &p->entries[i], p->moments[m]));
    return AN_OK;
}

/* O(parameters), on the process that is asked. */
an_status an_trainer_weights_hash(const an_trainer *trainer, char text[AN_HASH_TEXT]) {
    AN_GUARD;
    AN_NEED(trainer, text);
    an_status status;
    an_context *ctx = trainer->ctx;
    hashing h;
    AN_TRY(hashing_begin(&h, trainer));
    AN_TRY(add_entries(&h, trainer->params->parameter_count));
    write_digest(&h, text);
    status = AN_OK;
fail:
    hashing_end(&h, ctx);
    return status;
}

an_status an_trainer_state_hash(const an_trainer *trainer, char text[AN_HASH_TEXT]) {
    AN_GUARD;
    AN_NEED(trainer, text);
    const an_trainer *t = trainer;
    an_status status;
    an_context *ctx = t->ctx;
    hashing h;
    AN_TRY(hashing_begin(&h, t));
    AN_TRY(add_entries(&h, t->params->entry_count));
    AN_TRY(add_moments(&h));
    const int64_t numbers[] = {t->next, t->stepper->step, an_optimizer_updates(t->optimizer),
                               t->stepper->scaler.good_steps};
    XXH3_128bits_update(h.state, numbers, sizeof numbers);
    XXH3_128bits_update(h.state, &t->stepper->scaler.scale, sizeof t->stepper->scaler.scale);
    XXH3_128bits_update(h.state, t->chain, sizeof t->chain);
    write_digest(&h, text);
    status = AN_OK;
fail:
    hashing_end(&h, ctx);
    return status;
}

/* Each link is the hash of the one before and of the new numbers, so that what must be kept of all steps is one number. */
void an_trainer_chain(an_trainer *t, const double *numbers, int count) {
    unsigned char bytes[sizeof t->chain + AN_MOST_CHAINED * sizeof *numbers];
    const int taken = count < AN_MOST_CHAINED ? count : AN_MOST_CHAINED;
    memcpy(bytes, t->chain, sizeof t->chain);
    memcpy(bytes + sizeof t->chain, numbers, (size_t)taken * sizeof *numbers);
    const XXH128_hash_t hash = XXH3_128bits(bytes, sizeof t->chain + (size_t)taken * sizeof *numbers);
    t->chain[0] = hash.low64;
    t->chain[1] = hash.high64;
}

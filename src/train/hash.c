/* Hashes of the weights and of the whole state of a run.
 *
 * Bytes that are in pieces are hashed where they are: the state of the hash goes from owner to owner, in the order of
 * the bytes, so that it is the hash of one process. That is one message for each piece, one after another: O(units ·
 * ranks), whenever a hash is asked for. */
#define XXH_STATIC_LINKING_ONLY /* the state is sent as bytes */
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/guard.h"
#include "comm/comm.h"
#include "train/trainer.h"

enum { PART_BYTES = 1 << 20 }; /* what is copied from the device at a time */

enum { EVERY_RANK = -1 };

/* A hash that is being made, and room for what is copied from the device. */
typedef struct {
    const an_params *params;
    XXH3_state_t *state;
    void *part;
    int holder; /* the rank whose state has all bytes so far, or EVERY_RANK */
} hashing;

static an_status hashing_begin(hashing *h, const an_trainer *t) {
    an_status status;
    an_context *ctx = t->ctx;
    *h = (hashing){.params = t->params, .state = XXH3_createState(), .holder = EVERY_RANK};
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

/* The ranks that divide the state. */
static an_comm *comm_of(const hashing *h) {
    return an_shards_comm(h->params->pieces.shards);
}

/* Every rank gets it. */
static an_status write_digest(const hashing *h, char text[AN_HASH_TEXT]) {
    an_context *ctx = h->params->ctx;
    const XXH128_hash_t hash = XXH3_128bits_digest(h->state);
    int64_t numbers[] = {(int64_t)hash.high64, (int64_t)hash.low64};
    if (h->holder != EVERY_RANK)
        AN_TRY_RETURN(
            an_comm_spread(ctx, comm_of(h), numbers, sizeof numbers, h->holder, AN_TAG_HASH, "the hash of the state"));
    snprintf(text, AN_HASH_TEXT, "%016llx%016llx", (unsigned long long)numbers[0], (unsigned long long)numbers[1]);
    return AN_OK;
}

static bool is_holder(const hashing *h) {
    return h->holder == EVERY_RANK || h->holder == comm_of(h)->rank;
}

/* The state goes to another rank. In it is the address of a table, which every process has elsewhere. */
static an_status pass_on(hashing *h, int to) {
    an_context *ctx = h->params->ctx;
    an_comm *comm = comm_of(h);
    const int from = h->holder;
    h->holder = to;
    if (from == to || from == EVERY_RANK) return AN_OK;
    if (comm->rank == from)
        return an_comm_send_all(ctx, comm, h->state, sizeof *h->state, to, AN_TAG_HASH, "the hash of the state");
    if (comm->rank != to) return AN_OK;
    const XXH3_state_t own = *h->state;
    AN_TRY_RETURN(
        an_comm_receive_all(ctx, comm, h->state, sizeof *h->state, from, AN_TAG_HASH, "the hash of the state"));
    h->state->extSecret = own.extSecret;
    return AN_OK;
}

static void add_bytes(hashing *h, const void *bytes, size_t count) {
    if (is_holder(h)) XXH3_128bits_update(h->state, bytes, count);
}

static an_status add_here(hashing *h, const char *from, size_t bytes) {
    const an_params *p = h->params;
    an_context *ctx = p->ctx;
    for (size_t done = 0; done < bytes && is_holder(h); done += PART_BYTES) {
        const size_t some = bytes - done < PART_BYTES ? bytes - done : PART_BYTES;
        AN_TRY_RETURN(p->device->copy(p->device, ctx, h->part, from + done, some, AN_COPY_FROM_DEVICE));
        AN_TRY_RETURN(p->device->synchronize(p->device, ctx));
        XXH3_128bits_update(h->state, h->part, some);
    }
    return AN_OK;
}

/* Adds what belongs to one parameter or state in a buffer of its grid, without the padding behind it. */
static an_status add_entry(hashing *h, const an_stored *e, const void *base) {
    const an_params *p = h->params;
    const an_shards *shards = p->pieces.shards;
    const size_t bytes = (size_t)an_dtype_bytes(e->dtype, e->elements),
                 page_bytes = (size_t)an_dtype_bytes(e->dtype, AN_PAGE);
    const char *from = (const char *)base + e->offset;
    if (!shards || e->storage != AN_STORAGE_MASTER) return add_here(h, from, bytes);
    const int64_t first = e->offset / (int64_t)page_bytes,
                  last = first + (int64_t)((bytes + page_bytes - 1) / page_bytes);
    for (int64_t page = first, end; page < last; page = end) {
        const int owner = an_shards_owner(shards, page, &end);
        if (end > last) end = last;
        const size_t at = (size_t)(page - first) * page_bytes, to = (size_t)(end - first) * page_bytes;
        AN_TRY_RETURN(pass_on(h, owner));
        AN_TRY_RETURN(add_here(h, from + at, (to < bytes ? to : bytes) - at));
    }
    return AN_OK;
}

static an_status add_entries(hashing *h, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const an_stored *e = &h->params->entries[i];
        AN_TRY_RETURN(add_entry(h, e, an_params_base(h->params, e->storage)));
    }
    return AN_OK;
}

/* Moments, and the average of a run that keeps one. */
static an_status add_kept(hashing *h) {
    const an_params *p = h->params;
    for (int part = AN_KEPT_BEGIN; part < AN_KEPT_END; part++)
        for (size_t i = 0; i < p->parameter_count; i++) {
            const void *base = an_params_part(p, &p->entries[i], (an_param_part)part);
            if (base) AN_TRY_RETURN(add_entry(h, &p->entries[i], base));
        }
    return AN_OK;
}

/* O(parameters), on the process that is asked; collective if the store is in pieces. */
an_status an_trainer_weights_hash(const an_trainer *trainer, char text[AN_HASH_TEXT]) {
    AN_GUARD;
    AN_NEED(trainer, text);
    an_status status;
    an_context *ctx = trainer->ctx;
    hashing h;
    AN_TRY(hashing_begin(&h, trainer));
    AN_TRY(add_entries(&h, trainer->params->parameter_count));
    AN_TRY(write_digest(&h, text));
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
    AN_TRY(add_kept(&h));
    const int64_t numbers[] = {t->next, t->stepper->step, an_optimizer_updates(t->optimizer),
                               t->stepper->scaler.good_steps};
    add_bytes(&h, numbers, sizeof numbers);
    add_bytes(&h, &t->stepper->scaler.scale, sizeof t->stepper->scaler.scale);
    add_bytes(&h, t->record.chain, sizeof t->record.chain);
    AN_TRY(write_digest(&h, text));
    status = AN_OK;
fail:
    hashing_end(&h, ctx);
    return status;
}

/* Each link is the hash of the one before and of the new numbers, so that what must be kept of all steps is one
 * number. */
void an_trainer_chain(an_trainer *t, const double *numbers, int count) {
    unsigned char bytes[sizeof t->record.chain + AN_MOST_CHAINED * sizeof *numbers];
    const int taken = count < AN_MOST_CHAINED ? count : AN_MOST_CHAINED;
    memcpy(bytes, t->record.chain, sizeof t->record.chain);
    memcpy(bytes + sizeof t->record.chain, numbers, (size_t)taken * sizeof *numbers);
    const XXH128_hash_t hash = XXH3_128bits(bytes, sizeof t->record.chain + (size_t)taken * sizeof *numbers);
    t->record.chain[0] = hash.low64;
    t->record.chain[1] = hash.high64;
}

#include "store/adapter_record.h"

#include <string.h>
#include <xxhash.h>

#include "store/state_record.h"

void an_adapter_write(an_json_writer *json, const an_saved_adapter *saved) {
    char digits[AN_HASH_DIGITS + 1] = "";
    an_hash_write(digits, saved->hash);
    an_json_write_integer(json, "rank", saved->adapter.rank);
    an_json_write_real(json, "alpha", saved->adapter.alpha);
    an_json_write_real(json, "dropout", saved->adapter.dropout);
    an_json_write_bool(json, "rslora", saved->adapter.rslora);
    if (saved->adapter.dora) an_json_write_bool(json, "dora", true);
    an_json_write_string(json, "base", saved->base);
    an_json_write_string(json, "hash", digits);
}

static bool refuse(an_json *json, const char *problem) {
    return an_json_refuse(json, json->at, problem);
}

bool an_adapter_read(an_json *json, an_saved_adapter *saved) {
    an_json_string key, base = {0};
    an_adapter *a = &saved->adapter;
    unsigned seen = 0;
    if (!an_json_object(json)) return false;
    while (an_json_member(json, &key)) {
        unsigned bit = 0;
        bool good;
        if (!strcmp(key.bytes, "rank"))
            bit = 1, good = an_json_count(json, &a->rank);
        else if (!strcmp(key.bytes, "alpha"))
            bit = 2, good = an_json_real(json, &a->alpha);
        else if (!strcmp(key.bytes, "dropout"))
            bit = 4, good = an_json_real(json, &a->dropout);
        else if (!strcmp(key.bytes, "rslora"))
            bit = 8, good = an_json_bool(json, &a->rslora);
        else if (!strcmp(key.bytes, "dora")) /* absent: false */
            bit = 64, good = an_json_bool(json, &a->dora);
        else if (!strcmp(key.bytes, "base"))
            bit = 16, good = an_json_string_value(json, &base);
        else if (!strcmp(key.bytes, "hash"))
            bit = 32, good = an_json_hash(json, saved->hash);
        else
            good = an_json_skip(json);
        if (!good || seen & bit) return refuse(json, "a member of the adapter appears twice");
        seen |= bit;
    }
    if (json->problem) return false;
    if ((seen & 63U) != 63U) return refuse(json, "the adapter needs rank, alpha, dropout, rslora, base and hash");
    if (a->rank < 1 || a->rank > AN_ADAPTER_MOST_RANK || !(a->alpha > 0) || !(a->dropout >= 0 && a->dropout < 1))
        return refuse(json, "rank, alpha or dropout of the adapter is out of range");
    saved->base = base.bytes;
    return true;
}

an_status an_base_hash(const an_params *p, uint64_t hash[2]) {
    enum { PART_BYTES = 1 << 20 }; /* what is copied from the device at a time */
    an_status status;
    an_context *ctx = p->ctx;
    void *part = NULL;
    XXH3_state_t *state = XXH3_createState();
    AN_CHECK(ctx, state, AN_ERR_MEMORY, "out of memory: a hash cannot be computed");
    AN_TRY(an_alloc_raw(ctx, &part, PART_BYTES));
    XXH3_128bits_reset(state);
    for (size_t i = 0; i < p->parameter_count; i++) {
        const an_stored *e = &p->entries[i];
        if (e->storage != AN_STORAGE_FROZEN) continue;
        const char *from = (const char *)p->frozen + e->offset;
        const size_t bytes = (size_t)an_dtype_bytes(e->dtype, e->elements);
        for (size_t done = 0; done < bytes; done += PART_BYTES) {
            const size_t some = bytes - done < PART_BYTES ? bytes - done : PART_BYTES;
            AN_TRY(p->device->copy(p->device, ctx, part, from + done, some, AN_COPY_FROM_DEVICE));
            AN_TRY(p->device->synchronize(p->device, ctx));
            XXH3_128bits_update(state, part, some);
        }
    }
    const XXH128_hash_t digest = XXH3_128bits_digest(state);
    hash[0] = digest.low64;
    hash[1] = digest.high64;
    status = AN_OK;
fail:
    an_release(ctx, &part, PART_BYTES, 1);
    XXH3_freeState(state);
    return status;
}

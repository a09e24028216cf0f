#include "ir/names.h"

#include <string.h>

#include "base/text/text.h"

/* The hash is no secret, so a hostile text can choose names that meet in one slot. What it gains is bounded: a search
 * looks at no more slots than this. In a table half full, a million honest names need fewer than a hundred. */
enum { MOST_PROBES = 512, MOST_NAMES = 1 << 26, FIRST_SLOTS = 64 };

void an_names_destroy(an_names *names, an_context *ctx) {
    an_release(ctx, (void **)&names->names, names->capacity, sizeof *names->names);
    an_release(ctx, (void **)&names->slots, names->slot_count, sizeof *names->slots);
    *names = (an_names){0};
}

const an_name *an_names_find(const an_names *names, const char *text, size_t length) {
    if (names->slot_count == 0) return NULL;
    uint64_t hash = an_hash(text, length, 0);
    for (size_t probe = 0; probe < MOST_PROBES; probe++) {
        int32_t slot = names->slots[(hash + probe) & (names->slot_count - 1)];
        if (slot == 0) return NULL;
        const an_name *name = &names->names[slot - 1];
        if (name->hash == hash && name->length == length && !memcmp(name->text, text, length)) return name;
    }
    return NULL;
}

/* Puts name number `n` into its slot; false if too many others are in its way. */
static bool take_slot(int32_t *slots, size_t slot_count, uint64_t hash, size_t n) {
    for (size_t probe = 0; probe < MOST_PROBES; probe++) {
        int32_t *slot = &slots[(hash + probe) & (slot_count - 1)];
        if (*slot) continue;
        *slot = (int32_t)n + 1;
        return true;
    }
    return false;
}

/* Doubles the slots until every name finds one; the half that names fill stays small against MOST_PROBES. */
static an_status grow_slots(an_names *names, an_context *ctx) {
    size_t count = names->slot_count ? names->slot_count * 2 : FIRST_SLOTS;
    int32_t *slots = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&slots, count, sizeof *slots));
    for (size_t i = 0; i < names->count; i++) {
        if (take_slot(slots, count, names->names[i].hash, i)) continue;
        an_release(ctx, (void **)&slots, count, sizeof *slots);
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "too many names collide");
    }
    an_release(ctx, (void **)&names->slots, names->slot_count, sizeof *names->slots);
    names->slots = slots;
    names->slot_count = count;
    return AN_OK;
}

an_status an_names_add(an_names *names, an_context *ctx, const an_name *name) {
    if (names->count >= MOST_NAMES) return AN_ERROR(ctx, AN_ERR_OVERFLOW, "more than %d names", MOST_NAMES);
    AN_TRY_RETURN(an_grow(ctx, (void **)&names->names, &names->capacity, names->count + 1, sizeof *names->names));
    if (2 * (names->count + 1) > names->slot_count) AN_TRY_RETURN(grow_slots(names, ctx));
    an_name *added = &names->names[names->count];
    *added = *name;
    added->hash = an_hash(name->text, name->length, 0);
    if (!take_slot(names->slots, names->slot_count, added->hash, names->count))
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "too many names collide");
    names->count++;
    return AN_OK;
}

void an_names_consider(const an_names *names, an_nearest *nearest) {
    for (size_t i = 0; i < names->count; i++)
        an_nearest_consider(nearest, names->names[i].text, names->names[i].length);
}

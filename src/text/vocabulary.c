#include "text/vocabulary.h"

#include <string.h>
#include <xxhash.h>

uint64_t an_text_hash(const void *bytes, size_t length, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, length, seed);
}

static size_t slots_for(size_t count) {
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    return slots;
}

static an_bytes key_of(const an_token *token, bool by_bytes) {
    return by_bytes ? (an_bytes){token->bytes, token->byte_length} : (an_bytes){token->text, token->text_length};
}

/* The slot of a key, or the free one where it would be. */
static int32_t *slot_of(const an_index *x, const an_vocabulary *v, const char *key, size_t length) {
    for (size_t at = (size_t)an_text_hash(key, length, x->seed) & (x->count - 1);; at = (at + 1) & (x->count - 1)) {
        int32_t *slot = &x->slots[at];
        if (*slot == AN_NO_TOKEN) return slot;
        const an_bytes there = key_of(&v->tokens[*slot], x->by_bytes);
        if (there.length == length && !memcmp(there.bytes, key, length)) return slot;
    }
}

an_status an_index_make(an_context *ctx, an_index *x, const an_vocabulary *v, bool by_bytes, uint64_t seed) {
    const size_t count = slots_for(v->count);
    an_release(ctx, (void **)&x->slots, x->count, sizeof *x->slots);
    *x = (an_index){.seed = seed, .by_bytes = by_bytes};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&x->slots, count, sizeof *x->slots));
    x->count = count;
    for (size_t i = 0; i < count; i++) x->slots[i] = AN_NO_TOKEN;
    for (size_t id = 0; id < v->count; id++) {
        const an_bytes key = key_of(&v->tokens[id], by_bytes);
        if (!v->tokens[id].text || (by_bytes && v->tokens[id].added)) continue;
        int32_t *slot = slot_of(x, v, key.bytes, key.length);
        if (*slot == AN_NO_TOKEN) *slot = (int32_t)id;
    }
    return AN_OK;
}

int32_t an_index_find(const an_index *x, const an_vocabulary *v, const char *key, size_t length) {
    return x->count == 0 ? AN_NO_TOKEN : *slot_of(x, v, key, length);
}

an_status an_merges_make(an_context *ctx, an_merges *m, size_t count, uint64_t seed) {
    const size_t slots = slots_for(count);
    *m = (an_merges){.seed = seed};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->slots, slots, sizeof *m->slots));
    m->count = slots;
    for (size_t i = 0; i < slots; i++) m->slots[i].token = AN_NO_TOKEN;
    return AN_OK;
}

void an_merges_put(an_merges *m, int32_t left, int32_t right, uint32_t rank, int32_t token) {
    const an_merge *there = an_merges_find(m, left, right);
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    if (there) {
        m->slots[there - m->slots] = (an_merge){pair, rank, token};
        return;
    }
    uint64_t hash = (pair ^ m->seed) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    size_t at = (size_t)hash & (m->count - 1);
    while (m->slots[at].token != AN_NO_TOKEN) at = (at + 1) & (m->count - 1);
    m->slots[at] = (an_merge){pair, rank, token};
}

void an_vocabulary_release(an_context *ctx, an_vocabulary *v) {
    an_release(ctx, (void **)&v->tokens, v->capacity, sizeof *v->tokens);
    an_release(ctx, (void **)&v->by_text.slots, v->by_text.count, sizeof *v->by_text.slots);
    an_release(ctx, (void **)&v->by_bytes.slots, v->by_bytes.count, sizeof *v->by_bytes.slots);
    an_release(ctx, (void **)&v->merges.slots, v->merges.count, sizeof *v->merges.slots);
}

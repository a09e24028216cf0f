#include "data/texts/pack.h"

#include <stdlib.h>

static an_status allocate(an_packing *p, an_context *ctx, int64_t count) {
    *p = (an_packing){.ctx = ctx, .pieces = count};
    AN_TRY_RETURN(an_alloc(ctx, (void **)&p->order, (size_t)count, sizeof *p->order));
    return an_alloc(ctx, (void **)&p->begins, (size_t)count + 1, sizeof *p->begins);
}

void an_packing_destroy(an_packing *p) {
    if (!p->ctx) return;
    an_release(p->ctx, (void **)&p->order, (size_t)p->pieces, sizeof *p->order);
    an_release(p->ctx, (void **)&p->begins, (size_t)p->pieces + 1, sizeof *p->begins);
}

an_status an_packing_create_equal(an_packing *p, an_context *ctx, int64_t count, int64_t each) {
    AN_TRY_RETURN(allocate(p, ctx, count));
    p->samples = count / each;
    for (int64_t i = 0; i < count; i++) p->order[i] = i;
    for (int64_t i = 0; i <= p->samples; i++) p->begins[i] = i * each;
    return AN_OK;
}

/* ---- samples by the room that they have left ---- */

typedef struct {
    int64_t *first; /* of each room, the newest sample with so much left; -1: there is none */
    int64_t *next;  /* of each sample, the one before it with the same room; -1: it is the last */
    uint64_t *some; /* a bit for each room: there is a sample */
    int32_t room;
} shelf;

static void put(shelf *s, int64_t sample, int32_t left) {
    s->next[sample] = s->first[left];
    s->first[left] = sample;
    s->some[left / 64] |= UINT64_C(1) << left % 64;
}

/* The least room of at least `length` that some sample has; -1: none has. */
static int32_t find_room(const shelf *s, int32_t length) {
    uint64_t word = s->some[length / 64] >> length % 64 << length % 64;
    for (int32_t i = length / 64;; word = s->some[i]) {
        if (word) return i * 64 + __builtin_ctzll(word);
        if (++i > s->room / 64) return -1;
    }
}

static int64_t take(shelf *s, int32_t left) {
    const int64_t sample = s->first[left];
    s->first[left] = s->next[sample];
    if (s->first[left] < 0) s->some[left / 64] &= ~(UINT64_C(1) << left % 64);
    return sample;
}

/* ---- packing ---- */

typedef struct {
    int32_t length;
    int64_t piece, sample;
} entry;

static int by_length(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->length != y->length) return x->length > y->length ? -1 : 1;
    return x->piece < y->piece ? -1 : x->piece > y->piece;
}

static int by_sample(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->sample != y->sample) return x->sample < y->sample ? -1 : 1;
    return x->piece < y->piece ? -1 : x->piece > y->piece;
}

static void place_all(an_packing *p, shelf *s, entry *entries) {
    for (int64_t i = 0; i < p->pieces; i++) {
        entry *e = &entries[i];
        int32_t left = find_room(s, e->length);
        e->sample = left < 0 ? p->samples++ : take(s, left);
        if (left < 0) left = s->room;
        put(s, e->sample, left - e->length);
    }
}

an_status an_packing_create(an_packing *p, an_context *ctx, const int32_t *lengths, int64_t count, int32_t room) {
    an_status status;
    const size_t rooms = (size_t)room + 1, words = rooms / 64 + 1, n = (size_t)count;
    shelf s = {.room = room};
    entry *entries = NULL;
    AN_TRY(allocate(p, ctx, count));
    AN_TRY(an_alloc(ctx, (void **)&entries, n, sizeof *entries));
    AN_TRY(an_alloc(ctx, (void **)&s.first, rooms, sizeof *s.first));
    AN_TRY(an_alloc(ctx, (void **)&s.next, n, sizeof *s.next));
    AN_TRY(an_alloc(ctx, (void **)&s.some, words, sizeof *s.some));
    for (size_t i = 0; i < rooms; i++) s.first[i] = -1;
    for (int64_t i = 0; i < count; i++) entries[i] = (entry){.length = lengths[i], .piece = i};
    qsort(entries, n, sizeof *entries, by_length);
    place_all(p, &s, entries);
    qsort(entries, n, sizeof *entries, by_sample);
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || entries[i].sample != entries[i - 1].sample) p->begins[entries[i].sample] = i;
        p->order[i] = entries[i].piece;
    }
    p->begins[p->samples] = count;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&entries, n, sizeof *entries);
    an_release(ctx, (void **)&s.first, rooms, sizeof *s.first);
    an_release(ctx, (void **)&s.next, n, sizeof *s.next);
    an_release(ctx, (void **)&s.some, words, sizeof *s.some);
    if (status != AN_OK) an_packing_destroy(p);
    return status;
}

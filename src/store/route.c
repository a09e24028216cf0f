#include "store/route.h"

#include <stdlib.h>

#include "anneal/plan.h"
#include "base/integer.h"
#include "base/memory.h"

/* ---- transfers ---- */

typedef struct {
    const an_save_layout *layout;
    const an_route_options *options;
    an_transfer *transfers; /* NULL: they are only counted */
    size_t count;
    /* of the file that the piece is in */
    int holder;
    int64_t first_round, place;
} collection;

/* Elements begin … end - 1 of a tensor that have one owner: in a group, as each has one. */
typedef struct {
    int64_t begin, end;
    int owner;
} owned;

/* The next of a piece that matter to this rank, from element `from` on. In files of other ranks it goes from unit to
 * unit, and in its own from owner to owner. */
static bool next_owned(const collection *c, const an_saved_piece *p, int64_t from, owned *o) {
    const an_route_options *options = c->options;
    const an_shards *s = options->shards;
    const an_saved_tensor *t = &c->layout->tensors[p->tensor];
    const bool holds = c->holder == options->rank;
    if (from >= p->end) return false;
    *o = (owned){from, p->end, AN_ROUTE_ALL};
    if (t->grid < 0 || !s) return holds || options->way == AN_ROUTE_LOAD;
    if (!holds && options->way == AN_ROUTE_SAVE && c->holder / s->ranks != s->group) return false;
    int unit = an_shards_unit_of(s, (t->grid + from) / AN_PAGE);
    o->owner = holds ? an_piece_owner(&s->units[unit].pages, unit, (t->grid + from) / AN_PAGE, s->ranks) : s->rank;
    for (; unit < s->unit_count; unit++) {
        const an_page_range piece = an_shards_piece(s, unit, o->owner);
        o->begin = an_larger(from, piece.begin * AN_PAGE - t->grid);
        o->end = an_smaller(p->end, piece.end * AN_PAGE - t->grid);
        if (o->begin < o->end) return true;
        if (o->begin >= p->end) return false;
    }
    return false;
}

static int hops_of(const collection *c) {
    const int hops = c->options->rank - c->holder;
    return hops < 0 ? hops + c->options->ranks : hops;
}

/* What lies in several chunks is several transfers. */
static void add(collection *c, const an_saved_piece *p, const owned *o, int owner) {
    const int64_t size = (int64_t)an_dtype_size(c->layout->tensors[p->tensor].dtype), chunk = c->options->chunk;
    const int64_t end = o->end * size;
    for (int64_t at = o->begin * size, bytes; at < end; at += bytes) {
        const int64_t offset = p->offset + at - p->begin * size, number = offset / chunk;
        bytes = an_smaller(end - at, (number + 1) * chunk - offset);
        if (c->transfers)
            c->transfers[c->count] = (an_transfer){.tensor = p->tensor,
                                                   .file = p->file,
                                                   .at = at,
                                                   .offset = offset,
                                                   .place = c->place + offset,
                                                   .bytes = bytes,
                                                   .round = c->first_round + number,
                                                   .owner = owner,
                                                   .holder = c->holder,
                                                   .hops = owner == AN_ROUTE_ALL ? hops_of(c) : 0};
        c->count++;
    }
}

/* A save takes it from the group of the rank that writes it; a load gives it to every group. */
static void add_owners(collection *c, const an_saved_piece *p, const owned *o) {
    const an_shards *s = c->options->shards;
    if (o->owner == AN_ROUTE_ALL) {
        add(c, p, o, AN_ROUTE_ALL);
        return;
    }
    const bool gives = c->options->way == AN_ROUTE_LOAD && c->holder == c->options->rank;
    const int first = gives ? 0 : s->group, end = gives ? s->groups : s->group + 1;
    for (int group = first; group < end; group++) add(c, p, o, group * s->ranks + o->owner);
}

static void collect(collection *c) {
    const an_save_layout *l = c->layout;
    const int ranks = c->options->ranks;
    size_t piece = 0;
    for (size_t file = 0; file < l->file_count; file++) {
        const int holder = an_route_holder(file, l->file_count, ranks);
        if (file == 0 || holder != c->holder) c->first_round = c->place = 0;
        c->holder = holder;
        for (; piece < l->piece_count && l->pieces[piece].file == file; piece++) {
            const an_saved_piece *p = &l->pieces[piece];
            owned o;
            for (int64_t from = p->begin; next_owned(c, p, from, &o); from = o.end) add_owners(c, p, &o);
        }
        c->first_round += an_divide_up((int64_t)l->files[file].bytes, c->options->chunk);
        c->place += (int64_t)an_round_up(l->files[file].bytes, AN_SAVE_ALIGNMENT);
    }
}

static int compare(const void *a, const void *b) {
    const an_transfer *x = a, *y = b;
    if (x->round != y->round) return x->round < y->round ? -1 : 1;
    if (x->hops != y->hops) return x->hops < y->hops ? -1 : 1;
    if (x->file != y->file) return x->file < y->file ? -1 : 1;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->owner - y->owner;
}

size_t an_route_round(const an_route *r, size_t first) {
    size_t end = first;
    while (end < r->count && r->transfers[end].round == r->transfers[first].round) end++;
    return end - first;
}

/* ---- the route ---- */

an_status an_route_create(an_route **route, const an_save_layout *layout, const an_route_options *options) {
    an_status status;
    an_context *ctx = layout->ctx;
    an_route *r = NULL;
    collection c = {.layout = layout, .options = options};
    *route = NULL;
    AN_TRY(an_alloc(ctx, (void **)&r, 1, sizeof *r));
    *r = (an_route){.ctx = ctx,
                    .ranks = options->ranks,
                    .rank = options->rank,
                    .chunk = options->chunk,
                    .files = an_route_files(layout->file_count, options->rank, options->ranks)};
    collect(&c);
    AN_TRY(an_alloc(ctx, (void **)&r->transfers, c.count, sizeof *r->transfers));
    r->count = c.count;
    c.transfers = r->transfers;
    c.count = 0;
    collect(&c);
    if (r->count > 0) qsort(r->transfers, r->count, sizeof *r->transfers, compare);
    for (size_t i = 0, some; i < r->count; i += some) {
        some = an_route_round(r, i);
        if (some > r->maximum) r->maximum = some;
    }
    AN_TRY(an_alloc(ctx, (void **)&r->requests, 2 * r->maximum, sizeof *r->requests));
    *route = r;
    return AN_OK;
fail:
    an_route_destroy(&r);
    return status;
}

void an_route_destroy(an_route **route) {
    an_route *r = route ? *route : NULL;
    if (!r) return;
    an_context *ctx = r->ctx;
    an_release(ctx, (void **)&r->requests, 2 * r->maximum, sizeof *r->requests);
    an_release(ctx, (void **)&r->transfers, r->count, sizeof *r->transfers);
    an_release(ctx, (void **)route, 1, sizeof *r);
}

int64_t an_route_bytes(const an_route *r) {
    return (int64_t)(sizeof *r + r->count * sizeof *r->transfers + 2 * r->maximum * sizeof *r->requests);
}

char *an_route_memory(const an_save_layout *layout, const an_params *params, const an_transfer *transfer) {
    const an_saved_tensor *t = &layout->tensors[transfer->tensor];
    const an_stored *e = &params->entries[t->entry];
    char *base = an_params_part(params, e, t->part);
    return base + e->offset + transfer->at;
}

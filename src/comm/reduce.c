#include "comm/reduce.h"

#include <stdio.h>
#include <string.h>

#include "anneal/plan.h"
#include "base/integer.h"
#include "base/memory.h"
#include "comm/add.h"
#include "comm/bucket.h"

_Static_assert(AN_PAGE * sizeof(float) % AN_ADD_STRIP == 0, "pages are added in whole strips");

enum { WINDOW_ALIGNMENT = 4096 }; /* gradients begin at a page of memory */

struct an_reduction {
    an_reduction_peers peers;
    int nodes; /* of this rank */
    an_reduction_unit *units;
    void **flats; /* [units][nodes + 1]: what an_reduction_start was given */
    int64_t bucket_pages;
    int requests;          /* of each bucket */
    int64_t staging_pages; /* of each */
    an_bucket *buckets;
    char *memory, *staging; /* the tables, and the staging of all buckets */
    size_t memory_bytes, buffer_bytes, head_bytes;
    int buffer_count;
    void **buffers;
    an_reduction_cost predicted;
};

/* ---- sizes ---- */

static int64_t page_bytes_of(const an_reduction_options *o) {
    return AN_PAGE * (int64_t)an_dtype_size(o->dtype);
}

static int64_t bucket_pages_of(const an_reduction_options *o) {
    return an_larger(1, an_bucket_most_bytes(o->bucket_bytes, o->borders.ranks) / page_bytes_of(o));
}

static int64_t buckets_of(const an_reduction_unit *unit, int64_t bucket_pages) {
    const int64_t pages = unit->pages.end - unit->pages.begin;
    return an_divide_up(pages, an_even_part(pages, bucket_pages));
}

/* The pages of a bucket: all but the last of a unit are equal. If owners keep the sums, the same slice of each
 * rank's piece of the unit. */
static an_page_range bucket_at(const an_reduction_unit *unit, int64_t bucket_pages, bool scatters, int64_t index,
                               an_part *part) {
    const int64_t pages = an_even_part(unit->pages.end - unit->pages.begin, bucket_pages);
    const int64_t from = unit->pages.begin + index * pages;
    *part = scatters ? (an_part){index, buckets_of(unit, bucket_pages), unit->turn} : (an_part){0, 1, 0};
    return scatters ? unit->pages : (an_page_range){from, an_smaller(from + pages, unit->pages.end)};
}

/* With a window the first round is the host, and the others are between hosts. */
static an_rounds schedule_of(const an_reduction_options *o, int host_ranks) {
    if (o->scatters) return an_rounds_make(&o->borders, &o->borders.ranks, 1);
    if (host_ranks <= 1) return an_rounds_make(&o->borders, o->radices, o->rounds);
    int radices[AN_MOST_ROUNDS] = {host_ranks}, rounds = 1;
    if (o->radices) {
        for (int i = 0; i < o->rounds && rounds < AN_MOST_ROUNDS; i++) radices[rounds++] = o->radices[i];
    } else {
        const int hosts = (int)an_divide_up(o->borders.ranks, host_ranks);
        const an_rounds s = an_rounds_make(&(an_borders){.ranks = hosts}, NULL, 0);
        for (int i = 0; i < s.rounds; i++) radices[rounds++] = (int)an_divide_up(s.sizes[i + 1], s.sizes[i]);
    }
    return an_rounds_make(&o->borders, radices, rounds);
}

/* A part of one block of memory; `memory` NULL: it is only counted. */
static void *take(char *memory, size_t *at, size_t count, size_t element) {
    void *part = memory ? memory + *at : NULL;
    *at += an_round_up(count * element, AN_ALIGNMENT);
    return part;
}

/* Lays out the tables of the rounds, and fills them if there is memory. */
static void make_rounds(an_reduction_peers *x, char *memory, size_t *at) {
    int most_src = 0, most_dst = 0;
    for (int round = 0; round < x->schedule.rounds; round++) {
        an_reduction_round *r = &x->rounds[round];
        r->groups = an_rounds_groups(&x->schedule, x->rank, round);
        r->nodes = an_rounds_nodes(&x->schedule, x->rank, round);
        r->all = (int)an_rounds_joins(&x->schedule, x->rank, round, NULL);
        r->outputs = an_rounds_nodes(&x->schedule, x->rank, round + 1);
        r->starts = take(memory, at, (size_t)r->groups + 1, sizeof *r->starts);
        r->joins = take(memory, at, (size_t)r->all + 1, sizeof *r->joins);
        most_src = (int)an_larger(most_src, r->all);
        most_dst = (int)an_larger(most_dst, an_larger(r->outputs, r->groups));
        if (!memory) continue;
        an_rounds_joins(&x->schedule, x->rank, round, r->joins);
        for (int group = 0; group < r->groups; group++) {
            const int first = an_rounds_group_rank(&x->schedule, x->rank, round, group);
            r->starts[group + 1] = r->starts[group] + an_rounds_nodes(&x->schedule, first, round);
            if (first <= x->rank) r->mine = group;
        }
    }
    x->src = take(memory, at, (size_t)most_src, sizeof *x->src);
    x->dst = take(memory, at, (size_t)most_dst, sizeof *x->dst);
    x->part_bytes = take(memory, at, x->host_ranks > 1 ? (size_t)x->host_ranks : 0, sizeof *x->part_bytes);
}

/* Fills in what follows from the options alone, and what it costs. */
static void describe(an_reduction *r, const an_reduction_options *o, int rank, int host_ranks) {
    an_reduction_peers *x = &r->peers;
    an_reduction_cost *cost = &r->predicted;
    x->rank = rank;
    x->scatters = o->scatters;
    x->dtype = o->dtype;
    x->page_bytes = (size_t)page_bytes_of(o);
    x->host_ranks = host_ranks;
    x->schedule = schedule_of(o, host_ranks);
    r->nodes = an_rounds_nodes(&x->schedule, rank, 0);
    x->pipeline.unit_count = o->unit_count;
    r->bucket_pages = bucket_pages_of(o);
    x->pipeline.in_flight = o->in_flight ? o->in_flight : AN_BUCKETS_IN_FLIGHT;
    r->buffer_count = o->buffers;
    r->buffer_bytes = (size_t)o->pages * x->page_bytes;
    size_t tables = 0;
    make_rounds(x, NULL, &tables);
    for (int i = 0; i < o->unit_count; i++) {
        const an_reduction_unit *unit = &o->units[i];
        for (int64_t index = 0; index < buckets_of(unit, r->bucket_pages); index++) {
            an_part part;
            const an_page_range pages = bucket_at(unit, r->bucket_pages, o->scatters, index, &part);
            an_bucket_measure(x, &pages, &part, &r->staging_pages, &r->requests, cost);
        }
    }
    cost->buffer_bytes = (size_t)o->buffers * r->buffer_bytes;
    if (host_ranks > 1) {
        x->places_at = sizeof(an_window_head) + (size_t)x->pipeline.in_flight * sizeof(an_window_counter);
        r->head_bytes = x->places_at + (size_t)o->unit_count * ((size_t)r->nodes + 1) * sizeof(uint64_t);
        r->head_bytes = an_round_up(r->head_bytes, WINDOW_ALIGNMENT);
        cost->window_bytes = r->head_bytes + (size_t)o->buffers * an_round_up(r->buffer_bytes, WINDOW_ALIGNMENT);
    }
}

/* Lays out all tables; returns their bytes. */
static size_t make_tables(an_reduction *r, char *memory) {
    size_t at = 0;
    an_pipeline *p = &r->peers.pipeline;
    const size_t units = (size_t)p->unit_count, in_flight = (size_t)p->in_flight;
    make_rounds(&r->peers, memory, &at);
    r->units = take(memory, &at, units, sizeof *r->units);
    p->units = take(memory, &at, units, sizeof *p->units);
    r->flats = take(memory, &at, units * ((size_t)r->nodes + 1), sizeof *r->flats);
    r->buckets = take(memory, &at, in_flight, sizeof *r->buckets);
    r->buffers = take(memory, &at, (size_t)r->buffer_count, sizeof *r->buffers);
    an_comm_request *requests = take(memory, &at, in_flight * (size_t)r->requests, sizeof *requests);
    if (memory) an_pipeline_begin(p, r->buckets, requests, r->requests);
    return at;
}

static size_t staging_bytes_of(const an_reduction *r) {
    return (size_t)r->peers.pipeline.in_flight * (size_t)r->staging_pages * r->peers.page_bytes;
}

int an_reduction_shares(const an_reduction_options *options, int host_ranks) {
    return options->scatters && host_ranks < options->borders.ranks ? 1 : host_ranks;
}

an_reduction_cost an_reduction_predict(const an_reduction_options *options, int rank, int host_ranks) {
    an_reduction r = {.nodes = 0};
    describe(&r, options, rank, an_reduction_shares(options, host_ranks));
    r.predicted.bytes = sizeof r + make_tables(&r, NULL) + staging_bytes_of(&r);
    return r.predicted;
}

/* ---- a bucket on its way ---- */

static void **flats_of(const an_reduction *r, int unit) {
    return r->flats + (ptrdiff_t)unit * (r->nodes + 1);
}

static an_status begin(void *owner, an_parcel *parcel, int64_t index) {
    an_reduction *r = owner;
    an_bucket *b = (an_bucket *)(void *)parcel;
    b->nodes = flats_of(r, parcel->unit);
    b->pages = bucket_at(&r->units[parcel->unit], r->bucket_pages, r->peers.scatters, index, &b->part);
    return an_bucket_begin(&r->peers, b);
}

static an_status advance(void *owner, an_parcel *parcel, bool *moved) {
    an_reduction *r = owner;
    return an_bucket_advance(&r->peers, (an_bucket *)(void *)parcel, moved);
}

static const an_pipeline_kind kind = {
    .what = "gradients", .tag = AN_TAG_REDUCE, .parcel_bytes = sizeof(an_bucket), .begin = begin, .advance = advance};

/* ---- making one ---- */

static an_status check_options(an_context *ctx, const an_comm *comm, const an_reduction_options *o) {
    an_status status;
    const an_borders *b = &o->borders;
    AN_CHECK(ctx, ctx->device == &an_device_host, AN_ERR_UNSUPPORTED,
             "ranks can add gradients only in the memory of the host");
    AN_CHECK(ctx, o->dtype == AN_DTYPE_F32 || o->dtype == AN_DTYPE_F64, AN_ERR_DTYPE,
             "gradients of ranks are f32 or f64");
    AN_CHECK(ctx, b->ranks == comm->ranks, AN_ERR_ARGUMENT, "the borders are for %d ranks, and there are %d", b->ranks,
             comm->ranks);
    AN_CHECK(ctx, b->leaves >= b->ranks && b->leaves <= AN_MOST_LEAVES, AN_ERR_ARGUMENT,
             "%d ranks need as many leaves, and there are %lld", b->ranks, (long long)b->leaves);
    AN_CHECK(ctx, o->bucket_bytes <= AN_COMM_MAX_BYTES, AN_ERR_ARGUMENT, "buckets have %zu bytes; they may have %zu",
             o->bucket_bytes, AN_COMM_MAX_BYTES);
    AN_CHECK(ctx, o->in_flight >= 0 && o->in_flight <= AN_MOST_IN_FLIGHT, AN_ERR_ARGUMENT,
             "%d buckets in flight; at most %d", o->in_flight, AN_MOST_IN_FLIGHT);
    for (int i = 0; o->radices && i < o->rounds; i++)
        AN_CHECK(ctx, o->radices[i] >= 2, AN_ERR_ARGUMENT, "round %d has radix %d; at least 2", i, o->radices[i]);
    for (int i = 0; i < o->unit_count; i++) {
        const an_page_range *pages = &o->units[i].pages;
        AN_CHECK(ctx, pages->begin >= 0 && pages->begin < pages->end && pages->end <= o->pages, AN_ERR_ARGUMENT,
                 "unit %s has pages %lld to %lld of %lld", o->units[i].name, (long long)pages->begin,
                 (long long)pages->end, (long long)o->pages);
    }
    return AN_OK;
fail:
    return status;
}

/* A window if all ranks can have one; else the buffers of this rank alone. */
static an_status make_buffers(an_reduction *r) {
    an_reduction_peers *x = &r->peers;
    an_context *ctx = x->pipeline.ctx;
    for (int i = 0; i < r->buffer_count; i++)
        if (x->host_ranks > 1)
            r->buffers[i] = (char *)an_window_part(&x->window, x->window.host->rank) + r->head_bytes +
                            (size_t)i * an_round_up(r->buffer_bytes, WINDOW_ALIGNMENT);
        else
            AN_TRY_RETURN(an_alloc_raw(ctx, &r->buffers[i], r->buffer_bytes));
    for (int i = 0; x->host_ranks > 1 && i < x->window.host->ranks; i++)
        x->part_bytes[i] = an_window_part(&x->window, i)->bytes;
    return AN_OK;
}

/* Ranks agree on the way before anything is sized by it. */
static an_status open_window(an_reduction *r, const an_reduction_options *o, int *host_ranks) {
    an_reduction_peers *x = &r->peers;
    an_context *ctx = x->pipeline.ctx;
    bool opened = false;
    *host_ranks = 1;
    if (!o->uses_window || o->buffers == 0) return AN_OK;
    *host_ranks = an_reduction_shares(o, an_host_ranks(ctx));
    if (*host_ranks == 1) return AN_OK;
    const an_reduction_cost cost = an_reduction_predict(o, x->pipeline.comm->rank, *host_ranks);
    AN_TRY_RETURN(an_window_open(&x->window, ctx, x->pipeline.comm, cost.window_bytes, &opened));
    if (opened)
        an_memory_count(ctx, cost.window_bytes);
    else
        *host_ranks = 1;
    return AN_OK;
}

an_status an_reduction_create(an_reduction **reduction, an_context *ctx, an_comm *comm,
                              const an_reduction_options *options) {
    an_status status;
    an_reduction *r = NULL;
    int host_ranks = 1;
    AN_TRY_RETURN(check_options(ctx, comm, options));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&r, 1, sizeof *r));
    r->peers.pipeline = (an_pipeline){.ctx = ctx, .comm = comm, .kind = &kind, .owner = r};
    AN_TRY(open_window(r, options, &host_ranks));
    describe(r, options, comm->rank, host_ranks);
    const size_t tables = make_tables(r, NULL);
    AN_TRY(an_alloc(ctx, (void **)&r->memory, tables, 1));
    r->memory_bytes = tables;
    make_tables(r, r->memory);
    for (int i = 0; i < options->unit_count; i++) {
        r->units[i] = options->units[i];
        r->peers.pipeline.units[i] =
            (an_pipeline_unit){.name = r->units[i].name, .parcels = buckets_of(&r->units[i], r->bucket_pages)};
    }
    if (staging_bytes_of(r) > 0) AN_TRY(an_alloc_raw(ctx, (void **)&r->staging, staging_bytes_of(r)));
    for (int i = 0; i < r->peers.pipeline.in_flight; i++)
        r->buckets[i].staging = r->staging + (size_t)i * (size_t)r->staging_pages * r->peers.page_bytes;
    AN_TRY(make_buffers(r));
    r->predicted.bytes = sizeof *r + r->memory_bytes + staging_bytes_of(r);
    *reduction = r;
    return AN_OK;
fail:
    an_reduction_destroy(&r);
    return status;
}

void an_reduction_destroy(an_reduction **reduction) {
    an_reduction *r = *reduction;
    if (!r) return;
    an_context *ctx = r->peers.pipeline.ctx;
    an_pipeline_end(&r->peers.pipeline);
    if (r->peers.host_ranks <= 1)
        for (int i = 0; r->memory && i < r->buffer_count; i++) an_release(ctx, &r->buffers[i], r->buffer_bytes, 1);
    if (r->peers.window.host) an_memory_discount(ctx, r->peers.window.bytes);
    an_window_close(&r->peers.window, ctx);
    an_release(ctx, (void **)&r->staging, staging_bytes_of(r), 1);
    an_release(ctx, (void **)&r->memory, r->memory_bytes, 1);
    an_release(ctx, (void **)reduction, 1, sizeof *r);
}

void *an_reduction_buffer(const an_reduction *reduction, int index) {
    return reduction->buffers[index];
}

int an_reduction_nodes(const an_reduction *reduction) {
    return reduction->nodes;
}

int an_reduction_host_ranks(const an_reduction *reduction) {
    return reduction->peers.host_ranks;
}

an_reduction_cost an_reduction_count(const an_reduction *reduction) {
    const an_reduction_peers *x = &reduction->peers;
    an_reduction_cost cost = reduction->predicted;
    cost.sent = x->pipeline.sent;
    cost.received = x->pipeline.received;
    cost.messages = x->pipeline.messages;
    cost.read = x->read;
    cost.written = x->written;
    return cost;
}

/* ---- a step ---- */

/* Where the gradients of a unit lie in this rank's part of the window, for the others. */
static an_status announce(an_reduction *r, int unit) {
    an_reduction_peers *x = &r->peers;
    an_context *ctx = x->pipeline.ctx;
    void **flats = flats_of(r, unit);
    const int count = r->nodes + 1;
    an_window_head *head = an_window_part(&x->window, x->window.host->rank);
    uint64_t *places = (uint64_t *)(void *)((char *)head + x->places_at) + (ptrdiff_t)unit * count;
    for (int i = 0; i < count; i++) {
        int buffer = 0;
        while (buffer < r->buffer_count && r->buffers[buffer] != flats[i]) buffer++;
        if (buffer == r->buffer_count)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "gradients of unit %s are not in a buffer of the reduction",
                            r->units[unit].name);
        places[i] = (uint64_t)((char *)flats[i] - (char *)head);
    }
    an_window_publish(&head->started, x->pipeline.announced + (uint64_t)x->pipeline.units[unit].parcels);
    return AN_OK;
}

an_status an_reduction_start(an_reduction *reduction, int unit, void *const *nodes, void *dst) {
    an_status status;
    an_reduction *r = reduction;
    an_pipeline *p = &r->peers.pipeline;
    an_context *ctx = p->ctx;
    const int count = r->nodes;
    AN_CHECK(ctx, unit >= 0 && unit < p->unit_count, AN_ERR_ARGUMENT, "unit %d of %d", unit, p->unit_count);
    void **flats = flats_of(r, unit);
    AN_CHECK(ctx, !flats[count], AN_ERR_ORDER, "unit %s was already started in this step", r->units[unit].name);
    const an_page_range *pages = &r->units[unit].pages;
    const size_t page_bytes = r->peers.page_bytes, bytes = (size_t)(pages->end - pages->begin) * page_bytes;
    if (r->peers.schedule.rounds == 0) { /* one rank: its node is the sum */
        const size_t at = (size_t)pages->begin * page_bytes;
        if (dst != nodes[0]) memcpy((char *)dst + at, (char *)nodes[0] + at, bytes);
        return AN_OK;
    }
    memcpy(flats, nodes, (size_t)count * sizeof *flats);
    flats[count] = dst;
    an_comm_enter(ctx, p->comm, r->units[unit].name, bytes);
    if (r->peers.host_ranks > 1) AN_TRY(announce(r, unit));
    AN_TRY(an_pipeline_start(p, unit));
    return AN_OK;
fail: /* the others would wait for this unit */
    return an_pipeline_fail(p, status);
}

static void forget_units(an_reduction *r) {
    for (int i = 0; i < r->peers.pipeline.unit_count; i++) flats_of(r, i)[r->nodes] = NULL;
}

an_status an_reduction_finish(an_reduction *reduction) {
    const an_status status = an_pipeline_wait(&reduction->peers.pipeline, an_pipeline_all_done, -1);
    forget_units(reduction);
    return status;
}

void an_reduction_cancel(an_reduction *reduction) {
    an_pipeline_cancel(&reduction->peers.pipeline);
    forget_units(reduction);
}

#include "comm/gather.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "comm/gather_inside.h"

struct an_gathering {
    an_gather_peers peers;
    int64_t run_count, requests_of_slot;
    an_gather_run *runs; /* of all units */
    an_gather_slot *slots;
    an_comm_request *requests;
    bool is_published; /* since it was made */
    size_t bytes;
};

/* ---- sizes ---- */

/* Fills in what follows from the options alone. */
static void describe(an_gathering *g, const an_gather_options *o, int rank, int ranks, bool is_windowed,
                     an_gather_cost *cost) {
    an_gather_peers *p = &g->peers;
    p->rank = rank;
    p->ranks = ranks;
    p->is_windowed = is_windowed;
    p->message_bytes = o->message_bytes ? o->message_bytes : AN_COMM_MAX_BYTES;
    memcpy(p->page_bytes, o->page_bytes, sizeof p->page_bytes);
    p->pipeline.unit_count = o->unit_count;
    p->pipeline.in_flight = o->in_flight ? o->in_flight : AN_GATHER_IN_FLIGHT;
    for (int i = 0; i < o->unit_count; i++) {
        const int64_t requests = an_gather_slot_measure(p, &o->units[i], cost);
        g->requests_of_slot = an_larger(g->requests_of_slot, requests);
        g->run_count += o->units[i].run_count;
    }
}

/* The tables: where each begins, and its size. */
typedef struct table {
    void **memory;
    size_t count, element;
} table;
enum { TABLES = 7 };

static void list_tables(an_gathering *g, table tables[TABLES]) {
    an_pipeline *p = &g->peers.pipeline;
    const size_t units = (size_t)p->unit_count, slots = (size_t)p->in_flight;
    const table list[TABLES] = {
        {(void **)&g->peers.units, units, sizeof *g->peers.units},
        {(void **)&g->runs, (size_t)g->run_count, sizeof *g->runs},
        {(void **)&p->units, units, sizeof *p->units},
        {(void **)&g->peers.starts, units, sizeof *g->peers.starts},
        {(void **)&g->slots, slots, sizeof *g->slots},
        {(void **)&g->requests, slots * (size_t)g->requests_of_slot, sizeof *g->requests},
        {(void **)&g->peers.part_bytes, g->peers.is_windowed ? (size_t)g->peers.ranks : 0, sizeof *g->peers.part_bytes},
    };
    memcpy(tables, list, sizeof list);
}

static size_t bytes_of(an_gathering *g) {
    table tables[TABLES];
    size_t bytes = sizeof *g;
    list_tables(g, tables);
    for (int i = 0; i < TABLES; i++) bytes += tables[i].count * tables[i].element;
    return bytes;
}

an_gather_cost an_gather_predict(const an_gather_options *options, int rank, int ranks, int host_ranks) {
    an_gathering g = {.bytes = 0};
    an_gather_cost cost = {0};
    describe(&g, options, rank, ranks, ranks > 1 && host_ranks == ranks, &cost);
    cost.bytes = bytes_of(&g);
    return cost;
}

/* ---- making one ---- */

static void copy_units(an_gathering *g, const an_gather_options *o) {
    an_gather_run *runs = g->runs;
    for (int i = 0; i < o->unit_count; i++) {
        g->peers.units[i] = o->units[i];
        g->peers.units[i].runs = runs;
        g->peers.pipeline.units[i] = (an_pipeline_unit){.name = o->units[i].name, .parcels = 1};
        for (int run = 0; run < o->units[i].run_count; run++) *runs++ = o->units[i].runs[run];
    }
}

/* Counters go on from those of a gathering before this one: it has finished, and so they are the same on all ranks. */
static void join_window(an_gathering *g, const an_gather_options *o) {
    an_gather_peers *p = &g->peers;
    p->window = o->window;
    p->head_at = o->head_at;
    an_gather_head *head = an_gather_head_of(p, p->rank);
    for (int i = 0; i < AN_GATHER_CHANNELS; i++) head->places[i] = o->window_at[i];
    for (int i = 0; i < p->ranks; i++) p->part_bytes[i] = an_window_part(p->window, i)->bytes;
    g->peers.version = an_window_read(&head->published);
    p->pipeline.number = p->pipeline.done = p->pipeline.announced = an_window_read(&head->read);
}

an_status an_gathering_create(an_gathering **gathering, an_context *ctx, an_comm *comm,
                              const an_gather_options *options) {
    an_status status;
    an_gathering *g = NULL;
    an_gather_cost cost = {0};
    table tables[TABLES];
    const bool is_windowed = an_gather_is_windowed(options, comm);
    AN_TRY_RETURN(an_gather_check(ctx, comm, options));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&g, 1, sizeof *g));
    g->peers.pipeline = (an_pipeline){.ctx = ctx, .comm = comm, .kind = &an_gather_kind, .owner = &g->peers};
    describe(g, options, comm->rank, comm->ranks, is_windowed, &cost);
    AN_CHECK(ctx, g->requests_of_slot <= INT_MAX, AN_ERR_OVERFLOW, "a unit has %lld messages",
             (long long)g->requests_of_slot);
    list_tables(g, tables);
    for (int i = 0; i < TABLES; i++) AN_TRY(an_alloc(ctx, tables[i].memory, tables[i].count, tables[i].element));
    g->bytes = bytes_of(g);
    copy_units(g, options);
    an_pipeline_begin(&g->peers.pipeline, g->slots, g->requests, (int)g->requests_of_slot);
    if (is_windowed) join_window(g, options);
    *gathering = g;
    return AN_OK;
fail:
    an_gathering_destroy(&g);
    return status;
}

void an_gathering_destroy(an_gathering **gathering) {
    an_gathering *g = *gathering;
    table tables[TABLES];
    if (!g) return;
    an_context *ctx = g->peers.pipeline.ctx;
    an_pipeline_end(&g->peers.pipeline);
    list_tables(g, tables);
    for (int i = 0; i < TABLES; i++) an_release(ctx, tables[i].memory, tables[i].count, tables[i].element);
    an_release(ctx, (void **)gathering, 1, sizeof *g);
}

an_gather_cost an_gathering_count(const an_gathering *gathering) {
    const an_pipeline *p = &gathering->peers.pipeline;
    return (an_gather_cost){gathering->bytes, p->sent, p->received, p->messages, gathering->peers.read};
}

/* ---- a step ---- */

/* Whether all of a unit is here. */
static bool has_come(const an_pipeline *p, int unit) {
    const uint64_t end = p->units[unit].end;
    if (p->done >= end) return true;
    return p->number >= end && ((const an_gather_slot *)(const void *)an_pipeline_parcel(p, end - 1))->has_come;
}

/* Whether all ranks have all that was started. Messages of this rank that are gone say that of themselves. */
static bool is_everywhere(const an_pipeline *p, int unused) {
    const an_gather_peers *peers = p->owner;
    (void)unused;
    if (p->done < p->announced) return false;
    for (int i = 0; peers->is_windowed && i < peers->ranks; i++)
        if (an_window_read(&an_gather_head_of(peers, i)->read) < p->announced) return false;
    return true;
}

an_status an_gathering_publish(an_gathering *gathering) {
    an_status status;
    an_gathering *g = gathering;
    an_pipeline *p = &g->peers.pipeline;
    an_context *ctx = p->ctx;
    AN_TRY(an_pipeline_check(p));
    AN_CHECK(ctx, !p->is_open, AN_ERR_ORDER,
             "new weights are published while the old ones may be on their way: an_gathering_finish comes first");
    g->peers.version++;
    g->is_published = true;
    if (g->peers.is_windowed)
        an_window_publish(&an_gather_head_of(&g->peers, g->peers.rank)->published, g->peers.version);
    return AN_OK;
fail:
    return an_pipeline_fail(p, status);
}

static size_t bytes_of_unit(const an_gathering *g, const an_gather_unit *unit) {
    size_t bytes = 0;
    for (int i = 0; i < unit->run_count; i++)
        bytes +=
            (size_t)(unit->runs[i].pages.end - unit->runs[i].pages.begin) * g->peers.page_bytes[unit->runs[i].channel];
    return bytes;
}

/* What is checked at each start. */
static an_status check_start(an_gathering *g, int unit, const void *const *src) {
    an_status status;
    an_pipeline *p = &g->peers.pipeline;
    an_context *ctx = p->ctx;
    AN_CHECK(ctx, unit >= 0 && unit < p->unit_count, AN_ERR_ARGUMENT, "unit %d of %d", unit, p->unit_count);
    AN_TRY(an_pipeline_check(p));
    const an_gather_unit *u = &g->peers.units[unit];
    AN_CHECK(ctx, g->is_published, AN_ERR_ORDER, "unit %s was started before an_gathering_publish", u->name);
    AN_CHECK(ctx, has_come(p, unit), AN_ERR_ORDER, "unit %s was started again before it had come", u->name);
    for (int i = 0; g->peers.is_windowed && i < u->run_count; i++) {
        const int channel = u->runs[i].channel;
        const char *part = (const char *)an_window_part(g->peers.window, g->peers.rank);
        AN_CHECK(ctx, src[channel] == part + an_gather_head_of(&g->peers, g->peers.rank)->places[channel],
                 AN_ERR_ARGUMENT, "weights of unit %s are not where the window has them", u->name);
    }
    return AN_OK;
fail:
    return status;
}

an_status an_gathering_start(an_gathering *gathering, int unit, const void *const *src, void *const *dst) {
    an_status status;
    an_gathering *g = gathering;
    an_pipeline *p = &g->peers.pipeline;
    an_context *ctx = p->ctx;
    char what[AN_HEARTBEAT_TEXT];
    AN_TRY(check_start(g, unit, src));
    snprintf(what, sizeof what, "the weights of %s", g->peers.units[unit].name);
    if (g->peers.ranks > 1) an_comm_enter(ctx, p->comm, what, bytes_of_unit(g, &g->peers.units[unit]));
    memcpy(g->peers.starts[unit].src, src, sizeof g->peers.starts[unit].src);
    memcpy(g->peers.starts[unit].dst, dst, sizeof g->peers.starts[unit].dst);
    p->is_open = true;
    AN_TRY(an_pipeline_start(p, unit));
    return AN_OK;
fail:
    return an_pipeline_fail(p, status);
}

an_status an_gathering_wait(an_gathering *gathering, int unit) {
    an_pipeline *p = &gathering->peers.pipeline;
    if (unit < 0 || unit >= p->unit_count)
        return AN_ERROR(p->ctx, AN_ERR_ARGUMENT, "unit %d of %d", unit, p->unit_count);
    return an_pipeline_wait(p, has_come, unit);
}

an_status an_gathering_finish(an_gathering *gathering) {
    an_pipeline *p = &gathering->peers.pipeline;
    AN_TRY_RETURN(an_pipeline_wait(p, is_everywhere, -1));
    p->is_open = false;
    return AN_OK;
}

void an_gathering_cancel(an_gathering *gathering) {
    an_pipeline_cancel(&gathering->peers.pipeline);
}

#include "comm/gather.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/memory.h"
#include "comm/gather_inside.h"

/* A unit that waits for a slot. */
typedef struct started_unit {
    int unit;
    const void *src[AN_GATHER_CHANNELS];
    void *dst[AN_GATHER_CHANNELS];
} started_unit;

struct an_gathering {
    an_gather_peers peers;
    int unit_count, in_flight;
    int64_t run_count, requests_of_slot;
    an_gather_unit *units;
    an_gather_run *runs; /* of all units */
    uint64_t *last;      /* by unit: the number of its last start, plus 1 */
    started_unit *queue; /* [unit_count], by number: only a unit that has come is started again, so no more can wait */
    an_gather_slot *slots;
    an_comm_request *requests;
    uint64_t started, begun, finished; /* units so far, each in the order in which they were started */
    uint64_t version;                  /* how often pieces were published */
    bool is_published, is_finished;    /* since it was made; since the last start */
    bool is_lost;                      /* something was given up */
    bool is_moving; /* copying opens a parallel region, and who waits for one calls an_gathering_progress */
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
    p->message_bytes = o->message_bytes ? o->message_bytes : AN_COMM_MOST_BYTES;
    memcpy(p->page_bytes, o->page_bytes, sizeof p->page_bytes);
    g->unit_count = o->unit_count;
    g->in_flight = o->in_flight ? o->in_flight : AN_GATHER_IN_FLIGHT;
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
    const size_t units = (size_t)g->unit_count, slots = (size_t)g->in_flight;
    const table list[TABLES] = {
        {(void **)&g->units, units, sizeof *g->units},
        {(void **)&g->runs, (size_t)g->run_count, sizeof *g->runs},
        {(void **)&g->last, units, sizeof *g->last},
        {(void **)&g->queue, units, sizeof *g->queue},
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
    an_gathering g = {.started = 0};
    an_gather_cost cost = {0};
    describe(&g, options, rank, ranks, ranks > 1 && host_ranks == ranks, &cost);
    cost.bytes = bytes_of(&g);
    return cost;
}

/* ---- making one ---- */

static void copy_units(an_gathering *g, const an_gather_options *o) {
    an_gather_run *runs = g->runs;
    for (int i = 0; i < g->unit_count; i++) {
        g->units[i] = o->units[i];
        g->units[i].runs = runs;
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
    g->version = an_window_read(&head->published);
    g->started = g->begun = g->finished = an_window_read(&head->read);
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
    g->peers.ctx = ctx;
    g->peers.comm = comm;
    g->is_finished = true;
    describe(g, options, comm->rank, comm->ranks, is_windowed, &cost);
    AN_CHECK(ctx, g->requests_of_slot <= INT_MAX, AN_ERR_OVERFLOW, "a unit has %lld messages",
             (long long)g->requests_of_slot);
    list_tables(g, tables);
    for (int i = 0; i < TABLES; i++) AN_TRY(an_alloc(ctx, tables[i].memory, tables[i].count, tables[i].element));
    g->bytes = bytes_of(g);
    copy_units(g, options);
    for (int i = 0; i < g->in_flight; i++) {
        g->slots[i].index = i;
        if (!g->requests) continue; /* no messages */
        g->slots[i].room = (int)g->requests_of_slot;
        g->slots[i].requests = g->requests + i * g->requests_of_slot;
    }
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
    an_context *ctx = g->peers.ctx;
    an_gathering_cancel(g);
    list_tables(g, tables);
    for (int i = 0; i < TABLES; i++) an_release(ctx, tables[i].memory, tables[i].count, tables[i].element);
    an_release(ctx, (void **)gathering, 1, sizeof *g);
}

an_gather_cost an_gathering_count(const an_gathering *gathering) {
    an_gather_cost cost = gathering->peers.count;
    cost.bytes = gathering->bytes;
    return cost;
}

/* ---- a step ---- */

static an_gather_slot *slot_of(const an_gathering *g, uint64_t number) {
    return &g->slots[number % (uint64_t)g->in_flight];
}

/* Whether all of a unit is here. */
static bool has_come(const an_gathering *g, int unit) {
    const uint64_t number = g->last[unit] - 1;
    if (g->last[unit] == 0 || number < g->finished) return true;
    return number < g->begun && slot_of(g, number)->has_come;
}

/* Whether all ranks have all that was started. Messages of this rank that are gone say that of themselves. */
static bool is_everywhere(const an_gathering *g, int unused) {
    (void)unused;
    if (g->finished < g->started) return false;
    for (int i = 0; g->peers.is_windowed && i < g->peers.ranks; i++)
        if (an_window_read(&an_gather_head_of(&g->peers, i)->read) < g->started) return false;
    return true;
}

static an_status check_usable(an_gathering *g) {
    an_context *ctx = g->peers.ctx;
    AN_TRY_RETURN(an_comm_check(ctx));
    return g->is_lost ? AN_ERROR(ctx, AN_ERR_ORDER, "weights that were on their way have been given up") : AN_OK;
}

/* The others would wait for what this rank cannot do. */
static an_status tell_others(an_gathering *g, an_status status) {
    an_context *ctx = g->peers.ctx;
    if (g->peers.ranks > 1) an_comm_abort(ctx, status, ctx->error.message);
    return status;
}

an_status an_gathering_publish(an_gathering *gathering) {
    an_status status;
    an_gathering *g = gathering;
    an_context *ctx = g->peers.ctx;
    AN_TRY(check_usable(g));
    AN_CHECK(ctx, g->is_finished, AN_ERR_ORDER,
             "new weights are published while the old ones may be on their way: an_gathering_finish comes first");
    g->version++;
    g->is_published = true;
    if (g->peers.is_windowed) an_window_publish(&an_gather_head_of(&g->peers, g->peers.rank)->published, g->version);
    return AN_OK;
fail:
    return tell_others(g, status);
}

/* Begins units that were started, as long as there is room for them. */
static an_status begin_units(an_gathering *g) {
    an_context *ctx = g->peers.ctx;
    while (g->begun < g->started && g->begun - g->finished < (uint64_t)g->in_flight) {
        const started_unit *s = &g->queue[g->begun % (uint64_t)g->unit_count];
        an_gather_slot *slot = slot_of(g, g->begun++);
        slot->unit = &g->units[s->unit];
        slot->version = g->version;
        memcpy(slot->src, s->src, sizeof slot->src);
        memcpy(slot->dst, s->dst, sizeof slot->dst);
        AN_TRY_RETURN(an_gather_slot_begin(&g->peers, slot));
    }
    return AN_OK;
}

/* One look at every unit that is on its way. */
static an_status move_on(an_gathering *g, bool *moved) {
    an_context *ctx = g->peers.ctx;
    an_status status = AN_OK;
    *moved = false;
    if (g->is_moving) return AN_OK;
    g->is_moving = true;
    const uint64_t finished = g->finished;
    for (uint64_t number = finished; number < g->begun; number++) {
        bool this_moved;
        AN_TRY(an_gather_slot_advance(&g->peers, slot_of(g, number), &this_moved));
        *moved |= this_moved;
    }
    while (g->finished < g->begun && !slot_of(g, g->finished)->is_busy) g->finished++;
    if (g->peers.is_windowed && g->finished > finished)
        an_window_publish(&an_gather_head_of(&g->peers, g->peers.rank)->read, g->finished);
    AN_TRY(begin_units(g));
fail:
    g->is_moving = false;
    return status;
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
    an_context *ctx = g->peers.ctx;
    AN_CHECK(ctx, unit >= 0 && unit < g->unit_count, AN_ERR_ARGUMENT, "unit %d of %d", unit, g->unit_count);
    AN_TRY(check_usable(g));
    const an_gather_unit *u = &g->units[unit];
    AN_CHECK(ctx, g->is_published, AN_ERR_ORDER, "unit %s was started before an_gathering_publish", u->name);
    AN_CHECK(ctx, has_come(g, unit), AN_ERR_ORDER, "unit %s was started again before it had come", u->name);
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

static void say_weights(char what[AN_HEARTBEAT_TEXT], const an_gather_unit *unit) {
    snprintf(what, AN_HEARTBEAT_TEXT, "the weights of %s", unit->name);
}

an_status an_gathering_start(an_gathering *gathering, int unit, const void *const *src, void *const *dst) {
    an_status status;
    an_gathering *g = gathering;
    an_context *ctx = g->peers.ctx;
    char what[AN_HEARTBEAT_TEXT];
    AN_TRY(check_start(g, unit, src));
    say_weights(what, &g->units[unit]);
    if (g->peers.ranks > 1) an_comm_enter(ctx, g->peers.comm, what, bytes_of_unit(g, &g->units[unit]));
    started_unit *s = &g->queue[g->started % (uint64_t)g->unit_count];
    s->unit = unit;
    memcpy(s->src, src, sizeof s->src);
    memcpy(s->dst, dst, sizeof s->dst);
    g->last[unit] = ++g->started;
    g->is_finished = false;
    AN_TRY(begin_units(g));
    return AN_OK;
fail:
    return tell_others(g, status);
}

an_status an_gathering_progress(an_gathering *gathering) {
    an_context *ctx = gathering->peers.ctx;
    bool moved;
    AN_TRY_RETURN(move_on(gathering, &moved));
    return AN_OK;
}

/* What the ranks have not got yet: this one, and after it the others. */
static void say_oldest(char what[AN_HEARTBEAT_TEXT], const an_gathering *g) {
    if (g->finished < g->begun)
        say_weights(what, slot_of(g, g->finished)->unit);
    else
        snprintf(what, AN_HEARTBEAT_TEXT, "other ranks to copy the weights of this one");
}

/* `unit`: what is waited for; -1: everything. */
static an_status wait_until(an_gathering *g, bool (*is_so)(const an_gathering *g, int unit), int unit) {
    an_status status;
    an_context *ctx = g->peers.ctx;
    an_comm_turn turn = {0};
    AN_TRY(check_usable(g)); /* a caller may have overlooked the error of an_gathering_start or an_gathering_progress */
    while (!is_so(g, unit)) {
        bool moved;
        char what[AN_HEARTBEAT_TEXT];
        AN_TRY(move_on(g, &moved));
        if (moved) {
            turn = (an_comm_turn){0};
            continue;
        }
        if (unit >= 0)
            say_weights(what, &g->units[unit]);
        else
            say_oldest(what, g);
        AN_TRY(an_comm_turn_take(ctx, &turn, what));
    }
    return AN_OK;
fail:
    an_gathering_cancel(g);
    return status;
}

an_status an_gathering_wait(an_gathering *gathering, int unit) {
    an_context *ctx = gathering->peers.ctx;
    if (unit < 0 || unit >= gathering->unit_count)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "unit %d of %d", unit, gathering->unit_count);
    AN_TRY_RETURN(wait_until(gathering, has_come, unit));
    return AN_OK;
}

an_status an_gathering_finish(an_gathering *gathering) {
    an_context *ctx = gathering->peers.ctx;
    AN_TRY_RETURN(wait_until(gathering, is_everywhere, -1));
    gathering->is_finished = true;
    return AN_OK;
}

void an_gathering_cancel(an_gathering *gathering) {
    an_gathering *g = gathering;
    if (!g->is_finished) g->is_lost = true;
    for (; g->finished < g->begun; g->finished++) an_gather_slot_cancel(&g->peers, slot_of(g, g->finished));
    g->begun = g->finished = g->started;
}

/* Rounds of a gathering on any communicator, compared with a plain loop. Ranks that are threads run it
 * (test_gather.c), and those of both MPI libraries (conformance.c). */
#ifndef TESTS_COMM_GATHERS_H
#define TESTS_COMM_GATHERS_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "comm/gather_inside.h"
#include "comm/mesh.h"

enum { GATHER_GRID = 96, GATHER_UNITS = 6, GATHER_MOST_RUNS = 4, GATHER_ROUNDS = 4, GATHER_STARTS = 7 };

/* Not in order, with pages of no unit, of units that have fewer pages than there are ranks, and of no run. */
typedef struct gather_template {
    an_page_range pages;
    const char *name;
    int run_count;
    struct {
        an_page_range pages;
        int channel;
    } runs[GATHER_MOST_RUNS];
} gather_template;
static const gather_template gather_templates[GATHER_UNITS] = {
    {{0, 50}, "first", 4, {{{0, 20}, 0}, {{5, 50}, 1}, {{30, 31}, 0}, {{49, 50}, 0}}},
    {{60, 61}, "one page", 2, {{{60, 61}, 0}, {{60, 61}, 1}}},
    {{61, 64}, "few", 1, {{{62, 64}, 1}}},
    {{50, 57}, "seven", 3, {{{50, 57}, 0}, {{50, 52}, 1}, {{53, 57}, 1}}},
    {{70, 93}, "last", 2, {{{70, 93}, 1}, {{92, 93}, 0}}},
    {{93, 96}, "nothing", 0, {{{0, 0}, 0}}},
};

/* Units of each round; -1: no more. */
static const int gather_order[GATHER_ROUNDS][GATHER_STARTS] = {
    {0, 1, 2, 3, 4, 5, -1}, {5, 4, 3, 2, 1, 0, 3}, {2, 0, 4, 2, 1, 0, -1}, {4, 4, 4, -1}};

typedef struct gather_setting {
    size_t page_bytes[AN_GATHER_CHANNELS];
    bool uses_window, is_in_place;
    int in_flight;
    size_t message_bytes;
} gather_setting;

/* One rank. */
typedef struct gather_test {
    const gather_setting *setting;
    an_context *ctx;
    an_comm *comm;
    an_window window;
    an_gather_run runs[GATHER_UNITS][GATHER_MOST_RUNS];
    an_gather_unit units[GATHER_UNITS];
    an_gather_options options;
    char *src[AN_GATHER_CHANNELS], *dst[AN_GATHER_CHANNELS], *expected[AN_GATHER_CHANNELS];
    char problem[512];
} gather_test;

/* The first problem is kept. Other ranks are told, as they may wait for this one. */
static inline bool gather_expect(gather_test *t, bool is_so, const char *what) {
    if (is_so || *t->problem) return is_so;
    snprintf(t->problem, sizeof t->problem, "rank %d of %d: %s: %s", t->comm->rank, t->comm->ranks, what,
             an_last_error(t->ctx));
    an_comm_abort(t->ctx, AN_ERR_KERNEL, t->problem);
    return false;
}
#define GATHER_EXPECT(condition)                                  \
    do {                                                          \
        if (!gather_expect(t, (condition), #condition)) goto end; \
    } while (0)

static inline void gather_pause(bool is_it) {
    const struct timespec some = {.tv_nsec = 1000000};
    if (is_it) nanosleep(&some, NULL);
}

/* ---- what a plain loop makes of it ---- */

static inline unsigned char gather_byte(int round, int channel, int64_t page, size_t at) {
    return (unsigned char)((uint64_t)round * 101 + (uint64_t)channel * 59 + (uint64_t)page * 31 + at * 7 + (at >> 8));
}

static inline void gather_fill(char *page_bytes, size_t count, int round, int channel, int64_t page) {
    for (size_t i = 0; i < count; i++) page_bytes[i] = (char)gather_byte(round, channel, page, i);
}

/* Beginning with 0, and beyond the number of ranks. */
static inline int gather_turn(int unit) {
    return 5 * unit;
}

/* From the definition; -1: a page of no unit. */
static inline int gather_owner(int64_t page, int ranks) {
    for (int u = 0; u < GATHER_UNITS; u++) {
        const an_page_range *pages = &gather_templates[u].pages;
        const int64_t count = pages->end - pages->begin, i = page - pages->begin;
        for (int q = 0; q < ranks; q++)
            if (i >= q * count / ranks && i < (q + 1) * count / ranks) return (q + gather_turn(u)) % ranks;
    }
    return -1;
}

static inline size_t gather_grid_bytes(const gather_test *t, int channel) {
    return GATHER_GRID * t->setting->page_bytes[channel];
}

/* This rank has its own pages, and nothing useful in all others. */
static inline void gather_begin_round(gather_test *t, int round) {
    for (int c = 0; c < AN_GATHER_CHANNELS; c++) {
        const size_t bytes = t->setting->page_bytes[c];
        memset(t->dst[c], 0xdd, gather_grid_bytes(t, c));
        memset(t->src[c], 0xee, gather_grid_bytes(t, c));
        for (int64_t page = 0; page < GATHER_GRID; page++)
            if (gather_owner(page, t->comm->ranks) == t->comm->rank)
                gather_fill(t->src[c] + (size_t)page * bytes, bytes, round, c, page);
        memcpy(t->expected[c], t->dst[c], gather_grid_bytes(t, c));
    }
}

static inline void gather_expect_unit(gather_test *t, int round, int unit) {
    for (int i = 0; i < t->units[unit].run_count; i++) {
        const an_gather_run *run = &t->runs[unit][i];
        const size_t bytes = t->setting->page_bytes[run->channel];
        for (int64_t page = run->pages.begin; page < run->pages.end; page++)
            gather_fill(t->expected[run->channel] + run->dst_at + (size_t)(page - run->pages.begin) * bytes, bytes,
                        round, run->channel, page);
    }
}

static inline bool gather_unit_is_right(const gather_test *t, int unit) {
    for (int i = 0; i < t->units[unit].run_count; i++) {
        const an_gather_run *run = &t->runs[unit][i];
        const size_t bytes = (size_t)(run->pages.end - run->pages.begin) * t->setting->page_bytes[run->channel];
        if (memcmp(t->dst[run->channel] + run->dst_at, t->expected[run->channel] + run->dst_at, bytes) != 0)
            return false;
    }
    return true;
}

/* ---- one rank ---- */

/* src is laid out as the grid; dst is the same, or has the runs of all units one after another. */
static inline void gather_lay_out(gather_test *t) {
    int64_t at[AN_GATHER_CHANNELS] = {0};
    for (int u = GATHER_UNITS - 1; u >= 0; u--) {
        const gather_template *from = &gather_templates[u];
        for (int i = 0; i < from->run_count; i++) {
            const int channel = from->runs[i].channel;
            const int64_t bytes = (int64_t)t->setting->page_bytes[channel], begin = from->runs[i].pages.begin;
            an_gather_run *run = &t->runs[u][i];
            *run = (an_gather_run){.pages = from->runs[i].pages, .channel = channel, .src_at = begin * bytes};
            run->dst_at = t->setting->is_in_place ? run->src_at : at[channel];
            at[channel] += (from->runs[i].pages.end - begin) * bytes;
        }
        t->units[u] = (an_gather_unit){from->pages, gather_turn(u), t->runs[u], from->run_count, from->name};
    }
}

/* src is in the window, at another place on each rank, or in memory of its own. */
static inline bool gather_make_buffers(gather_test *t) {
    const gather_setting *s = t->setting;
    an_gather_options *o = &t->options;
    size_t bytes = sizeof(an_window_head) + AN_ALIGNMENT;
    bool opened = false;
    o->head_at = bytes;
    bytes += sizeof(an_gather_head) + (size_t)t->comm->rank * AN_ALIGNMENT;
    for (int c = 0; c < AN_GATHER_CHANNELS; c++) {
        o->window_at[c] = bytes;
        bytes += an_round_up(gather_grid_bytes(t, c), AN_ALIGNMENT);
    }
    if (s->uses_window && an_host_ranks(t->ctx) > 1) {
        if (an_window_open(&t->window, t->ctx, t->comm, bytes, &opened) != AN_OK) return false;
        o->window = &t->window;
    }
    for (int c = 0; c < AN_GATHER_CHANNELS; c++) {
        if (opened)
            t->src[c] = (char *)an_window_part(&t->window, t->window.host->rank) + o->window_at[c];
        else
            t->src[c] = malloc(gather_grid_bytes(t, c));
        t->dst[c] = s->is_in_place ? t->src[c] : malloc(gather_grid_bytes(t, c));
        t->expected[c] = malloc(gather_grid_bytes(t, c));
        if (!t->src[c] || !t->dst[c] || !t->expected[c]) return false;
    }
    return true;
}

static inline void gather_free_buffers(gather_test *t) {
    for (int c = 0; c < AN_GATHER_CHANNELS; c++) {
        if (!t->setting->is_in_place) free(t->dst[c]);
        if (!t->window.host) free(t->src[c]);
        free(t->expected[c]);
    }
    an_window_close(&t->window, t->ctx);
}

static inline void gather_init(gather_test *t, an_context *ctx, const gather_setting *setting) {
    *t = (gather_test){.setting = setting, .ctx = ctx, .comm = an_axis_comm(ctx, AN_AXIS_DATA)};
    gather_lay_out(t);
    t->options = (an_gather_options){.units = t->units,
                                     .unit_count = GATHER_UNITS,
                                     .page_bytes = {setting->page_bytes[0], setting->page_bytes[1]},
                                     .in_flight = setting->in_flight,
                                     .message_bytes = setting->message_bytes};
    gather_expect(t, gather_make_buffers(t), "buffers");
}

static inline an_gather_cost gather_predicted(const gather_test *t, const an_gather_options *o) {
    return an_gather_predict(o, t->comm->rank, t->comm->ranks, t->window.host ? t->window.host->ranks : 1);
}

static inline an_status gather_start(gather_test *t, an_gathering *g, int unit) {
    const void *src[AN_GATHER_CHANNELS] = {t->src[0], t->src[1]};
    return an_gathering_start(g, unit, src, (void *const *)t->dst);
}

static inline void gather_round(gather_test *t, an_gathering *g, int round) {
    const int rank = t->comm->rank, ranks = t->comm->ranks, *order = gather_order[round];
    const an_gather_cost before = an_gathering_count(g);
    an_gather_cost predicted = {0};
    bool was_started[GATHER_UNITS] = {false};
    gather_pause(rank == round % ranks); /* its pieces come late */
    gather_begin_round(t, round);
    GATHER_EXPECT(an_gathering_publish(g) == AN_OK);
    for (int i = 0; i < GATHER_STARTS && order[i] >= 0; i++) {
        const int unit = order[i];
        an_gather_options one = t->options;
        one.units = &t->units[unit];
        one.unit_count = 1;
        const an_gather_cost cost = gather_predicted(t, &one);
        predicted.sent += cost.sent;
        predicted.received += cost.received;
        predicted.messages += cost.messages;
        predicted.read += cost.read;
        if (was_started[unit]) GATHER_EXPECT(an_gathering_wait(g, unit) == AN_OK && gather_unit_is_right(t, unit));
        was_started[unit] = true;
        gather_expect_unit(t, round, unit);
        GATHER_EXPECT(gather_start(t, g, unit) == AN_OK);
        for (int calls = (rank * 7 + i * 3 + round) % 4; calls > 0; calls--) an_context_progress(t->ctx);
    }
    gather_pause(rank == (round + 1) % ranks); /* it reads late */
    for (int i = 0; round % 2 == 1 && i < GATHER_STARTS && order[i] >= 0; i++)
        GATHER_EXPECT(an_gathering_wait(g, order[i]) == AN_OK && gather_unit_is_right(t, order[i]));
    GATHER_EXPECT(an_gathering_finish(g) == AN_OK);
    const an_gather_cost after = an_gathering_count(g);
    for (int c = 0; c < AN_GATHER_CHANNELS; c++)
        GATHER_EXPECT(memcmp(t->dst[c], t->expected[c], gather_grid_bytes(t, c)) == 0);
    GATHER_EXPECT(after.sent - before.sent == predicted.sent);
    GATHER_EXPECT(after.received - before.received == predicted.received);
    GATHER_EXPECT(after.messages - before.messages == predicted.messages);
    GATHER_EXPECT(after.read - before.read == predicted.read);
end:;
}

/* Two gatherings, one after the other. t->problem: what was wrong, if something was. */
static inline void gather_run(gather_test *t, an_context *ctx, const gather_setting *setting) {
    gather_init(t, ctx, setting);
    for (int life = 0; life < 2 && !*t->problem; life++) {
        an_gathering *g = NULL;
        an_comm_progress entered;
        const size_t held = ctx->bytes;
        GATHER_EXPECT(an_gathering_create(&g, ctx, t->comm, &t->options) == AN_OK);
        GATHER_EXPECT(an_gathering_count(g).bytes == gather_predicted(t, &t->options).bytes);
        GATHER_EXPECT(ctx->bytes - held == an_gathering_count(g).bytes);
        GATHER_EXPECT(an_gathering_wait(g, 0) == AN_OK); /* it was not started */
        for (int round = 0; round < GATHER_ROUNDS && !*t->problem; round++) gather_round(t, g, round);
        an_comm_progress_read(ctx, &entered);
        GATHER_EXPECT(t->comm->ranks == 1 || !strcmp(entered.kind, "the weights of last"));
end:
        an_gathering_destroy(&g);
        if (!g && ctx->bytes != held) gather_expect(t, false, "bytes were not released");
    }
    gather_free_buffers(t);
}

#endif

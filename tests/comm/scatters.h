/* Steps of a scattering on any communicator, compared with the tree from its definition. Ranks that are threads run
 * it (test_scatter.c), and those of both MPI libraries (conformance.c). */
#ifndef TESTS_COMM_SCATTERS_H
#define TESTS_COMM_SCATTERS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "anneal/plan.h"
#include "base/float16.h"
#include "base/system/sparse.h"
#include "comm/mesh.h"
#include "comm/scatter_inside.h"

enum { SCATTER_GRID = 24, SCATTER_UNITS = 4, SCATTER_STEPS = 2, SCATTER_SPOILT = 0xdd };

/* With pages of no unit, and with units that have fewer pages than there are ranks. */
static const an_reduction_unit scatter_units[SCATTER_UNITS] = {
    {{1, 11}, "first", 2}, {{11, 12}, "one page", 7}, {{13, 16}, "few", 0}, {{17, 24}, "last", 13}};

/* Units of a round, by step: that of a later round begins while the last of the one before it are on their way. */
static const int scatter_order[SCATTER_STEPS][SCATTER_UNITS] = {{3, 2, 1, 0}, {1, 3, 0, 2}};

typedef struct scatter_setting {
    an_leaf_range leaves;
    an_dtype dtype;
    bool is_bf16;
    int in_flight;
    int bucket_pages; /* as they travel; 0: all of a unit */
    int waits_after;  /* so many units are on their way before the first of them is waited for */
} scatter_setting;

/* One rank. */
typedef struct scatter_test {
    const scatter_setting *setting;
    an_context *ctx;
    an_comm *comm;
    an_scatter_options options;
    an_page_range pieces[SCATTER_UNITS];
    an_sparse own; /* dst has the pages of this rank, and touching another is a fault */
    char *src[SCATTER_UNITS], *dst;
    char problem[512];
} scatter_test;

/* The first problem is kept. Other ranks are told, as they may wait for this one. */
static inline bool scatter_expect(scatter_test *t, bool is_so, const char *what) {
    if (is_so || *t->problem) return is_so;
    snprintf(t->problem, sizeof t->problem, "rank %d of %d: %s: %s", t->comm->rank, t->comm->ranks, what,
             an_last_error(t->ctx));
    an_comm_abort(t->ctx, AN_ERR_KERNEL, t->problem);
    return false;
}
#define SCATTER_EXPECT(condition)                                  \
    do {                                                           \
        if (!scatter_expect(t, (condition), #condition)) goto end; \
    } while (0)

/* ---- numbers ---- */

static inline uint64_t scatter_hash(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t x = a * 0x9e3779b97f4a7c15ULL + b * 0xbf58476d1ce4e5b9ULL + c * 0x94d049bb133111ebULL;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9ULL;
    return x ^ x >> 32;
}

static inline bool scatter_is_absent(int step, int64_t leaf) {
    return scatter_hash((uint64_t)step, (uint64_t)leaf, 77) % 4 == 0;
}

/* Numbers whose sum depends on the order in which they are added, and now and then one of those that are not like
 * others. */
static inline double scatter_number(int step, int64_t leaf, int64_t element) {
    static const double sizes[] = {1e16, -1e16, 1, 3e7, -1e-3, 1e-41, -1e-44, -0.0};
    static const double rare[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38, 1e-310, 0.0, 65535.5};
    const uint64_t x = scatter_hash((uint64_t)step, (uint64_t)leaf, (uint64_t)element);
    if (x % 101 == 0) return rare[x >> 40 & 7];
    return sizes[x >> 60 & 7] / (double)(1 + (x >> 33 & 1023));
}

/* Sums of f32 are made in f32. */
static inline double scatter_round(const scatter_setting *s, double x) {
    return s->dtype == AN_DTYPE_F32 ? (double)(float)x : x;
}

/* A node of the tree, from its definition; false: all of its leaves are absent. */
static inline bool scatter_node(const scatter_setting *s, int step, int64_t first, int level, int64_t element,
                                double *sum) {
    if (first >= s->leaves.leaves) return false;
    if (level == 0) {
        *sum = scatter_round(s, scatter_number(step, first, element));
        if (s->is_bf16) *sum = (double)an_bf16_to_f32(an_f32_to_bf16((float)*sum));
        return !scatter_is_absent(step, first);
    }
    double left, right;
    const bool has_left = scatter_node(s, step, first, level - 1, element, &left);
    const bool has_right = scatter_node(s, step, first + ((int64_t)1 << (level - 1)), level - 1, element, &right);
    *sum = has_left && has_right ? scatter_round(s, left + right) : has_left ? left : right;
    return has_left || has_right;
}

/* The same bits. Of two NaN that are added, the compiler chooses which one the sum is. */
static inline bool scatter_is_same(const scatter_setting *s, const void *flat, int64_t element, double expected) {
    if (s->dtype == AN_DTYPE_F64) {
        const double x = ((const double *)flat)[element];
        return isnan(expected) ? isnan(x) : an_bits_of_f64(x) == an_bits_of_f64(expected);
    }
    const float x = ((const float *)flat)[element], wanted = (float)expected;
    return isnan(wanted) ? isnan(x) : an_bits_of_f32(x) == an_bits_of_f32(wanted);
}

/* ---- one rank ---- */

static inline size_t scatter_page_bytes(const scatter_test *t) {
    return AN_PAGE * an_dtype_size(t->setting->dtype);
}

static inline size_t scatter_unit_bytes(const scatter_test *t, int unit) {
    return (size_t)(scatter_units[unit].pages.end - scatter_units[unit].pages.begin) * scatter_page_bytes(t);
}

static inline void scatter_fill(scatter_test *t, int step, int64_t leaf, int unit) {
    const int64_t begin = scatter_units[unit].pages.begin * AN_PAGE, end = scatter_units[unit].pages.end * AN_PAGE;
    for (int64_t i = begin; i < end; i++) {
        const double x = scatter_number(step, leaf, i);
        if (t->setting->dtype == AN_DTYPE_F64)
            ((double *)(void *)t->src[unit])[i - begin] = x;
        else
            ((float *)(void *)t->src[unit])[i - begin] = (float)x;
    }
}

/* From the definition: who owns a page; -1: it is of no unit. */
static inline int scatter_owner(int64_t page, int ranks) {
    for (int u = 0; u < SCATTER_UNITS; u++) {
        const an_page_range *pages = &scatter_units[u].pages;
        const int64_t count = pages->end - pages->begin, i = page - pages->begin;
        for (int q = 0; q < ranks; q++)
            if (i >= q * count / ranks && i < (q + 1) * count / ranks) return (q + scatter_units[u].turn) % ranks;
    }
    return -1;
}

static inline void scatter_pause(bool is_it) {
    const struct timespec some = {.tv_nsec = 1000000};
    if (is_it) nanosleep(&some, NULL);
}

static inline bool scatter_make_buffers(scatter_test *t) {
    t->own = (an_sparse){.pages = SCATTER_GRID,
                         .page_bytes = (int64_t)scatter_page_bytes(t),
                         .runs = t->pieces,
                         .run_count = SCATTER_UNITS};
    for (int i = 0; i < SCATTER_UNITS; i++) {
        t->pieces[i] = an_piece(&scatter_units[i].pages, scatter_units[i].turn, t->comm->rank, t->comm->ranks);
        t->src[i] = aligned_alloc(AN_ALIGNMENT, scatter_unit_bytes(t, i));
        if (!t->src[i]) return false;
    }
    return an_sparse_alloc(t->ctx, (void **)&t->dst, &t->own) == AN_OK;
}

static inline void scatter_spoil_dst(scatter_test *t) {
    const size_t bytes = scatter_page_bytes(t);
    for (int i = 0; i < SCATTER_UNITS; i++)
        memset(t->dst + (size_t)t->pieces[i].begin * bytes, SCATTER_SPOILT,
               (size_t)(t->pieces[i].end - t->pieces[i].begin) * bytes);
}

static inline void scatter_free_buffers(scatter_test *t) {
    an_sparse_release(t->ctx, (void **)&t->dst, &t->own);
    for (int i = 0; i < SCATTER_UNITS; i++) free(t->src[i]);
}

static inline void scatter_init(scatter_test *t, an_context *ctx, an_comm *comm, const scatter_setting *setting) {
    *t = (scatter_test){.setting = setting, .ctx = ctx, .comm = comm};
    const size_t element = setting->is_bf16 ? sizeof(uint16_t) : an_dtype_size(setting->dtype);
    t->options = (an_scatter_options){.leaves = setting->leaves,
                                      .dtype = setting->dtype,
                                      .is_bf16 = setting->is_bf16,
                                      .pages = SCATTER_GRID,
                                      .units = scatter_units,
                                      .unit_count = SCATTER_UNITS,
                                      .bucket_bytes = (size_t)setting->bucket_pages * AN_PAGE * element,
                                      .in_flight = setting->in_flight};
    scatter_expect(t, scatter_make_buffers(t), "buffers");
}

/* Gradients of a unit are made and started. What was there is spoilt after its wait, as the next unit would do it. */
static inline an_status scatter_start(scatter_test *t, an_scattering *s, int step, int64_t round, int unit) {
    const int64_t leaf = an_scatter_leaf(&t->options, t->comm->rank, t->comm->ranks, round);
    const bool is_there = leaf >= 0 && !scatter_is_absent(step, leaf);
    if (is_there) scatter_fill(t, step, leaf, unit);
    return an_scattering_start(s, unit, round, is_there ? t->src[unit] : NULL);
}

static inline an_status scatter_wait(scatter_test *t, an_scattering *s, int unit) {
    const an_status status = an_scattering_wait(s, unit);
    if (status == AN_OK) memset(t->src[unit], SCATTER_SPOILT, scatter_unit_bytes(t, unit));
    return status;
}

/* All rounds of a step. Units go on as in a backward pass: some are on their way while the next are made. */
static inline an_status scatter_rounds(scatter_test *t, an_scattering *s, int step) {
    an_status status = AN_OK;
    const int64_t rounds = an_scatter_rounds(&t->options, t->comm->ranks), starts = rounds * SCATTER_UNITS;
    const int *order = scatter_order[step];
    int64_t waited = 0;
    for (int64_t i = 0; i < starts && status == AN_OK; i++) {
        for (; i - waited > t->setting->waits_after && status == AN_OK; waited++)
            status = scatter_wait(t, s, order[waited % SCATTER_UNITS]);
        scatter_pause(t->comm->rank == i % (9 * t->comm->ranks)); /* now and then a rank is late */
        if (status == AN_OK) status = scatter_start(t, s, step, i / SCATTER_UNITS, order[i % SCATTER_UNITS]);
        for (int64_t calls = (t->comm->rank * 7 + i * 3 + step) % 4; calls > 0 && status == AN_OK; calls--)
            an_context_progress(t->ctx);
    }
    return status;
}

/* Every page of this rank has the bits of the tree, in each node of the leaves. */
static inline bool scatter_is_right(const scatter_test *t, const an_scattering *s, int step) {
    an_tree_node nodes[AN_FOREST_MOST];
    const int count = an_forest_nodes(&t->setting->leaves, nodes);
    if (an_scattering_nodes(s) != count || an_scattering_node(s, 0) != t->dst) return false;
    for (int64_t i = 0; i < (int64_t)SCATTER_GRID * AN_PAGE; i++) {
        const bool is_own = scatter_owner(i / AN_PAGE, t->comm->ranks) == t->comm->rank;
        for (int node = 0; is_own && node < count; node++) {
            double sum;
            if (!scatter_node(t->setting, step, nodes[node].first, nodes[node].level, i, &sum)) sum = -0.0;
            if (!scatter_is_same(t->setting, an_scattering_node(s, node), i, sum)) return false;
        }
    }
    return true;
}

/* The bytes of a step from the definition: each leaf goes from its rank to the owners of all pages. */
static inline an_scatter_cost scatter_traffic(const scatter_test *t) {
    an_scatter_cost cost = {0};
    const int rank = t->comm->rank, ranks = t->comm->ranks;
    const int64_t bytes = (int64_t)(t->setting->is_bf16 ? AN_PAGE * sizeof(uint16_t) : scatter_page_bytes(t));
    for (int64_t leaf = 0; leaf < t->setting->leaves.end - t->setting->leaves.begin; leaf++)
        for (int64_t page = 0; page < SCATTER_GRID; page++) {
            const int owner = scatter_owner(page, ranks);
            if (owner < 0 || owner == leaf % ranks) continue;
            if (leaf % ranks == rank) cost.sent += bytes;
            if (owner == rank) cost.received += bytes;
        }
    return cost;
}

static inline void scatter_step(scatter_test *t, an_scattering *s, int step) {
    const an_scatter_cost before = an_scattering_count(s), traffic = scatter_traffic(t);
    const an_scatter_cost predicted = an_scatter_predict(&t->options, t->comm->rank, t->comm->ranks);
    scatter_spoil_dst(t);
    SCATTER_EXPECT(an_scattering_begin(s, t->dst) == AN_OK);
    SCATTER_EXPECT(scatter_rounds(t, s, step) == AN_OK);
    SCATTER_EXPECT(an_scattering_finish(s) == AN_OK);
    const an_scatter_cost after = an_scattering_count(s);
    SCATTER_EXPECT(scatter_is_right(t, s, step));
    SCATTER_EXPECT(predicted.sent == traffic.sent && predicted.received == traffic.received);
    SCATTER_EXPECT(after.sent - before.sent == predicted.sent);
    SCATTER_EXPECT(after.received - before.received == predicted.received);
    SCATTER_EXPECT(after.messages - before.messages == predicted.messages);
end:;
}

/* t->problem: what was wrong, if something was. */
static inline void scatter_run(scatter_test *t, an_context *ctx, an_comm *comm, const scatter_setting *setting) {
    an_scattering *s = NULL;
    an_comm_progress entered;
    scatter_init(t, ctx, comm, setting);
    const size_t bytes_before = ctx->bytes;
    SCATTER_EXPECT(an_scattering_create(&s, ctx, t->comm, &t->options) == AN_OK);
    const an_scatter_cost predicted = an_scatter_predict(&t->options, comm->rank, comm->ranks);
    SCATTER_EXPECT(an_scattering_count(s).bytes == predicted.bytes);
    SCATTER_EXPECT(ctx->bytes - bytes_before == predicted.bytes + predicted.stack_bytes);
    for (int step = 0; step < SCATTER_STEPS && !*t->problem; step++) scatter_step(t, s, step);
    an_comm_progress_read(ctx, &entered);
    SCATTER_EXPECT(comm->ranks == 1 || !strcmp(entered.kind, "the gradients of few"));
end:
    an_scattering_destroy(&s);
    if (ctx->bytes != bytes_before) scatter_expect(t, false, "bytes were not released");
    scatter_free_buffers(t);
}

#endif

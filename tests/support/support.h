/* What tests share: an allocator that counts and can fail, a small model, checks that print the library's message. */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "anneal/anneal.h"
#include "anneal/plan.h"
#include "support/structs.h"

/* Memory with a ledger: bytes held, calls so far, and the number of the call that fails (0: none). */
typedef struct ledger {
    size_t held, maximum;
    long calls, fail_at;
    bool once;     /* only that call fails; else every later one too */
    bool mismatch; /* a release gave another size than was asked for */
} ledger;

enum { LEDGER_HEADER = 64 };

static inline void *ledger_allocate(void *user, size_t bytes, size_t alignment) {
    ledger *l = user;
    l->calls++;
    if (l->fail_at && (l->once ? l->calls == l->fail_at : l->calls >= l->fail_at)) return NULL;
    size_t total = (bytes + LEDGER_HEADER + alignment - 1) / alignment * alignment;
    char *p = aligned_alloc(alignment, total);
    if (!p) return NULL;
    *(size_t *)(void *)p = bytes;
    l->held += bytes;
    if (l->held > l->maximum) l->maximum = l->held;
    return p + LEDGER_HEADER;
}

static inline void ledger_release(void *user, void *memory, size_t bytes) {
    ledger *l = user;
    char *p = (char *)memory - LEDGER_HEADER;
    if (*(size_t *)(void *)p != bytes) l->mismatch = true;
    l->held -= bytes;
    free(p);
}

static inline an_status context_with_ledger(an_context **ctx, ledger *l, int threads) {
    an_allocator allocator = {sizeof allocator, ledger_allocate, ledger_release, l};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.allocator = &allocator;
    options.threads = threads;
    return an_context_create(ctx, &options);
}

/* Fails the test with the library's own message. */
#define OK(ctx, call)                                                                                     \
    do {                                                                                                  \
        an_status status_ = (call);                                                                       \
        if (status_ != AN_OK) fail_msg("%s: %s: %s", #call, an_status_name(status_), an_last_error(ctx)); \
    } while (0)

#define FAILS(ctx, call, code, words)                                                                      \
    do {                                                                                                   \
        an_status status_ = (call);                                                                        \
        if (status_ != (code))                                                                             \
            fail_msg("%s gave %s, not " #code ": %s", #call, an_status_name(status_), an_last_error(ctx)); \
        if (!strstr(an_last_error(ctx), words))                                                            \
            fail_msg("%s: the message has no '%s': %s", #call, words, an_last_error(ctx));                 \
    } while (0)

/* x[batch,4] -> 16 relu -> 2, squared error against y. */
static inline an_status small_mlp(an_graph **graph, an_context *ctx) {
    an_status status = an_graph_create(graph, ctx, "small");
    if (status != AN_OK) return status;
    an_graph *g = *graph;
    an_dim batch = an_symbol_dim(g, "batch");
    an_value x = an_input(g, "x", AN_DTYPE_F32, AN_DIMS(batch, 4)),
             y = an_input(g, "y", AN_DTYPE_F32, AN_DIMS(batch, 2));
    an_value out = an_linear(g, an_relu(g, an_linear(g, x, "fc1", 16)), "fc2", 2);
    an_graph_set_output(g, out, "out");
    an_graph_set_loss(g, an_squared_error(g, out, y), y);
    return an_graph_verify(g);
}

static inline an_array array_of(void *data, an_dtype dtype, int ndims, const int64_t *dims) {
    an_array a = {0};
    a.data = data;
    a.dtype = dtype;
    a.ndims = ndims;
    for (int i = 0; i < ndims; i++) a.dims[i] = dims[i];
    return a;
}

/* Repeatable numbers in [-1, 1). */
static inline double noise(uint64_t i) {
    uint64_t h = (i + 1) * 0x9e3779b97f4a7c15u;
    h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9u;
    return (double)(int64_t)((h ^ h >> 29) >> 12) * 0x1p-51 - 1;
}

/* One plan for one symbol. */
static inline an_status plan_for(an_plan **plan, an_context *ctx, an_graph *g, const char *symbol, int64_t maximum,
                                 unsigned programs) {
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.symbol_count = 1;
    options.symbols = &symbol;
    options.maxima = &maximum;
    options.programs = programs;
    return an_plan_create(plan, ctx, g, &options);
}

#endif

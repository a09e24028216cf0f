#include "comm/add.h"

#include <string.h>

#include "base/float16.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "comm/forest.h"

/* The same element of all three, so the loop has no dependency although the destination may be a source. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

typedef void sum_strip(void *dst, const void *left, const void *right, size_t bytes);

static void sum_f32(void *dst, const void *left, const void *right, size_t bytes) {
    float *sum = dst;
    const float *a = left, *b = right;
    INDEPENDENT
    for (size_t i = 0; i < bytes / sizeof *sum; i++) sum[i] = a[i] + b[i];
}

static void sum_f64(void *dst, const void *left, const void *right, size_t bytes) {
    double *sum = dst;
    const double *a = left, *b = right;
    INDEPENDENT
    for (size_t i = 0; i < bytes / sizeof *sum; i++) sum[i] = a[i] + b[i];
}

/* `bytes`: of the f32 numbers. */
typedef void load_strip(void *dst, const void *src, size_t bytes);

static void load_bf16(void *dst, const void *src, size_t bytes) {
    float *wide = dst;
    const uint16_t *low = src;
    for (size_t i = 0; i < bytes / sizeof *wide; i++) wide[i] = an_bf16_to_f32(low[i]);
}

static void load_rounded(void *dst, const void *src, size_t bytes) {
    float *rounded = dst;
    const float *x = src;
    for (size_t i = 0; i < bytes / sizeof *rounded; i++) rounded[i] = an_bf16_to_f32(an_f32_to_bf16(x[i]));
}

/* What is not plain is made plain, a strip at a time. `ratio`: bytes of the sum for each byte of the source. */
static const struct {
    load_strip *load;
    size_t ratio;
} addends[AN_ADDENDS] = {
    [AN_ADDEND_PLAIN] = {NULL, 1},
    [AN_ADDEND_BF16] = {load_bf16, sizeof(float) / sizeof(uint16_t)},
    [AN_ADDEND_ROUNDED] = {load_rounded, 1},
};

enum {
    TASK_BYTES = 128 << 10,       /* of each node: some ten microseconds */
    SUMS_BYTES = 8 * AN_ADD_STRIP /* of the stack, which may be small */
};

typedef struct work {
    const an_addition *addition;
    sum_strip *sum;
    size_t strip; /* bytes that are added at a time */
} work;

/* Nodes that wait for their right neighbour: where each is, and room for a strip of each that is not in memory: a
 * sum, or a source that was loaded. */
typedef struct stack {
    const char *nodes[AN_FOREST_MOST + 1];
    _Alignas(AN_ALIGNMENT) char sums[SUMS_BYTES];
} stack;

/* The most of them that wait at a time. The last of the nodes that wait is a plain source, or it needs room as well. */
static size_t most_rooms(const an_addition *a) {
    int top = 0, maximum = 1;
    for (int64_t i = 0; i < a->count; i++) {
        top += 1 - a->joins[i];
        const int rooms = a->addends ? top : top - 1;
        if (rooms > maximum) maximum = rooms;
    }
    return (size_t)maximum;
}

/* Few nodes wait in most trees, and then a strip is AN_ADD_STRIP bytes. */
static size_t strip_bytes(const an_addition *a) {
    size_t strip = AN_ADD_STRIP;
    while (strip * most_rooms(a) > SUMS_BYTES) strip /= 2;
    return strip;
}

/* Where a strip of a source is; `room` is for one that is not plain. */
static const char *source_at(const work *w, int64_t index, size_t at, char *room) {
    const an_addition *a = w->addition;
    const an_addend addend = a->addends ? a->addends[index] : AN_ADDEND_PLAIN;
    const char *src = (const char *)a->src[index] + at / addends[addend].ratio;
    if (addend == AN_ADDEND_PLAIN) return src;
    addends[addend].load(room, src, w->strip);
    return room;
}

static void add_strip(const work *w, size_t at, stack *s) {
    const an_addition *a = w->addition;
    int top = 0;
    for (int64_t i = 0; i <= a->count; i++) {
        for (int join = a->joins[i]; join > 0; join--) {
            const bool is_last = i == a->count && join == 1 && a->outputs == 1;
            char *to = is_last ? (char *)a->dst[0] + at : s->sums + (size_t)(top - 2) * w->strip;
            w->sum(to, s->nodes[top - 2], s->nodes[top - 1], w->strip);
            s->nodes[--top - 1] = to;
        }
        if (i < a->count) {
            s->nodes[top] = source_at(w, i, at, s->sums + (size_t)top * w->strip);
            top++;
        }
    }
    for (int i = 0; i < a->outputs * a->copies; i++) {
        char *to = (char *)a->dst[i] + at;
        if (to != s->nodes[i / a->copies]) memcpy(to, s->nodes[i / a->copies], w->strip);
    }
}

static void add_some(void *user, int64_t index, int thread) {
    const work *w = user;
    const size_t begin = (size_t)index * TASK_BYTES;
    stack s;
    (void)thread;
    memset(s.nodes, 0, sizeof s.nodes);
    for (size_t at = begin; at < begin + TASK_BYTES && at < w->addition->bytes; at += w->strip) add_strip(w, at, &s);
}

void an_add_nodes(an_context *ctx, const an_addition *addition) {
    work w = {addition, addition->dtype == AN_DTYPE_F64 ? sum_f64 : sum_f32, strip_bytes(addition)};
    an_parallel(ctx, an_divide_up((int64_t)addition->bytes, TASK_BYTES), add_some, &w);
}

/* ---- rounding ---- */

typedef struct {
    float *numbers;
    int64_t count;
} rounding;

static void round_some(void *user, int64_t index, int thread) {
    enum { TASK_NUMBERS = TASK_BYTES / sizeof(float) };
    const rounding *r = user;
    const int64_t begin = index * TASK_NUMBERS, rest = r->count - begin;
    (void)thread;
    load_rounded(r->numbers + begin, r->numbers + begin,
                 (size_t)(rest < TASK_NUMBERS ? rest : TASK_NUMBERS) * sizeof(float));
}

void an_round_to_bf16(an_context *ctx, float *numbers, int64_t count) {
    rounding r = {numbers, count};
    const int64_t each = TASK_BYTES / sizeof(float);
    an_parallel(ctx, (count + each - 1) / each, round_some, &r);
}

#include "comm/add.h"

#include <string.h>

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

enum {
    TASK_BYTES = 128 << 10,       /* of each node: some ten microseconds */
    SUMS_BYTES = 8 * AN_ADD_STRIP /* of the stack, which may be small */
};

typedef struct work {
    const an_addition *addition;
    sum_strip *sum;
    size_t strip; /* bytes that are added at a time */
} work;

/* Nodes that wait for their right neighbour: where each is, and room for a strip of each sum. */
typedef struct stack {
    const char *nodes[AN_FOREST_MOST + 1];
    _Alignas(AN_ALIGNMENT) char sums[SUMS_BYTES];
} stack;

/* The most sums that wait at a time. */
static size_t most_sums(const an_addition *a) {
    int top = 0, most = 1;
    for (int64_t i = 0; i < a->count; i++) {
        top += 1 - a->joins[i];
        if (top - 1 > most) most = top - 1;
    }
    return (size_t)most;
}

/* Few nodes wait in most trees, and then a strip is AN_ADD_STRIP bytes. */
static size_t strip_bytes(const an_addition *a) {
    size_t strip = AN_ADD_STRIP;
    while (strip * most_sums(a) > SUMS_BYTES) strip /= 2;
    return strip;
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
        if (i < a->count) s->nodes[top++] = (const char *)a->src[i] + at;
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

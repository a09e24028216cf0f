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

typedef void sum_strip(void *dst, const void *left, const void *right);

static void sum_f32(void *dst, const void *left, const void *right) {
    float *sum = dst;
    const float *a = left, *b = right;
    INDEPENDENT
    for (size_t i = 0; i < AN_ADD_STRIP / sizeof *sum; i++) sum[i] = a[i] + b[i];
}

static void sum_f64(void *dst, const void *left, const void *right) {
    double *sum = dst;
    const double *a = left, *b = right;
    INDEPENDENT
    for (size_t i = 0; i < AN_ADD_STRIP / sizeof *sum; i++) sum[i] = a[i] + b[i];
}

enum { TASK_STRIPS = 64 }; /* 128 KiB of each node: some ten microseconds */

typedef struct work {
    const an_addition *addition;
    sum_strip *sum;
} work;

/* Nodes that wait for their right neighbour: where each is, and room for the sums. */
typedef struct stack {
    const char *nodes[AN_FOREST_MOST + 1];
    _Alignas(AN_ALIGNMENT) char sums[AN_FOREST_MOST + 1][AN_ADD_STRIP];
} stack;

static void add_strip(const an_addition *a, sum_strip *sum, size_t at, stack *s) {
    int top = 0;
    for (int64_t i = 0; i <= a->count; i++) {
        for (int join = a->joins[i]; join > 0; join--) {
            const bool is_last = i == a->count && join == 1 && a->outputs == 1;
            char *to = is_last ? (char *)a->dst[0] + at : s->sums[top - 2];
            sum(to, s->nodes[top - 2], s->nodes[top - 1]);
            s->nodes[--top - 1] = to;
        }
        if (i < a->count) s->nodes[top++] = (const char *)a->src[i] + at;
    }
    for (int i = 0; i < a->outputs * a->copies; i++) {
        char *to = (char *)a->dst[i] + at;
        if (to != s->nodes[i / a->copies]) memcpy(to, s->nodes[i / a->copies], AN_ADD_STRIP);
    }
}

static void add_some(void *user, int64_t index, int thread) {
    const work *w = user;
    const size_t begin = (size_t)index * TASK_STRIPS * AN_ADD_STRIP;
    stack s;
    (void)thread;
    memset(s.nodes, 0, sizeof s.nodes);
    for (size_t at = begin; at < begin + (size_t)TASK_STRIPS * AN_ADD_STRIP && at < w->addition->bytes;
         at += AN_ADD_STRIP)
        add_strip(w->addition, w->sum, at, &s);
}

void an_add_nodes(an_context *ctx, const an_addition *addition) {
    work w = {addition, addition->dtype == AN_DTYPE_F64 ? sum_f64 : sum_f32};
    an_parallel(ctx, an_divide_up((int64_t)addition->bytes, (int64_t)TASK_STRIPS * AN_ADD_STRIP), add_some, &w);
}

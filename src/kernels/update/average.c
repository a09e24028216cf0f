#include "kernels/update/average.h"

#include "anneal/plan.h"
#include "base/parallel.h"

enum { TASK_PAGES = 16 }; /* 16,384 elements */

static int64_t task_count(const an_call *call) {
    return (call->dst[0].dims[0] + TASK_PAGES * AN_PAGE - 1) / (TASK_PAGES * AN_PAGE);
}

static int64_t task_end(const an_call *call, int64_t index) {
    const int64_t end = (index + 1) * TASK_PAGES * AN_PAGE;
    return end < call->dst[0].dims[0] ? end : call->dst[0].dims[0];
}

/* rest is 1 - decay, made in f64 and rounded once. The difference form keeps an average of equal weights as it is. With
 * decay·average + rest·weights it would drift, as decay and rest do not add up to 1 after they are rounded. */
#define DEFINE_TASKS(average_task, swap_task, real)                                                           \
    static void average_task(void *user, int64_t index, int thread) {                                         \
        const an_call *call = user;                                                                           \
        const an_average_attributes *a = call->attributes;                                                    \
        const real *restrict weights = call->src[0].data, rest = (real)(1 - a->decay);                        \
        real *restrict average = call->dst[0].data;                                                           \
        const int64_t begin = index * TASK_PAGES * AN_PAGE, end = task_end(call, index);                      \
        (void)thread;                                                                                         \
        if (a->first)                                                                                         \
            for (int64_t i = begin; i < end; i++) average[i] = weights[i];                                    \
        else                                                                                                  \
            for (int64_t i = begin; i < end; i++) average[i] = average[i] + rest * (weights[i] - average[i]); \
    }                                                                                                         \
    static void swap_task(void *user, int64_t index, int thread) {                                            \
        const an_call *call = user;                                                                           \
        real *restrict a = call->dst[0].data, *restrict b = call->dst[1].data;                                \
        const int64_t begin = index * TASK_PAGES * AN_PAGE, end = task_end(call, index);                      \
        (void)thread;                                                                                         \
        for (int64_t i = begin; i < end; i++) {                                                               \
            const real kept = a[i];                                                                           \
            a[i] = b[i];                                                                                      \
            b[i] = kept;                                                                                      \
        }                                                                                                     \
    }
DEFINE_TASKS(average_task_f32, swap_task_f32, float)
DEFINE_TASKS(average_task_f64, swap_task_f64, double)

static bool is_wide(const an_call *call) {
    return call->dst[0].dtype == AN_DTYPE_F64;
}

static an_status run_average(const an_call *call) {
    an_call own = *call;
    an_parallel(call->ctx, task_count(call), is_wide(call) ? average_task_f64 : average_task_f32, &own);
    return AN_OK;
}

static an_status run_swap(const an_call *call) {
    an_call own = *call;
    an_parallel(call->ctx, task_count(call), is_wide(call) ? swap_task_f64 : swap_task_f32, &own);
    return AN_OK;
}

AN_KERNEL_LIST(average) = {{.name = "portable", .run = run_average}, {0}};
AN_KERNEL_LIST(swap) = {{.name = "portable", .run = run_swap}, {0}};

#include "kernels/update/update.h"

#include "anneal/experimental.h"
#include "anneal/plan.h"
#include "base/float16.h"
#include "base/parallel.h"
#include "kernels/common/row.h"

enum { TASK_PAGES = 16 }; /* 16,384 elements */
enum { WEIGHTS, MOMENT_1, MOMENT_2, LOW };

typedef struct {
    const an_call *call;
    int64_t pages;
} update_job;

static int64_t task_count(int64_t pages) {
    return (pages + TASK_PAGES - 1) / TASK_PAGES;
}

static int64_t task_end(int64_t pages, int64_t index) {
    return (index + 1) * TASK_PAGES < pages ? (index + 1) * TASK_PAGES : pages;
}

/* The run that holds a page. */
static const an_update_run *find_run(const an_update_attributes *a, int64_t page) {
    int64_t low = 0, high = a->run_count - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (a->runs[middle].end > page)
            high = middle;
        else
            low = middle + 1;
    }
    return &a->runs[low];
}

static void run_rule_f32(const an_update_attributes *a, const an_update_run *run, float *g, float *w,
                         float *const *moments) {
    a->rule->page_f32(a, run, g, w, moments);
}
static void run_rule_f64(const an_update_attributes *a, const an_update_run *run, double *g, double *w,
                         double *const *moments) {
    a->rule->page_f64(a, run, g, w, moments);
}

#define AN_TEMPLATE "kernels/update/template.h"
#include "kernels/common/instantiate.h"

static an_status run_update(const an_call *call) {
    update_job j = {call, call->src[0].dims[0] / AN_PAGE};
    an_parallel(call->ctx, task_count(j.pages), call->src[0].dtype == AN_DTYPE_F64 ? update_task_f64 : update_task_f32,
                &j);
    return AN_OK;
}

static an_status run_square_sums(const an_call *call) {
    update_job j = {call, call->src[0].dims[0] / AN_PAGE};
    an_parallel(call->ctx, task_count(j.pages),
                call->src[0].dtype == AN_DTYPE_F64 ? squares_task_f64 : squares_task_f32, &j);
    return AN_OK;
}

AN_KERNEL_LIST(update) = {{.name = "portable", .run = run_update}, {0}};
AN_KERNEL_LIST(square_sums) = {{.name = "portable", .run = run_square_sums}, {0}};

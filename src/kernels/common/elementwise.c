#include "kernels/common/elementwise.h"

#include <string.h>

#include "base/parallel.h"
#include "kernels/common/stride_order.h"

/* The common iteration space: dimensions sorted by dst's strides (so that memory is walked in order) and merged where
 * all operands allow it. Operand 0 is dst. */
enum { OPERANDS = AN_ELEMENTWISE_INPUTS + 1, TASK_ELEMENTS = 1 << 13 };

typedef struct {
    const an_call *call;
    const an_tensor *operands[OPERANDS];
    int count, ndims;
    int64_t dims[AN_MAX_DIMS], strides[OPERANDS][AN_MAX_DIMS];
    int64_t row, pieces, units, units_per_task; /* a unit is a piece of at most AN_ELEMENTWISE_ROW of one row */
    an_row_function_f32 *f32;
    an_row_function_f64 *f64;
} job;

static bool mergeable(const job *j, int a, int b) {
    for (int o = 0; o < j->count; o++)
        if (j->strides[o][a] != j->strides[o][b] * j->dims[b]) return false;
    return true;
}

static void job_space(job *j) {
    const an_tensor *dst = j->operands[0];
    int order[AN_MAX_DIMS], kept = 0;
    const int n = an_stride_order(dst, order);
    for (int i = 0; i < n; i++) {
        int d = order[i];
        j->dims[kept] = dst->dims[d];
        for (int o = 0; o < j->count; o++) {
            const an_tensor *t = j->operands[o];
            int own = t->ndims - dst->ndims + d; /* broadcasting aligns at the end */
            j->strides[o][kept] = own < 0 || t->dims[own] == 1 ? 0 : t->strides[own];
        }
        if (kept > 0 && mergeable(j, kept - 1, kept)) {
            j->dims[kept - 1] *= j->dims[kept];
            for (int o = 0; o < j->count; o++) j->strides[o][kept - 1] = j->strides[o][kept];
        } else {
            kept++;
        }
    }
    j->ndims = kept;
}

#define RUN(REAL, suffix)                                                                                            \
    static void run_unit_##suffix(const job *j, int64_t unit) {                                                      \
        REAL buffers[OPERANDS][AN_ELEMENTWISE_ROW];                                                                  \
        const REAL *src[AN_ELEMENTWISE_INPUTS] = {0};                                                                \
        int64_t offsets[OPERANDS] = {0}, row = unit / j->pieces, begin = unit % j->pieces * AN_ELEMENTWISE_ROW;      \
        int64_t n = j->row - begin < AN_ELEMENTWISE_ROW ? j->row - begin : AN_ELEMENTWISE_ROW;                       \
        int last = j->ndims - 1;                                                                                     \
        for (int i = last - 1; i >= 0; i--) {                                                                        \
            for (int o = 0; o < j->count; o++) offsets[o] += row % j->dims[i] * j->strides[o][i];                    \
            row /= j->dims[i];                                                                                       \
        }                                                                                                            \
        for (int o = 0; o < j->count; o++) offsets[o] += last < 0 ? 0 : begin * j->strides[o][last];                 \
        for (int o = 1; o < j->count; o++)                                                                           \
            if (j->operands[o]->data)                                                                                \
                src[o - 1] = an_row_load_##suffix(j->operands[o], offsets[o], last < 0 ? 1 : j->strides[o][last], n, \
                                                  buffers[o]);                                                       \
        int64_t stride = last < 0 ? 1 : j->strides[0][last];                                                         \
        REAL *dst = an_row_target_##suffix(j->operands[0], offsets[0], stride, buffers[0]);                          \
        j->suffix(n, src, dst, j->call->attributes);                                                                 \
        an_row_store_##suffix(j->operands[0], offsets[0], stride, n, dst);                                           \
    }

RUN(float, f32)
RUN(double, f64)

static void run_task(void *user, int64_t index, int thread) {
    const job *j = user;
    int64_t end = (index + 1) * j->units_per_task < j->units ? (index + 1) * j->units_per_task : j->units;
    bool f64 = an_call_is_f64(j->call);
    (void)thread;
    for (int64_t unit = index * j->units_per_task; unit < end; unit++) {
        if (f64)
            run_unit_f64(j, unit);
        else
            run_unit_f32(j, unit);
    }
}

an_status an_elementwise(const an_call *call, an_row_function_f32 *f32, an_row_function_f64 *f64) {
    job j = {.call = call, .count = call->src_count + 1, .f32 = f32, .f64 = f64};
    int64_t rows = 1;
    j.operands[0] = &call->dst[0];
    for (int i = 0; i < call->src_count; i++) j.operands[i + 1] = &call->src[i];
    job_space(&j);
    j.row = j.ndims ? j.dims[j.ndims - 1] : 1;
    for (int i = 0; i + 1 < j.ndims; i++) rows *= j.dims[i];
    j.pieces = (j.row + AN_ELEMENTWISE_ROW - 1) / AN_ELEMENTWISE_ROW;
    j.units = rows * j.pieces;
    int64_t unit = j.row < AN_ELEMENTWISE_ROW ? j.row : AN_ELEMENTWISE_ROW;
    j.units_per_task = TASK_ELEMENTS / unit > 0 ? TASK_ELEMENTS / unit : 1;
    an_parallel(call->ctx, (j.units + j.units_per_task - 1) / j.units_per_task, run_task, &j);
    return AN_OK;
}

/* grad, unit_grad: add one finished contribution to a parameter's gradient, or overwrite it. */
#include "kernels/common/elementwise.h"
#include "kernels/sink/sink.h"

#define ROWS(REAL, suffix)                                                                                     \
    static void copy_##suffix(int64_t n, const REAL *const *src, REAL *restrict dst, const void *attributes) { \
        (void)attributes;                                                                                      \
        for (int64_t i = 0; i < n; i++) dst[i] = src[0][i];                                                    \
    }                                                                                                          \
    static void sum_##suffix(int64_t n, const REAL *const *src, REAL *restrict dst, const void *attributes) {  \
        (void)attributes;                                                                                      \
        for (int64_t i = 0; i < n; i++) dst[i] = src[1][i] + src[0][i];                                        \
    }
ROWS(float, f32)
ROWS(double, f64)

static an_status contribute(const an_call *call, const an_tensor *contribution, bool add) {
    const an_tensor src[2] = {*contribution, call->dst[0]}; /* the sum so far is read where it is written */
    an_call both = *call;
    both.src = src;
    both.src_count = add ? 2 : 1;
    return add ? an_elementwise(&both, sum_f32, sum_f64) : an_elementwise(&both, copy_f32, copy_f64);
}

static an_status run(const an_call *call) {
    return contribute(call, &call->src[0], ((const an_grad_attributes *)call->attributes)->add);
}

/* Its first operand is the root that its result is a part of. */
static an_status run_in_unit(const an_call *call) {
    return contribute(call, &call->src[1], ((const an_unit_grad_attributes *)call->attributes)->grad.add);
}

AN_KERNEL_LIST(grad) = {{.name = "portable", .run = run}, {0}};
AN_KERNEL_LIST(unit_grad) = {{.name = "portable", .run = run_in_unit}, {0}};

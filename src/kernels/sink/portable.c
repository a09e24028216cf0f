/* grad: adds one finished contribution to a parameter's gradient, or overwrites it. */
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

static an_status run(const an_call *call) {
    const an_grad_attributes *attributes = call->attributes;
    if (!attributes->add) return an_elementwise(call, copy_f32, copy_f64);
    an_tensor src[2] = {call->src[0], call->dst[0]}; /* the sum so far is read where it is written */
    an_call both = *call;
    both.src = src;
    both.src_count = 2;
    return an_elementwise(&both, sum_f32, sum_f64);
}

AN_KERNEL_LIST(grad) = {{.name = "portable", .run = run}, {0}};

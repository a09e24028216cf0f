/* Reference kernels of functions of one element. */
#include "base/elementary.h"
#include "kernels/elementwise.h"
#include "kernels/unary.h"

/* IEEE square roots are exact: the instruction is as good as ours could be. */
static inline float square_root_f32(float x) {
    return __builtin_sqrtf(x);
}
static inline double square_root_f64(double x) {
    return __builtin_sqrt(x);
}

static const double inverse_sqrt_2 = 0.70710678118654752440;

#define AN_TEMPLATE "kernels/unary_template.h"
#include "kernels/instantiate.h"

#define KERNEL(op)                                       \
    static an_status run_##op(const an_call *call) {     \
        return an_elementwise(call, op##_f32, op##_f64); \
    }                                                    \
    AN_KERNEL_LIST(op) = {{.name = "reference", .run = run_##op, .row_f32 = op##_f32, .row_f64 = op##_f64}, {0}};

AN_UNARY_OPS(KERNEL)
AN_UNARY_DIFF_OPS(KERNEL)

/* Portable kernels of functions of one element. */
#include "base/elementary/elementary.h"
#include "kernels/common/elementwise.h"
#include "kernels/elementwise/unary.h"

/* IEEE square roots are exact: the instruction is as good as ours could be. */
static inline float square_root_f32(float x) {
    return __builtin_sqrtf(x);
}
static inline double square_root_f64(double x) {
    return __builtin_sqrt(x);
}

static const double inverse_sqrt_2 = 0.70710678118654752440;

/* Hendrycks and Gimpel's other gelu, 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x³), is x·sigmoid(2u):
 * nothing cancels where tanh is near -1. This is sigmoid(2u). */
#define gelu_cubic 0.044715
#define gelu_factor 1.59576912160573071176 /* 2 sqrt(2/pi) */

static inline double gelu_sigmoid_f64(double x) {
    return 1 / (1 + an_exp_f64(-(gelu_factor * (x + gelu_cubic * x * x * x))));
}

#ifdef __FMA__
/* With fused multiply-adds and powers of 2 as kernels/attention/rows.h has them, as models spend much time here; its
 * error is that of the other. */
static inline float gelu_sigmoid_f32(float x) {
    const float log2_e = AN_LOG2_E_F32, limit = 126;
    const float linear = -(float)gelu_factor * log2_e, cubic = linear * (float)gelu_cubic;
    const float power = x * __builtin_fmaf(x * x, cubic, linear);
    const float limited = an_select_f32(power < -limit, -limit, an_select_f32(power > limit, limit, power));
    const float count = an_nearest_f32(limited), fraction = limited - count;
    float p = 0x1.5bba2ep-10f;
    p = __builtin_fmaf(p, fraction, 0x1.3cea88p-7f);
    p = __builtin_fmaf(p, fraction, 0x1.c6b752p-5f);
    p = __builtin_fmaf(p, fraction, 0x1.ebf9bcp-3f);
    p = __builtin_fmaf(p, fraction, 0x1.62e42ap-1f);
    p = __builtin_fmaf(p, fraction, 1.0f);
    return an_select_f32(power > limit, 0.0f, 1 / __builtin_fmaf(p, an_power_of_two_f32(count), 1.0f));
}
#else
static inline float gelu_sigmoid_f32(float x) {
    return 1 / (1 + an_exp_f32(-((float)gelu_factor * (x + (float)gelu_cubic * x * x * x))));
}
#endif

/* As an_exp_f32, but for what 1 + e^-x does not show: the last bits of e^-x, and its denormals. The bits are the same
 * at every level of instructions, as those of integer products are. */
static inline float silu_sigmoid_f32(float x) {
    const float limit = 87; /* e^87 is finite, and e^-87 is no denormal */
    const an_exp_parts_f32 parts = an_exp_parts_of_f32(an_clamp_f32(-x, -limit, limit));
    const float power = (1 + (parts.rest + an_exp_tail_f32(parts.rest))) * an_power_of_two_f32(parts.count);
    return an_select_f32(x < -limit, 0.0f, 1 / (1 + power));
}
static inline double silu_sigmoid_f64(double x) {
    return 1 / (1 + an_exp_f64(-x));
}

#define AN_TEMPLATE "kernels/elementwise/unary_template.h"
#include "kernels/common/instantiate.h"

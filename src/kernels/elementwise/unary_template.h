/* Rows of the unary functions, for REAL, and the kernels that run them. Included by unary_portable.c through
 * instantiate.h. */

static inline REAL NAME(sigmoid_of)(REAL x) {
    return 1 / (1 + NAME(an_exp)(-x));
}

/* tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2), from u = e^-|x|, with which nothing overflows. */
static inline REAL NAME(mish_gate)(REAL x, REAL u) {
    return x > 0 ? (1 + 2 * u) / (1 + 2 * u * (1 + u)) : u * (2 + u) / (2 + u * (2 + u));
}

static const REAL NAME(inverse_sqrt_2_pi) = (REAL)0.39894228040143267794;

#define UNARY(name, formula)                                                                       \
    static void NAME(name)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) { \
        const REAL *x_row = src[0];                                                                \
        (void)attributes;                                                                          \
        AN_EACH_ELEMENT(i, n) {                                                                    \
            REAL x = x_row[i];                                                                     \
            dst[i] = (formula);                                                                    \
        }                                                                                          \
    }                                                                                              \
    AN_KERNEL_OF_ROWS(name)

/* `d` is diff_dst, `x` the second input: src or dst of the forward op */
#define UNARY_DIFF(name, formula)                                                                  \
    static void NAME(name)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) { \
        const REAL *d_row = src[0], *x_row = src[1];                                               \
        (void)attributes;                                                                          \
        AN_EACH_ELEMENT(i, n) {                                                                    \
            REAL d = d_row[i], x = x_row[i];                                                       \
            dst[i] = (formula);                                                                    \
        }                                                                                          \
    }                                                                                              \
    AN_KERNEL_OF_ROWS(name)

UNARY(relu, x < 0 ? 0 : x) /* keeps NaN */
UNARY_DIFF(relu_diff, x <= 0 ? 0 : d)
UNARY(gelu_tanh, x *NAME(gelu_sigmoid)(x))
UNARY(silu, x *NAME(silu_sigmoid)(x))
UNARY(sigmoid, NAME(sigmoid_of)(x))
UNARY_DIFF(sigmoid_diff, d *x *(1 - x)) /* x is dst */
UNARY_DIFF(tanh_diff, d *(1 - x * x))   /* x is dst */
UNARY(sqrt, NAME(square_root)(x))
UNARY_DIFF(sqrt_diff, d *(REAL)0.5 / x) /* x is dst */
UNARY(softplus, (x > 0 ? x : 0) + NAME(an_log1p)(NAME(an_exp)(-NAME(an_absolute)(x))))
UNARY_DIFF(softplus_diff, d *NAME(sigmoid_of)(x))
UNARY(mish, x *NAME(mish_gate)(x, NAME(an_exp)(-NAME(an_absolute)(x))))
/* x·min(max(x + 3, 0), 6) / 6; the bounds keep NaN, and -inf gives NaN, as in PyTorch */
UNARY(hard_swish, x *((x + 3 < 0 ? 0 : x + 3 > 6 ? 6 : x + 3) / 6))
UNARY_DIFF(hard_swish_diff, x <= -3 ? 0 : x >= 3 ? d : d * (2 * x + 3) / 6)
UNARY(abs, NAME(an_absolute)(x))
UNARY_DIFF(abs_diff, x > 0 ? d : x < 0 ? -d : 0)
UNARY(scale, x *(REAL)((const an_scale_attributes *)attributes)->factor)

#define ELEMENTARY(name)                                                                           \
    static void NAME(name)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) { \
        (void)attributes;                                                                          \
        NAME(an_vector_##name)(n, src[0], dst);                                                    \
    }                                                                                              \
    AN_KERNEL_OF_ROWS(name)

ELEMENTARY(tanh)
ELEMENTARY(exp)
ELEMENTARY(log)
ELEMENTARY(sin)
ELEMENTARY(cos)
#undef ELEMENTARY
#undef UNARY
#undef UNARY_DIFF

/* The normal distribution's integral up to x. In f64 for both: 1 + erf cancels below 0, and f32 would have lost half of
 * its digits at -3. */
static void NAME(normal_integral)(int64_t n, const REAL *x, REAL *integral) {
    double wide[AN_ELEMENTWISE_ROW] = {0};
    for (int64_t i = 0; i < n; i++) wide[i] = (double)x[i] * inverse_sqrt_2;
    an_vector_erf_f64(n, wide, wide);
    for (int64_t i = 0; i < n; i++) integral[i] = (REAL)(0.5 * (1 + wide[i]));
}

static void NAME(gelu)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *x = src[0];
    REAL integral[AN_ELEMENTWISE_ROW] = {0}; /* gcc does not know that n > 0 */
    (void)attributes;
    NAME(normal_integral)(n, x, integral);
    AN_EACH_ELEMENT(i, n) dst[i] = x[i] * integral[i];
}
AN_KERNEL_OF_ROWS(gelu)

static void NAME(gelu_diff)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *d = src[0], *x = src[1];
    REAL integral[AN_ELEMENTWISE_ROW] = {0}; /* gcc does not know that n > 0 */
    (void)attributes;
    NAME(normal_integral)(n, x, integral);
    AN_EACH_ELEMENT(i, n) {
        REAL density = NAME(inverse_sqrt_2_pi) * NAME(an_exp)((REAL)-0.5 * x[i] * x[i]);
        dst[i] = d[i] * (integral[i] + x[i] * density);
    }
}
AN_KERNEL_OF_ROWS(gelu_diff)

/* (x s(x))' = s (1 + x (1 - s)) with s the sigmoid, s' = s (1 - s). */
static void NAME(silu_diff)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *d_row = src[0], *x_row = src[1];
    (void)attributes;
    AN_EACH_ELEMENT(i, n) {
        REAL x = x_row[i], s = NAME(silu_sigmoid)(x);
        dst[i] = d_row[i] * (s * (1 + x * (1 - s)));
    }
}
AN_KERNEL_OF_ROWS(silu_diff)

/* (x s(v))' = s (1 + x v' (1 - s)) with v = 2u, v' = 2 sqrt(2/pi) (1 + 3·0.044715 x²). */
static void NAME(gelu_tanh_diff)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *d_row = src[0], *x_row = src[1];
    (void)attributes;
    AN_EACH_ELEMENT(i, n) {
        REAL x = x_row[i], s = NAME(gelu_sigmoid)(x);
        REAL slope = (REAL)gelu_factor * (1 + 3 * (REAL)gelu_cubic * x * x);
        dst[i] = d_row[i] * (s * (1 + x * slope * (1 - s)));
    }
}
AN_KERNEL_OF_ROWS(gelu_tanh_diff)

/* (x t(x))' = t + x t' with t' = 4 e^x (1 + e^x) / (n + 2)²: nothing cancels, as it would in 1 - t². */
static void NAME(mish_diff)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *d_row = src[0], *x_row = src[1];
    (void)attributes;
    AN_EACH_ELEMENT(i, n) {
        REAL x = x_row[i], u = NAME(an_exp)(-NAME(an_absolute)(x));
        REAL below = x > 0 ? 1 + 2 * u * (1 + u) : 2 + u * (2 + u), power = x > 0 ? u * u : u;
        dst[i] = d_row[i] * (NAME(mish_gate)(x, u) + x * (4 * power * (1 + u) / (below * below)));
    }
}
AN_KERNEL_OF_ROWS(mish_diff)

/* Both comparisons are false for NaN, which so stays. */
static void NAME(clamp)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *x_row = src[0];
    const an_clamp_attributes *bounds = attributes;
    REAL low = (REAL)bounds->low, high = (REAL)bounds->high;
    AN_EACH_ELEMENT(i, n) {
        REAL x = x_row[i];
        dst[i] = x < low ? low : x > high ? high : x;
    }
}
AN_KERNEL_OF_ROWS(clamp)

/* On a bound the gradient is 0, the subgradient of least norm, as relu's at 0 and as PyTorch's from 2.15 on (it was
 * 1). */
static void NAME(clamp_diff)(int64_t n, const REAL *const *src, REAL *dst, const void *attributes) {
    const REAL *d_row = src[0], *x_row = src[1];
    const an_clamp_attributes *bounds = attributes;
    REAL low = (REAL)bounds->low, high = (REAL)bounds->high;
    AN_EACH_ELEMENT(i, n) {
        REAL d = d_row[i], x = x_row[i];
        dst[i] = x > low && x < high ? d : 0;
    }
}
AN_KERNEL_OF_ROWS(clamp_diff)

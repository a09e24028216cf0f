/* Cases of ops/unary.c. */
#include <math.h>

#include "checkops/cases.h"
#include "kernels/elementwise/unary.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, MOST_ELEMENTS = 3000, MOST_DIMS = 4 };

static void make_shape(check_random *r, check_fill fill, check_input *input) {
    int64_t left = MOST_ELEMENTS;
    input->fill = fill;
    input->ndims = (int)check_between(r, 0, MOST_DIMS);
    for (int i = 0; i < input->ndims; i++) {
        input->dims[i] = check_size(r, left);
        left /= input->dims[i];
    }
}

static void make_one(check_random *r, check_case *c, check_fill fill) {
    c->input_count = 1;
    make_shape(r, fill, &c->inputs[0]);
}

static void make_normal(check_random *r, check_case *c) {
    make_one(r, c, CHECK_NORMAL);
}

static void make_apart(check_random *r, check_case *c) {
    make_one(r, c, CHECK_APART);
}

static void make_positive(check_random *r, check_case *c) {
    make_one(r, c, CHECK_POSITIVE);
}

/* For derivatives that cross 0, where no digit is left of a result: errors are judged beside the root mean square of
 * the output, so there must be enough elements for one. */
static void make_enough(check_case *c) {
    enum { ENOUGH = 32 };
    int64_t elements = 1;
    for (int i = 0; i < c->inputs[0].ndims; i++) elements *= c->inputs[0].dims[i];
    for (int i = 0; i < c->input_count && elements < ENOUGH; i++) {
        check_input *input = &c->inputs[i];
        if (input->ndims == 0) input->dims[input->ndims++] = 1;
        input->dims[input->ndims - 1] += ENOUGH;
    }
}

static void make_scale(check_random *r, check_case *c) {
    make_normal(r, c);
    ((an_scale_attributes *)c->attributes)->factor = (double)check_between(r, -700, 700) / 100;
}

/* diff_dst and src, or dst */
static void make_two(check_random *r, check_case *c, check_fill fill) {
    c->input_count = 2;
    make_shape(r, fill, &c->inputs[1]);
    c->inputs[0] = c->inputs[1];
    c->inputs[0].fill = CHECK_NORMAL;
}

static void make_diff(check_random *r, check_case *c) {
    make_two(r, c, CHECK_NORMAL);
}

static void make_diff_with_zeros(check_random *r, check_case *c) {
    make_two(r, c, CHECK_NORMAL);
    make_enough(c);
}

/* Whole numbers: the kink at 0 is hit. */
static void make_diff_kink(check_random *r, check_case *c) {
    make_two(r, c, check_chance(r, 50) ? CHECK_APART : CHECK_INDEX);
    c->inputs[1].low = -2;
    c->inputs[1].high = 3;
}

/* Whole numbers: the kinks at -3 and 3 are hit. */
static void make_diff_hard_swish(check_random *r, check_case *c) {
    make_two(r, c, check_chance(r, 50) ? CHECK_APART : CHECK_INDEX);
    c->inputs[1].low = -5;
    c->inputs[1].high = 6;
}

/* Some have one bound only. `beyond` is what bounds have beyond whole numbers. */
static void make_bounds(check_random *r, check_case *c, double beyond) {
    an_clamp_attributes *bounds = (an_clamp_attributes *)c->attributes;
    bounds->low = check_chance(r, 20) ? -INFINITY : (double)check_between(r, -2, 0) - beyond;
    bounds->high = check_chance(r, 20) ? INFINITY : (double)check_between(r, 0, 2) + beyond;
}

/* Whole numbers on both sides of the bounds and between them, and bounds that differences do not step over. */
static void make_clamp(check_random *r, check_case *c) {
    make_one(r, c, CHECK_INDEX);
    c->inputs[0].low = -5;
    c->inputs[0].high = 6;
    make_bounds(r, c, 0.3);
}

/* Here the bounds are hit. */
static void make_clamp_diff(check_random *r, check_case *c) {
    make_two(r, c, CHECK_INDEX);
    c->inputs[1].low = -3;
    c->inputs[1].high = 4;
    make_bounds(r, c, 0);
}

static void make_diff_unit(check_random *r, check_case *c) {
    make_two(r, c, CHECK_UNIT);
}

static void make_diff_positive(check_random *r, check_case *c) {
    make_two(r, c, CHECK_POSITIVE);
}

#define ORACLE(op, formula)                                                                  \
    static void op##_oracle(const check_case *c, const check_array *src, check_array *dst) { \
        (void)c;                                                                             \
        for (int64_t i = 0; i < dst[0].count; i++) {                                         \
            long double x = src[0].data[i];                                                  \
            dst[0].data[i] = (formula);                                                      \
        }                                                                                    \
    }

/* d is diff_dst, x is src or, where it says so, y is dst */
#define ORACLE_DIFF(op, x, formula)                                                          \
    static void op##_oracle(const check_case *c, const check_array *src, check_array *dst) { \
        (void)c;                                                                             \
        for (int64_t i = 0; i < dst[0].count; i++) {                                         \
            long double d = src[0].data[i], x = src[1].data[i];                              \
            dst[0].data[i] = d * (formula);                                                  \
        }                                                                                    \
    }

#define BOUNDS ((const an_clamp_attributes *)c->attributes)

static const long double pi = 3.14159265358979323846264338327950288L;

/* The inner function of the tanh gelu, and its derivative. */
static long double inner(long double x) {
    return sqrtl(2 / pi) * (x + 0.044715L * powl(x, 3));
}

static long double inner_slope(long double x) {
    return sqrtl(2 / pi) * (1 + 3 * 0.044715L * powl(x, 2));
}

static long double gate(long double x) {
    return tanhl(log1pl(expl(x)));
}

ORACLE(relu, fmaxl(x, 0))
ORACLE(gelu, x *erfcl(-x / sqrtl(2)) / 2)
ORACLE(gelu_tanh, x / 2 * (1 + tanhl(inner(x))))
ORACLE(silu, x / (1 + expl(-x)))
ORACLE(sigmoid, 1 / (1 + expl(-x)))
ORACLE(tanh, tanhl(x))
ORACLE(exp, expl(x))
ORACLE(log, logl(x))
ORACLE(sqrt, sqrtl(x))
ORACLE(softplus, log1pl(expl(x)))
ORACLE(mish, x *gate(x))
ORACLE(hard_swish, x *fminl(fmaxl(x + 3, 0), 6) / 6)
ORACLE(sin, sinl(x))
ORACLE(cos, cosl(x))
ORACLE(abs, fabsl(x))
ORACLE(scale, x *((const an_scale_attributes *)c->attributes)->factor)
ORACLE(clamp, fminl(fmaxl(x, BOUNDS->low), BOUNDS->high))
ORACLE_DIFF(relu_diff, x, x > 0 ? 1 : 0)
ORACLE_DIFF(gelu_diff, x, erfcl(-x / sqrtl(2)) / 2 + x * expl(-x * x / 2) / sqrtl(2 * pi))
ORACLE_DIFF(gelu_tanh_diff, x, (1 + tanhl(inner(x))) / 2 + x / 2 / powl(coshl(inner(x)), 2) * inner_slope(x))
ORACLE_DIFF(silu_diff, x, (1 + expl(-x) + x * expl(-x)) / powl(1 + expl(-x), 2))
ORACLE_DIFF(sigmoid_diff, y, y - y * y)
ORACLE_DIFF(tanh_diff, y, (1 - y) * (1 + y))
ORACLE_DIFF(sqrt_diff, y, 1 / (2 * y))
ORACLE_DIFF(softplus_diff, x, expl(x) / (1 + expl(x)))
ORACLE_DIFF(mish_diff, x, gate(x) + x * (1 - powl(gate(x), 2)) / (1 + expl(-x)))
ORACLE_DIFF(hard_swish_diff, x, x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6)
ORACLE_DIFF(abs_diff, x, x > 0 ? 1 : x < 0 ? -1 : 0)
ORACLE_DIFF(clamp_diff, x, x <= BOUNDS->low || x >= BOUNDS->high ? 0 : 1)

const check_family check_unary[] = {
    {.op = "relu", make_apart, relu_oracle, LOW, .rows = 1},
    {.op = "gelu", make_normal, gelu_oracle, LOW, .rows = 1},
    {.op = "gelu_tanh", make_normal, gelu_tanh_oracle, LOW, .rows = 1},
    {.op = "silu", make_normal, silu_oracle, LOW, .rows = 1},
    {.op = "sigmoid", make_normal, sigmoid_oracle, LOW, .rows = 1},
    {.op = "tanh", make_normal, tanh_oracle, LOW, .rows = 1},
    {.op = "exp", make_normal, exp_oracle, LOW, .rows = 1},
    {.op = "log", make_positive, log_oracle, LOW, .rows = 1},
    {.op = "sqrt", make_positive, sqrt_oracle, LOW, .rows = 1},
    {.op = "softplus", make_normal, softplus_oracle, LOW, .rows = 1},
    {.op = "mish", make_normal, mish_oracle, LOW, .rows = 1},
    {.op = "hard_swish", make_apart, hard_swish_oracle, LOW, .rows = 1},
    {.op = "sin", make_normal, sin_oracle, LOW, .rows = 1},
    {.op = "cos", make_normal, cos_oracle, LOW, .rows = 1},
    {.op = "abs", make_apart, abs_oracle, LOW, .rows = 1},
    {.op = "scale", make_scale, scale_oracle, LOW, .rows = 1},
    {.op = "clamp", make_clamp, clamp_oracle, LOW, .rows = 1},
    {.op = "relu_diff", make_diff_kink, relu_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "gelu_diff", make_diff_with_zeros, gelu_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "gelu_tanh_diff", make_diff_with_zeros, gelu_tanh_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "silu_diff", make_diff_with_zeros, silu_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "sigmoid_diff", make_diff_unit, sigmoid_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "tanh_diff", make_diff_unit, tanh_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "sqrt_diff", make_diff_positive, sqrt_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "softplus_diff", make_diff, softplus_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "mish_diff", make_diff_with_zeros, mish_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "hard_swish_diff", make_diff_hard_swish, hard_swish_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "abs_diff", make_diff_kink, abs_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "clamp_diff", make_clamp_diff, clamp_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {0},
};

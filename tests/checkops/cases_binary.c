/* Cases of ops/binary.c. The oracles find the elements that broadcasting brings together by their coordinates. */
#include <math.h>

#include "checkops/cases.h"
#include "kernels/elementwise/binary.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, MOST_ELEMENTS = 2000, MOST_DIMS = 4 };

/* ---- shapes ---- */

static void make_shape(check_random *r, int minimum, check_input *input) {
    int64_t left = MOST_ELEMENTS;
    input->fill = CHECK_NORMAL;
    input->ndims = (int)check_between(r, minimum, MOST_DIMS);
    for (int i = 0; i < input->ndims; i++) {
        input->dims[i] = check_size(r, left);
        left /= input->dims[i];
    }
}

/* A shape that broadcasts to `whole`: some dimensions are 1, and some leading ones are not there. */
static check_input part_of(check_random *r, const check_input *whole, check_fill fill) {
    check_input part = {.fill = fill};
    int dropped = check_chance(r, 30) ? (int)check_between(r, 0, whole->ndims) : 0;
    for (int i = dropped; i < whole->ndims; i++) part.dims[part.ndims++] = check_chance(r, 20) ? 1 : whole->dims[i];
    return part;
}

/* Two inputs that broadcast, in types that may differ as in mixed precision. */
static void make_pair(check_random *r, check_case *c, check_fill a, check_fill b) {
    check_input whole = {0};
    make_shape(r, 0, &whole);
    c->input_count = 2;
    c->inputs[0] = part_of(r, &whole, a);
    c->inputs[1] = part_of(r, &whole, b);
    c->inputs[check_between(r, 0, 1)].compute_dtype = check_chance(r, 20);
}

/* diff_dst of the whole shape before two inputs. */
static void make_diff(check_random *r, check_case *c, check_fill a, check_fill b) {
    check_input whole = {0};
    make_shape(r, 0, &whole);
    c->input_count = 3;
    c->inputs[0] = whole;
    c->inputs[1] = part_of(r, &whole, a);
    c->inputs[2] = part_of(r, &whole, b);
}

/* The element of `array` at the place of element `index` of `whole`. */
static long double at(const check_array *array, const check_array *whole, int64_t index) {
    int64_t place[AN_MAX_DIMS], element = 0;
    for (int i = whole->ndims - 1; i >= 0; i--) {
        place[i] = index % whole->dims[i];
        index /= whole->dims[i];
    }
    for (int i = 0; i < array->ndims; i++) {
        int64_t p = place[whole->ndims - array->ndims + i];
        element = element * array->dims[i] + (array->dims[i] == 1 ? 0 : p);
    }
    return array->data[element];
}

/* ---- functions ---- */

static void make_normal(check_random *r, check_case *c) {
    make_pair(r, c, CHECK_NORMAL, CHECK_NORMAL);
}

static void make_apart(check_random *r, check_case *c) {
    make_pair(r, c, CHECK_APART, CHECK_APART);
}

static void make_divide(check_random *r, check_case *c) {
    make_pair(r, c, CHECK_NORMAL, CHECK_POSITIVE);
}

/* Positive to any power, or anything to a whole one. */
static void make_power(check_random *r, check_case *c) {
    if (check_chance(r, 60)) {
        make_pair(r, c, CHECK_POSITIVE, CHECK_NORMAL);
        return;
    }
    make_pair(r, c, CHECK_APART, CHECK_INDEX);
    c->inputs[1].low = 0;
    c->inputs[1].high = 4;
    c->inputs[1].no_gradient = true; /* a negative base has no logarithm */
}

#define ORACLE(op, formula)                                                                  \
    static void op##_oracle(const check_case *c, const check_array *src, check_array *dst) { \
        (void)c;                                                                             \
        for (int64_t i = 0; i < dst[0].count; i++) {                                         \
            long double a = at(&src[0], &dst[0], i), b = at(&src[1], &dst[0], i);            \
            dst[0].data[i] = (formula);                                                      \
        }                                                                                    \
    }

ORACLE(add, a + b)
ORACLE(subtract, a - b)
ORACLE(multiply, a *b)
ORACLE(divide, a / b)
ORACLE(maximum, fmaxl(a, b))
ORACLE(minimum, fminl(a, b))
ORACLE(power, powl(a, b))

/* ---- bias ---- */

static void bias_make(check_random *r, check_case *c) {
    an_bias_attributes *attributes = (an_bias_attributes *)c->attributes;
    c->input_count = 2;
    make_shape(r, 1, &c->inputs[0]);
    attributes->axis = check_between(r, 0, c->inputs[0].ndims - 1);
    c->inputs[1] = (check_input){.fill = CHECK_NORMAL, .ndims = 1, .compute_dtype = check_chance(r, 50)};
    c->inputs[1].dims[0] = c->inputs[0].dims[attributes->axis];
}

static void bias_oracle(const check_case *c, const check_array *src, check_array *dst) {
    int64_t axis = ((const an_bias_attributes *)c->attributes)->axis, inner = 1;
    for (int i = (int)axis + 1; i < dst[0].ndims; i++) inner *= dst[0].dims[i];
    for (int64_t i = 0; i < dst[0].count; i++)
        dst[0].data[i] = src[0].data[i] + src[1].data[i / inner % dst[0].dims[axis]];
}

/* ---- gradients ---- */

/* Whole numbers are often equal. */
static void select_diff_make(check_random *r, check_case *c) {
    check_fill fill = check_chance(r, 50) ? CHECK_INDEX : CHECK_NORMAL;
    make_diff(r, c, fill, fill);
    for (int i = 1; i <= 2; i++) {
        c->inputs[i].low = -2;
        c->inputs[i].high = 3;
    }
    ((an_select_diff_attributes *)c->attributes)->minimum = check_chance(r, 50);
}

static void select_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    bool minimum = ((const an_select_diff_attributes *)c->attributes)->minimum;
    for (int64_t i = 0; i < dst[0].count; i++) {
        long double x = at(&src[1], &dst[0], i), y = at(&src[2], &dst[0], i), share = 0;
        if (x == y) share = 0.5L;
        if (minimum ? x < y : x > y) share = 1;
        dst[0].data[i] = share * src[0].data[i];
    }
}

/* Now and then all bases or all exponents are 0. */
static void power_diff_make(check_random *r, check_case *c) {
    an_power_diff_attributes *attributes = (an_power_diff_attributes *)c->attributes;
    make_diff(r, c, CHECK_POSITIVE, CHECK_NORMAL);
    attributes->of_exponent = check_chance(r, 50);
    if (check_chance(r, 15)) {
        c->inputs[1].fill = CHECK_NUMBER;
        c->inputs[2].fill = CHECK_POSITIVE;
    }
    if (check_chance(r, 15)) c->inputs[2].fill = CHECK_NUMBER;
}

static void power_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    bool of_exponent = ((const an_power_diff_attributes *)c->attributes)->of_exponent;
    for (int64_t i = 0; i < dst[0].count; i++) {
        long double a = at(&src[1], &dst[0], i), b = at(&src[2], &dst[0], i), slope = 0;
        if (of_exponent && (a != 0 || b < 0)) slope = powl(a, b) * logl(a);
        if (!of_exponent && b != 0) slope = b * powl(a, b - 1);
        dst[0].data[i] = slope * src[0].data[i];
    }
}

/* ---- a factor for each column ---- */

static void stretch_make(check_random *r, check_case *c) {
    c->input_count = 2;
    make_shape(r, 1, &c->inputs[0]);
    c->inputs[1] = (check_input){.fill = CHECK_NORMAL,
                                 .ndims = 1,
                                 .dims = {c->inputs[0].dims[c->inputs[0].ndims - 1]},
                                 .compute_dtype = check_chance(r, 50)};
}

const check_family check_binary[] = {
    {.op = "bias", bias_make, bias_oracle, LOW, .rows = 1},
    {.op = "add", make_normal, add_oracle, LOW, .rows = 1 | 2},
    {.op = "adapt", make_normal, add_oracle, LOW, .rows = 1 | 2},
    {.op = "stretch", stretch_make, multiply_oracle, LOW, .rows = 1},
    {.op = "subtract", make_normal, subtract_oracle, LOW, .rows = 1 | 2},
    {.op = "multiply", make_normal, multiply_oracle, LOW, .rows = 1 | 2},
    {.op = "divide", make_divide, divide_oracle, LOW, .rows = 1 | 2},
    {.op = "maximum", make_apart, maximum_oracle, LOW, .rows = 1 | 2},
    {.op = "minimum", make_apart, minimum_oracle, LOW, .rows = 1 | 2},
    {.op = "power", make_power, power_oracle, LOW, .rows = 1 | 2},
    {.op = "select_diff", select_diff_make, select_diff_oracle, LOW, .rows = 1 | 2 | 4, .no_grad_mode = true},
    {.op = "power_diff", power_diff_make, power_diff_oracle, LOW, .rows = 1 | 2 | 4, .no_grad_mode = true},
    {0},
};

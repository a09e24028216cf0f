/* Cases of ops/softmax.c. */
#include <math.h>

#include "checkops/cases.h"
#include "kernels/norm/softmax.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, MOST_ELEMENTS = 3000, MOST_DIMS = 4 };

/* Now and then a row so long that its sum has several chunks. */
static void make_src(check_random *r, check_case *c) {
    an_softmax_attributes *attributes = (an_softmax_attributes *)c->attributes;
    check_input *src = &c->inputs[0];
    int64_t left = MOST_ELEMENTS;
    bool is_long = check_chance(r, 25);
    src->fill = CHECK_NORMAL;
    src->ndims = (int)check_between(r, 1, MOST_DIMS);
    attributes->axis = check_chance(r, 50) ? src->ndims - 1 : check_between(r, 0, src->ndims - 1);
    if (is_long) left /= src->dims[attributes->axis] = check_between(r, 1020, 2100);
    for (int i = 0; i < src->ndims; i++) {
        if (is_long && i == attributes->axis) continue;
        left /= src->dims[i] = check_size(r, left);
    }
    c->input_count = 1;
}

static void make_diff(check_random *r, check_case *c, check_fill fill) {
    make_src(r, c);
    c->input_count = 2;
    c->inputs[1] = c->inputs[0];
    c->inputs[1].fill = fill;
}

static void softmax_diff_make(check_random *r, check_case *c) {
    make_diff(r, c, CHECK_UNIT);
}

static void log_softmax_diff_make(check_random *r, check_case *c) {
    make_diff(r, c, CHECK_NORMAL);
}

/* Where a row begins (the elements before it, of which `inner` lie between its own), and how long it is. */
typedef struct rows {
    int64_t count, length, inner;
} rows;

static rows rows_of(const check_case *c, const check_array *array) {
    int64_t axis = ((const an_softmax_attributes *)c->attributes)->axis;
    rows r = {.length = array->dims[axis], .inner = 1};
    for (int i = (int)axis + 1; i < array->ndims; i++) r.inner *= array->dims[i];
    r.count = array->count / r.length;
    return r;
}

static int64_t element(const rows *r, int64_t row, int64_t i) {
    return (row / r->inner * r->length + i) * r->inner + row % r->inner;
}

static void log_softmax_oracle(const check_case *c, const check_array *src, check_array *dst) {
    rows r = rows_of(c, &src[0]);
    for (int64_t row = 0; row < r.count; row++) {
        long double sum = 0; /* long double holds e^x of any x that cases have */
        for (int64_t i = 0; i < r.length; i++) sum += expl(src[0].data[element(&r, row, i)]);
        for (int64_t i = 0; i < r.length; i++) {
            int64_t e = element(&r, row, i);
            dst[0].data[e] = r.length == 1 ? 0 : src[0].data[e] - logl(sum); /* 0 has no error to be compared with */
        }
    }
}

static void softmax_oracle(const check_case *c, const check_array *src, check_array *dst) {
    log_softmax_oracle(c, src, dst);
    for (int64_t i = 0; i < dst[0].count; i++) dst[0].data[i] = expl(dst[0].data[i]);
}

/* The Jacobian, y_i (δ_ik - y_k), times diff_dst. */
static void softmax_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    rows r = rows_of(c, &src[0]);
    for (int64_t row = 0; row < r.count; row++)
        for (int64_t i = 0; i < r.length; i++) {
            int64_t e = element(&r, row, i);
            for (int64_t k = 0; k < r.length; k++) {
                int64_t f = element(&r, row, k);
                dst[0].data[e] += src[0].data[f] * src[1].data[e] * ((i == k) - src[1].data[f]);
            }
        }
}

/* The Jacobian, δ_ik - e^(y_i), times diff_dst. */
static void log_softmax_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    rows r = rows_of(c, &src[0]);
    for (int64_t row = 0; row < r.count; row++)
        for (int64_t i = 0; i < r.length; i++) {
            int64_t e = element(&r, row, i);
            long double share = expl(src[1].data[e]);
            for (int64_t k = 0; k < r.length; k++)
                dst[0].data[e] += src[0].data[element(&r, row, k)] * ((i == k) - share);
        }
}

const check_family check_softmax[] = {
    {.op = "softmax", make_src, softmax_oracle, LOW, .rows = 1},
    {.op = "softmax_diff", softmax_diff_make, softmax_diff_oracle, LOW, .rows = 1 | 2, .no_grad_mode = true},
    {.op = "log_softmax", make_src, log_softmax_oracle, LOW, .rows = 1},
    {.op = "log_softmax_diff",
     log_softmax_diff_make,
     log_softmax_diff_oracle,
     LOW,
     .rows = 1 | 2,
     .no_grad_mode = true},
    {0},
};

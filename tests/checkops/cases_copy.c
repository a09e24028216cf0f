/* Cases of ops/copy.c. The oracles go over all elements by their coordinates. */
#include "checkops/cases.h"
#include "kernels/copy/copy.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, MOST_ELEMENTS = 3000 };

/* `least` to 4 dimensions with about `left` elements at most. */
static void make_shape(check_random *r, int minimum, int64_t left, check_input *input) {
    input->fill = CHECK_NORMAL;
    input->ndims = (int)check_between(r, minimum, 4);
    for (int i = 0; i < input->ndims; i++) {
        input->dims[i] = check_size(r, left < 60 ? left : 60);
        left /= input->dims[i];
    }
}

static void coordinates(const int64_t *dims, int ndims, int64_t element, int64_t *at) {
    for (int i = ndims - 1; i >= 0; i--) {
        at[i] = element % dims[i];
        element /= dims[i];
    }
}

static int64_t element_at(const check_array *array, const int64_t *at) {
    int64_t element = 0;
    for (int i = 0; i < array->ndims; i++) element = element * array->dims[i] + at[i];
    return element;
}

/* ---- contiguous, cast ---- */

static void contiguous_make(check_random *r, check_case *c) {
    c->input_count = 1;
    make_shape(r, 0, MOST_ELEMENTS, &c->inputs[0]);
    if (check_chance(r, 25)) {
        c->inputs[0].fill = CHECK_INDEX;
        c->inputs[0].dtype = check_chance(r, 50) ? AN_DTYPE_I64 : AN_DTYPE_U8;
        c->inputs[0].low = 0;
        c->inputs[0].high = 256;
    }
}

static void cast_make(check_random *r, check_case *c) {
    static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16, AN_DTYPE_F16};
    an_cast_attributes *attributes = (an_cast_attributes *)c->attributes;
    c->input_count = 1;
    make_shape(r, 0, MOST_ELEMENTS, &c->inputs[0]);
    attributes->dtype = dtypes[check_between(r, 0, 3)];
    if (check_chance(r, 20)) {
        c->inputs[0].fill = CHECK_INDEX;
        c->inputs[0].dtype = check_chance(r, 50) ? AN_DTYPE_I64 : AN_DTYPE_I32;
        c->inputs[0].low = -1000;
        c->inputs[0].high = 1000;
    }
}

static void copy_oracle(const check_case *c, const check_array *src, check_array *dst) {
    (void)c;
    for (int64_t i = 0; i < dst[0].count; i++) dst[0].data[i] = src[0].data[i];
}

/* ---- concat ---- */

static void concat_make(check_random *r, check_case *c) {
    an_concat_attributes *attributes = (an_concat_attributes *)c->attributes;
    c->input_count = check_chance(r, 10) ? AN_MAX_INPUTS : (int)check_between(r, 2, 5);
    make_shape(r, 1, MOST_ELEMENTS / c->input_count, &c->inputs[0]);
    attributes->axis = check_between(r, 0, c->inputs[0].ndims - 1);
    for (int i = 1; i < c->input_count; i++) {
        c->inputs[i] = c->inputs[0];
        c->inputs[i].dims[attributes->axis] = check_size(r, 7);
        c->inputs[i].compute_dtype = check_chance(r, 10); /* types may differ, as in mixed precision */
    }
}

static void concat_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_concat_attributes *attributes = (const an_concat_attributes *)c->attributes;
    for (int64_t i = 0; i < dst[0].count; i++) {
        int64_t at[AN_MAX_DIMS];
        int input = 0;
        coordinates(dst[0].dims, dst[0].ndims, i, at);
        while (at[attributes->axis] >= src[input].dims[attributes->axis])
            at[attributes->axis] -= src[input++].dims[attributes->axis];
        dst[0].data[i] = src[input].data[element_at(&src[input], at)];
    }
}

/* ---- pad ---- */

static void pad_make(check_random *r, check_case *c) {
    an_pad_attributes *attributes = (an_pad_attributes *)c->attributes;
    c->input_count = 1;
    make_shape(r, 1, MOST_ELEMENTS, &c->inputs[0]);
    attributes->axis = check_between(r, 0, c->inputs[0].ndims - 1);
    attributes->before = check_between(r, 0, 3);
    attributes->after = check_between(r, 0, 3);
}

static void pad_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_pad_attributes *attributes = (const an_pad_attributes *)c->attributes;
    for (int64_t i = 0; i < src[0].count; i++) { /* dst comes zeroed */
        int64_t at[AN_MAX_DIMS];
        coordinates(src[0].dims, src[0].ndims, i, at);
        at[attributes->axis] += attributes->before;
        dst[0].data[element_at(&dst[0], at)] = src[0].data[i];
    }
}

/* ---- gather, gather_diff ---- */

/* Indices for src, off the axis sometimes fewer. */
static void make_indices(check_random *r, const check_input *src, int64_t axis, check_input *indices) {
    indices->fill = CHECK_INDEX;
    indices->dtype = check_chance(r, 50) ? AN_DTYPE_I64 : AN_DTYPE_I32;
    indices->ndims = src->ndims;
    indices->low = 0;
    indices->high = src->dims[axis];
    for (int i = 0; i < src->ndims; i++)
        indices->dims[i] = check_chance(r, 20) ? check_between(r, 1, src->dims[i]) : src->dims[i];
    indices->dims[axis] = check_size(r, 30);
}

static void gather_make(check_random *r, check_case *c) {
    an_gather_attributes *attributes = (an_gather_attributes *)c->attributes;
    c->input_count = 2;
    make_shape(r, 1, MOST_ELEMENTS, &c->inputs[0]);
    attributes->axis = check_between(r, 0, c->inputs[0].ndims - 1);
    make_indices(r, &c->inputs[0], attributes->axis, &c->inputs[1]);
}

static void gather_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_gather_attributes *attributes = (const an_gather_attributes *)c->attributes;
    for (int64_t i = 0; i < dst[0].count; i++) {
        int64_t at[AN_MAX_DIMS];
        coordinates(dst[0].dims, dst[0].ndims, i, at);
        at[attributes->axis] = (int64_t)src[1].data[i];
        dst[0].data[i] = src[0].data[element_at(&src[0], at)];
    }
}

static void gather_diff_make(check_random *r, check_case *c) {
    an_gather_diff_attributes *attributes = (an_gather_diff_attributes *)c->attributes;
    check_input src = {.fill = CHECK_NORMAL};
    c->input_count = 2;
    make_shape(r, 1, MOST_ELEMENTS, &src);
    attributes->axis = check_between(r, 0, src.ndims - 1);
    attributes->dims.count = src.ndims;
    for (int i = 0; i < src.ndims; i++) attributes->dims.values[i] = src.dims[i];
    make_indices(r, &src, attributes->axis, &c->inputs[1]);
    c->inputs[0] = c->inputs[1];
    c->inputs[0].fill = CHECK_NORMAL;
    c->inputs[0].dtype = AN_DTYPE_NONE;
}

static void gather_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_gather_diff_attributes *attributes = (const an_gather_diff_attributes *)c->attributes;
    for (int64_t i = 0; i < src[0].count; i++) { /* dst comes zeroed */
        int64_t at[AN_MAX_DIMS];
        coordinates(src[0].dims, src[0].ndims, i, at);
        at[attributes->axis] = (int64_t)src[1].data[i];
        dst[0].data[element_at(&dst[0], at)] += src[0].data[i];
    }
}

const check_family check_copy[] = {
    {.op = "contiguous", .make = contiguous_make, .oracle = copy_oracle, .low_dtypes = LOW, .rows = 1, .exact = true},
    {.op = "cast", .make = cast_make, .oracle = copy_oracle, .low_dtypes = LOW, .rows = 1, .exact = true},
    {.op = "concat", .make = concat_make, .oracle = concat_oracle, .low_dtypes = LOW, .rows = ~0u, .exact = true},
    {.op = "pad", .make = pad_make, .oracle = pad_oracle, .low_dtypes = LOW, .rows = 1, .exact = true},
    {.op = "gather", .make = gather_make, .oracle = gather_oracle, .low_dtypes = LOW, .rows = 1 | 2, .exact = true},
    {.op = "gather_diff",
     .make = gather_diff_make,
     .oracle = gather_diff_oracle,
     .low_dtypes = LOW,
     .rows = 1 | 2,
     .no_grad_mode = true},
    {0},
};

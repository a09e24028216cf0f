/* Cases of ops/sink.c and ops/pieces.c: grad and unit_grad, which add to what their output holds or overwrite it. */
#include "checkops/cases.h"
#include "kernels/sink/sink.h"

static void make_contribution(check_random *r, check_input *contribution, an_grad_attributes *attributes) {
    contribution->fill = CHECK_NORMAL;
    contribution->ndims = (int)check_between(r, 0, 3);
    for (int i = 0; i < contribution->ndims; i++) contribution->dims[i] = check_size(r, 16);
    attributes->add = check_chance(r, 50);
}

static void grad_make(check_random *r, check_case *c) {
    c->input_count = 1;
    make_contribution(r, &c->inputs[0], (an_grad_attributes *)c->attributes);
}

/* The root is not read: what the output holds is its part of it. */
static void unit_grad_make(check_random *r, check_case *c) {
    an_unit_grad_attributes *attributes = (an_unit_grad_attributes *)c->attributes;
    check_input *root = &c->inputs[0], *contribution = &c->inputs[1];
    int64_t elements = 1;
    c->input_count = 2;
    make_contribution(r, contribution, &attributes->grad);
    for (int i = 0; i < contribution->ndims; i++) elements *= contribution->dims[i];
    attributes->offset = check_size(r, 64);
    *root = (check_input){.fill = CHECK_NORMAL,
                          .ndims = 1,
                          .dims = {attributes->offset + elements + check_size(r, 64)},
                          .compute_dtype = true,
                          .only_dense = true};
}

/* Attributes of both begin alike; the contribution is the last input. */
static void grad_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_grad_attributes *attributes = (const an_grad_attributes *)c->attributes;
    const check_array *contribution = &src[c->input_count - 1];
    for (int64_t i = 0; i < dst[0].count; i++)
        dst[0].data[i] = attributes->add ? dst[0].data[i] + contribution->data[i] : contribution->data[i];
}

const check_family check_sink[] = {
    {.op = "grad",
     .make = grad_make,
     .oracle = grad_oracle,
     .low_dtypes = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16,
     .no_grad_mode = true},
    {.op = "unit_grad",
     .make = unit_grad_make,
     .oracle = grad_oracle,
     .low_dtypes = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16,
     .no_grad_mode = true},
    {0},
};

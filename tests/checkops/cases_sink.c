/* Cases of ops/sink.c: grad, which adds to what its output holds or overwrites it. */
#include "checkops/cases.h"
#include "kernels/sink/sink.h"

static void grad_make(check_random *r, check_case *c) {
    an_grad_attributes *attributes = (an_grad_attributes *)c->attributes;
    check_input *contribution = &c->inputs[0];
    c->input_count = 1;
    contribution->fill = CHECK_NORMAL;
    contribution->ndims = (int)check_between(r, 0, 3);
    for (int i = 0; i < contribution->ndims; i++) contribution->dims[i] = check_size(r, 16);
    attributes->add = check_chance(r, 50);
}

static void grad_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_grad_attributes *attributes = (const an_grad_attributes *)c->attributes;
    for (int64_t i = 0; i < dst[0].count; i++)
        dst[0].data[i] = attributes->add ? dst[0].data[i] + src[0].data[i] : src[0].data[i];
}

const check_family check_sink[] = {
    {.op = "grad",
     .make = grad_make,
     .oracle = grad_oracle,
     .low_dtypes = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16,
     .no_grad_mode = true},
    {0},
};

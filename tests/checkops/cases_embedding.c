/* Cases of ops/embedding.c. */
#include "checkops/cases.h"
#include "kernels/embedding/embedding.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16 };

static check_input make_indices(check_random *r, int64_t entries) {
    check_input indices = {.fill = CHECK_INDEX, .high = entries, .ndims = (int)check_between(r, 0, 3)};
    indices.dtype = check_chance(r, 50) ? AN_DTYPE_I64 : AN_DTYPE_I32;
    for (int i = 0; i < indices.ndims; i++) indices.dims[i] = check_size(r, 6);
    return indices;
}

static int64_t make_width(check_random *r) {
    return check_chance(r, 20) ? check_between(r, 120, 300) : check_size(r, 40); /* some over a range of columns */
}

static void embedding_make(check_random *r, check_case *c) {
    const int64_t entries = check_size(r, 30);
    c->input_count = 2;
    c->inputs[0] = make_indices(r, entries);
    c->inputs[1] = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {entries, make_width(r)}};
}

static void embedding_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t width = src[1].dims[1];
    (void)c;
    for (int64_t i = 0; i < dst[0].count; i++)
        dst[0].data[i] = src[1].data[(int64_t)src[0].data[i / width] * width + i % width];
}

static void embedding_diff_make(check_random *r, check_case *c) {
    const int64_t entries = check_size(r, 30), width = make_width(r);
    an_embedding_diff_attributes *attributes = (an_embedding_diff_attributes *)c->attributes;
    c->input_count = 2;
    c->inputs[1] = make_indices(r, entries);
    c->inputs[0] = c->inputs[1];
    c->inputs[0].fill = CHECK_NORMAL;
    c->inputs[0].dtype = AN_DTYPE_NONE;
    c->inputs[0].dims[c->inputs[0].ndims++] = width;
    attributes->dims = (an_dim_list){.count = 2, .values = {entries, width}};
}

static void embedding_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t width = dst[0].dims[1];
    (void)c;
    for (int64_t row = 0; row < dst[0].dims[0]; row++)
        for (int64_t i = 0; i < src[0].count; i++)
            if ((int64_t)src[1].data[i / width] == row) dst[0].data[row * width + i % width] += src[0].data[i];
}

const check_family check_embedding[] = {
    {.op = "embedding",
     .make = embedding_make,
     .oracle = embedding_oracle,
     .low_dtypes = LOW,
     .rows = 1,
     .exact = true},
    {.op = "embedding_diff",
     .make = embedding_diff_make,
     .oracle = embedding_diff_oracle,
     .low_dtypes = LOW,
     .no_grad_mode = true},
    {0},
};

/* Cases of ops/product.c. The oracle is the definition: one sum for each element, found by its coordinates. */
#include "checkops/cases.h"
#include "kernels/product/product.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16 };

/* Largest sizes: of ordinary cases, and of those with more k than a kernel takes at once. */
enum { MOST_BATCH = 4, MOST_SIDE = 40, MOST_DEPTH = 60, LONG_SIDE = 6, LONG_DEPTH = 2000 };

/* A matrix of rows × columns, or its transpose, behind `batch_count` dimensions of the batch; some of them are 1 and so
 * broadcast. */
static void make_operand(check_random *r, check_input *input, int batch_count, const int64_t *batch, int64_t rows,
                         int64_t columns, bool transpose) {
    input->fill = CHECK_NORMAL;
    input->ndims = batch_count + 2;
    for (int i = 0; i < batch_count; i++) input->dims[i] = check_chance(r, 25) ? 1 : batch[i];
    input->dims[batch_count] = transpose ? columns : rows;
    input->dims[batch_count + 1] = transpose ? rows : columns;
}

static void product_make(check_random *r, check_case *c) {
    an_product_attributes *attributes = (an_product_attributes *)c->attributes;
    bool is_long = check_chance(r, 25);
    int64_t batch[2] = {check_size(r, MOST_BATCH), check_size(r, MOST_BATCH)};
    int64_t rows = check_size(r, is_long ? LONG_SIDE : MOST_SIDE);
    int64_t columns = check_size(r, is_long ? LONG_SIDE : MOST_SIDE);
    int64_t depth = is_long ? check_between(r, MOST_DEPTH, LONG_DEPTH) : check_size(r, MOST_DEPTH);
    int a_batch = (int)check_between(r, 0, is_long ? 1 : 2), b_batch = (int)check_between(r, 0, is_long ? 1 : 2);
    attributes->transpose_a = check_chance(r, 50);
    attributes->transpose_b = check_chance(r, 50);
    if (check_chance(r, 10)) attributes->dtype = AN_DTYPE_F64;
    c->input_count = 2;
    make_operand(r, &c->inputs[0], a_batch, batch + 2 - a_batch, rows, depth, attributes->transpose_a);
    make_operand(r, &c->inputs[1], b_batch, batch + 2 - b_batch, depth, columns, attributes->transpose_b);
    if (check_chance(r, 15)) c->inputs[check_between(r, 0, 1)].compute_dtype = true; /* a mix of types */
}

/* Element (row, column) of the matrix that belongs to the batch of element `index` of dst. */
static long double element_of(const check_array *array, const check_array *dst, int64_t index, bool transpose,
                              int64_t row, int64_t column) {
    int64_t columns = array->dims[array->ndims - 1], step = array->dims[array->ndims - 2] * columns, at = 0;
    index /= dst->dims[dst->ndims - 1] * dst->dims[dst->ndims - 2];
    for (int i = 1; i <= dst->ndims - 2; i++) { /* batch dimensions from the last on */
        int own = array->ndims - 2 - i;
        int64_t coordinate = index % dst->dims[dst->ndims - 2 - i];
        index /= dst->dims[dst->ndims - 2 - i];
        if (own < 0) continue;
        if (array->dims[own] > 1) at += coordinate * step;
        step *= array->dims[own];
    }
    return array->data[at + (transpose ? column * columns + row : row * columns + column)];
}

static void product_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_product_attributes *attributes = (const an_product_attributes *)c->attributes;
    const check_array *a = &src[0], *b = &src[1];
    int64_t columns = dst->dims[dst->ndims - 1], rows = dst->dims[dst->ndims - 2];
    int64_t depth = a->dims[a->ndims - (attributes->transpose_a ? 2 : 1)];
    for (int64_t i = 0; i < dst->count; i++)
        for (int64_t k = 0; k < depth; k++)
            dst->data[i] += element_of(a, dst, i, attributes->transpose_a, i / columns % rows, k) *
                            element_of(b, dst, i, attributes->transpose_b, k, i % columns);
}

/* ---- product_sum ---- */

static void product_sum_make(check_random *r, check_case *c) {
    an_product_attributes *attributes = (an_product_attributes *)c->attributes;
    const bool is_long = check_chance(r, 25);
    const int64_t batch = check_size(r, is_long ? 1 : MOST_BATCH),
                  rows = check_size(r, is_long ? LONG_SIDE : MOST_SIDE),
                  columns = check_size(r, is_long ? LONG_SIDE : MOST_SIDE);
    const int pairs = (int)check_between(r, 2, AN_PRODUCT_SUM_PAIRS);
    attributes->transpose_b = check_chance(r, 50);
    c->input_count = 2 * pairs;
    for (int i = 0; i < pairs; i++) {
        const int64_t depth = is_long ? check_between(r, 1, LONG_DEPTH / 4) : check_size(r, MOST_DEPTH);
        check_input *a = &c->inputs[2 * i], *b = a + 1;
        *a = (check_input){.fill = CHECK_NORMAL, .ndims = 3, .dims = {batch, rows, depth}};
        *b = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {depth, columns}};
        if (!attributes->transpose_b) continue;
        b->dims[0] = columns;
        b->dims[1] = depth;
    }
}

static void product_sum_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_product_attributes *attributes = (const an_product_attributes *)c->attributes;
    const int64_t columns = dst->dims[2];
    for (int pair = 0; pair < c->input_count; pair += 2) {
        const check_array *a = &src[pair], *b = &src[pair + 1];
        const int64_t depth = a->dims[2];
        for (int64_t i = 0; i < dst->count; i++)
            for (int64_t k = 0; k < depth; k++)
                dst->data[i] += a->data[i / columns * depth + k] *
                                b->data[attributes->transpose_b ? i % columns * depth + k : k * columns + i % columns];
    }
}

const check_family check_product[] = {
    {.op = "matmul", .make = product_make, .oracle = product_oracle, .low_dtypes = LOW, .rows = 1 | 2},
    {.op = "matmul_sum", .make = product_sum_make, .oracle = product_sum_oracle, .low_dtypes = LOW, .rows = 0x555},
    {0},
};

/* Cases of the ops that the fuse pass makes. That they have the bits of their parts is another test
 * (tests/exec/test_fuse.c); here they are right by themselves. */
#include <math.h>

#include "checkops/cases.h"
#include "kernels/product/chain.h"
#include "kernels/product/loss.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16 };

/* ---- chain ---- */

enum { MOST_ROWS = 30, MOST_COLUMNS = 70 };

static const char *const programs[] = {"add(x,1) tanh(x) multiply(x,2)", "subtract(1,x) abs(x) multiply(2,x)"};

static void chain_make(check_random *r, check_case *c) {
    an_chain_attributes *attributes = (an_chain_attributes *)c->attributes;
    const int64_t rows = check_size(r, MOST_ROWS), columns = check_size(r, MOST_COLUMNS);
    attributes->program = programs[check_between(r, 0, 1)];
    c->input_count = 3;
    c->inputs[0] = c->inputs[2] = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {rows, columns}};
    c->inputs[1] = (check_input){.fill = CHECK_NORMAL, .ndims = 1, .dims = {columns}};
    if (check_chance(r, 30)) c->inputs[1].compute_dtype = true;
}

static void chain_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const bool is_first = ((const an_chain_attributes *)c->attributes)->program == programs[0];
    for (int64_t i = 0; i < dst->count; i++) {
        const long double x = src[0].data[i], b = src[1].data[i % src[1].count], z = src[2].data[i];
        dst->data[i] = (is_first ? tanhl(x + b) : fabsl(b - x)) * z;
    }
}

/* ---- product_chain ---- */

enum { MOST_SIDE = 40, MOST_DEPTH = 60 };

static void product_chain_make(check_random *r, check_case *c) {
    an_product_chain_attributes *attributes = (an_product_chain_attributes *)c->attributes;
    const int64_t batch = check_size(r, 4), rows = check_size(r, MOST_SIDE), columns = check_size(r, MOST_SIDE),
                  depth = check_size(r, MOST_DEPTH);
    attributes->transpose_b = check_chance(r, 50);
    attributes->program = "add(x,2) tanh(x) add(x,3)";
    attributes->kept = check_chance(r, 50) ? 0 : -1;
    c->output_count = attributes->kept >= 0 ? 2 : 1;
    c->input_count = 4;
    c->inputs[0] = (check_input){.fill = CHECK_NORMAL, .ndims = 3, .dims = {batch, rows, depth}};
    c->inputs[1] = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {depth, columns}};
    if (attributes->transpose_b) {
        c->inputs[1].dims[0] = columns;
        c->inputs[1].dims[1] = depth;
    }
    c->inputs[2] = (check_input){.fill = CHECK_NORMAL, .ndims = 1, .dims = {columns}, .only_dense = true};
    c->inputs[3] = (check_input){.fill = CHECK_NORMAL, .ndims = 3, .dims = {batch, rows, columns}, .only_dense = true};
}

static void product_chain_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_product_chain_attributes *attributes = (const an_product_chain_attributes *)c->attributes;
    const int64_t columns = src[2].count, depth = src[0].dims[2];
    for (int64_t i = 0; i < dst->count; i++) {
        long double sum = src[2].data[i % columns];
        for (int64_t k = 0; k < depth; k++)
            sum += src[0].data[i / columns * depth + k] *
                   src[1].data[attributes->transpose_b ? i % columns * depth + k : k * columns + i % columns];
        dst[0].data[i] = tanhl(sum) + src[3].data[i];
        if (attributes->kept >= 0) dst[1].data[i] = sum;
    }
}

/* ---- product_cross_entropy ---- */

enum { MOST_CLASSES = 60, MOST_LABELS = 24 };

static void product_cross_entropy_make(check_random *r, check_case *c) {
    an_cross_entropy_attributes *attributes = (an_cross_entropy_attributes *)c->attributes;
    const int64_t rows = check_size(r, MOST_LABELS), classes = check_size(r, MOST_CLASSES), depth = check_size(r, 30);
    attributes->ignored = -1;
    attributes->label_smoothing = check_chance(r, 50) ? (double)check_between(r, 0, 100) / 100 : 0;
    c->output_count = (int)check_between(r, 1, 3);
    const bool trains =
        c->output_count > 1 && (c->output_count > 2 || check_chance(r, 50)); /* or targets are counted */
    c->input_count = trains ? 4 : 3;
    c->inputs[0] = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {rows, depth}, .only_dense = true};
    c->inputs[1] = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {classes, depth}};
    c->inputs[2] = (check_input){.fill = CHECK_INDEX,
                                 .dtype = AN_DTYPE_I32,
                                 .ndims = 1,
                                 .dims = {rows},
                                 .low = -1,
                                 .high = classes,
                                 .only_dense = true};
    c->inputs[3] = (check_input){.fill = trains ? CHECK_NORMAL : CHECK_ABSENT};
    if (check_chance(r, 50)) return;
    c->input_count = 5;
    c->inputs[4] = (check_input){.fill = CHECK_POSITIVE, .ndims = 1, .dims = {rows}, .only_dense = true};
}

static int64_t first_largest(const long double *logits, int64_t classes) {
    int64_t largest = 0;
    for (int64_t i = 1; i < classes; i++)
        if (logits[i] > logits[largest]) largest = i;
    return largest;
}

static void product_cross_entropy_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_cross_entropy_attributes *attributes = (const an_cross_entropy_attributes *)c->attributes;
    const int64_t rows = src[2].count, classes = src[1].dims[0], depth = src[1].dims[1];
    const long double smoothing = attributes->label_smoothing;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t label = (int64_t)src[2].data[row];
        const long double weight = c->input_count > 4 ? src[4].data[row] : 1;
        long double logits[MOST_CLASSES * 64], sum = 0; /* sizes may be enlarged */
        if (label == attributes->ignored) continue;
        for (int64_t i = 0; i < classes; i++) {
            logits[i] = 0;
            for (int64_t k = 0; k < depth; k++) logits[i] += src[0].data[row * depth + k] * src[1].data[i * depth + k];
            sum += expl(logits[i]);
        }
        const bool counts = c->output_count == 2 && c->inputs[3].fill == CHECK_ABSENT;
        if (counts) dst[1].data[0] += label == first_largest(logits, classes);
        for (int64_t i = 0; i < classes; i++) {
            const long double wanted = smoothing / (long double)classes + (i == label ? 1 - smoothing : 0);
            dst[0].data[0] -= weight * wanted * (logits[i] - logl(sum));
            if (c->output_count == 1 || counts) continue;
            const long double diff = weight * src[3].data[0] * (expl(logits[i]) / sum - wanted);
            for (int64_t k = 0; k < depth; k++) {
                dst[1].data[row * depth + k] += diff * src[1].data[i * depth + k];
                if (c->output_count > 2) dst[2].data[i * depth + k] += diff * src[0].data[row * depth + k];
            }
        }
    }
}

/* ---- product_cross_entropy_each ---- */

static void product_cross_entropy_each_make(check_random *r, check_case *c) {
    product_cross_entropy_make(r, c);
    c->input_count = 3;
    c->output_count = 1;
}

static void product_cross_entropy_each_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_cross_entropy_attributes *attributes = (const an_cross_entropy_attributes *)c->attributes;
    const int64_t classes = src[1].dims[0], depth = src[1].dims[1];
    const long double smoothing = attributes->label_smoothing;
    for (int64_t row = 0; row < src[2].count; row++) {
        const int64_t label = (int64_t)src[2].data[row];
        long double logits[MOST_CLASSES * 64], sum = 0; /* sizes may be enlarged */
        if (label == attributes->ignored) continue;
        for (int64_t i = 0; i < classes; i++) {
            logits[i] = 0;
            for (int64_t k = 0; k < depth; k++) logits[i] += src[0].data[row * depth + k] * src[1].data[i * depth + k];
            sum += expl(logits[i]);
        }
        for (int64_t i = 0; i < classes; i++)
            dst[0].data[row] -=
                (smoothing / (long double)classes + (i == label ? 1 - smoothing : 0)) * (logits[i] - logl(sum));
    }
}

const check_family check_fused[] = {
    {.op = "chain", .make = chain_make, .oracle = chain_oracle, .low_dtypes = LOW, .rows = 1 | 4, .no_grad_mode = true},
    {.op = "matmul_chain",
     .make = product_chain_make,
     .oracle = product_chain_oracle,
     .low_dtypes = LOW,
     .rows = 1 | 8,
     .no_grad_mode = true},
    /* in low precision it rounds the gradient of the logits, as the graph does */
    {.op = "matmul_cross_entropy",
     .make = product_cross_entropy_make,
     .oracle = product_cross_entropy_oracle,
     .rows = 1 | 4 | 16,
     .no_grad_mode = true},
    {.op = "matmul_cross_entropy_each",
     .make = product_cross_entropy_each_make,
     .oracle = product_cross_entropy_each_oracle,
     .rows = 1 | 4,
     .no_grad_mode = true},
    {0},
};

/* Cases of ops/norm.c. The oracles write out mean, variance and the gradient's formula row by row. */
#include <math.h>

#include "checkops/cases.h"
#include "kernels/norm/norm.h"
#include "kernels/norm/row_factors.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, MOST_ELEMENTS = 3000 };

/* 1 to 4 dimensions, the last of which is normalised. */
static void make_rows(check_random *r, check_input *input) {
    int64_t left = MOST_ELEMENTS;
    input->fill = CHECK_NORMAL;
    input->ndims = (int)check_between(r, 1, 4);
    for (int i = input->ndims - 1; i >= 0; i--) {
        input->dims[i] = check_size(r, i == input->ndims - 1 ? 300 : left < 20 ? left : 20);
        left = left / input->dims[i] > 0 ? left / input->dims[i] : 1;
    }
}

/* A weight or bias, in f32 as masters are or in the dtype under test. */
static check_input vector_for(check_random *r, const check_input *src) {
    return (check_input){
        .fill = CHECK_NORMAL,
        .ndims = 1,
        .dims = {src->dims[src->ndims - 1]},
        .compute_dtype = check_chance(r, 50),
    };
}

/* Few sums may all cancel, and then nothing is left to measure their error by: their terms are positive. */
enum { FEW = 8 };

static int64_t rows_of(const check_input *src) {
    int64_t rows = 1;
    for (int i = 0; i < src->ndims - 1; i++) rows *= src->dims[i];
    return rows;
}

static check_input statistic_for(const check_input *src, check_fill fill) {
    check_input statistic = *src;
    statistic.fill = fill;
    statistic.ndims--;
    statistic.compute_dtype = true;
    return statistic;
}

/* A row of equal elements has nothing but epsilon under the root, which then divides the mean's rounding error. */
static void make_epsilon(check_random *r, check_case *c) {
    static const double epsilons[] = {1e-2, 1e-1, 0.5};
    ((an_norm_attributes *)c->attributes)->epsilon = epsilons[check_between(r, 0, 2)];
}

static long double epsilon_of(const check_case *c) {
    return ((const an_norm_attributes *)c->attributes)->epsilon;
}

/* ---- forward ---- */

static void layer_norm_make(check_random *r, check_case *c) {
    c->input_count = check_chance(r, 30) ? 2 : 3;
    make_rows(r, &c->inputs[0]);
    if (rows_of(&c->inputs[0]) < FEW) c->inputs[0].fill = CHECK_POSITIVE;
    c->inputs[1] = vector_for(r, &c->inputs[0]);
    if (c->input_count == 3) c->inputs[2] = vector_for(r, &c->inputs[0]);
    c->no_gradient_outputs = 1 << 1 | 1 << 2;
    make_epsilon(r, c);
}

static void layer_norm_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t width = src[1].count;
    for (int64_t row = 0; row < src[0].count / width; row++) {
        const long double *x = src[0].data + row * width;
        long double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; i++) mean += x[i] / (long double)width;
        for (int64_t i = 0; i < width; i++) variance += powl(x[i] - mean, 2) / (long double)width;
        dst[1].data[row] = mean;
        dst[2].data[row] = powl(variance + epsilon_of(c), -0.5L);
        for (int64_t i = 0; i < width; i++)
            dst[0].data[row * width + i] = (x[i] - mean) / sqrtl(variance + epsilon_of(c)) * src[1].data[i] +
                                           (c->input_count > 2 ? src[2].data[i] : 0);
    }
}

static void rms_norm_make(check_random *r, check_case *c) {
    c->input_count = 2;
    make_rows(r, &c->inputs[0]);
    c->inputs[1] = vector_for(r, &c->inputs[0]);
    c->no_gradient_outputs = 1 << 1;
    make_epsilon(r, c);
}

static void rms_norm_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t width = src[1].count;
    for (int64_t row = 0; row < src[0].count / width; row++) {
        const long double *x = src[0].data + row * width;
        long double squares = 0;
        for (int64_t i = 0; i < width; i++) squares += x[i] * x[i] / (long double)width;
        dst[1].data[row] = powl(squares + epsilon_of(c), -0.5L);
        for (int64_t i = 0; i < width; i++)
            dst[0].data[row * width + i] = x[i] / sqrtl(squares + epsilon_of(c)) * src[1].data[i];
    }
}

/* ---- diff_src ---- Statistics are inputs like others: the formula holds whatever they are. */

static void layer_norm_diff_src_make(check_random *r, check_case *c) {
    c->input_count = 5;
    make_rows(r, &c->inputs[0]);
    c->inputs[1] = c->inputs[0];
    c->inputs[2] = vector_for(r, &c->inputs[0]);
    c->inputs[3] = statistic_for(&c->inputs[0], CHECK_NORMAL);
    c->inputs[4] = statistic_for(&c->inputs[0], CHECK_POSITIVE);
}

static void layer_norm_diff_src_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t width = src[2].count;
    (void)c;
    for (int64_t row = 0; row < src[0].count / width; row++) {
        const long double mean = src[3].data[row], inverse = src[4].data[row];
        for (int64_t i = 0; i < width; i++) {
            const int64_t at = row * width + i;
            long double total = src[0].data[at] * src[2].data[i];
            for (int64_t k = 0; k < width; k++) { /* every element moves the mean and the variance */
                const long double d = src[0].data[row * width + k] * src[2].data[k];
                const long double y = (src[1].data[row * width + k] - mean) * inverse;
                total -= d * (1 + y * (src[1].data[at] - mean) * inverse) / (long double)width;
            }
            dst[0].data[at] = total * inverse;
        }
    }
}

static void rms_norm_diff_src_make(check_random *r, check_case *c) {
    c->input_count = 4;
    make_rows(r, &c->inputs[0]);
    c->inputs[1] = c->inputs[0];
    c->inputs[2] = vector_for(r, &c->inputs[0]);
    c->inputs[3] = statistic_for(&c->inputs[0], CHECK_POSITIVE);
}

static void rms_norm_diff_src_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t width = src[2].count;
    (void)c;
    for (int64_t row = 0; row < src[0].count / width; row++) {
        const long double inverse = src[3].data[row];
        for (int64_t i = 0; i < width; i++) {
            const int64_t at = row * width + i;
            long double total = src[0].data[at] * src[2].data[i] * inverse;
            for (int64_t k = 0; k < width; k++)
                total -= src[0].data[row * width + k] * src[2].data[k] * src[1].data[row * width + k] *
                         src[1].data[at] * powl(inverse, 3) / (long double)width;
            dst[0].data[at] = total;
        }
    }
}

/* ---- diff_weights ---- */

/* diff_dst and src, with many rows at times, so that they are cut into chunks. */
static void make_many_rows(check_random *r, check_case *c) {
    check_input *input = &c->inputs[0];
    make_rows(r, input);
    if (check_chance(r, 30)) {
        input->ndims = 2;
        input->dims[0] = check_between(r, 60, 300);
        input->dims[1] = check_size(r, 10);
    }
    if (input->dims[input->ndims - 1] < FEW) input->fill = CHECK_POSITIVE;
    c->inputs[1] = *input;
}

static void layer_norm_diff_weights_make(check_random *r, check_case *c) {
    c->input_count = 4;
    make_many_rows(r, c);
    c->inputs[2] = statistic_for(&c->inputs[0], c->inputs[0].fill == CHECK_POSITIVE ? CHECK_NUMBER : CHECK_NORMAL);
    c->inputs[3] = statistic_for(&c->inputs[0], CHECK_POSITIVE);
}

static void layer_norm_diff_weights_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t width = dst[0].count;
    (void)c;
    for (int64_t i = 0; i < src[0].count; i++) {
        const int64_t row = i / width;
        dst[0].data[i % width] += src[0].data[i] * (src[1].data[i] - src[2].data[row]) * src[3].data[row];
        dst[1].data[i % width] += src[0].data[i];
    }
}

static void rms_norm_diff_weights_make(check_random *r, check_case *c) {
    c->input_count = 3;
    make_many_rows(r, c);
    c->inputs[2] = statistic_for(&c->inputs[0], CHECK_POSITIVE);
}

static void rms_norm_diff_weights_oracle(const check_case *c, const check_array *src, check_array *dst) {
    (void)c;
    for (int64_t i = 0; i < src[0].count; i++)
        dst[0].data[i % dst[0].count] += src[0].data[i] * src[1].data[i] * src[2].data[i / dst[0].count];
}

/* ---- row_factors ---- */

static void row_factors_make(check_random *r, check_case *c) {
    const int64_t rank = check_between(r, 1, 9), columns = check_size(r, check_chance(r, 20) ? 1500 : 100);
    const int64_t rows = check_size(r, columns > 100 ? 2 : MOST_ELEMENTS / columns > 0 ? MOST_ELEMENTS / columns : 1);
    c->input_count = 4;
    c->inputs[0] = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {rows, columns}, .no_gradient = true};
    c->inputs[1] = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {rank, columns}, .no_gradient = true};
    c->inputs[2] = (check_input){.fill = CHECK_NORMAL, .ndims = 2, .dims = {rows, rank}, .no_gradient = true};
    c->inputs[3] =
        (check_input){.fill = CHECK_NORMAL, .ndims = 1, .dims = {rows}, .compute_dtype = check_chance(r, 50)};
    if (columns < FEW) /* what the change adds may take away all that was there */
        c->inputs[0].fill = c->inputs[1].fill = c->inputs[2].fill = CHECK_POSITIVE;
    c->no_gradient_outputs = 1 << 1;
    ((an_row_factors_attributes *)c->attributes)->scale = check_chance(r, 50) ? 0.5 : 2;
}

static void row_factors_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const long double scale = ((const an_row_factors_attributes *)c->attributes)->scale;
    const int64_t columns = src[0].dims[1], rank = src[1].dims[0];
    for (int64_t row = 0; row < src[0].dims[0]; row++) {
        long double squares = 0;
        for (int64_t k = 0; k < columns; k++) {
            long double change = 0;
            for (int64_t i = 0; i < rank; i++) change += src[2].data[row * rank + i] * src[1].data[i * columns + k];
            squares += powl(src[0].data[row * columns + k] + scale * change, 2);
        }
        dst[0].data[row] = src[3].data[row] / sqrtl(squares);
        dst[1].data[row] = sqrtl(squares);
    }
}

const check_family check_norm[] = {
    {.op = "layer_norm", .make = layer_norm_make, .oracle = layer_norm_oracle, .low_dtypes = LOW, .rows = 1},
    {.op = "layer_norm_diff_src",
     .make = layer_norm_diff_src_make,
     .oracle = layer_norm_diff_src_oracle,
     .low_dtypes = LOW,
     .rows = 1 | 2 | 8 | 16,
     .no_grad_mode = true},
    {.op = "layer_norm_diff_weights",
     .make = layer_norm_diff_weights_make,
     .oracle = layer_norm_diff_weights_oracle,
     .low_dtypes = LOW,
     .no_grad_mode = true},
    {.op = "rms_norm", .make = rms_norm_make, .oracle = rms_norm_oracle, .low_dtypes = LOW, .rows = 1},
    {.op = "rms_norm_diff_src",
     .make = rms_norm_diff_src_make,
     .oracle = rms_norm_diff_src_oracle,
     .low_dtypes = LOW,
     .rows = 1 | 2 | 8,
     .no_grad_mode = true},
    {.op = "rms_norm_diff_weights",
     .make = rms_norm_diff_weights_make,
     .oracle = rms_norm_diff_weights_oracle,
     .low_dtypes = LOW,
     .no_grad_mode = true},
    {.op = "row_factors", .make = row_factors_make, .oracle = row_factors_oracle, .low_dtypes = LOW},
    {0},
};

/* Cases of ops/batch_norm.c. The oracles go over all elements for every channel. */
#include <math.h>

#include "checkops/cases.h"
#include "kernels/norm/batch_norm.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, MOST_ELEMENTS = 4000 };

/* Few sums may all cancel, and then nothing is left to measure their error by: their terms are positive. */
enum { FEW = 8 };

/* (batch, channels) with up to three more dimensions. */
static void make_src(check_random *r, check_input *input) {
    int64_t left = MOST_ELEMENTS;
    input->fill = CHECK_NORMAL;
    input->ndims = (int)check_between(r, 2, 5);
    for (int i = 0; i < input->ndims; i++) {
        const int64_t maximum = input->ndims == 2 ? 80 : 12;
        input->dims[i] = check_size(r, left < maximum ? left : maximum);
        left = left / input->dims[i] > 0 ? left / input->dims[i] : 1;
    }
    if (input->dims[1] < FEW) input->fill = CHECK_POSITIVE;
}

/* Weight and bias in f32 as masters are, or in the dtype under test. */
static check_input channels_for(check_random *r, const check_input *src, check_fill fill) {
    return (check_input){.fill = fill, .ndims = 1, .dims = {src->dims[1]}, .compute_dtype = check_chance(r, 50)};
}

static check_input statistic_for(const check_input *src, check_fill fill) {
    return (check_input){.fill = fill, .ndims = 1, .dims = {src->dims[1]}, .compute_dtype = true, .no_gradient = true};
}

static int64_t channel_of(const check_array *src, int64_t element) {
    for (int i = src->ndims - 1; i > 1; i--) element /= src->dims[i];
    return element % src->dims[1];
}

/* ---- by the batch's statistics ---- */

/* Channels of equal elements have nothing but epsilon under the root, which then divides the mean's rounding error. */
static double make_epsilon(check_random *r) {
    static const double epsilons[] = {1e-2, 1e-1, 0.5};
    return epsilons[check_between(r, 0, 2)];
}

static void batch_norm_make(check_random *r, check_case *c) {
    an_batch_norm_attributes *attributes = (an_batch_norm_attributes *)c->attributes;
    c->input_count = 5;
    make_src(r, &c->inputs[0]);
    c->inputs[1] = channels_for(r, &c->inputs[0], CHECK_NORMAL);
    c->inputs[2] = channels_for(r, &c->inputs[0], CHECK_NORMAL);
    c->inputs[3] = statistic_for(&c->inputs[0], CHECK_NORMAL);
    c->inputs[4] = statistic_for(&c->inputs[0], CHECK_POSITIVE);
    c->no_gradient_outputs = 1 << 1 | 1 << 2 | 1 << 3;
    attributes->momentum = 0.1;
    attributes->epsilon = make_epsilon(r);
}

static void batch_norm_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const long double epsilon = ((const an_batch_norm_attributes *)c->attributes)->epsilon;
    const int64_t channels = src[0].dims[1], count = src[0].count / channels;
    for (int64_t channel = 0; channel < channels; channel++) {
        long double mean = 0, squares = 0;
        for (int64_t i = 0; i < src[0].count; i++)
            if (channel_of(&src[0], i) == channel) mean += src[0].data[i] / (long double)count;
        for (int64_t i = 0; i < src[0].count; i++)
            if (channel_of(&src[0], i) == channel) squares += powl(src[0].data[i] - mean, 2);
        const long double deviation = sqrtl(squares / (long double)count + epsilon);
        for (int64_t i = 0; i < src[0].count; i++)
            if (channel_of(&src[0], i) == channel)
                dst[0].data[i] = (src[0].data[i] - mean) / deviation * src[1].data[channel] + src[2].data[channel];
        dst[1].data[channel] = mean;
        dst[2].data[channel] = count > 1 ? squares / (long double)(count - 1) : 0;
        dst[3].data[channel] = 1 / deviation;
    }
}

/* Of both gradient ops: (diff_dst, src, weight, mean, inverse or variance). */
static void diff_make(check_random *r, check_case *c) {
    c->input_count = 5;
    make_src(r, &c->inputs[0]);
    c->inputs[1] = c->inputs[0];
    c->inputs[2] = channels_for(r, &c->inputs[0], CHECK_NORMAL);
    c->inputs[3] = statistic_for(&c->inputs[0], c->inputs[0].fill == CHECK_POSITIVE ? CHECK_NUMBER : CHECK_NORMAL);
    c->inputs[4] = statistic_for(&c->inputs[0], CHECK_POSITIVE);
}

static void batch_norm_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t elements = src[0].count / src[0].dims[1];
    const long double count = (long double)elements;
    (void)c;
    for (int64_t i = 0; i < src[0].count; i++) {
        const int64_t channel = channel_of(&src[0], i);
        dst[1].data[channel] += src[0].data[i] * (src[1].data[i] - src[3].data[channel]) * src[4].data[channel];
        dst[2].data[channel] += src[0].data[i];
    }
    for (int64_t i = 0; i < src[0].count; i++) {
        const int64_t channel = channel_of(&src[0], i);
        const long double inverse = src[4].data[channel], y = (src[1].data[i] - src[3].data[channel]) * inverse;
        dst[0].data[i] = (count * src[0].data[i] - dst[2].data[channel] - y * dst[1].data[channel]) / count *
                         src[2].data[channel] * inverse;
    }
}

/* ---- by fixed statistics ---- */

static void batch_norm_fixed_make(check_random *r, check_case *c) {
    batch_norm_make(r, c);
    c->no_gradient_outputs = 0;
    ((an_batch_norm_fixed_attributes *)c->attributes)->epsilon = make_epsilon(r);
}

static void batch_norm_fixed_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const long double epsilon = ((const an_batch_norm_fixed_attributes *)c->attributes)->epsilon;
    for (int64_t i = 0; i < src[0].count; i++) {
        const int64_t channel = channel_of(&src[0], i);
        dst[0].data[i] =
            (src[0].data[i] - src[3].data[channel]) / sqrtl(src[4].data[channel] + epsilon) * src[1].data[channel] +
            src[2].data[channel];
    }
}

static void batch_norm_fixed_diff_make(check_random *r, check_case *c) {
    diff_make(r, c);
    ((an_batch_norm_fixed_attributes *)c->attributes)->epsilon = make_epsilon(r);
}

static void batch_norm_fixed_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const long double epsilon = ((const an_batch_norm_fixed_attributes *)c->attributes)->epsilon;
    for (int64_t i = 0; i < src[0].count; i++) {
        const int64_t channel = channel_of(&src[0], i);
        const long double deviation = sqrtl(src[4].data[channel] + epsilon);
        dst[0].data[i] = src[0].data[i] * src[2].data[channel] / deviation;
        dst[1].data[channel] += src[0].data[i] * (src[1].data[i] - src[3].data[channel]) / deviation;
        dst[2].data[channel] += src[0].data[i];
    }
}

const check_family check_batch_norm[] = {
    {.op = "batch_norm", .make = batch_norm_make, .oracle = batch_norm_oracle, .low_dtypes = LOW},
    {.op = "batch_norm_diff",
     .make = diff_make,
     .oracle = batch_norm_diff_oracle,
     .low_dtypes = LOW,
     .no_grad_mode = true},
    {.op = "batch_norm_fixed",
     .make = batch_norm_fixed_make,
     .oracle = batch_norm_fixed_oracle,
     .low_dtypes = LOW,
     .rows = 1},
    {.op = "batch_norm_fixed_diff",
     .make = batch_norm_fixed_diff_make,
     .oracle = batch_norm_fixed_diff_oracle,
     .low_dtypes = LOW,
     .rows = 1 | 2,
     .no_grad_mode = true},
    {0},
};

/* Cases of ops/reduce.c. The oracles go over the elements of src and ask for each where it belongs. */
#include <math.h>
#include <stdlib.h>

#include "checkops/cases.h"
#include "kernels/reduce/reduce.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, MOST_ELEMENTS = 5000, MOST_DIMS = 4 };

/* ---- shapes ---- */

static bool is_reduced(const an_reduce_attributes *attributes, int axis) {
    for (int i = 0; i < attributes->axes.count; i++)
        if (attributes->axes.values[i] == axis) return true;
    return false;
}

/* src and the axes; now and then so long that a sum has several chunks. */
static void make_src(check_random *r, check_fill fill, an_reduce_attributes *attributes, check_input *src) {
    int64_t left = MOST_ELEMENTS;
    int longest = -1;
    *src = (check_input){.fill = fill, .ndims = (int)check_between(r, 0, MOST_DIMS)};
    if (src->ndims > 0 && check_chance(r, 40)) {
        longest = (int)check_between(r, 0, src->ndims - 1);
        left /= src->dims[longest] = check_between(r, 250, 1100) * check_between(r, 1, 4);
    }
    for (int i = 0; i < src->ndims; i++) {
        if (i != longest) left /= src->dims[i] = check_size(r, left);
        if (i == longest || check_chance(r, 50)) attributes->axes.values[attributes->axes.count++] = i;
    }
    attributes->keep = check_chance(r, 50);
}

static check_input reduced(const check_input *src, const an_reduce_attributes *attributes, bool keep) {
    check_input dst = {.fill = src->fill};
    for (int i = 0; i < src->ndims; i++)
        if (keep || !is_reduced(attributes, i)) dst.dims[dst.ndims++] = is_reduced(attributes, i) ? 1 : src->dims[i];
    return dst;
}

/* The element of dst that element `index` of src belongs to. */
static int64_t place_of(const check_array *src, const an_reduce_attributes *attributes, int64_t index) {
    int64_t place = 0, stride = 1;
    for (int i = src->ndims - 1; i >= 0; i--) {
        int64_t at = index % src->dims[i];
        index /= src->dims[i];
        if (is_reduced(attributes, i)) continue;
        place += at * stride;
        stride *= src->dims[i];
    }
    return place;
}

/* ---- sum, mean, maximum ---- */

/* Few sums of numbers of both signs could all be near 0, with nothing to compare their error to. */
static void make_sum(check_random *r, check_case *c) {
    enum { FEW = 16 };
    int64_t sums = 1;
    c->input_count = 1;
    make_src(r, CHECK_NORMAL, (an_reduce_attributes *)c->attributes, &c->inputs[0]);
    check_input dst = reduced(&c->inputs[0], (const an_reduce_attributes *)c->attributes, true);
    for (int i = 0; i < dst.ndims; i++) sums *= dst.dims[i];
    if (sums < FEW) c->inputs[0].fill = CHECK_POSITIVE;
}

static void reduce_sum_make(check_random *r, check_case *c) {
    make_sum(r, c);
    if (check_chance(r, 30)) {
        ((an_reduce_attributes *)c->attributes)->dtype = AN_DTYPE_F32;
        c->inputs[0].no_gradient = true; /* through f32, differences say nothing */
    }
}

static void make_max(check_random *r, check_case *c) {
    c->input_count = 1;
    make_src(r, CHECK_APART, (an_reduce_attributes *)c->attributes, &c->inputs[0]);
}

static void reduce_sum_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_reduce_attributes *attributes = (const an_reduce_attributes *)c->attributes;
    for (int64_t i = 0; i < src[0].count; i++) dst[0].data[place_of(&src[0], attributes, i)] += src[0].data[i];
}

static void reduce_mean_oracle(const check_case *c, const check_array *src, check_array *dst) {
    reduce_sum_oracle(c, src, dst);
    for (int64_t i = 0; i < dst[0].count; i++) dst[0].data[i] *= (long double)dst[0].count / (long double)src[0].count;
}

static void reduce_max_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_reduce_attributes *attributes = (const an_reduce_attributes *)c->attributes;
    for (int64_t i = 0; i < dst[0].count; i++) dst[0].data[i] = -INFINITY;
    for (int64_t i = 0; i < src[0].count; i++) {
        long double *largest = &dst[0].data[place_of(&src[0], attributes, i)];
        *largest = fmaxl(*largest, src[0].data[i]);
    }
}

/* ---- gradients ---- */

static void reduce_mean_diff_make(check_random *r, check_case *c) {
    an_reduce_mean_diff_attributes *attributes = (an_reduce_mean_diff_attributes *)c->attributes;
    an_reduce_attributes axes = {0};
    check_input src;
    make_src(r, CHECK_NORMAL, &axes, &src);
    c->input_count = 1;
    c->inputs[0] = reduced(&src, &axes, true);
    attributes->dims.count = src.ndims;
    for (int i = 0; i < src.ndims; i++) attributes->dims.values[i] = src.dims[i];
}

static void reduce_mean_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    an_reduce_attributes axes = {0};
    (void)c;
    for (int i = 0; i < dst[0].ndims; i++) /* an axis of size 1 may be called reduced */
        if (src[0].dims[i] == 1) axes.axes.values[axes.axes.count++] = i;
    for (int64_t i = 0; i < dst[0].count; i++)
        dst[0].data[i] =
            src[0].data[place_of(&dst[0], &axes, i)] * (long double)src[0].count / (long double)dst[0].count;
}

/* dst need not be the maximum: what is equal to it shares. Whole numbers are often equal. */
static void reduce_max_diff_make(check_random *r, check_case *c) {
    an_reduce_attributes *attributes = (an_reduce_attributes *)c->attributes;
    c->input_count = 3;
    make_src(r, CHECK_INDEX, attributes, &c->inputs[1]);
    c->inputs[1].low = -3;
    c->inputs[1].high = 4;
    c->inputs[0] = reduced(&c->inputs[1], attributes, attributes->keep);
    c->inputs[0].fill = CHECK_NORMAL;
    c->inputs[2] = c->inputs[0];
    c->inputs[2].fill = CHECK_INDEX;
    c->inputs[2].low = -3;
    c->inputs[2].high = 4;
}

static void reduce_max_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_reduce_attributes *attributes = (const an_reduce_attributes *)c->attributes;
    long double *ties = calloc((size_t)src[2].count, sizeof *ties);
    for (int turn = 0; ties && turn < 2; turn++) /* first they are counted, then they share */
        for (int64_t i = 0; i < dst[0].count; i++) {
            int64_t place = place_of(&src[1], attributes, i);
            if (src[1].data[i] != src[2].data[place]) continue;
            if (turn == 0) ties[place]++;
            dst[0].data[i] = src[0].data[place] / ties[place];
        }
    free(ties);
}

const check_family check_reduce[] = {
    {.op = "reduce_sum", reduce_sum_make, reduce_sum_oracle, LOW, .rows = 1},
    {.op = "reduce_mean", make_sum, reduce_mean_oracle, LOW, .rows = 1},
    {.op = "reduce_mean_diff", reduce_mean_diff_make, reduce_mean_diff_oracle, LOW, .rows = 1, .no_grad_mode = true},
    {.op = "reduce_max", make_max, reduce_max_oracle, LOW, .rows = 1},
    {.op = "reduce_max_diff",
     reduce_max_diff_make,
     reduce_max_diff_oracle,
     LOW,
     .rows = 1 | 2 | 4,
     .no_grad_mode = true},
    {0},
};

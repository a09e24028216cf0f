/* Cases of ops/pool.c. The oracles go over windows with their padding, element by element. */
#include <math.h>
#include <string.h>

#include "checkops/cases.h"
#include "kernels/pool/pool.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, DIMS = 4 };

/* Attributes, and the shapes of src and dst. */
static void make_shapes(check_random *r, an_pool_attributes *a, int64_t *src, int64_t *dst) {
    a->window.count = a->stride.count = a->padding.count = 2;
    for (int i = 0; i < 2; i++) dst[i] = src[i] = check_size(r, 4);
    for (int i = 0; i < 2; i++) {
        int64_t window = check_between(r, 1, 4), padding = check_between(r, 0, window / 2);
        int64_t stride = check_between(r, 1, 4); /* windows overlap, touch or leave gaps */
        int64_t minimum = window - 2 * padding;
        a->window.values[i] = window;
        a->stride.values[i] = stride;
        a->padding.values[i] = padding;
        src[2 + i] = (minimum < 1 ? 0 : minimum - 1) + check_size(r, 12);
        dst[2 + i] = (src[2 + i] - minimum) / stride + 1;
    }
}

static void set_input(check_case *c, int i, check_fill fill, const int64_t *dims) {
    c->inputs[i].fill = fill;
    c->inputs[i].ndims = DIMS;
    memcpy(c->inputs[i].dims, dims, DIMS * sizeof *dims);
}

static void max_pool_make(check_random *r, check_case *c) {
    int64_t src[DIMS], dst[DIMS];
    make_shapes(r, (an_pool_attributes *)c->attributes, src, dst);
    c->input_count = 1;
    set_input(c, 0, CHECK_APART, src);
}

static void max_pool_diff_make(check_random *r, check_case *c) {
    int64_t src[DIMS], dst[DIMS];
    make_shapes(r, (an_pool_attributes *)c->attributes, src, dst);
    c->input_count = 2;
    set_input(c, 0, CHECK_NORMAL, dst);
    set_input(c, 1, CHECK_NORMAL, src);
    if (check_chance(r, 40)) { /* few values, so many ties */
        c->inputs[1].fill = CHECK_INDEX;
        c->inputs[1].low = -1;
        c->inputs[1].high = 2;
    }
}

static void average_pool_make(check_random *r, check_case *c) {
    an_pool_attributes *a = (an_pool_attributes *)c->attributes;
    int64_t src[DIMS], dst[DIMS];
    make_shapes(r, a, src, dst);
    a->exclude_padding = check_chance(r, 50);
    c->input_count = 1;
    set_input(c, 0, CHECK_NORMAL, src);
}

static void average_pool_diff_make(check_random *r, check_case *c) {
    an_pool_attributes *a = (an_pool_attributes *)c->attributes;
    int64_t src[DIMS], dst[DIMS];
    make_shapes(r, a, src, dst);
    a->exclude_padding = check_chance(r, 50);
    c->input_count = 1;
    set_input(c, 0, CHECK_NORMAL, dst);
    a->dims.count = DIMS;
    memcpy(a->dims.values, src, sizeof src);
}

/* Element k of the window of output i (both counted in C order), as an element of the image; -1 in the padding. */
static int64_t pixel(const an_pool_attributes *a, const check_array *image, const check_array *pooled, int64_t i,
                     int64_t k) {
    int64_t width = pooled->dims[3], height = pooled->dims[2], plane = i / width / height;
    int64_t y = i / width % height * a->stride.values[0] - a->padding.values[0] + k / a->window.values[1];
    int64_t x = i % width * a->stride.values[1] - a->padding.values[1] + k % a->window.values[1];
    bool inside = y >= 0 && y < image->dims[2] && x >= 0 && x < image->dims[3];
    return inside ? (plane * image->dims[2] + y) * image->dims[3] + x : -1;
}

static int64_t window_elements(const an_pool_attributes *a) {
    return a->window.values[0] * a->window.values[1];
}

static int64_t first_maximum(const an_pool_attributes *a, const check_array *image, const check_array *pooled,
                             int64_t i) {
    long double maximum = -INFINITY;
    int64_t at = -1;
    for (int64_t k = 0; k < window_elements(a); k++) {
        int64_t p = pixel(a, image, pooled, i, k);
        if (p < 0 || image->data[p] <= maximum) continue;
        maximum = image->data[p];
        at = p;
    }
    return at;
}

static int64_t divisor(const an_pool_attributes *a, const check_array *image, const check_array *pooled, int64_t i) {
    int64_t inside = 0;
    for (int64_t k = 0; k < window_elements(a); k++) inside += pixel(a, image, pooled, i, k) >= 0;
    return a->exclude_padding ? inside : window_elements(a);
}

static void max_pool_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_pool_attributes *a = (const an_pool_attributes *)c->attributes;
    for (int64_t i = 0; i < dst->count; i++) dst->data[i] = src->data[first_maximum(a, src, dst, i)];
}

static void max_pool_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_pool_attributes *a = (const an_pool_attributes *)c->attributes;
    for (int64_t i = 0; i < src[0].count; i++) dst->data[first_maximum(a, &src[1], &src[0], i)] += src[0].data[i];
}

static void average_pool_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_pool_attributes *a = (const an_pool_attributes *)c->attributes;
    for (int64_t i = 0; i < dst->count; i++)
        for (int64_t k = 0; k < window_elements(a); k++) {
            int64_t p = pixel(a, src, dst, i, k);
            if (p >= 0) dst->data[i] += src->data[p] / (long double)divisor(a, src, dst, i);
        }
}

static void average_pool_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_pool_attributes *a = (const an_pool_attributes *)c->attributes;
    for (int64_t i = 0; i < src->count; i++)
        for (int64_t k = 0; k < window_elements(a); k++) {
            int64_t p = pixel(a, dst, src, i, k);
            if (p >= 0) dst->data[p] += src->data[i] / (long double)divisor(a, dst, src, i);
        }
}

const check_family check_pool[] = {
    {.op = "max_pool", .make = max_pool_make, .oracle = max_pool_oracle, .low_dtypes = LOW, .rows = 1, .exact = true},
    {.op = "max_pool_diff",
     .make = max_pool_diff_make,
     .oracle = max_pool_diff_oracle,
     .low_dtypes = LOW,
     .rows = 1 | 2,
     .no_grad_mode = true},
    {.op = "average_pool", .make = average_pool_make, .oracle = average_pool_oracle, .low_dtypes = LOW, .rows = 1},
    {.op = "average_pool_diff",
     .make = average_pool_diff_make,
     .oracle = average_pool_diff_oracle,
     .low_dtypes = LOW,
     .rows = 1,
     .no_grad_mode = true},
    {0},
};

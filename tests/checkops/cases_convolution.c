/* Cases of ops/convolution.c. All three oracles walk the same loop over (element of dst, weight that it meets, pixel
 * that they meet on) and differ in which of the three they add to. */
#include <string.h>

#include "checkops/cases.h"
#include "kernels/convolution/convolution.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, DIMS = 4 };

typedef struct {
    int64_t src[DIMS], weights[DIMS], dst[DIMS];
} shapes;

static an_int_list make_pair(check_random *r, int64_t low, int64_t high) {
    return (an_int_list){2, {check_between(r, low, high), check_between(r, low, high)}};
}

static shapes make_shapes(check_random *r, an_convolution_attributes *attributes) {
    int64_t groups = check_chance(r, 60) ? 1 : check_between(r, 2, 3);
    int64_t channels = check_between(r, 1, 4), filters = check_between(r, 1, 5);
    shapes s = {.src = {check_size(r, 3), channels * groups}, .weights = {filters * groups, channels}};
    attributes->groups = groups;
    attributes->stride = make_pair(r, 1, check_chance(r, 50) ? 1 : 3);
    attributes->padding = make_pair(r, 0, 3);
    attributes->dilation = make_pair(r, 1, check_chance(r, 70) ? 1 : 4);
    s.dst[0] = s.src[0];
    s.dst[1] = s.weights[0];
    for (int i = 0; i < 2; i++) {
        s.weights[2 + i] = check_between(r, 1, 5);
        int64_t window = (s.weights[2 + i] - 1) * attributes->dilation.values[i] + 1;
        int64_t minimum = window - 2 * attributes->padding.values[i]; /* for the window to stand once */
        s.src[2 + i] = (minimum < 1 ? 0 : minimum - 1) + check_size(r, 9);
        s.dst[2 + i] = (s.src[2 + i] - minimum) / attributes->stride.values[i] + 1;
    }
    return s;
}

static void set_input(check_case *c, int i, const int64_t *dims) {
    c->inputs[i].fill = CHECK_NORMAL;
    c->inputs[i].ndims = DIMS;
    memcpy(c->inputs[i].dims, dims, DIMS * sizeof *dims);
}

static void set_dims(an_convolution_attributes *attributes, const int64_t *dims) {
    attributes->dims.count = DIMS;
    memcpy(attributes->dims.values, dims, DIMS * sizeof *dims);
}

static void convolution_make(check_random *r, check_case *c) {
    an_convolution_attributes *attributes = (an_convolution_attributes *)c->attributes;
    shapes s = make_shapes(r, attributes);
    if (check_chance(r, 10)) attributes->dtype = AN_DTYPE_F64;
    c->input_count = 2;
    set_input(c, 0, s.src);
    set_input(c, 1, s.weights);
}

static void diff_src_make(check_random *r, check_case *c) {
    an_convolution_attributes *attributes = (an_convolution_attributes *)c->attributes;
    shapes s = make_shapes(r, attributes);
    if (check_chance(r, 10)) attributes->dtype = AN_DTYPE_F64;
    c->input_count = 2;
    set_input(c, 0, s.dst);
    set_input(c, 1, s.weights);
    set_dims(attributes, s.src);
}

static void diff_weights_make(check_random *r, check_case *c) {
    an_convolution_attributes *attributes = (an_convolution_attributes *)c->attributes;
    shapes s = make_shapes(r, attributes);
    c->input_count = 2;
    set_input(c, 0, s.dst);
    set_input(c, 1, s.src);
    set_dims(attributes, s.weights);
}

static long double *element(const check_array *a, int64_t i, int64_t j, int64_t y, int64_t x) {
    return &a->data[((i * a->dims[1] + j) * a->dims[2] + y) * a->dims[3] + x];
}

typedef void meeting(long double *src, long double *weight, long double *dst);

static void meet_dst(long double *src, long double *weight, long double *dst) {
    *dst += *src * *weight;
}
static void meet_src(long double *src, long double *weight, long double *dst) {
    *src += *dst * *weight;
}
static void meet_weight(long double *src, long double *weight, long double *dst) {
    *weight += *dst * *src;
}

/* Everything that weight (filter, channel, ky, kx) meets. */
static void weight_meets(const an_convolution_attributes *a, const check_array *src, const check_array *dst,
                         int64_t filter, int64_t channel, int64_t ky, int64_t kx, long double *weight, meeting *meet) {
    int64_t group = filter / (dst->dims[1] / a->groups);
    for (int64_t b = 0; b < dst->dims[0]; b++)
        for (int64_t i = 0; i < dst->dims[2]; i++)
            for (int64_t j = 0; j < dst->dims[3]; j++) {
                int64_t y = i * a->stride.values[0] - a->padding.values[0] + ky * a->dilation.values[0];
                int64_t x = j * a->stride.values[1] - a->padding.values[1] + kx * a->dilation.values[1];
                if (y >= 0 && y < src->dims[2] && x >= 0 && x < src->dims[3])
                    meet(element(src, b, group * (src->dims[1] / a->groups) + channel, y, x), weight,
                         element(dst, b, filter, i, j));
            }
}

static void walk(const check_case *c, const check_array *src, const check_array *weights, const check_array *dst,
                 meeting *meet) {
    const an_convolution_attributes *a = (const an_convolution_attributes *)c->attributes;
    for (int64_t f = 0; f < weights->dims[0]; f++)
        for (int64_t channel = 0; channel < weights->dims[1]; channel++)
            for (int64_t y = 0; y < weights->dims[2]; y++)
                for (int64_t x = 0; x < weights->dims[3]; x++)
                    weight_meets(a, src, dst, f, channel, y, x, element(weights, f, channel, y, x), meet);
}

static void convolution_oracle(const check_case *c, const check_array *src, check_array *dst) {
    walk(c, &src[0], &src[1], &dst[0], meet_dst);
}
static void diff_src_oracle(const check_case *c, const check_array *src, check_array *dst) {
    walk(c, &dst[0], &src[1], &src[0], meet_src);
}
static void diff_weights_oracle(const check_case *c, const check_array *src, check_array *dst) {
    walk(c, &src[1], &dst[0], &src[0], meet_weight);
}

const check_family check_convolution[] = {
    {.op = "convolution", .make = convolution_make, .oracle = convolution_oracle, .low_dtypes = LOW, .rows = 1},
    {.op = "convolution_diff_src",
     .make = diff_src_make,
     .oracle = diff_src_oracle,
     .low_dtypes = LOW,
     .rows = 1,
     .no_grad_mode = true},
    {.op = "convolution_diff_weights",
     .make = diff_weights_make,
     .oracle = diff_weights_oracle,
     .low_dtypes = LOW,
     .no_grad_mode = true},
    {0},
};

/* Cases of ops/loss.c. */
#include <math.h>
#include <string.h>

#include "checkops/cases.h"
#include "kernels/loss/loss.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, MOST_ELEMENTS = 3000, MOST_DIMS = 3 };

/* ---- weights ---- */

/* Input `at`, half of the time: weights with the first dimensions of input `targets`. */
static void make_weights(check_random *r, check_case *c, int at, int targets) {
    c->input_count = at;
    if (check_chance(r, 50)) return;
    c->inputs[at] = c->inputs[targets];
    c->inputs[at].fill = CHECK_POSITIVE;
    c->inputs[at].dtype = AN_DTYPE_NONE;
    c->inputs[at].compute_dtype = true;
    c->inputs[at].no_gradient = true;
    c->inputs[at].ndims = (int)check_between(r, 0, c->inputs[targets].ndims);
    c->input_count = at + 1;
}

/* That of target `i`, of `count`. */
static long double weight_of(const check_case *c, const check_array *src, int at, int64_t i, int64_t count) {
    return c->input_count > at ? src[at].data[i / (count / src[at].count)] : 1;
}

/* ---- cross_entropy ---- */

/* logits and targets as inputs `at` and `at` + 1. Labels include the ignored one, be it a class or not. */
static void make_labels(check_random *r, check_case *c, int at) {
    an_cross_entropy_attributes *attributes = (an_cross_entropy_attributes *)c->attributes;
    check_input *logits = &c->inputs[at], *targets = &c->inputs[at + 1];
    int64_t left = MOST_ELEMENTS, classes = check_chance(r, 20) ? check_between(r, 1020, 2100) : check_size(r, 200);
    bool ignores_class = check_chance(r, 50);
    logits->fill = CHECK_NORMAL;
    targets->fill = CHECK_INDEX;
    targets->dtype = check_chance(r, 50) ? AN_DTYPE_I32 : AN_DTYPE_I64;
    targets->ndims = (int)check_between(r, 0, MOST_DIMS);
    left /= classes;
    for (int i = 0; i < targets->ndims; i++) {
        logits->dims[i] = targets->dims[i] = check_size(r, left);
        left /= targets->dims[i];
    }
    logits->ndims = targets->ndims + 1;
    logits->dims[targets->ndims] = classes;
    attributes->ignored = ignores_class ? check_between(r, 0, classes - 1) : -1;
    targets->low = ignores_class ? 0 : -1;
    targets->high = classes;
    attributes->label_smoothing = check_chance(r, 50) ? (double)check_between(r, 0, 100) / 100 : 0;
}

static void cross_entropy_make(check_random *r, check_case *c) {
    make_labels(r, c, 0);
    make_weights(r, c, 2, 1);
    c->no_gradient_outputs = 2;
}

/* What a row should be: the smoothed distribution over its classes. */
static long double wanted_share(const an_cross_entropy_attributes *attributes, int64_t classes, int64_t i,
                                int64_t label) {
    long double smoothing = attributes->label_smoothing;
    return smoothing / (long double)classes + (i == label ? 1 - smoothing : 0);
}

static void cross_entropy_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_cross_entropy_attributes *attributes = (const an_cross_entropy_attributes *)c->attributes;
    int64_t classes = src[0].dims[src[0].ndims - 1];
    for (int64_t row = 0; row < src[1].count; row++) {
        int64_t label = (int64_t)src[1].data[row];
        const long double *x = src[0].data + row * classes;
        long double sum = 0;
        if (label == attributes->ignored) continue;
        for (int64_t i = 0; i < classes; i++) sum += expl(x[i]);
        dst[1].data[row] = logl(sum);
        for (int64_t i = 0; i < classes; i++)
            dst[0].data[0] -= weight_of(c, src, 2, row, src[1].count) * wanted_share(attributes, classes, i, label) *
                              logl(expl(x[i]) / sum);
    }
}

/* ---- cross_entropy_each ---- */

static void cross_entropy_each_make(check_random *r, check_case *c) {
    check_input *logits = &c->inputs[0], *targets = &c->inputs[1];
    make_labels(r, c, 0);
    if (targets->ndims == 0) { /* one row */
        targets->ndims = 1;
        targets->dims[0] = 1;
        logits->ndims = 2;
        logits->dims[1] = logits->dims[0];
        logits->dims[0] = 1;
    }
    c->input_count = 2;
    c->no_gradient_outputs = 2;
}

static void cross_entropy_each_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_cross_entropy_attributes *attributes = (const an_cross_entropy_attributes *)c->attributes;
    const int64_t classes = src[0].dims[src[0].ndims - 1];
    for (int64_t row = 0; row < src[1].count; row++) {
        const int64_t label = (int64_t)src[1].data[row];
        const long double *x = src[0].data + row * classes;
        long double sum = 0;
        if (label == attributes->ignored) continue;
        for (int64_t i = 0; i < classes; i++) sum += expl(x[i]);
        dst[1].data[row] = logl(sum);
        for (int64_t i = 0; i < classes; i++)
            dst[0].data[row] -= wanted_share(attributes, classes, i, label) * logl(expl(x[i]) / sum);
    }
}

static void cross_entropy_diff_make(check_random *r, check_case *c) {
    c->inputs[0] = (check_input){.fill = CHECK_NORMAL, .compute_dtype = true};
    make_labels(r, c, 1);
    c->inputs[3] = c->inputs[2]; /* of the targets' shape */
    c->inputs[3].fill = CHECK_NORMAL;
    c->inputs[3].dtype = AN_DTYPE_NONE;
    c->inputs[3].compute_dtype = true;
    make_weights(r, c, 4, 2);
}

static void cross_entropy_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_cross_entropy_attributes *attributes = (const an_cross_entropy_attributes *)c->attributes;
    int64_t classes = src[1].dims[src[1].ndims - 1];
    for (int64_t i = 0; i < dst[0].count; i++) {
        int64_t row = i / classes, label = (int64_t)src[2].data[row];
        if (label == attributes->ignored) continue;
        long double share = expl(src[1].data[i]) / expl(src[3].data[row]);
        dst[0].data[i] = weight_of(c, src, 4, row, src[2].count) * src[0].data[0] *
                         (share - wanted_share(attributes, classes, i % classes, label));
    }
}

/* ---- count_right ---- */

/* Few classes and logits of low precision have ties. */
static void count_right_make(check_random *r, check_case *c) {
    an_cross_entropy_attributes *labels = (an_cross_entropy_attributes *)c->attributes;
    make_labels(r, c, 0);
    const int64_t ignored = labels->ignored;
    memset(c->attributes, 0, sizeof c->attributes);
    ((an_count_right_attributes *)c->attributes)->ignored = ignored;
    c->input_count = 2;
}

static void count_right_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const int64_t classes = src[0].dims[src[0].ndims - 1];
    for (int64_t row = 0; row < src[1].count; row++) {
        const int64_t label = (int64_t)src[1].data[row];
        const long double *x = src[0].data + row * classes;
        int64_t largest = 0;
        for (int64_t i = 1; i < classes; i++)
            if (x[i] > x[largest]) largest = i;
        dst[0].data[0] += label == largest && label != ((const an_count_right_attributes *)c->attributes)->ignored;
    }
}

/* ---- losses that compare a number with a target ---- */

static void make_pair(check_random *r, check_case *c, int at, check_fill src, check_fill targets) {
    check_input *input = &c->inputs[at];
    int64_t left = MOST_ELEMENTS;
    input->fill = src;
    input->ndims = (int)check_between(r, 0, MOST_DIMS);
    for (int i = 0; i < input->ndims; i++) {
        input->dims[i] = check_size(r, left);
        left /= input->dims[i];
    }
    c->inputs[at + 1] = *input;
    c->inputs[at + 1].fill = targets;
    c->inputs[at + 1].no_gradient = true;
    c->inputs[at + 1].compute_dtype = check_chance(r, 30);
    make_weights(r, c, at + 2, at + 1);
}

static void make_loss(check_random *r, check_case *c, check_fill src, check_fill targets) {
    make_pair(r, c, 0, src, targets);
}

static void make_diff(check_random *r, check_case *c, check_fill src, check_fill targets) {
    c->inputs[0] = (check_input){.fill = CHECK_NORMAL, .compute_dtype = true};
    make_pair(r, c, 1, src, targets);
}

static void squared_error_make(check_random *r, check_case *c) {
    make_loss(r, c, CHECK_NORMAL, CHECK_NORMAL);
}

static void squared_error_diff_make(check_random *r, check_case *c) {
    make_diff(r, c, CHECK_NORMAL, CHECK_NORMAL);
}

static void absolute_error_make(check_random *r, check_case *c) {
    make_loss(r, c, CHECK_APART, CHECK_APART);
}

/* Whole numbers: src and target are often equal. */
static void absolute_error_diff_make(check_random *r, check_case *c) {
    make_diff(r, c, CHECK_INDEX, CHECK_INDEX);
    for (int i = 1; i <= 2; i++) {
        c->inputs[i].low = -3;
        c->inputs[i].high = 4;
    }
}

static void make_delta(check_random *r, check_case *c) {
    ((an_huber_error_attributes *)c->attributes)->delta = (double)check_between(r, 1, 300) / 100;
}

/* Differences across the kink of the slope say nothing; so where they are taken, src and delta are whole numbers and
 * targets are not. */
static void huber_error_make(check_random *r, check_case *c) {
    make_loss(r, c, CHECK_NORMAL, CHECK_NORMAL);
    make_delta(r, c);
    c->inputs[0].no_gradient = check_chance(r, 50);
    if (c->inputs[0].no_gradient) return;
    c->inputs[0].fill = CHECK_INDEX;
    c->inputs[0].low = -3;
    c->inputs[0].high = 4;
    c->inputs[1].fill = CHECK_UNIT;
    ((an_huber_error_attributes *)c->attributes)->delta = (double)check_between(r, 1, 3);
}

static void huber_error_diff_make(check_random *r, check_case *c) {
    make_diff(r, c, CHECK_NORMAL, CHECK_NORMAL);
    make_delta(r, c);
}

static void binary_cross_entropy_make(check_random *r, check_case *c) {
    make_loss(r, c, CHECK_NORMAL, CHECK_UNIT);
}

static void binary_cross_entropy_diff_make(check_random *r, check_case *c) {
    make_diff(r, c, CHECK_NORMAL, CHECK_UNIT);
}

#define ORACLE(op, loss, slope)                                                                   \
    static void op##_oracle(const check_case *c, const check_array *src, check_array *dst) {      \
        for (int64_t i = 0; i < src[0].count; i++) {                                              \
            long double x = src[0].data[i], t = src[1].data[i];                                   \
            dst[0].data[0] += weight_of(c, src, 2, i, src[0].count) * (loss);                     \
        }                                                                                         \
    }                                                                                             \
    static void op##_diff_oracle(const check_case *c, const check_array *src, check_array *dst) { \
        for (int64_t i = 0; i < dst[0].count; i++) {                                              \
            long double x = src[1].data[i], t = src[2].data[i];                                   \
            dst[0].data[i] = weight_of(c, src, 3, i, dst[0].count) * src[0].data[0] * (slope);    \
        }                                                                                         \
    }

static long double sigmoid(long double x) {
    return 1 / (1 + expl(-x));
}

#define DELTA ((long double)((const an_huber_error_attributes *)c->attributes)->delta)
ORACLE(squared_error, powl(x - t, 2), 2 * (x - t))
ORACLE(absolute_error, fabsl(x - t), x == t ? 0 : copysignl(1, x - t))
ORACLE(huber_error, fabsl(x - t) < DELTA ? powl(x - t, 2) / 2 : DELTA * (fabsl(x - t) - DELTA / 2),
       fmaxl(-DELTA, fminl(DELTA, x - t)))
ORACLE(binary_cross_entropy, -t *logl(sigmoid(x)) - (1 - t) * logl(sigmoid(-x)), sigmoid(x) - t)

const check_family check_loss[] = {
    {.op = "cross_entropy", cross_entropy_make, cross_entropy_oracle, LOW, .rows = 1 | 2 | 4},
    {.op = "cross_entropy_each", cross_entropy_each_make, cross_entropy_each_oracle, LOW, .rows = 1 | 2},
    {.op = "count_right", count_right_make, count_right_oracle, LOW, .no_grad_mode = true},
    {.op = "cross_entropy_diff",
     cross_entropy_diff_make,
     cross_entropy_diff_oracle,
     LOW,
     .rows = 2 | 4 | 8 | 16,
     .no_grad_mode = true},
    {.op = "squared_error", squared_error_make, squared_error_oracle, LOW},
    {.op = "squared_error_diff",
     squared_error_diff_make,
     squared_error_diff_oracle,
     LOW,
     .rows = 2 | 4 | 8,
     .no_grad_mode = true},
    {.op = "absolute_error", absolute_error_make, absolute_error_oracle, LOW},
    {.op = "absolute_error_diff",
     absolute_error_diff_make,
     absolute_error_diff_oracle,
     LOW,
     .rows = 2 | 4 | 8,
     .no_grad_mode = true},
    {.op = "huber_error", huber_error_make, huber_error_oracle, LOW},
    {.op = "huber_error_diff",
     huber_error_diff_make,
     huber_error_diff_oracle,
     LOW,
     .rows = 2 | 4 | 8,
     .no_grad_mode = true},
    {.op = "binary_cross_entropy", binary_cross_entropy_make, binary_cross_entropy_oracle, LOW},
    {.op = "binary_cross_entropy_diff",
     binary_cross_entropy_diff_make,
     binary_cross_entropy_diff_oracle,
     LOW,
     .rows = 2 | 4 | 8,
     .no_grad_mode = true},
    {0},
};

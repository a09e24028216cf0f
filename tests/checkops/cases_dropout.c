/* Cases of ops/dropout.c. The oracle has a Philox of its own, written from the paper, and draws word by word. */
#include "checkops/cases_dropout.h"

#include <math.h>

#include "kernels/elementwise/dropout.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16, ROUNDS = 10 };

/* One number of four words, the lowest first. */
typedef struct {
    uint32_t w[4];
} words;

static words philox(words x, uint64_t key) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const uint32_t left = (uint32_t)key + round * 0x9e3779b9u, right = (uint32_t)(key >> 32) + round * 0xbb67ae85u;
        const uint64_t a = (uint64_t)x.w[0] * 0xd2511f53u, b = (uint64_t)x.w[2] * 0xcd9e8d57u;
        x = (words){
            {(uint32_t)(b >> 32) ^ x.w[1] ^ left, (uint32_t)b, (uint32_t)(a >> 32) ^ x.w[3] ^ right, (uint32_t)a}};
    }
    return x;
}

static words of_pair(uint64_t low, uint64_t high) {
    return (words){{(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
}

bool check_keeps(check_draw draw, double rate) {
    const words folded = philox(of_pair(draw.step, draw.site), draw.seed);
    const uint64_t key = folded.w[0] | (uint64_t)folded.w[1] << 32, mixed = folded.w[2] | (uint64_t)folded.w[3] << 32;
    const words block = philox(of_pair(draw.element / 4, draw.sample ^ mixed), key);
    return block.w[draw.element % 4] >= floorl(rate * 4294967296.0L);
}

void check_random_inputs(check_random *r, check_case *c, int first, int64_t batch) {
    const check_input scalar = {.fill = CHECK_NUMBER, .dtype = AN_DTYPE_I64};
    c->inputs[first] = (check_input){
        .fill = CHECK_INDEX,
        .dtype = AN_DTYPE_I64,
        .ndims = 1,
        .dims = {batch},
        .high = INT64_C(1) << 40,
    };
    c->inputs[first + 1] = c->inputs[first + 2] = scalar;
    c->inputs[first + 1].low = check_between(r, -1000, 1000);
    c->inputs[first + 2].low = check_between(r, 0, 1000000);
}

static void dropout_make(check_random *r, check_case *c) {
    an_dropout_attributes *attributes = (an_dropout_attributes *)c->attributes;
    check_input *src = &c->inputs[0];
    int64_t left = 3000;
    c->input_count = 4;
    src->fill = CHECK_NORMAL;
    src->ndims = (int)check_between(r, 1, 4);
    for (int i = 0; i < src->ndims; i++) {
        src->dims[i] = check_size(r, left < 40 ? left : 40);
        left = left / src->dims[i] > 0 ? left / src->dims[i] : 1;
    }
    if (check_chance(r, 20)) { /* rows of several pieces */
        src->ndims = 2;
        src->dims[0] = check_between(r, 1, 3);
        src->dims[1] = check_between(r, 500, 1100);
    }
    check_random_inputs(r, c, 1, src->dims[0]);
    attributes->rate = (double)check_between(r, 0, 99) / 100;
    attributes->site = check_between(r, 0, INT64_MAX / 2);
    if (check_chance(r, 50)) attributes->site = -attributes->site; /* the bits of a hash */
}

static void dropout_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_dropout_attributes *attributes = (const an_dropout_attributes *)c->attributes;
    const int64_t elements = src[0].count / src[0].dims[0];
    for (int64_t i = 0; i < src[0].count; i++) {
        const check_draw draw = {
            .seed = (uint64_t)(int64_t)src[2].data[0],
            .step = (uint64_t)(int64_t)src[3].data[0],
            .sample = (uint64_t)(int64_t)src[1].data[i / elements],
            .site = (uint64_t)attributes->site,
            .element = (uint64_t)(i % elements),
        };
        if (check_keeps(draw, attributes->rate)) dst[0].data[i] = src[0].data[i] / (1 - (long double)attributes->rate);
    }
}

const check_family check_dropout[] = {
    {.op = "dropout", .make = dropout_make, .oracle = dropout_oracle, .low_dtypes = LOW, .rows = 1 | 2},
    {0},
};

/* Cases of ops/rotary.c. The oracle turns every pair as a complex number. */
#include <complex.h>
#include <math.h>

#include "checkops/cases.h"
#include "kernels/rotary/rotary.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16 };

static void rotary_make(check_random *r, check_case *c) {
    an_rotary_attributes *attributes = (an_rotary_attributes *)c->attributes;
    const int64_t size = check_between(r, 2, check_chance(r, 20) ? 128 : 20);
    c->input_count = check_chance(r, 50) ? 2 : 1;
    c->inputs[0] = (check_input){.fill = CHECK_NORMAL, .ndims = 4};
    for (int i = 0; i < 3; i++) c->inputs[0].dims[i] = check_size(r, i < 2 ? 3 : 12);
    c->inputs[0].dims[3] = size;
    c->inputs[1] = (check_input){.fill = CHECK_NUMBER, .dtype = AN_DTYPE_I64, .low = check_between(r, 0, 700)};
    if (check_chance(r, 20)) c->inputs[1].fill = CHECK_ABSENT;
    if (c->inputs[1].fill == CHECK_NUMBER && check_chance(r, 40)) { /* each token has its own */
        const int64_t *dims = c->inputs[0].dims;
        c->inputs[1] = (check_input){.fill = CHECK_INDEX, .ndims = 2, .dims = {dims[0], dims[2]}, .high = 700};
        c->inputs[1].dtype = check_chance(r, 50) ? AN_DTYPE_I64 : AN_DTYPE_I32;
    }
    attributes->base = check_chance(r, 50) ? 10000 : 500000;
    attributes->rotated = check_chance(r, 50) ? size / 2 * 2 : 2 * check_between(r, 1, size / 2);
    attributes->inverse = check_chance(r, 30);
    if (check_chance(r, 40)) {
        attributes->factor = 8;
        attributes->low_factor = 1;
        attributes->high_factor = 4;
        attributes->original_context = check_chance(r, 50) ? 8192 : 64;
    }
}

static long double frequency_of(const an_rotary_attributes *a, int64_t pair) {
    const long double pi = 3.14159265358979323846264338327950288L, context = (long double)a->original_context;
    const long double frequency = expl(-2 * (long double)pair / (long double)a->rotated * logl(a->base));
    const long double turns = context * frequency / (2 * pi); /* in the original context */
    if (a->factor == 0 || turns > a->high_factor) return frequency;
    if (turns < a->low_factor) return frequency / a->factor;
    const long double share = (turns - a->low_factor) / ((long double)a->high_factor - a->low_factor);
    return frequency * (share + (1 - share) / a->factor);
}

static void rotary_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_rotary_attributes *a = (const an_rotary_attributes *)c->attributes;
    const int64_t tokens = src[0].dims[2], size = src[0].dims[3], half = a->rotated / 2;
    const bool has_first = c->input_count > 1 && c->inputs[1].fill == CHECK_NUMBER;
    const bool has_each = c->input_count > 1 && c->inputs[1].fill == CHECK_INDEX;
    const long double first = has_first ? src[1].data[0] : 0;
    for (int64_t i = 0; i < src[0].count; i++) {
        const int64_t element = i % size, pair = element % half, row = i - element;
        const int64_t token = row / size % tokens, sample = row / size / tokens / src[0].dims[1];
        const long double position = has_each ? src[1].data[sample * tokens + token] : first + (long double)token;
        const long double angle = position * frequency_of(a, pair) * (a->inverse ? -1 : 1);
        const long double complex number =
            src[0].data[row + pair] + src[0].data[row + pair + half] * (long double complex)I;
        const long double complex turned = number * cexpl(angle * (long double complex)I);
        dst[0].data[i] = element >= a->rotated ? src[0].data[i] : element < half ? creall(turned) : cimagl(turned);
    }
}

const check_family check_rotary[] = {
    {.op = "rotary", .make = rotary_make, .oracle = rotary_oracle, .low_dtypes = LOW, .rows = 1 | 2},
    {0},
};

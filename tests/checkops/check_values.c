/* The values of a run: random inputs, and what the oracle makes of them. */
#include "checkops/checkops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Outputs of fewer elements than FEW may cancel by chance, so their usual size is asked for: over other random
 * inputs. */
enum { FEW = 16, REDRAWS = 4 };

/* The k-th magnitudes of all inputs are different and at least `step`/inputs apart, in a random order. */
static void fill_apart(check_array *array, int input, int input_count, double step, check_random *r) {
    for (int64_t i = 0; i < array->count; i++) {
        int64_t j = check_between(r, 0, i); /* a shuffle that fills as it goes */
        array->data[i] = array->data[j];
        array->data[j] = 0.05 + step * ((double)i + (double)(input + 1) / (input_count + 1)); /* the kink at 0 is far */
    }
    for (int64_t i = 0; i < array->count; i++)
        if (check_chance(r, 50)) array->data[i] = -array->data[i];
}

static long double fill_one(const check_input *input, int64_t element, check_random *r) {
    switch (input->fill) {
    case CHECK_NORMAL: return check_normal(r);
    case CHECK_POSITIVE: return 0.5 + 1.5 * check_uniform(r);
    case CHECK_UNIT: return 0.05 + 0.9 * check_uniform(r);
    case CHECK_INDEX: return (long double)check_between(r, input->low, input->high - 1);
    case CHECK_NUMBER: return (long double)input->low;
    case CHECK_ORDER: return (long double)(input->low + element);
    case CHECK_APART:
    case CHECK_ABSENT: break;
    }
    return 0;
}

/* Numbers below the smallest normal one: what flush-to-zero would turn into 0. */
static long double denormal(an_dtype dtype, check_random *r) {
    double factor = 1 + check_uniform(r);
    switch (dtype) {
    case AN_DTYPE_F64: return factor * 0x1p-1030;
    case AN_DTYPE_F16: return factor * 0x1p-20;
    default: return factor * 0x1p-130;
    }
}

static void fill_inputs(check_run *run, int stream, unsigned flags) {
    check_random r = check_random_of(run->options->seed, run->family->op, run->number, stream);
    int64_t maximum = 80; /* of the elements, to which the range of APART is adapted: 80 steps of 0.05 */
    for (int i = 0; i < run->src_count; i++)
        if (run->c.inputs[i].fill == CHECK_APART && run->src[i].array.count > maximum)
            maximum = run->src[i].array.count;
    for (int i = 0; i < run->src_count; i++) {
        check_operand *src = &run->src[i];
        const check_input *input = &run->c.inputs[i];
        bool is_random = an_dtype_is_float(src->tensor.dtype) && input->fill != CHECK_NUMBER;
        if (input->fill == CHECK_APART)
            fill_apart(&src->array, i, run->src_count, 4.0 / (double)maximum, &r);
        else
            for (int64_t k = 0; k < src->array.count; k++) src->array.data[k] = fill_one(input, k, &r);
        for (int64_t k = 0; k < src->array.count; k++) {
            if (flags & CHECK_DENORMALS && is_random && check_chance(&r, 5))
                src->array.data[k] = denormal(src->tensor.dtype, &r);
            src->array.data[k] = check_rounded(src->tensor.dtype, src->array.data[k]);
        }
    }
}

static void allocate_arrays(check_run *run) {
    for (int i = 0; i < run->src_count + run->dst_count; i++) {
        check_array *array = i < run->src_count ? &run->src[i].array : &run->dst[i - run->src_count].array;
        if (array->count) array->data = check_allocate((size_t)array->count, sizeof *array->data); /* 0: absent */
    }
}

void check_run_fill(check_run *run, unsigned flags) {
    check_random r = check_random_of(run->options->seed, run->family->op, run->number, CHECK_STREAM_INITIAL);
    allocate_arrays(run);
    fill_inputs(run, CHECK_STREAM_VALUES, flags);
    for (int i = 0; i < run->dst_count && run->op->flags & AN_OP_ACCUMULATES; i++) {
        check_operand *dst = &run->dst[i];
        dst->initial = check_allocate((size_t)dst->array.count, sizeof *dst->initial);
        for (int64_t k = 0; k < dst->array.count; k++)
            dst->initial[k] = check_rounded(dst->tensor.dtype, check_normal(&r));
    }
}

/* ---- the oracle ---- */

static void ask_oracle(check_run *run) {
    check_array src[AN_MAX_INPUTS], dst[AN_MAX_OUTPUTS];
    for (int i = 0; i < run->src_count; i++) src[i] = run->src[i].array;
    for (int i = 0; i < run->dst_count; i++) {
        size_t bytes = (size_t)run->dst[i].array.count * sizeof(long double);
        dst[i] = run->dst[i].array;
        if (run->dst[i].initial)
            memcpy(dst[i].data, run->dst[i].initial, bytes);
        else
            memset(dst[i].data, 0, bytes);
    }
    run->family->oracle(&run->c, src, dst);
}

long double check_root_mean_square(const check_array *array) {
    long double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < array->count; i++) {
        if (!isfinite(array->data[i])) continue;
        sum += array->data[i] * array->data[i];
        count++;
    }
    return count ? sqrtl(sum / (long double)count) : 0;
}

/* The sizes that small outputs have for other inputs, on arrays of its own. */
static void ask_usual_sizes(check_run *run) {
    check_run *other = check_allocate(1, sizeof *other);
    *other = *run;
    allocate_arrays(other);
    for (int draw = 0; draw < REDRAWS; draw++) {
        fill_inputs(other, CHECK_STREAM_OTHERS + draw, 0);
        ask_oracle(other);
        for (int i = 0; i < run->dst_count; i++) {
            long double size = check_root_mean_square(&other->dst[i].array);
            if (run->dst[i].array.count < FEW && size > run->dst[i].usual) run->dst[i].usual = size;
        }
    }
    for (int i = 0; i < run->src_count; i++) free(other->src[i].array.data);
    for (int i = 0; i < run->dst_count; i++) free(other->dst[i].array.data);
    free(other);
}

void check_run_oracle(check_run *run) {
    bool is_small = false;
    ask_oracle(run);
    for (int i = 0; i < run->dst_count; i++) is_small = is_small || run->dst[i].array.count < FEW;
    if (is_small) ask_usual_sizes(run);
}

/* Tensors between guard zones, in all the layouts that a kernel may be given. */
#include "base/float16.h"
#include "checkops/checkops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GUARD = 256,    /* bytes on both sides: more than any vector */
    PATTERN = 0xff, /* NaN in every floating type, -1 in the others: memory that nobody wrote shows */
    ALIGNMENT = 64  /* what the executor gives dense tensors */
};

void *check_allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (memory) return memory;
    fprintf(stderr, "checkops: out of memory\n");
    exit(EXIT_FAILURE);
}

long double check_load(an_dtype dtype, const void *element) {
    switch (dtype) {
    case AN_DTYPE_F32: return *(const float *)element;
    case AN_DTYPE_F64: return *(const double *)element;
    case AN_DTYPE_BF16: return an_bf16_to_f32(*(const uint16_t *)element);
    case AN_DTYPE_F16: return an_f16_to_f32(*(const uint16_t *)element);
    case AN_DTYPE_I32: return *(const int32_t *)element;
    case AN_DTYPE_I64: return *(const int64_t *)element;
    case AN_DTYPE_U8: return *(const uint8_t *)element;
    case AN_DTYPE_Q8_0: /* has no element of its own */
    case AN_DTYPE_NONE:
    case AN_DTYPE_LIMIT: break;
    }
    return 0;
}

void check_store(an_dtype dtype, void *element, long double value) {
    switch (dtype) {
    case AN_DTYPE_F32: *(float *)element = (float)value; break;
    case AN_DTYPE_F64: *(double *)element = (double)value; break;
    case AN_DTYPE_BF16: *(uint16_t *)element = an_f32_to_bf16((float)value); break;
    case AN_DTYPE_F16: *(uint16_t *)element = an_f32_to_f16((float)value); break;
    case AN_DTYPE_I32: *(int32_t *)element = (int32_t)value; break;
    case AN_DTYPE_I64: *(int64_t *)element = (int64_t)value; break;
    case AN_DTYPE_U8: *(uint8_t *)element = (uint8_t)value; break;
    case AN_DTYPE_Q8_0: /* has no element of its own */
    case AN_DTYPE_NONE:
    case AN_DTYPE_LIMIT: break;
    }
}

long double check_rounded(an_dtype dtype, long double value) {
    _Alignas(16) char element[16];
    check_store(dtype, element, value);
    return check_load(dtype, element);
}

void *check_element(const an_tensor *tensor, int64_t index) {
    int64_t offset = 0;
    for (int i = tensor->ndims - 1; i >= 0; i--) {
        offset += index % tensor->dims[i] * tensor->strides[i];
        index /= tensor->dims[i];
    }
    return (char *)tensor->data + offset * (int64_t)an_dtype_size(tensor->dtype);
}

/* Strides for a physical order, outermost first; each dimension is followed by up to `most_gap` unused elements. */
static void set_strides(an_tensor *t, const int *order, int64_t most_gap, check_random *r) {
    int64_t stride = most_gap ? check_between(r, 1, 1 + most_gap) : 1;
    for (int i = t->ndims - 1; i >= 0; i--) {
        t->strides[order[i]] = stride;
        stride *= t->dims[order[i]] + (most_gap ? check_between(r, 0, most_gap) : 0);
    }
}

/* What repeats along dimension `d` must be equal: the first of them is taken. */
static void repeat_along(check_array *array, int d) {
    int64_t inner = 1;
    for (int i = d + 1; i < array->ndims; i++) inner *= array->dims[i];
    for (int64_t i = 0; i < array->count; i++) {
        int64_t along = i / inner % array->dims[d];
        array->data[i] = array->data[i - along * inner];
    }
}

static void choose_strides(check_operand *operand, check_random *r) {
    an_tensor *t = &operand->tensor;
    int order[AN_MAX_DIMS];
    for (int i = 0; i < t->ndims; i++) order[i] = i;
    memcpy(t->strides, operand->dense, sizeof t->strides);
    if (operand->layout == CHECK_DENSE) return;
    for (int i = t->ndims - 1; i > 0 && operand->layout != CHECK_BROADCAST; i--) {
        int j = (int)check_between(r, 0, i), swapped = order[i];
        if (operand->layout == CHECK_GAPS && check_chance(r, 60)) continue;
        order[i] = order[j];
        order[j] = swapped;
    }
    set_strides(t, order, operand->layout == CHECK_GAPS ? 2 : 0, r);
    if (operand->layout == CHECK_BROADCAST && t->ndims > 0) {
        int d = (int)check_between(r, 0, t->ndims - 1);
        t->strides[d] = 0;
        repeat_along(&operand->array, d);
    }
}

void check_place(check_operand *operand, check_layout layout, check_random *r, bool write) {
    an_tensor *t = &operand->tensor;
    size_t element = an_dtype_size(t->dtype), shift = 0;
    operand->layout = layout;
    choose_strides(operand, r);
    operand->span = 1;
    for (int i = 0; i < t->ndims; i++) operand->span += (size_t)((t->dims[i] - 1) * t->strides[i]);
    if (layout != CHECK_DENSE) shift = element * (size_t)check_between(r, 0, 3); /* views begin anywhere */
    operand->bytes = GUARD + shift + operand->span * element + GUARD;
    operand->bytes = (operand->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    operand->memory = aligned_alloc(ALIGNMENT, operand->bytes);
    operand->before = check_allocate(operand->bytes, 1);
    if (!operand->memory) {
        fprintf(stderr, "checkops: out of memory\n");
        exit(EXIT_FAILURE);
    }
    memset(operand->memory, PATTERN, operand->bytes);
    t->data = operand->memory + GUARD + shift;
    if (!write) return;
    for (int64_t i = 0; i < operand->array.count; i++)
        check_store(t->dtype, check_element(t, i), operand->array.data[i]);
}

void check_release(check_operand *operand) {
    free(operand->memory);
    free(operand->before);
    operand->memory = operand->before = NULL;
    operand->tensor.data = NULL;
}

void check_remember(check_operand *operand) {
    if (operand->memory) memcpy(operand->before, operand->memory, operand->bytes);
}

bool check_untouched(const check_operand *operand, bool elements) {
    const an_tensor *t = &operand->tensor;
    bool same;
    if (!operand->memory) return true; /* absent */
    size_t element = an_dtype_size(t->dtype), begin = (size_t)((unsigned char *)t->data - operand->memory);
    size_t end = begin + operand->span * element;
    if (elements) return !memcmp(operand->memory, operand->before, operand->bytes);
    if (operand->span == (size_t)operand->array.count) /* no gaps: only the guards are to be looked at */
        return !memcmp(operand->memory, operand->before, begin) &&
               !memcmp(operand->memory + end, operand->before + end, operand->bytes - end);
    unsigned char *after = check_allocate(operand->bytes, 1);
    memcpy(after, operand->memory, operand->bytes);
    for (int64_t i = 0; i < operand->array.count; i++) {
        size_t at = (size_t)((unsigned char *)check_element(t, i) - operand->memory);
        memcpy(after + at, operand->before + at, element);
    }
    same = !memcmp(after, operand->before, operand->bytes);
    free(after);
    return same;
}

#include "exec/array.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

static void print_dims(char *text, size_t capacity, int ndims, const int64_t *dims, bool reversed) {
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; i < ndims && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%lld", i ? "," : "",
                                   (long long)dims[reversed ? ndims - 1 - i : i]);
}

an_status an_array_check(an_context *ctx, const an_array *array, const char *name, an_dtype dtype, int ndims,
                         const int64_t *dims) {
    char have[160], want[160], have_fortran[160], want_fortran[160];
    if (!array || !array->data) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the array for '%s' has no data", name);
    if (array->dtype != dtype)
        return AN_ERROR(ctx, AN_ERR_DTYPE, "'%s' is %s, but the array is %s", name, an_dtype_name(dtype),
                        an_dtype_name(array->dtype));
    bool same = array->ndims == ndims;
    for (int i = 0; i < ndims && same; i++) same = array->dims[i] == dims[i];
    if (same) return AN_OK;
    int given = array->ndims >= 0 && array->ndims <= AN_MAX_DIMS ? array->ndims : 0;
    print_dims(have, sizeof have, given, array->dims, false);
    print_dims(want, sizeof want, ndims, dims, false);
    print_dims(have_fortran, sizeof have_fortran, given, array->dims, true);
    print_dims(want_fortran, sizeof want_fortran, ndims, dims, true);
    return AN_ERROR(ctx, AN_ERR_SHAPE,
                    "'%s' has shape [%s], but the array has shape [%s] (in Fortran order: (%s) and (%s))", name, want,
                    have, want_fortran, have_fortran);
}

/* Strides of an array: given, or dense where all are zero. */
static void strides_of(const an_array *array, int64_t *strides) {
    int64_t dense = 1;
    bool given = false;
    for (int i = 0; i < array->ndims; i++) given = given || array->strides[i] != 0;
    for (int i = array->ndims - 1; i >= 0; i--) {
        strides[i] = given ? array->strides[i] : dense;
        dense *= array->dims[i];
    }
}

/* Copies between two layouts of one shape. The innermost dimensions that are dense in both go in one piece. */
static an_status copy(an_context *ctx, const an_device *device, const an_array *shape, char *dst,
                      const int64_t *dst_strides, const char *src, const int64_t *src_strides,
                      an_copy_direction direction) {
    int64_t run = 1, runs = 1;
    int inner = shape->ndims;
    int64_t size = (int64_t)an_dtype_size(shape->dtype);
    while (inner > 0 &&
           (shape->dims[inner - 1] == 1 || (dst_strides[inner - 1] == run && src_strides[inner - 1] == run)))
        run *= shape->dims[--inner];
    for (int i = 0; i < inner; i++) runs *= shape->dims[i];
    for (int64_t r = 0; r < runs; r++) {
        int64_t rest = r, to = 0, from = 0;
        for (int i = inner - 1; i >= 0; i--) {
            to += rest % shape->dims[i] * dst_strides[i];
            from += rest % shape->dims[i] * src_strides[i];
            rest /= shape->dims[i];
        }
        AN_TRY_RETURN(device->copy(device, ctx, dst + to * size, src + from * size, (size_t)(run * size), direction));
    }
    return AN_OK;
}

an_status an_array_copy_in(an_context *ctx, const an_device *device, void *dst, const an_array *array) {
    int64_t strides[AN_MAX_DIMS], dense[AN_MAX_DIMS];
    an_array plain = *array;
    memset(plain.strides, 0, sizeof plain.strides);
    strides_of(array, strides);
    strides_of(&plain, dense);
    return copy(ctx, device, array, dst, dense, array->data, strides, AN_COPY_TO_DEVICE);
}

an_status an_array_copy_out(an_context *ctx, const an_device *device, const an_array *array, const void *src) {
    int64_t strides[AN_MAX_DIMS], dense[AN_MAX_DIMS];
    an_array plain = *array;
    memset(plain.strides, 0, sizeof plain.strides);
    strides_of(array, strides);
    strides_of(&plain, dense);
    return copy(ctx, device, array, array->data, strides, src, dense, AN_COPY_FROM_DEVICE);
}

an_status an_tensor_copy_out(an_context *ctx, const an_device *device, const an_array *array, const an_tensor *src) {
    int64_t strides[AN_MAX_DIMS];
    strides_of(array, strides);
    return copy(ctx, device, array, array->data, strides, src->data, src->strides, AN_COPY_FROM_DEVICE);
}

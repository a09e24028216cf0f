/* The caller's arrays: checked, and copied to and from dense device memory, whatever their strides. */
#ifndef AN_EXEC_ARRAY_H
#define AN_EXEC_ARRAY_H

#include "base/context.h"
#include "base/status.h"

/* The array must have this type and shape; the message says both, in C's order and in Fortran's. */
an_status an_array_check(an_context *ctx, const an_array *array, const char *name, an_dtype dtype, int ndims,
                         const int64_t *dims);
an_status an_array_copy_in(an_context *ctx, const an_device *device, void *dst, const an_array *array);
an_status an_array_copy_out(an_context *ctx, const an_device *device, const an_array *array, const void *src);

/* From a tensor of any strides, element run by element run. */
an_status an_tensor_copy_out(an_context *ctx, const an_device *device, const an_array *array, const an_tensor *src);

#endif

/* Copies between tensors of equal shape and any strides: what the kernels of copy.h are made of. */
#ifndef AN_KERNELS_COMMON_COPY_TENSOR_H
#define AN_KERNELS_COMMON_COPY_TENSOR_H

#include "anneal/experimental.h"
#include "base/level.h"

/* Compiled once a level. */
#define an_copy_tensor AN_LEVELED(an_copy_tensor)
#define an_zero_tensor AN_LEVELED(an_zero_tensor)
#define an_copy_space_make AN_LEVELED(an_copy_space_make)
#define an_tensor_part AN_LEVELED(an_tensor_part)

/* dst = src. Equal dtypes move bits, integers too; others go through f32, or f64 if one of them is f64. */
void an_copy_tensor(an_context *ctx, const an_tensor *src, const an_tensor *dst);

/* dst = 0 */
void an_zero_tensor(an_context *ctx, const an_tensor *dst);

/* The elements of a copy, as loops: dst's dimensions from the largest stride to the smallest, without those of size 1,
 * merged where both tensors allow it; at least one. src may be NULL. */
typedef struct an_copy_space {
    int ndims;
    int64_t dims[AN_MAX_DIMS], src_strides[AN_MAX_DIMS], dst_strides[AN_MAX_DIMS];
} an_copy_space;
void an_copy_space_make(an_copy_space *space, const an_tensor *src, const an_tensor *dst);

/* The part [begin, begin + size) of a tensor along an axis. */
an_tensor an_tensor_part(const an_tensor *tensor, int axis, int64_t begin, int64_t size);

#endif

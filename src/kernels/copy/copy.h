/* Kernels of ops/copy.c: dense copies, casts, concatenation, padding, gathering. Except for casts they move bits. */
#ifndef AN_KERNELS_COPY_COPY_H
#define AN_KERNELS_COPY_COPY_H

#include "ir/op.h"
#include "kernels/common/list.h"

/* Compiled once a level. */
#define an_contiguous_tiled_applies AN_LEVELED(an_contiguous_tiled_applies)
#define an_contiguous_tiled_run AN_LEVELED(an_contiguous_tiled_run)

typedef struct an_cast_attributes {
    an_dtype dtype;
} an_cast_attributes;

typedef struct an_concat_attributes {
    int64_t axis;
} an_concat_attributes;

typedef struct an_pad_attributes {
    int64_t axis;
    an_dim before, after; /* in a call: numbers, as every dimension among the attributes */
} an_pad_attributes;

typedef struct an_gather_attributes {
    int64_t axis;
} an_gather_attributes;

typedef struct an_gather_diff_attributes {
    int64_t axis;
    an_dim_list dims; /* of src */
} an_gather_diff_attributes;

AN_DECLARE_KERNELS(contiguous);
AN_DECLARE_KERNELS(cast);
AN_DECLARE_KERNELS(concat);
AN_DECLARE_KERNELS(pad);
AN_DECLARE_KERNELS(gather);
AN_DECLARE_KERNELS(gather_diff);

/* contiguous in tiles, of what lies transposed (tiled.c) */
bool an_contiguous_tiled_applies(const an_call *call);
an_status an_contiguous_tiled_run(const an_call *call);

#endif

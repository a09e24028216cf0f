/* Kernels of ops/sink.c and ops/pieces.c. */
#ifndef AN_KERNELS_SINK_SINK_H
#define AN_KERNELS_SINK_SINK_H

#include "kernels/common/list.h"

typedef struct an_grad_attributes {
    int64_t parameter;
    int64_t extra; /* 0: into its gradient; k: into the k-th extra region (an_parameter.extras) */
    bool add;      /* g ← g + c instead of g ← c */
} an_grad_attributes;

typedef struct an_exchange_attributes {
    int64_t unit; /* pass/units.h */
} an_exchange_attributes;

/* Of unit_grad: begins as those of grad. */
typedef struct an_unit_grad_attributes {
    an_grad_attributes grad;
    int64_t offset; /* of the parameter in the root of its unit, in elements */
} an_unit_grad_attributes;

/* Elements begin … end - 1 of a root. */
typedef struct an_element_range {
    int64_t begin, end;
} an_element_range;

typedef struct an_collect_attributes {
    int64_t unit, elements;
    an_dtype dtype;
    /* What no gradient is written to: what lies behind parameters on their last pages, and parameters that no
     * gradient reaches. In the graph's memory. */
    const an_element_range *zeros;
    int64_t zero_count;
} an_collect_attributes;

/* Which region of which form: pass/shard.h. */
typedef struct an_region_attributes {
    int64_t form, region;
} an_region_attributes;

/* Begins as those of arrive_weights. */
typedef struct an_gather_weights_attributes {
    an_region_attributes region;
    int64_t masters, low; /* elements of its roots; 0: there is no such root */
    an_dtype dtype, low_dtype;
} an_gather_weights_attributes;

AN_DECLARE_KERNELS(grad);
AN_DECLARE_KERNELS(unit_grad);
AN_DECLARE_KERNELS(exchange);
AN_DECLARE_KERNELS(collect_gradients);
AN_DECLARE_KERNELS(scatter_gradients);
AN_DECLARE_KERNELS(scattered_gradients);
AN_DECLARE_KERNELS(gather_weights);
AN_DECLARE_KERNELS(arrive_weights);

#endif

/* Portable kernels of functions of two elements. */
#include "base/elementary/elementary.h"
#include "kernels/common/elementwise.h"
#include "kernels/elementwise/binary.h"

#define AN_TEMPLATE "kernels/elementwise/binary_template.h"
#include "kernels/common/instantiate.h"

/* The driver aligns at the end, so the bias is given src's dimensions, of size 1 but for its axis. */
static an_status run_bias(const an_call *call) {
    int64_t axis = ((const an_bias_attributes *)call->attributes)->axis;
    an_tensor along = {.data = call->src[1].data, .dtype = call->src[1].dtype, .ndims = call->src[0].ndims};
    an_call aligned = *call;
    for (int i = 0; i < along.ndims; i++) along.dims[i] = 1;
    along.dims[axis] = call->src[1].dims[0];
    along.strides[axis] = call->src[1].strides[0];
    aligned.src = (const an_tensor[]){call->src[0], along};
    return an_elementwise(&aligned, add_f32, add_f64);
}

static an_status run_select_diff(const an_call *call) {
    return ((const an_select_diff_attributes *)call->attributes)->minimum
               ? an_elementwise(call, minimum_diff_f32, minimum_diff_f64)
               : an_elementwise(call, maximum_diff_f32, maximum_diff_f64);
}

static an_status run_power_diff(const an_call *call) {
    return ((const an_power_diff_attributes *)call->attributes)->of_exponent
               ? an_elementwise(call, power_diff_exponent_f32, power_diff_exponent_f64)
               : an_elementwise(call, power_diff_base_f32, power_diff_base_f64);
}

AN_KERNEL_LIST(bias) = {{.name = "portable", .run = run_bias}, {0}};
AN_KERNEL_LIST(select_diff) = {{.name = "portable", .run = run_select_diff}, {0}};
AN_KERNEL_LIST(power_diff) = {{.name = "portable", .run = run_power_diff}, {0}};

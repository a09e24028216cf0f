/* Kernels of functions of two elements, and of the gradients that are not made of them. A function without attributes
 * has its row in binary_template.h and its record in ops/binary.c, and is named nowhere else. */
#ifndef AN_KERNELS_ELEMENTWISE_BINARY_H
#define AN_KERNELS_ELEMENTWISE_BINARY_H

#include "kernels/common/list.h"

typedef struct an_bias_attributes {
    int64_t axis; /* of src, ≥ 0 */
} an_bias_attributes;

typedef struct an_select_diff_attributes {
    bool minimum; /* of minimum, not of maximum */
} an_select_diff_attributes;

typedef struct an_power_diff_attributes {
    bool of_exponent; /* the gradient of b, not of a */
} an_power_diff_attributes;

AN_DECLARE_KERNELS(bias);        /* (src, bias) → dst = src + bias, bias lying along an axis of src */
AN_DECLARE_KERNELS(select_diff); /* (diff_dst, x, y) → diff_dst where x was selected, half of it where x equals y */
AN_DECLARE_KERNELS(power_diff);  /* (diff_dst, a, b) → the gradient of a or of b, before it is summed to its shape */

#endif

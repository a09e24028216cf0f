/* Kernels of ops/binary.c: functions of two elements, and the gradients that are not made of them. */
#ifndef AN_KERNELS_ELEMENTWISE_BINARY_H
#define AN_KERNELS_ELEMENTWISE_BINARY_H

#include "kernels/common/list.h"

typedef struct an_bias_attributes {
    int64_t axis; /* of src, ≥ 0 */
} an_bias_attributes;

typedef struct an_select_diff_attributes {
    bool least; /* of minimum, not of maximum */
} an_select_diff_attributes;

typedef struct an_power_diff_attributes {
    bool of_exponent; /* the gradient of b, not of a */
} an_power_diff_attributes;

/* dst = f(a, b), broadcast */
#define AN_BINARY_OPS(X) X(add) X(subtract) X(multiply) X(divide) X(maximum) X(minimum) X(power)

#define DECLARE(op) AN_DECLARE_KERNELS(op);
AN_BINARY_OPS(DECLARE)
#undef DECLARE
AN_DECLARE_KERNELS(bias);        /* (src, bias) → dst = src + bias, bias lying along an axis of src */
AN_DECLARE_KERNELS(select_diff); /* (diff_dst, x, y) → diff_dst where x was selected, half of it where x equals y */
AN_DECLARE_KERNELS(power_diff);  /* (diff_dst, a, b) → the gradient of a or of b, before it is summed to its shape */

#endif

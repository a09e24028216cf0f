/* Kernels of ops/unary.c: activations and other functions of one element, and their gradients. */
#ifndef AN_KERNELS_ELEMENTWISE_UNARY_H
#define AN_KERNELS_ELEMENTWISE_UNARY_H

#include "kernels/common/list.h"

typedef struct an_scale_attributes {
    double factor;
} an_scale_attributes;

/* of clamp and clamp_diff */
typedef struct an_clamp_attributes {
    double low, high; /* low ≤ high; both may be infinite */
} an_clamp_attributes;

/* dst = f(src) */
#define AN_UNARY_OPS(X) \
    X(relu)             \
    X(gelu)             \
    X(gelu_tanh) X(silu) X(sigmoid) X(tanh) X(exp) X(log) X(sqrt) X(softplus) X(sin) X(cos) X(abs) X(scale) X(clamp)

/* diff_src = diff_dst · f', from (diff_dst, src) or (diff_dst, dst) as ops/unary.c says */
#define AN_UNARY_DIFF_OPS(X) \
    X(relu_diff)             \
    X(gelu_diff)             \
    X(gelu_tanh_diff) X(silu_diff) X(sigmoid_diff) X(tanh_diff) X(sqrt_diff) X(softplus_diff) X(abs_diff) X(clamp_diff)

#define DECLARE(op) AN_DECLARE_KERNELS(op);
AN_UNARY_OPS(DECLARE)
AN_UNARY_DIFF_OPS(DECLARE)
#undef DECLARE

#endif

/* Kernels of ops/norm.c: layer norm and rms norm over the last dimension, and their gradients. */
#ifndef AN_KERNELS_NORM_H
#define AN_KERNELS_NORM_H

#include "anneal/experimental.h"

typedef struct an_norm_attributes {
    double epsilon;
} an_norm_attributes;

extern const an_kernel an_kernels_layer_norm[], an_kernels_layer_norm_diff_src[], an_kernels_layer_norm_diff_weights[],
    an_kernels_rms_norm[], an_kernels_rms_norm_diff_src[], an_kernels_rms_norm_diff_weights[];

#endif

/* Kernels of ops/norm.c: layer norm and rms norm over the last dimension, and their gradients. */
#ifndef AN_KERNELS_NORM_NORM_H
#define AN_KERNELS_NORM_NORM_H

#include "kernels/common/list.h"

typedef struct an_norm_attributes {
    double epsilon;
} an_norm_attributes;

AN_DECLARE_KERNELS(layer_norm);
AN_DECLARE_KERNELS(layer_norm_diff_src);
AN_DECLARE_KERNELS(layer_norm_diff_weights);
AN_DECLARE_KERNELS(rms_norm);
AN_DECLARE_KERNELS(rms_norm_diff_src);
AN_DECLARE_KERNELS(rms_norm_diff_weights);

#endif

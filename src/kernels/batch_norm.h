/* Kernels of ops/batch_norm.c: batch norm over all dimensions but 1, by the batch's statistics or by fixed ones. */
#ifndef AN_KERNELS_BATCH_NORM_H
#define AN_KERNELS_BATCH_NORM_H

#include "anneal/experimental.h"

typedef struct an_batch_norm_attributes {
    double momentum; /* of the running statistics, for whoever updates them once a step */
    double epsilon;
} an_batch_norm_attributes;

typedef struct an_batch_norm_fixed_attributes {
    double epsilon;
} an_batch_norm_fixed_attributes;

extern const an_kernel an_kernels_batch_norm[], an_kernels_batch_norm_diff[], an_kernels_batch_norm_fixed[],
    an_kernels_batch_norm_fixed_diff[];

#endif

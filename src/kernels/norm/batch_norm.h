/* Kernels of ops/batch_norm.c: batch norm over all dimensions but 1, by the batch's statistics or by fixed ones. */
#ifndef AN_KERNELS_NORM_BATCH_NORM_H
#define AN_KERNELS_NORM_BATCH_NORM_H

#include "kernels/common/list.h"

typedef struct an_batch_norm_attributes {
    double momentum; /* of the running statistics, for whoever updates them once a step */
    double epsilon;
} an_batch_norm_attributes;

typedef struct an_batch_norm_fixed_attributes {
    double epsilon;
} an_batch_norm_fixed_attributes;

AN_DECLARE_KERNELS(batch_norm);
AN_DECLARE_KERNELS(batch_norm_diff);
AN_DECLARE_KERNELS(batch_norm_fixed);
AN_DECLARE_KERNELS(batch_norm_fixed_diff);

#endif

/* Kernels of ops/softmax.c. */
#ifndef AN_KERNELS_SOFTMAX_H
#define AN_KERNELS_SOFTMAX_H

#include "anneal/experimental.h"

typedef struct an_softmax_attributes {
    int64_t axis; /* ≥ 0 */
} an_softmax_attributes;

extern const an_kernel an_kernels_softmax[];          /* (src) → dst */
extern const an_kernel an_kernels_log_softmax[];      /* (src) → dst */
extern const an_kernel an_kernels_softmax_diff[];     /* (diff_dst, dst) → diff_src */
extern const an_kernel an_kernels_log_softmax_diff[]; /* (diff_dst, dst) → diff_src */

#endif

/* Kernels of ops/softmax.c. */
#ifndef AN_KERNELS_NORM_SOFTMAX_H
#define AN_KERNELS_NORM_SOFTMAX_H

#include "kernels/common/list.h"

typedef struct an_softmax_attributes {
    int64_t axis; /* ≥ 0 */
} an_softmax_attributes;

AN_DECLARE_KERNELS(softmax);          /* (src) → dst */
AN_DECLARE_KERNELS(log_softmax);      /* (src) → dst */
AN_DECLARE_KERNELS(softmax_diff);     /* (diff_dst, dst) → diff_src */
AN_DECLARE_KERNELS(log_softmax_diff); /* (diff_dst, dst) → diff_src */

#endif

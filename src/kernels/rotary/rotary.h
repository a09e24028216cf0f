/* Kernels of ops/rotary.c: rotary position embedding. */
#ifndef AN_KERNELS_ROTARY_ROTARY_H
#define AN_KERNELS_ROTARY_ROTARY_H

#include "kernels/common/list.h"

typedef struct an_rotary_attributes {
    double base;
    int64_t rotated; /* leading part of the head that turns, even */
    double factor;   /* llama3 scaling; 0: none */
    double low_factor, high_factor;
    int64_t original_context;
    bool inverse; /* turn back: the gradient */
} an_rotary_attributes;

AN_DECLARE_KERNELS(rotary);

#endif

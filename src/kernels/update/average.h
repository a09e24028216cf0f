/* Kernels of the moving average of the weights. They work on pages of the flat buffers of a parameter
 * store and belong to no op. */
#ifndef AN_KERNELS_UPDATE_AVERAGE_H
#define AN_KERNELS_UPDATE_AVERAGE_H

#include "kernels/common/list.h"

typedef struct an_average_attributes {
    double decay;
    bool first; /* the average starts as a copy of the weights */
} an_average_attributes;

/* (weights) → average: average + (1 - decay)·(weights - average), each element by itself, every operation rounded. */
AN_DECLARE_KERNELS(average);

/* () → a, b: each gets the elements of the other. */
AN_DECLARE_KERNELS(swap);

#endif

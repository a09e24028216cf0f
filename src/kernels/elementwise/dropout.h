/* Kernels of ops/dropout.c. */
#ifndef AN_KERNELS_ELEMENTWISE_DROPOUT_H
#define AN_KERNELS_ELEMENTWISE_DROPOUT_H

#include "kernels/common/list.h"

typedef struct an_dropout_attributes {
    double rate;  /* what is dropped, at least 0 and below 1 */
    int64_t site; /* the bits of a hash of path and ordinal: which random op of the model this is */
} an_dropout_attributes;

/* An element is kept if its random word is at least this. */
static inline uint32_t an_dropout_threshold(double rate) {
    return (uint32_t)(rate * 0x1p32);
}

AN_DECLARE_KERNELS(dropout);

#endif

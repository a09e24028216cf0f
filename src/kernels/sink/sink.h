/* Kernels of ops/sink.c. */
#ifndef AN_KERNELS_SINK_SINK_H
#define AN_KERNELS_SINK_SINK_H

#include "kernels/common/list.h"

typedef struct an_grad_attributes {
    int64_t parameter;
    bool add; /* g ← g + c instead of g ← c */
} an_grad_attributes;

typedef struct an_exchange_attributes {
    int64_t unit; /* pass/units.h */
} an_exchange_attributes;

AN_DECLARE_KERNELS(grad);
AN_DECLARE_KERNELS(exchange);

#endif

/* The operands and attributes of attention and cached_attention, for passes. */
#ifndef AN_OPS_ATTENTION_H
#define AN_OPS_ATTENTION_H

#include "kernels/attention/attention.h"
#include "ops/ops.h"

#endif

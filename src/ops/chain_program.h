/* The text of a chain (kernels/elementwise/chain.h), read when a node gets its shapes, so that no run does it again. */
#ifndef AN_OPS_CHAIN_PROGRAM_H
#define AN_OPS_CHAIN_PROGRAM_H

#include "ir/op.h"
#include "kernels/elementwise/chain.h"

/* The device's first kernel for an op that has rows for chains; NULL: the op cannot be a stage. */
const an_kernel *an_chain_kernel(const an_context *ctx, const an_op *op);

/* Any text may come in: false if it is no chain over this many inputs, with what is wrong. */
bool an_chain_parse(const an_context *ctx, const char *program, int inputs, an_chain *chain, const char **wrong);

#endif

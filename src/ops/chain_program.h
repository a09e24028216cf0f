/* The text of a chain (kernels/elementwise/chain.h), read when a node gets its shapes, so that no run does it again. */
#ifndef AN_OPS_CHAIN_PROGRAM_H
#define AN_OPS_CHAIN_PROGRAM_H

#include "kernels/elementwise/chain.h"

/* Any text may come in: false if it is no chain over this many inputs, with what is wrong. */
bool an_chain_parse(const an_context *ctx, const char *program, int inputs, an_chain *chain, const char **wrong);

#endif

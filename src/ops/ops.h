/* The records of ops.def, by name (an_op_add) and by number. */
#ifndef AN_OPS_OPS_H
#define AN_OPS_OPS_H

#include "ir/graph.h"
#include "ir/registry.h"

#define AN_OP(name) extern const an_op an_op_##name;
#include "ops/ops.def"
#undef AN_OP

typedef enum an_op_number {
#define AN_OP(name) AN_OP_NUMBER_##name,
#include "ops/ops.def"
#undef AN_OP
    AN_OP_NUMBERS
} an_op_number;

/* The record of an op, found by the graph's context. Gradients and fusions name ops of each other's files:
 * with this, files need not. */
#define AN_BUILTIN(g, op) ((g)->ctx->ops->builtin[AN_OP_NUMBER_##op])

/* Every op of ops.def by its number, NULL at the end. */
extern const an_op *const an_op_table[];

#endif

/* The ops that graphs of a context may have. A context is created with the built-in ones (exec/context.c). */
#ifndef AN_IR_REGISTRY_H
#define AN_IR_REGISTRY_H

#include "base/context.h"
#include "ir/op.h"

typedef struct an_op_registry {
    const an_op *const *builtin; /* by number (ops/ops.h), NULL at the end */
} an_op_registry;

/* NULL: no op has that name. */
const an_op *an_op_find(const an_context *ctx, const char *name, size_t length);

/* All ops, one after the other; NULL behind the last. */
const an_op *an_op_at(const an_context *ctx, size_t index);

#endif

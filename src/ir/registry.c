#include "ir/registry.h"

#include <string.h>

const an_op *an_op_at(const an_context *ctx, size_t index) {
    return ctx->ops->builtin[index];
}

const an_op *an_op_find(const an_context *ctx, const char *name, size_t length) {
    const an_op *op;
    for (size_t i = 0; (op = an_op_at(ctx, i)); i++) /* about a hundred names: the parser asks once a line */
        if (strlen(op->name) == length && !memcmp(op->name, name, length)) return op;
    return NULL;
}

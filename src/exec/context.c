/* Creates a context as programs use it: the context of base, with the built-in ops and the host's kernels for them. */
#include "base/context.h"

#include <string.h>

#include "base/status.h"
#include "kernels/update/update.h"
#include "ops/ops.h"

static const an_op_registry builtin_ops = {.builtin = an_op_table, .builtin_count = AN_OP_NUMBERS};

/* Kernels that belong to no op: the end of a step. */
static const struct {
    const char *name;
    const an_kernel *kernels[AN_LEVELS];
} other_kernels[] = {{"update", AN_KERNELS(update)}, {"square_sums", AN_KERNELS(square_sums)}};

static const an_kernel *host_kernels(const an_context *ctx, const char *name) {
    const an_op *op = an_op_find(ctx, name, strlen(name));
    if (op && !(op->flags & AN_OP_OWN)) return an_op_kernels(op, ctx->isa);
    for (size_t i = 0; i < sizeof other_kernels / sizeof *other_kernels; i++)
        if (!strcmp(other_kernels[i].name, name)) return an_level_kernels(other_kernels[i].kernels, ctx->isa);
    return NULL;
}

an_status an_context_create(an_context **context, const an_context_options *options) {
    AN_NEED_IN(NULL, context);
    const an_status status = an_context_begin(context, options);
    if (status != AN_OK) return status;
    (*context)->ops = &builtin_ops;
    (*context)->host_kernels = host_kernels;
    return AN_OK;
}

/* Creates a context that computes: the context of base, with the built-in ops and the host's kernels for them. */
#include "exec/context.h"

#include <string.h>

#include "base/status.h"
#include "base/structs.h"
#include "comm/mesh.h"
#include "comm/verdict.h"
#include "kernels/update/average.h"
#include "kernels/update/update.h"
#include "ops/ops.h"

static const an_op_registry builtin_ops = {.builtin = an_op_table, .builtin_count = AN_OP_NUMBERS};

/* Kernels that belong to no op: the end of a step. */
static const struct {
    const char *name;
    const an_kernel *kernels[AN_LEVELS];
} other_kernels[] = {{"update", AN_KERNELS(update)},
                     {"square_sums", AN_KERNELS(square_sums)},
                     {"average", AN_KERNELS(average)},
                     {"swap", AN_KERNELS(swap)}};

static const an_kernel *host_kernels(const an_context *ctx, const char *name) {
    const an_op *op = an_op_find(ctx, name, strlen(name));
    if (op && !(op->flags & AN_OP_OWN)) return an_op_kernels(op, ctx->isa);
    for (size_t i = 0; i < sizeof other_kernels / sizeof *other_kernels; i++)
        if (!strcmp(other_kernels[i].name, name)) return an_level_kernels(other_kernels[i].kernels, ctx->isa);
    return NULL;
}

/* What one rank cannot begin, none of them begins: the others would wait for it in MPI. A record that is
 * not whole cannot be asked. */
static an_status vote(an_context **context, const an_context_options *given, an_status status) {
    an_context_options options;
    AN_TRY_RETURN(an_context_options_read(NULL, &options, given));
    an_comm *comm = options.communicator;
    if (!comm || an_comm_mistake(comm)) return status;
    const an_status all = an_comm_vote(comm, status);
    if (all != AN_OK) an_context_destroy(context);
    return all;
}

an_status an_context_make(an_context **context, const an_context_options *options) {
    const an_status status = vote(context, options, an_context_begin(context, options));
    if (status != AN_OK) return status;
    (*context)->ops = &builtin_ops;
    (*context)->host_kernels = host_kernels;
    an_status mesh = an_mesh_begin(*context);
    if (mesh == AN_OK) mesh = an_start_agree(*context, options);
    if (mesh == AN_OK) return AN_OK;
    const an_status failed = AN_ERROR(NULL, mesh, "%s", an_last_error(*context));
    an_context_destroy(context);
    return failed;
}

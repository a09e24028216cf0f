/* The ops that graphs of a context may have, and their kernels. A context is created with the built-in ones
 * (exec/context.c); the program may add others (ops/own.c). */
#ifndef AN_IR_REGISTRY_H
#define AN_IR_REGISTRY_H

#include "base/context.h"
#include "base/memory.h"
#include "ir/op.h"

typedef struct an_added_op {
    const an_op *op;
    const struct an_added_op *next;
} an_added_op;

typedef struct an_added_kernel {
    const an_op *op;
    an_kernel kernel;
    const struct an_added_kernel *next;
} an_added_kernel;

typedef struct an_op_registry {
    const an_op *const *builtin; /* by number (ops/ops.h) */
    size_t builtin_count;
    /* What the program added, the last one first. */
    const an_added_op *ops;
    const an_added_kernel *kernels;
    an_arena arena; /* holds it */
} an_op_registry;

/* NULL: no op has that name. */
const an_op *an_op_find(const an_context *ctx, const char *name, size_t length);
/* The same for a file, which may be older than the name. */
const an_op *an_op_find_written(const an_context *ctx, const char *name, size_t length);

/* All ops, one after the other; NULL behind the last. */
const an_op *an_op_at(const an_context *ctx, size_t index);

/* ---- kernels ---- */

/* The kernels that a plan may choose from for an op, one after the other, best first: those that the program added,
 * then those of the record if the op is the program's own, else those of the context's device. */
typedef struct an_choices {
    const an_op *op;
    const an_added_kernel *added;
    const an_kernel *listed;
} an_choices;

an_choices an_op_choices(const an_context *ctx, const an_op *op);
/* NULL behind the last. `is_added` may be NULL. */
const an_kernel *an_choices_next(an_choices *choices, bool *is_added);

/* Whether there are kernels for an op at all. */
bool an_op_has_kernels(const an_context *ctx, const an_op *op);

/* Whether an op is computed as the library does it: it is built in, and no kernel was added. Only such ops are fused,
 * because a fused kernel computes its parts by itself. */
bool an_op_is_plain(const an_context *ctx, const an_op *op);

/* ---- adding ---- */

/* The context's own registry, which can be added to; made of the built-in one at first. It lives until
 * the context is destroyed. */
an_status an_registry_own(an_context *ctx, an_op_registry **registry);

/* A context that works for another one knows what that one knows, now, and must not outlive it. */
void an_registry_share(an_context *ctx, const an_context *from);

#endif

#include "ir/registry.h"

#include <string.h>

const an_op *an_op_at(const an_context *ctx, size_t index) {
    const an_op_registry *r = ctx->ops;
    if (index < r->builtin_count) return r->builtin[index];
    const an_added_op *added = r->ops;
    for (index -= r->builtin_count; added && index; index--) added = added->next;
    return added ? added->op : NULL;
}

static bool is_called(const char *known, const char *name, size_t length) {
    return known && !strncmp(known, name, length) && !known[length];
}

const an_op *an_op_find(const an_context *ctx, const char *name, size_t length) {
    const an_op_registry *r = ctx->ops;
    for (size_t i = 0; i < r->builtin_count; i++) /* about a hundred names: the parser asks once a line */
        if (is_called(r->builtin[i]->name, name, length)) return r->builtin[i];
    for (const an_added_op *added = r->ops; added; added = added->next)
        if (is_called(added->op->name, name, length)) return added->op;
    return NULL;
}

const an_op *an_op_find_written(const an_context *ctx, const char *name, size_t length) {
    const an_op_registry *r = ctx->ops;
    const an_op *op = an_op_find(ctx, name, length);
    for (size_t i = 0; !op && i < r->builtin_count; i++)
        if (is_called(r->builtin[i]->former, name, length)) op = r->builtin[i];
    return op;
}

/* ---- kernels ---- */

static const an_added_kernel *next_for(const an_op *op, const an_added_kernel *added) {
    while (added && added->op != op) added = added->next;
    return added;
}

an_choices an_op_choices(const an_context *ctx, const an_op *op) {
    return (an_choices){.op = op,
                        .added = next_for(op, ctx->ops->kernels),
                        .listed = op->flags & AN_OP_OWN ? an_op_kernels(op, ctx->isa)
                                                        : ctx->device->kernels(ctx->device, ctx, op->name)};
}

const an_kernel *an_choices_next(an_choices *choices, bool *is_added) {
    const an_added_kernel *added = choices->added;
    if (is_added) *is_added = added != NULL;
    if (added) {
        choices->added = next_for(choices->op, added->next);
        return &added->kernel;
    }
    return choices->listed && choices->listed->name ? choices->listed++ : NULL;
}

bool an_op_has_kernels(const an_context *ctx, const an_op *op) {
    an_choices choices = an_op_choices(ctx, op);
    return an_choices_next(&choices, NULL) != NULL;
}

bool an_op_is_plain(const an_context *ctx, const an_op *op) {
    return !(op->flags & AN_OP_OWN) && !next_for(op, ctx->ops->kernels);
}

/* ---- adding ---- */

static void release_own(an_context *ctx) {
    an_op_registry *r = ctx->own_ops;
    an_arena_destroy(&r->arena);
    an_release(ctx, (void **)&ctx->own_ops, 1, sizeof *r);
}

an_status an_registry_own(an_context *ctx, an_op_registry **registry) {
    if (!ctx->own_ops) {
        an_op_registry *r = NULL;
        AN_TRY_RETURN(an_alloc(ctx, (void **)&r, 1, sizeof *r));
        *r = *ctx->ops;
        an_arena_init(&r->arena, ctx);
        ctx->ops = ctx->own_ops = r;
        ctx->own_ops_release = release_own;
    }
    *registry = ctx->own_ops;
    return AN_OK;
}

void an_registry_share(an_context *ctx, const an_context *from) {
    ctx->ops = from->ops;
}

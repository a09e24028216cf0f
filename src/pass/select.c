/* select: a kernel for every node, the first of its op's that applies, or the one asked for by name. Replaces
 * dispatch at run time. Also asks each kernel for its scratch. */
#include <stdio.h>
#include <string.h>

#include "ir/kernel_name.h"
#include "ir/registry.h"
#include "pass/call.h"
#include "pass/leaf_slots.h"
#include "pass/pass.h"

/* The name that the list "op=name,op=name" gives for an op; length 0: none. */
static const char *forced(const char *list, const char *op, size_t *length) {
    size_t op_length = strlen(op);
    *length = 0;
    while (list && *list) {
        size_t entry = strcspn(list, ",");
        if (entry > op_length && !memcmp(list, op, op_length) && list[op_length] == '=') {
            *length = entry - op_length - 1;
            return list + op_length + 1;
        }
        list += entry + (list[entry] == ',');
    }
    return NULL;
}

/* Every entry must name an op, or a misspelt one would be passed over in silence. */
static an_status check_list(an_context *ctx, const char *list) {
    while (list && *list) {
        size_t entry = strcspn(list, ","), name = strcspn(list, "=,");
        if (list[name] != '=')
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "'%.*s' does not choose a kernel: write OP=KERNEL", (int)entry, list);
        if (!an_op_find(ctx, list, name))
            return AN_ERROR(ctx, AN_ERR_UNKNOWN, "there is no op '%.*s' to choose a kernel for", (int)name, list);
        list += entry + (list[entry] == ',');
    }
    return AN_OK;
}

/* The same for a node: a kernel that is chosen for an op is chosen for its gradient ops too (attention,
 * attention_diff), unless the list has them by their own names. *from is the op that the list names. */
static const char *forced_for(const an_context *ctx, const char *list, const char *op, const char **from,
                              size_t *length) {
    const char *name = forced(list, op, length), *gradient = strstr(op, "_diff");
    *from = op;
    if (name || !gradient) return name;
    const an_op *forward = an_op_find(ctx, op, (size_t)(gradient - op));
    if (!forward) return NULL;
    *from = forward->name;
    return forced(list, forward->name, length);
}

/* Why the kernel that was asked for cannot be taken, and which ones there are. */
static an_status refuse(const an_graph *g, const an_node *node, const char *from, const char *name, size_t length) {
    char others[128] = "";
    an_choices choices = an_op_choices(g->ctx, node->op);
    for (const an_kernel *k; (k = an_choices_next(&choices, NULL));) {
        const size_t used = strlen(others);
        snprintf(others + used, sizeof others - used, "%s%s", used ? ", " : "", k->name);
    }
    if (from != node->op->name)
        return AN_ERROR(g->ctx, AN_ERR_UNKNOWN,
                        "%s=%.*s also chooses the kernel of %s, the gradient of %s, which has no kernel '%.*s' for %s "
                        "at '%s'; it has %s: add %s=KERNEL to choose another one",
                        from, (int)length, name, node->op->name, from, (int)length, name,
                        AN_DESCRIBE(g, &node->outputs[0]), node->path, others, node->op->name);
    return AN_ERROR(g->ctx, AN_ERR_UNKNOWN, "%s has no kernel '%.*s' for %s at '%s'; it has %s", node->op->name,
                    (int)length, name, AN_DESCRIBE(g, &node->outputs[0]), node->path, others);
}

static an_leaf_cut most_leaves(const an_graph *g, const an_node *node, const an_pass_options *options) {
    an_leaf_cut maximum = {.count = options->leaves, .samples = 1};
    if (node->leaf_sum)
        (void)an_dimensions_maximum(&g->dimensions, an_symbol_dim((an_graph *)(uintptr_t)g, options->samples),
                                    &maximum.samples);
    return maximum;
}

static an_status choose(an_graph *g, an_node *node, an_node_call *c, const an_pass_options *options) {
    const char *list = options->kernels;
    an_context *ctx = g->ctx;
    size_t length;
    const char *from, *name = forced_for(ctx, list, node->op->name, &from, &length);
    AN_TRY_RETURN(an_node_call_make(g, node, c));
    if (!an_op_has_kernels(ctx, node->op))
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "device '%s' has no kernel for %s, which the model needs at '%s'",
                        ctx->device->name, node->op->name, node->path);
    const an_kernel *usual = NULL; /* the first that applies and that the program did not add */
    bool is_added;
    an_choices choices = an_op_choices(ctx, node->op);
    node->kernel = NULL;
    for (const an_kernel *k; !node->kernel && (k = an_choices_next(&choices, &is_added));) {
        const bool wanted = !name || an_kernel_has_name(k->name, name, length);
        if ((!wanted && (usual || is_added)) || (k->applies && !k->applies(&c->call))) continue;
        if (!usual && !is_added) usual = k;
        if (wanted) node->kernel = k;
    }
    node->is_forced = node->kernel != usual;
    if (!node->kernel && name) return refuse(g, node, from, name, length);
    if (!node->kernel)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s has no kernel for %s at '%s'", node->op->name,
                        AN_DESCRIBE(g, &node->outputs[0]), node->path);
    const an_leaf_cut maximum = most_leaves(g, node, options);
    if (node->leaf_sum && node->kernel->by_leaves) c->call.leaves = &maximum;
    size_t scratch = node->kernel->scratch ? node->kernel->scratch(&c->call) : 0;
    if (scratch == AN_SCRATCH_FAILED) return ctx->error.status;
    if (node->leaf_sum && !node->kernel->by_leaves) scratch += an_leaf_slots_bytes(node, c->call.dst, options->leaves);
    if (scratch > INT64_MAX / 4)
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "%s at '%s' needs more scratch than fits in memory", node->op->name,
                        node->path);
    node->scratch_bytes = (int64_t)scratch;
    return AN_OK;
}

/* The call has room for every operand that a node may have, so it does not lie on the stack: oneDNN needs that
 * where kernels are chosen. */
an_status an_pass_select(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    an_node_call *c = NULL;
    AN_TRY(check_list(ctx, options->kernels));
    AN_TRY(an_alloc(ctx, (void **)&c, 1, sizeof *c));
    for (an_node *node = g->first; node; node = node->next)
        if (node->op->kernels[0]) AN_TRY(choose(g, node, c, options));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&c, 1, sizeof *c);
    return status;
}

/* Checks a whole graph: what builders promised and what passes must keep. */
#include "ir/verify.h"

#include <stdlib.h>
#include <string.h>

#include "base/guard.h"

static an_status broken(const an_graph *g, const an_node *node, const char *what) {
    return AN_ERROR(g->ctx, AN_ERR_STATE, "graph '%s', node %u (%s) at '%s': %s", g->name, node->number, node->op->name,
                    node->path, what);
}

/* Every use is in its result's list, and lists are as long as there are uses. */
static an_status check_uses(const an_graph *g, const an_node *node) {
    for (int i = 0; i < node->output_count; i++) {
        const an_result *r = &node->outputs[i];
        const an_use *previous = NULL;
        const an_result *base = node->op->flags & AN_OP_VIEW ? an_node_input(node, 0) : r;
        if (!base || r->root != (base == r ? r : base->root))
            return broken(g, node, "its root differs from the root of its input");
        for (const an_use *u = r->first_use; u; previous = u, u = u->next)
            if (u->result != r || u->previous != previous || &u->node->inputs[u->slot] != u)
                return broken(g, node, "its list of uses is damaged");
        if (r->last_use != previous) return broken(g, node, "its list of uses is damaged");
    }
    return AN_OK;
}

/* What infer says now must be what the node has: passes that change inputs must keep types. Only autocast chooses the
 * type of an output that may be low. */
static an_status check_inference(an_graph *g, an_node *node) {
    an_dtype chosen[AN_MAX_OUTPUTS] = {AN_DTYPE_NONE};
    for (int i = 0; i < node->output_count; i++)
        if (node->op->low_out >> i & 1) chosen[i] = node->outputs[i].dtype;
    for (int i = 0; i < node->output_count; i++) {
        an_result *r = &node->outputs[i], before = *r;
        if (i == 0) AN_TRY_RETURN(node->op->infer(g, node));
        if (an_dtype_is_float(chosen[i]) && an_dtype_is_float(r->dtype)) r->dtype = chosen[i];
        if (before.dtype != r->dtype || before.ndims != r->ndims ||
            memcmp(before.dims, r->dims, (size_t)r->ndims * sizeof *r->dims))
            return broken(g, node, "its type does not follow from its inputs");
    }
    return AN_OK;
}

an_status an_graph_check(an_graph *g) {
    int64_t position = 0;
    for (an_node *n = g->first; n; n = n->next) n->mark = -1;
    for (an_node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->input_count; i++) {
            const an_result *r = n->inputs[i].result;
            if (r && r->node->mark < 0)
                return broken(g, n, "an input is defined after its use: the graph has a cycle or is out of order");
        }
        AN_TRY_RETURN(check_uses(g, n));
        AN_TRY_RETURN(check_inference(g, n));
        n->mark = position++;
    }
    return AN_OK;
}

typedef struct {
    const char *name;
    const an_node *node;
} named;

static int by_name(const void *a, const void *b) {
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

/* Inputs, states and parameters are found by name, so each name occurs once. */
static an_status check_names(an_graph *g) {
    an_status status;
    an_context *ctx = g->ctx;
    size_t count = g->parameter_count + g->source_count, n = 0;
    named *names = NULL;
    AN_TRY(an_alloc(ctx, (void **)&names, count, sizeof *names));
    for (size_t i = 0; i < g->parameter_count; i++) names[n++] = (named){g->parameters[i].name, g->parameters[i].node};
    for (size_t i = 0; i < g->source_count; i++)
        names[n++] =
            (named){*(const char **)an_node_attribute(g->sources[i], "name", AN_ATTRIBUTE_STRING), g->sources[i]};
    if (n) qsort(names, n, sizeof *names, by_name);
    for (size_t i = 1; i < n; i++)
        AN_CHECK(ctx, strcmp(names[i - 1].name, names[i].name), AN_ERR_ARGUMENT,
                 "the name '%s' occurs twice, as %s and as %s: use different names, or use one value twice to tie them",
                 names[i].name, names[i - 1].node->op->name, names[i].node->op->name);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&names, count, sizeof *names);
    return status;
}

an_status an_graph_verify(an_graph *graph) {
    AN_GUARD;
    AN_NEED(graph);
    an_context *ctx = graph->ctx;
    graph->is_verified = false;
    if (graph->status != AN_OK) return AN_ERROR(ctx, graph->status, "%s", graph->message);
    if (graph->block != 0)
        return AN_ERROR(ctx, AN_ERR_ORDER, "graph '%s': '%s' is still open: call an_block_end or an_scope_end",
                        graph->name, graph->blocks[graph->block].path);
    for (const an_node *n = graph->first; n; n = n->next)
        if (n->op->flags & AN_OP_BINDS_GRADIENT)
            return an_node_mistake(graph, n, AN_ERR_ARGUMENT, "a model cannot contain gradients: its plan adds them");
    AN_TRY_RETURN(check_names(graph));
    AN_TRY_RETURN(an_graph_check(graph));
    graph->is_verified = true;
    return AN_OK;
}

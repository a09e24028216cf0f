/* order: by demand from the sinks, in their order, so that a value is made just before its first use and gradients are
 * handed over as soon as they are finished. */
#include "pass/pass.h"

enum { WAITING = -1, DONE = -2 }; /* else mark is the next input to look at */

an_status an_pass_order(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    an_node **stack = NULL, *sink = NULL;
    size_t count = g->node_count, depth = 0, sinks = 0;
    an_node **order = NULL;
    (void)options;
    AN_TRY(an_alloc(ctx, (void **)&stack, count, sizeof *stack));
    AN_TRY(an_alloc(ctx, (void **)&order, count, sizeof *order));
    for (an_node *n = g->first; n; n = n->next) {
        n->mark = WAITING;
        if (n->op->flags & AN_OP_SINK) order[sinks++] = n;
    }
    for (size_t i = 0; i < sinks; i++) {
        sink = order[i];
        sink->mark = 0;
        stack[depth++] = sink;
        while (depth > 0) {
            an_node *n = stack[depth - 1];
            if (n->mark == n->input_count) {
                n->mark = DONE;
                an_graph_move_last(g, n);
                depth--;
                continue;
            }
            const an_result *r = n->inputs[n->mark++].result;
            if (!r || r->node->mark == DONE) continue;
            AN_CHECK(ctx, r->node->mark == WAITING, AN_ERR_STATE, "graph '%s' has a cycle through %s at '%s'", g->name,
                     r->node->op->name, r->node->path);
            r->node->mark = 0;
            stack[depth++] = r->node;
        }
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&order, count, sizeof *order);
    an_release(ctx, (void **)&stack, count, sizeof *stack);
    return status;
}

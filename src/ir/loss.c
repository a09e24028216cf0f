/* Marks the loss of a graph, and checks the path to it. */
#include "ir/graph.h"

/* A mean over a symbol of the targets would make a mean of means: the divisor belongs to the step. */
static const an_node *find_mean(an_graph *g, const an_node *node, const an_result *targets) {
    const an_int_list *axes = an_node_attribute(node, "axes", AN_ATTRIBUTE_INTS);
    const an_result *src = an_node_input(node, 0);
    if (!(node->op->flags & AN_OP_MEAN) || !axes) return NULL;
    for (int i = 0; i < axes->count; i++)
        for (int d = 0; d < targets->ndims; d++)
            if (an_dimensions_share_symbol(&g->dimensions, src->dims[axes->values[i]], targets->dims[d])) return node;
    return NULL;
}

void an_graph_set_loss(an_graph *graph, an_value loss, an_value targets) {
    AN_NEED_OR(, graph);
    const an_result *l = an_graph_result(graph, loss);
    const an_result *t = targets == AN_NONE ? NULL : an_graph_result(graph, targets);
    const an_node *mean = NULL;
    an_builder_begin(graph);
    if (graph->status != AN_OK) {
        an_builder_end(graph, 0);
        return;
    }
    if (!l || l->ndims != 0 || (l->dtype != AN_DTYPE_F32 && l->dtype != AN_DTYPE_F64)) {
        an_graph_mistake(graph, AN_ERR_SHAPE,
                         "the loss is %s; it must be one f32 or f64 number, a sum over the targets",
                         AN_DESCRIBE(graph, l));
    } else if (targets != AN_NONE && (!t || t->node->op->storage != AN_STORAGE_INPUT)) {
        an_graph_mistake(graph, AN_ERR_ARGUMENT,
                         "the targets must be an input, so that they can be counted on the host");
    } else {
        if (t) { /* one walk back from the loss: nodes after it in the order cannot reach it */
            for (an_node *n = graph->first; n; n = n->next) n->mark = n == l->node;
            for (an_node *n = graph->last; n && !mean; n = n->previous) {
                if (!n->mark) continue;
                mean = find_mean(graph, n, t);
                for (int i = 0; i < n->input_count; i++)
                    if (n->inputs[i].result) n->inputs[i].result->node->mark = 1;
            }
        }
        if (mean)
            an_node_mistake(graph, mean, AN_ERR_ARGUMENT,
                            "a mean over %s on the way to the loss would make the step a mean of means: use a sum "
                            "instead; the step divides by the number of targets",
                            AN_DESCRIBE(graph, an_node_input(mean, 0)));
        graph->loss = loss;
        graph->targets = targets;
    }
    an_builder_end(graph, 0);
}

/* prune: removes what no sink needs. */
#include "pass/pass.h"

an_status an_pass_prune(an_graph *g, const an_pass_options *options) {
    (void)options;
    for (an_node *n = g->first; n; n = n->next) n->mark = (n->op->flags & AN_OP_SINK) != 0;
    for (an_node *n = g->last, *previous; n; n = previous) {
        previous = n->previous;
        if (!n->mark) {
            an_graph_remove(g, n); /* its consumers, which come after it, are gone */
            continue;
        }
        for (int i = 0; i < n->input_count; i++)
            if (n->inputs[i].result) n->inputs[i].result->node->mark = 1;
    }
    return AN_OK;
}

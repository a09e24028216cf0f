/* Answers questions about a whole graph, for programs that show it. */
#include <string.h>

#include "ir/graph.h"

#include "ir/structs.h"

const char *an_graph_symbol_name(const an_graph *graph, int index) {
    AN_NEED_OR(NULL, graph);
    const an_dimensions *d = &graph->dimensions;
    return index >= 0 && (size_t)index < d->symbol_count ? d->symbols[index].name : NULL;
}

int64_t an_graph_parameter_elements(const an_graph *graph) {
    AN_NEED_OR(0, graph);
    int64_t total = 0;
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const an_result *r = &graph->parameters[i].node->outputs[0];
        int64_t elements = 1;
        for (int d = 0; d < r->ndims; d++)
            if (!an_multiply_i64(elements, r->dims[d], &elements)) return INT64_MAX; /* a plan refuses such a graph */
        if (!an_add_i64(total, elements, &total)) return INT64_MAX;
    }
    return total;
}

an_status an_graph_info_get(const an_graph *graph, an_graph_info *info) {
    AN_NEED(graph, info);
    an_graph_info own = {.parameters = (int64_t)graph->parameter_count,
                         .elements = an_graph_parameter_elements(graph),
                         .has_loss = graph->loss,
                         .has_targets = an_graph_result(graph, graph->targets) != NULL};
    for (size_t i = graph->parameter_count; i-- > 0;) { /* a frozen one may be stored in a lower type */
        const an_result *r = &graph->parameters[i].node->outputs[0];
        if (own.dtype == AN_DTYPE_NONE || r->storage == AN_STORAGE_MASTER) own.dtype = r->dtype;
    }
    for (const an_node *n = graph->first; n; n = n->next) {
        own.nodes++;
        if (strcmp(n->op->name, "batch_norm") != 0) continue;
        own.batch_norms++;
        own.row_batch_norms += an_node_input(n, 0)->ndims == 2;
    }
    return an_graph_info_write(graph->ctx, info, &own);
}

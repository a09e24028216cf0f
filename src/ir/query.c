/* Questions about a whole graph, for programs that show it. */
#include "ir/graph.h"

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

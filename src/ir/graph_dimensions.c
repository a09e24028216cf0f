/* Dimensions for builders: arithmetic on a graph's table, where a mistake sticks to the graph. */
#include <stdio.h>
#include <string.h>

#include "ir/graph.h"

/* A dimension of another graph, or a negative number, would be looked up where there is nothing. */
an_status an_graph_expect_dimension(an_graph *g, an_dim dim) {
    if (dim >= -(an_dim)g->dimensions.expression_count) return AN_OK;
    return an_graph_mistake(g, AN_ERR_SHAPE,
                            "the dimension %lld does not belong to graph '%s': sizes cannot be negative",
                            (long long)dim, g->name);
}

static an_dim dimension_result(an_graph *g, an_status status, an_dim dim) {
    if (status == AN_OK) return dim;
    char message[AN_MESSAGE_BYTES / 2];
    snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1, g->ctx->error.message);
    an_graph_mistake(g, status, "%s", message);
    return 0;
}

#define DIMENSION(name, function)                                                                                 \
    an_dim name(an_graph *graph, an_dim a, an_dim b) {                                                            \
        AN_NEED_OR(0, graph);                                                                                     \
        an_dim dim = 0;                                                                                           \
        if (graph->status != AN_OK || an_graph_expect_dimension(graph, a) || an_graph_expect_dimension(graph, b)) \
            return 0;                                                                                             \
        an_status status = function(&graph->dimensions, &graph->arena, a, b, &dim);                               \
        return dimension_result(graph, status, dim);                                                              \
    }
DIMENSION(an_graph_add_dims, an_dimensions_add)
DIMENSION(an_graph_subtract_dims, an_dimensions_subtract)
DIMENSION(an_graph_multiply_dims, an_dimensions_multiply)
DIMENSION((an_dim_add), an_dimensions_add)
DIMENSION((an_dim_subtract), an_dimensions_subtract)
DIMENSION((an_dim_multiply), an_dimensions_multiply)

an_dim(an_dim_window)(an_graph *graph, an_dim a, int64_t size, int64_t stride) {
    AN_NEED_OR(0, graph);
    an_dim dim = 0;
    if (graph->status != AN_OK || an_graph_expect_dimension(graph, a)) return 0;
    an_status status = an_dimensions_window(&graph->dimensions, &graph->arena, a, size, stride, &dim);
    return dimension_result(graph, status, dim);
}

static bool is_name(const char *name) {
    if (!name || !((*name | 32) >= 'a' && (*name | 32) <= 'z')) return false;
    for (; *name; name++)
        if (!(((*name | 32) >= 'a' && (*name | 32) <= 'z') || (*name >= '0' && *name <= '9') || *name == '_'))
            return false;
    return true;
}

an_dim(an_symbol_dim)(an_graph *graph, const char *name) {
    AN_NEED_OR(0, graph);
    an_dim dim = 0;
    if (graph->status != AN_OK) return 0;
    if (!is_name(name)) {
        an_graph_mistake(graph, AN_ERR_ARGUMENT, "'%s' is not a valid symbol name: use letters, digits and _",
                         name ? name : "");
        return 0;
    }
    an_status status = an_dimensions_symbol(&graph->dimensions, &graph->arena, name, strlen(name), &dim);
    return dimension_result(graph, status, dim);
}

an_status an_graph_bind(an_graph *g, const char *symbol, int64_t maximum) {
    if (maximum < 1)
        return AN_ERROR(g->ctx, AN_ERR_ARGUMENT, "symbol '%s' was set to %lld, but sizes are at least 1", symbol,
                        (long long)maximum);
    for (size_t i = 0; i < g->dimensions.symbol_count; i++) {
        if (strcmp(g->dimensions.symbols[i].name, symbol)) continue;
        g->dimensions.symbols[i].maximum = g->dimensions.symbols[i].value = maximum;
        return AN_OK;
    }
    return AN_ERROR(g->ctx, AN_ERR_UNKNOWN, "graph '%s' has no symbol '%s'", g->name, symbol);
}

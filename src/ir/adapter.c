#include "ir/adapter.h"

#include <string.h>

#include "base/word.h"

bool an_adapter_has(const char *parameter) {
    return an_ends_in(parameter, AN_ADAPTER_FIRST) || an_ends_in(parameter, AN_ADAPTER_SECOND) ||
           an_ends_in(parameter, AN_ADAPTER_MAGNITUDE);
}

bool an_graph_has_adapter(const an_graph *graph) {
    for (size_t i = 0; i < graph->parameter_count; i++)
        if (an_adapter_has(graph->parameters[i].name)) return true;
    return false;
}

double an_adapter_scale(const an_adapter *adapter) {
    return adapter->alpha / (adapter->rslora ? __builtin_sqrt((double)adapter->rank) : (double)adapter->rank);
}

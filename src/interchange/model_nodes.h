/* What exports of a model's graph ask of its nodes. */
#ifndef AN_INTERCHANGE_MODEL_NODES_H
#define AN_INTERCHANGE_MODEL_NODES_H

#include <string.h>

#include "ir/graph.h"
#include "ops/sink.h"
#include "ops/source.h"

/* A graph with a parameter of q8_0, a type that neither PyTorch nor ONNX has. */
static inline bool an_graph_has_blocks(const an_graph *graph) {
    for (size_t i = 0; i < graph->parameter_count; i++)
        if (graph->parameters[i].node->outputs[0].dtype == AN_DTYPE_Q8_0) return true;
    return false;
}

/* An output that evaluation and prediction compute. */
static inline bool an_node_is_wanted(const an_node *node) {
    if (strcmp(node->op->name, "output") != 0) return false;
    const an_output_attributes *a = node->attributes;
    return !a->training && !a->state;
}

static inline bool an_node_is_parameter(const an_node *node) {
    return !strcmp(node->op->name, "param") || !strcmp(node->op->name, "run_state");
}

static inline bool an_node_is_constant(const an_node *node) {
    return !strcmp(node->op->name, "constant");
}

static inline bool an_node_is_input(const an_node *node) {
    return node->op->storage == AN_STORAGE_INPUT || node->op->storage == AN_STORAGE_SCALAR;
}

static inline const char *an_node_name(const an_node *node) {
    return *(const char *const *)an_node_attribute(node, "name", AN_ATTRIBUTE_STRING);
}

/* ---- attributes by name; 0 where the op has none of that name ---- */

static inline int64_t an_node_integer(const an_node *node, const char *name) {
    const int64_t *found = an_node_attribute(node, name, AN_ATTRIBUTE_INT);
    return found ? *found : 0;
}

static inline bool an_node_flag(const an_node *node, const char *name) {
    const bool *found = an_node_attribute(node, name, AN_ATTRIBUTE_BOOL);
    return found && *found;
}

static inline double an_node_real(const an_node *node, const char *name) {
    const double *found = an_node_attribute(node, name, AN_ATTRIBUTE_FLOAT);
    return found ? *found : 0;
}

#endif

/* Sinks: named outputs, contributions to gradients, and their exchange between ranks. */
#include "ops/sink.h"

#include <string.h>

#include "ops/common.h"
#include "ops/source.h"

static an_status output_infer(an_graph *g, an_node *node) {
    const an_output_attributes *a = node->attributes;
    if (!an_node_input(node, 0)) return an_node_mistake(g, node, AN_ERR_ARGUMENT, "an output needs a value");
    return a->name && *a->name ? AN_OK : an_node_mistake(g, node, AN_ERR_ARGUMENT, "an output needs a name");
}

static const an_attribute output_attributes[] = {AN_ATTRIBUTE(an_output_attributes, name, STRING),
                                                 AN_ATTRIBUTE(an_output_attributes, training, BOOL),
                                                 AN_ATTRIBUTE(an_output_attributes, state, BOOL),
                                                 AN_ATTRIBUTE(an_output_attributes, prediction, BOOL),
                                                 {0}};

/* output: the host reads the value after the run, so it stays where it is to the end. */
const an_op an_op_output = {
    .name = "output",
    .inputs_min = 1,
    .inputs_max = 1,
    .flags = AN_OP_SINK | AN_OP_KEEPS_INPUTS,
    .attribute_bytes = sizeof(an_output_attributes),
    .attributes = output_attributes,
    .infer = output_infer,
};

static an_status grad_infer(an_graph *g, an_node *node) {
    const an_grad_attributes *a = node->attributes;
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    if (a->parameter < 0 || (size_t)a->parameter >= g->parameter_count)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "parameter %lld does not exist", (long long)a->parameter);
    const an_node *param = g->parameters[a->parameter].node;
    const an_param_attributes *p = param->attributes;
    const an_result *contribution = an_node_input(node, 0);
    an_result_set(&node->outputs[0], p->dtype, p->dims.count, p->dims.values);
    for (int i = 0; i < p->dims.count || contribution->ndims != p->dims.count; i++)
        if (contribution->ndims != p->dims.count || contribution->dims[i] != p->dims.values[i])
            return an_node_mistake(g, node, AN_ERR_SHAPE, "the gradient of '%s' is %s, but the parameter is %s",
                                   p->name, AN_DESCRIBE(g, contribution), AN_DESCRIBE(g, &param->outputs[0]));
    return AN_OK;
}

static const an_attribute grad_attributes[] = {AN_ATTRIBUTE(an_grad_attributes, parameter, INT),
                                               AN_ATTRIBUTE(an_grad_attributes, extra, INT),
                                               AN_ATTRIBUTE(an_grad_attributes, add, BOOL),
                                               {0}};

/* grad: its output is the parameter's place in the gradient buffer that is bound when it runs. */
const an_op an_op_grad = {
    .name = "grad",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .flags = AN_OP_SINK | AN_OP_NO_COPY | AN_OP_ACCUMULATES | AN_OP_BINDS_GRADIENT,
    .storage = AN_STORAGE_GRADIENT,
    .attribute_bytes = sizeof(an_grad_attributes),
    .attributes = grad_attributes,
    .infer = grad_infer,
    .autocast = AN_AUTOCAST_F32,
    .kernels = AN_KERNELS(grad),
};

static an_status exchange_infer(an_graph *g, an_node *node) {
    const an_exchange_attributes *a = node->attributes;
    return a->unit >= 0 ? AN_OK
                        : an_node_mistake(g, node, AN_ERR_ARGUMENT, "unit %lld does not exist", (long long)a->unit);
}

static const an_attribute exchange_attributes[] = {AN_ATTRIBUTE(an_exchange_attributes, unit, INT), {0}};

/* exchange: the gradients of a unit are complete. It has no inputs: its place among the sinks says when it runs. */
const an_op an_op_exchange = {
    .name = "exchange",
    .flags = AN_OP_SINK | AN_OP_COMMUNICATION | AN_OP_NO_COPY,
    .attribute_bytes = sizeof(an_exchange_attributes),
    .attributes = exchange_attributes,
    .infer = exchange_infer,
    .kernels = AN_KERNELS(exchange),
};

bool an_graph_has_output(const an_graph *g, const char *name) {
    for (const an_node *n = g->first; n; n = n->next)
        if (n->op == &an_op_output && !strcmp(((const an_output_attributes *)n->attributes)->name, name)) return true;
    return false;
}

void an_graph_set_output(an_graph *graph, an_value value, const char *name) {
    AN_NEED_OR(, graph);
    an_output_attributes a = {.name = name};
    an_graph_add(graph, &an_op_output, 1, &value, &a);
}

void an_graph_set_prediction(an_graph *graph, an_value value, const char *name) {
    AN_NEED_OR(, graph);
    an_output_attributes a = {.name = name, .prediction = true};
    an_graph_add(graph, &an_op_output, 1, &value, &a);
}

void an_state_output(an_graph *g, an_value value, an_value state) {
    const an_result *r = an_graph_result(g, state);
    if (g->status != AN_OK) return;
    if (!r || r->node->op != &an_op_run_state) {
        an_graph_mistake(g, AN_ERR_ARGUMENT, "a statistic must update a run state (an_run_state)");
        return;
    }
    an_output_attributes a = {
        .name = ((const an_state_attributes *)r->node->attributes)->name, .training = true, .state = true};
    an_graph_add(g, &an_op_output, 1, &value, &a);
}

void an_grad(an_graph *g, an_value contribution, int64_t parameter, int64_t extra, bool add) {
    an_grad_attributes a = {.parameter = parameter, .extra = extra, .add = add};
    an_graph_add(g, &an_op_grad, 1, &contribution, &a);
}

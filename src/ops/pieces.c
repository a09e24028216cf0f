/* Weights that ranks have in pieces, and memory for the gradients of a unit: the shard pass adds these nodes
 * (pass/shard.h). Messages are no cost of the program's own.
 *
 * Some of them are views with a kernel: what they return is their first input's memory, after the kernel has waited
 * for it or written to it. */
#include "kernels/sink/sink.h"
#include "ops/common.h"
#include "ops/source.h"

static an_cost no_cost(const an_graph *g, const an_node *node) {
    (void)g;
    (void)node;
    return (an_cost){0};
}

/* ---- weights ---- */

static an_status gather_weights_infer(an_graph *g, an_node *node) {
    const an_gather_weights_attributes *a = node->attributes;
    int count = 0;
    if (a->masters < 0 || a->low < 0 || node->output_count != (a->masters > 0) + (a->low > 0))
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "it needs an output for each type of weights");
    if (a->masters > 0) an_result_set(&node->outputs[count++], a->dtype, 1, &a->masters);
    if (a->low > 0) an_result_set(&node->outputs[count], a->low_dtype, 1, &a->low);
    return AN_OK;
}

static const an_attribute gather_weights_attributes[] = {
    {.name = "form", .type = AN_ATTRIBUTE_INT, .offset = offsetof(an_gather_weights_attributes, region.form)},
    {.name = "region", .type = AN_ATTRIBUTE_INT, .offset = offsetof(an_gather_weights_attributes, region.region)},
    AN_ATTRIBUTE(an_gather_weights_attributes, masters, INT),
    AN_ATTRIBUTE(an_gather_weights_attributes, low, INT),
    AN_ATTRIBUTE(an_gather_weights_attributes, dtype, DTYPE),
    AN_ATTRIBUTE(an_gather_weights_attributes, low_dtype, DTYPE),
    {0}};

/* gather_weights: from when it runs until arrive_weights has run, its outputs are being filled. */
const an_op an_op_gather_weights = {
    .name = "gather_weights",
    .outputs = AN_OUTPUTS_ANY,
    .flags = AN_OP_COMMUNICATION | AN_OP_NO_COPY,
    .attribute_bytes = sizeof(an_gather_weights_attributes),
    .attributes = gather_weights_attributes,
    .infer = gather_weights_infer,
    .cost = no_cost,
    .kernels = AN_KERNELS(gather_weights),
};

static an_status arrive_weights_infer(an_graph *g, an_node *node) {
    const an_result *root = an_node_input(node, 0);
    if (!root) return an_node_mistake(g, node, AN_ERR_ARGUMENT, "its input is absent");
    an_result_like(&node->outputs[0], root);
    return AN_OK;
}

static an_status arrive_weights_view(an_graph *g, an_node *node, int output) {
    an_result *r = &node->outputs[output];
    const an_result *root = an_node_input(node, 0);
    (void)g;
    r->offset = root->offset;
    for (int i = 0; i < r->ndims; i++) r->strides[i] = root->strides[i];
    return AN_OK;
}

static const an_attribute arrive_weights_attributes[] = {
    AN_ATTRIBUTE(an_region_attributes, form, INT), AN_ATTRIBUTE(an_region_attributes, region, INT), {0}};

/* arrive_weights: a root of gather_weights, filled. */
const an_op an_op_arrive_weights = {
    .name = "arrive_weights",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .flags = AN_OP_VIEW | AN_OP_COMMUNICATION | AN_OP_NO_COPY,
    .attribute_bytes = sizeof(an_region_attributes),
    .attributes = arrive_weights_attributes,
    .infer = arrive_weights_infer,
    .view = arrive_weights_view,
    .cost = no_cost,
    .kernels = AN_KERNELS(arrive_weights),
};

/* ---- gradients ---- */

static an_status collect_gradients_infer(an_graph *g, an_node *node) {
    const an_collect_attributes *a = node->attributes;
    if (a->elements < 1) return an_node_mistake(g, node, AN_ERR_SHAPE, "a unit has at least one page");
    an_result_set(&node->outputs[0], a->dtype, 1, &a->elements);
    return AN_OK;
}

static const an_attribute collect_gradients_attributes[] = {AN_ATTRIBUTE(an_collect_attributes, unit, INT),
                                                            AN_ATTRIBUTE(an_collect_attributes, elements, INT),
                                                            AN_ATTRIBUTE(an_collect_attributes, dtype, DTYPE),
                                                            {0}};

/* collect_gradients: memory for the gradients of a unit, which lie in it as on the grid. */
const an_op an_op_collect_gradients = {
    .name = "collect_gradients",
    .outputs = 1,
    .flags = AN_OP_NO_COPY,
    .attribute_bytes = sizeof(an_collect_attributes),
    .attributes = collect_gradients_attributes,
    .infer = collect_gradients_infer,
    .cost = no_cost,
    .kernels = AN_KERNELS(collect_gradients),
};

static an_status unit_grad_infer(an_graph *g, an_node *node) {
    const an_unit_grad_attributes *a = node->attributes;
    const an_result *root = an_node_input(node, 0);
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    AN_TRY_RETURN(an_expect_float(g, node, 1));
    if (a->grad.parameter < 0 || (size_t)a->grad.parameter >= g->parameter_count)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "parameter %lld does not exist", (long long)a->grad.parameter);
    const an_parameter *parameter = &g->parameters[a->grad.parameter];
    const an_param_attributes *p = parameter->node->attributes;
    if (root->ndims != 1 || root->dtype != p->dtype || a->offset < 0 || a->offset > root->dims[0] - parameter->elements)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "the gradient of '%s' does not lie in %s", p->name,
                               AN_DESCRIBE(g, root));
    an_result_set(&node->outputs[0], p->dtype, p->dims.count, p->dims.values);
    return AN_OK;
}

/* Dense, at its place in the root. */
static an_status unit_grad_view(an_graph *g, an_node *node, int output) {
    const an_unit_grad_attributes *a = node->attributes;
    an_result *r = &node->outputs[output];
    an_dim stride = 1;
    r->offset = an_graph_add_dims(g, an_node_input(node, 0)->offset, a->offset);
    for (int i = r->ndims - 1; i >= 0; i--) {
        r->strides[i] = stride;
        stride = an_graph_multiply_dims(g, stride, r->dims[i]);
    }
    return g->status;
}

static const an_attribute unit_grad_attributes[] = {
    {.name = "parameter", .type = AN_ATTRIBUTE_INT, .offset = offsetof(an_unit_grad_attributes, grad.parameter)},
    {.name = "extra", .type = AN_ATTRIBUTE_INT, .offset = offsetof(an_unit_grad_attributes, grad.extra)},
    {.name = "add", .type = AN_ATTRIBUTE_BOOL, .offset = offsetof(an_unit_grad_attributes, grad.add)},
    AN_ATTRIBUTE(an_unit_grad_attributes, offset, INT),
    {0}};

/* unit_grad: what grad is, in the memory of its parameter's unit (input 0). Input 1 is the contribution. */
const an_op an_op_unit_grad = {
    .name = "unit_grad",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .flags = AN_OP_VIEW | AN_OP_SINK | AN_OP_NO_COPY | AN_OP_ACCUMULATES | AN_OP_BINDS_GRADIENT,
    .attribute_bytes = sizeof(an_unit_grad_attributes),
    .attributes = unit_grad_attributes,
    .infer = unit_grad_infer,
    .view = unit_grad_view,
    .autocast = AN_AUTOCAST_F32,
    .kernels = AN_KERNELS(unit_grad),
};

static an_status scatter_infer(an_graph *g, an_node *node) {
    const an_exchange_attributes *a = node->attributes;
    if (!an_node_input(node, 0)) return an_node_mistake(g, node, AN_ERR_ARGUMENT, "its input is absent");
    return a->unit >= 0 ? AN_OK
                        : an_node_mistake(g, node, AN_ERR_ARGUMENT, "unit %lld does not exist", (long long)a->unit);
}

static const an_attribute scatter_attributes[] = {AN_ATTRIBUTE(an_exchange_attributes, unit, INT), {0}};

#define SCATTER(op)                                                \
    const an_op an_op_##op = {                                     \
        .name = #op,                                               \
        .inputs_min = 1,                                           \
        .inputs_max = 1,                                           \
        .flags = AN_OP_SINK | AN_OP_COMMUNICATION | AN_OP_NO_COPY, \
        .attribute_bytes = sizeof(an_exchange_attributes),         \
        .attributes = scatter_attributes,                          \
        .infer = scatter_infer,                                    \
        .cost = no_cost,                                           \
        .kernels = AN_KERNELS(op),                                 \
    };
/* The gradients of a unit are complete and may leave; and their memory is free again. */
SCATTER(scatter_gradients)
SCATTER(scattered_gradients)

/* Softmax and log-softmax along an axis. Their gradients need dst only, so src need not be kept. */
#include "ops/common.h"

#include <inttypes.h>

#include "kernels/norm/softmax.h"

/* flops of an element, for the cost pass: an exponential, a maximum, a sum, a division */
enum { FORWARD_FLOPS = 24, DIFF_FLOPS = 4, LOG_DIFF_FLOPS = 24 };

static const an_attribute softmax_attributes[] = {AN_ATTRIBUTE(an_softmax_attributes, axis, INT), {0}};

static an_status check_axis(an_graph *g, const an_node *node) {
    int64_t axis = ((const an_softmax_attributes *)node->attributes)->axis;
    const an_result *src = an_node_input(node, 0);
    if (axis >= 0 && axis < src->ndims) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_ARGUMENT, "axis %" PRId64 " does not exist in %s", axis,
                           AN_DESCRIBE(g, src));
}

static an_status softmax_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(an_infer_float_like_src(g, node));
    AN_TRY_RETURN(check_axis(g, node));
    return AN_OK;
}

static an_status softmax_diff_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(an_infer_like_inputs(g, node));
    AN_TRY_RETURN(check_axis(g, node));
    return AN_OK;
}

static an_cost forward_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, FORWARD_FLOPS);
}

static an_cost softmax_diff_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, DIFF_FLOPS);
}

static an_cost log_softmax_diff_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, LOG_DIFF_FLOPS);
}

#define SOFTMAX(op)                                                                                  \
    static void op##_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, \
                          an_value *diff_src) {                                                      \
        an_value inputs[] = {diff_dst[0], an_node_output_value(g, node, 0)};                         \
        (void)want;                                                                                  \
        diff_src[0] = an_graph_add(g, &an_op_##op##_diff, 2, inputs, node->attributes);              \
    }                                                                                                \
    const an_op an_op_##op = {                                                                       \
        .name = #op,                                                                                 \
        .torch = "torch." #op "({0}, {axis})",                                                       \
        .inputs_min = 1,                                                                             \
        .inputs_max = 1,                                                                             \
        .outputs = 1,                                                                                \
        .along = an_along_off_axis,                                                                  \
        .attribute_bytes = sizeof(an_softmax_attributes),                                            \
        .attributes = softmax_attributes,                                                            \
        .infer = softmax_infer,                                                                      \
        .grad = op##_grad,                                                                           \
        .cost = forward_cost,                                                                        \
        .autocast = AN_AUTOCAST_F32,                                                                 \
        .in_place = 1,                                                                               \
        .kernels = AN_KERNELS(op),                                                                   \
    };                                                                                               \
    an_value an_##op(an_graph *graph, an_value src, int axis) {                                      \
        AN_NEED_OR(0, graph);                                                                        \
        return build(graph, &an_op_##op, src, axis);                                                 \
    }

#define SOFTMAX_DIFF(op)                                  \
    const an_op an_op_##op = {                            \
        .name = #op,                                      \
        .inputs_min = 2,                                  \
        .inputs_max = 2,                                  \
        .outputs = 1,                                     \
        .along = an_along_off_axis,                       \
        .attribute_bytes = sizeof(an_softmax_attributes), \
        .attributes = softmax_attributes,                 \
        .infer = softmax_diff_infer,                      \
        .cost = op##_cost,                                \
        .autocast = AN_AUTOCAST_F32,                      \
        .in_place = 1 | 2,                                \
        .kernels = AN_KERNELS(op),                        \
    };

static an_value build(an_graph *g, const an_op *op, an_value src, int axis) {
    const an_result *result = an_graph_result(g, src);
    an_softmax_attributes attributes = {0};
    an_builder_begin(g);
    if (result) {
        attributes.axis = an_normalize_axis(g, op->name, axis, result->ndims);
        if (attributes.axis < 0) return an_builder_end(g, 0);
    }
    return an_builder_end(g, an_graph_add(g, op, 1, &src, &attributes));
}

/* softmax_diff, log_softmax_diff (diff_dst, dst) */
SOFTMAX_DIFF(softmax_diff)
SOFTMAX_DIFF(log_softmax_diff)
/* softmax: exp(src) ÷ its sum along the axis; log_softmax: the logarithm of it, without its overflows */
SOFTMAX(softmax)
SOFTMAX(log_softmax)

/* Functions of two elements, whose shapes broadcast, and bias.
 *
 * A gradient has the shape of the output first and is then summed over what broadcasting repeated.
 */
#include "ops/common.h"

#include <inttypes.h>

#include "kernels/elementwise/binary.h"
#include "kernels/elementwise/unary.h"
#include "ops/fuse.h"
#include "ops/product.h"
#include "ops/reduce.h"

/* flops of an element: what a vectorised form costs, for the cost pass */
enum { CHEAP = 1, POWER = 40, POWER_DIFF = 60 };

static an_cost cheap_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, CHEAP);
}

static an_cost power_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, POWER);
}

static an_cost power_diff_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, POWER_DIFF);
}

/* The second input lies along one axis of the first, and has no samples. */
static an_along along_src(const an_along_question *q) {
    return q->input == 0 ? an_along_elements(q) : AN_ALONG_MIXED;
}

/* ---- bias: dst = src + bias, bias lying along one axis ---- */

static const an_attribute bias_attributes[] = {AN_ATTRIBUTE(an_bias_attributes, axis, INT), {0}};
static const an_role bias_roles[] = {AN_ROLE_NONE, AN_ROLE_BIAS};

static an_status bias_infer(an_graph *g, an_node *node) {
    int64_t axis = ((const an_bias_attributes *)node->attributes)->axis;
    const an_result *src = an_node_input(node, 0), *bias = an_node_input(node, 1);
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    AN_TRY_RETURN(an_expect_float(g, node, 1));
    AN_TRY_RETURN(an_expect_ndims(g, node, 1, 1, 1));
    if (axis < 0 || axis >= src->ndims)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "axis %" PRId64 " does not exist in %s", axis,
                               AN_DESCRIBE(g, src));
    if (bias->dims[0] != src->dims[axis])
        return an_node_mistake(g, node, AN_ERR_SHAPE, "a bias %s does not fit axis %" PRId64 " of %s",
                               AN_DESCRIBE(g, bias), axis, AN_DESCRIBE(g, src));
    an_result_like(&node->outputs[0], src);
    return AN_OK;
}

static void bias_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const an_result *src = an_node_input(node, 0), *bias = an_node_input(node, 1);
    int64_t axis = ((const an_bias_attributes *)node->attributes)->axis;
    an_dtype dtype = an_compute_dtype(an_wider(src->dtype, bias->dtype));
    int others[AN_MAX_DIMS], count = 0;
    for (int i = 0; i < src->ndims; i++)
        if (i != axis) others[count++] = i;
    diff_src[0] = diff_dst[0];
    if (!(want & 2)) return;
    diff_src[1] =
        count > 0 ? an_reduce_sum_as(g, diff_dst[0], count, others, false, dtype) : an_cast(g, diff_dst[0], dtype);
}

const an_op an_op_bias = {
    .name = "bias",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = along_src,
    .attribute_bytes = sizeof(an_bias_attributes),
    .attributes = bias_attributes,
    .roles = bias_roles,
    .role_count = AN_COUNT(bias_roles),
    .infer = bias_infer,
    .grad = bias_grad,
    .cost = cheap_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1,
    .fuse = an_fuse_elementwise,
    .kernels = AN_KERNELS(bias),
};

an_value an_bias(an_graph *graph, an_value src, an_value bias, int axis) {
    AN_NEED_OR(0, graph);
    const an_result *result = an_graph_result(graph, src);
    an_bias_attributes attributes = {0};
    an_value inputs[] = {src, bias};
    an_builder_begin(graph);
    if (result) {
        attributes.axis = an_normalize_axis(graph, "bias", axis, result->ndims);
        if (attributes.axis < 0) return an_builder_end(graph, 0);
    }
    return an_builder_end(graph, an_graph_add(graph, &an_op_bias, 2, inputs, &attributes));
}

/* ---- gradients that are ops of their own ---- */

static const an_attribute select_diff_attributes[] = {AN_ATTRIBUTE(an_select_diff_attributes, minimum, BOOL), {0}};

/* select_diff (diff_dst, x, y): of maximum and minimum(least), for the operand x beside y. Where they are equal, each
 * gets half, as in PyTorch. */
const an_op an_op_select_diff = {
    .name = "select_diff",
    .inputs_min = 3,
    .inputs_max = 3,
    .outputs = 1,
    .along = an_along_elements,
    .attribute_bytes = sizeof(an_select_diff_attributes),
    .attributes = select_diff_attributes,
    .infer = an_infer_broadcast,
    .cost = cheap_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .in_place = 1 | 2 | 4,
    .kernels = AN_KERNELS(select_diff),
};

static const an_attribute power_diff_attributes[] = {AN_ATTRIBUTE(an_power_diff_attributes, of_exponent, BOOL), {0}};

/* power_diff (diff_dst, a, b): diff_dst·b·a^(b-1) for a, diff_dst·a^b·log a for b, with PyTorch's zeros: the first is 0
 * for b = 0, the second for a = 0 and b ≥ 0. */
const an_op an_op_power_diff = {
    .name = "power_diff",
    .inputs_min = 3,
    .inputs_max = 3,
    .outputs = 1,
    .along = an_along_elements,
    .attribute_bytes = sizeof(an_power_diff_attributes),
    .attributes = power_diff_attributes,
    .infer = an_infer_broadcast,
    .cost = power_diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .in_place = 1 | 2 | 4,
    .kernels = AN_KERNELS(power_diff),
};

/* ---- gradients of a and b, of the output's shape ---- */

#define A an_node_input_value(g, node, 0)
#define B an_node_input_value(g, node, 1)
#define DST an_node_output_value(g, node, 0)

static an_value select_diff(an_graph *g, an_value diff, an_value x, an_value y, bool minimum) {
    an_select_diff_attributes attributes = {minimum};
    an_value inputs[] = {diff, x, y};
    return an_graph_add(g, &an_op_select_diff, 3, inputs, &attributes);
}

static an_value power_diff(an_graph *g, an_value diff, an_value a, an_value b, bool of_exponent) {
    an_power_diff_attributes attributes = {of_exponent};
    an_value inputs[] = {diff, a, b};
    return an_graph_add(g, &an_op_power_diff, 3, inputs, &attributes);
}

#define GRAD(name, of_a, of_b)                                                                         \
    static void name##_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, \
                            an_value *diff_src) {                                                      \
        an_value diff = diff_dst[0];                                                                   \
        if (want & 1) diff_src[0] = an_sum_to_shape(g, of_a, A);                                       \
        if (want & 2) diff_src[1] = an_sum_to_shape(g, of_b, B);                                       \
    }

GRAD(add, diff, diff)
GRAD(multiply, an_multiply(g, diff, B), an_multiply(g, diff, A))
GRAD(maximum, select_diff(g, diff, A, B, false), select_diff(g, diff, B, A, false))
GRAD(minimum, select_diff(g, diff, A, B, true), select_diff(g, diff, B, A, true))
GRAD(power, power_diff(g, diff, A, B, false), power_diff(g, diff, A, B, true))

/* Comes before the sum over what broadcasting repeated: the sum of leaves must be the last operation on a gradient. */
static an_value negated(an_graph *g, an_value value) {
    return an_graph_add(g, AN_BUILTIN(g, scale), 1, &value, &(an_scale_attributes){.factor = -1});
}

static void subtract_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                          an_value *diff_src) {
    if (want & 1) diff_src[0] = an_sum_to_shape(g, diff_dst[0], A);
    if (want & 2) diff_src[1] = an_sum_to_shape(g, negated(g, diff_dst[0]), B);
}

/* The gradient of b is -diff·a/b², which is -(diff/b)·dst: then a need not be kept. */
static void divide_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    an_value diff = an_divide(g, diff_dst[0], B);
    if (want & 1) diff_src[0] = an_sum_to_shape(g, diff, A);
    if (want & 2) diff_src[1] = an_sum_to_shape(g, negated(g, an_multiply(g, diff, DST)), B);
}

/* ---- records and builders ---- */

#define BINARY(op, op_cost, policy, op_simplify, torch_text, onnx_text) \
    AN_DECLARE_KERNELS(op);                                             \
    const an_op an_op_##op = {                                          \
        .name = #op,                                                    \
        .torch = torch_text,                                            \
        .onnx = onnx_text,                                              \
        .inputs_min = 2,                                                \
        .inputs_max = 2,                                                \
        .outputs = 1,                                                   \
        .along = an_along_elements,                                     \
        .infer = an_infer_broadcast,                                    \
        .grad = op##_grad,                                              \
        .cost = op_cost,                                                \
        .autocast = policy,                                             \
        .low_out = 1,                                                   \
        .in_place = 1 | 2,                                              \
        .simplify = op_simplify,                                        \
        .fuse = an_fuse_elementwise,                                    \
        .kernels = AN_KERNELS(op),                                      \
    };                                                                  \
    an_value an_##op(an_graph *graph, an_value a, an_value b) {         \
        AN_NEED_OR(0, graph);                                           \
        an_value inputs[] = {a, b};                                     \
        return an_graph_add(graph, &an_op_##op, 2, inputs, NULL);       \
    }

BINARY(add, cheap_cost, AN_AUTOCAST_F32, an_sum_products, "{0} + {1}", "Add") /* makes the residual stream f32 */
BINARY(subtract, cheap_cost, AN_AUTOCAST_KEEP, NULL, "{0} - {1}", "Sub")
BINARY(multiply, cheap_cost, AN_AUTOCAST_KEEP, NULL, "{0} * {1}", "Mul")
BINARY(divide, cheap_cost, AN_AUTOCAST_KEEP, NULL, "{0} / {1}", "Div")
BINARY(maximum, cheap_cost, AN_AUTOCAST_KEEP, NULL, "torch.maximum({0}, {1})", "Max")
BINARY(minimum, cheap_cost, AN_AUTOCAST_KEEP, NULL, "torch.minimum({0}, {1})", "Min")
BINARY(power, power_cost, AN_AUTOCAST_KEEP, NULL, "torch.pow({0}, {1})", "Pow")

/* ---- adapt: the output of a layer and the change that an adapter makes to it, in graphs of generators in q8_0 ---- */

/* An add of values that are not of the residual stream: what it gives may be of low precision, as the
 * output of the layer alone may. */
const an_op an_op_adapt = {
    .name = "adapt",
    .torch = "{0} + {1}",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = an_along_elements,
    .infer = an_infer_broadcast,
    .grad = add_grad,
    .cost = cheap_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1 | 2,
    .fuse = an_fuse_elementwise,
    .kernels = AN_KERNELS(add),
};

/* ---- stretch: every column of src has a factor ---- */

static an_status stretch_infer(an_graph *g, an_node *node) {
    const an_result *src = an_node_input(node, 0), *factors = an_node_input(node, 1);
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    AN_TRY_RETURN(an_expect_float(g, node, 1));
    if (src->ndims < 1 || factors->ndims != 1 || factors->dims[0] != src->dims[src->ndims - 1])
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "the factors are %s and src is %s; it must have one for each column",
                               AN_DESCRIBE(g, factors), AN_DESCRIBE(g, src));
    an_result_like(&node->outputs[0], src);
    return AN_OK;
}

static void stretch_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                         an_value *diff_src) {
    const an_result *src = an_node_input(node, 0), *factors = an_node_input(node, 1);
    const an_dtype dtype = an_compute_dtype(an_wider(src->dtype, factors->dtype));
    const an_value inputs[] = {diff_dst[0], B};
    int rows[AN_MAX_DIMS];
    for (int i = 0; i < src->ndims - 1; i++) rows[i] = i;
    if (want & 1) diff_src[0] = an_graph_add(g, &an_op_stretch, 2, inputs, NULL);
    if (!(want & 2)) return;
    const an_value terms = an_multiply(g, diff_dst[0], A);
    diff_src[1] = src->ndims > 1 ? an_reduce_sum_as(g, terms, src->ndims - 1, rows, false, dtype) : terms;
}

/* A multiply whose gradients have types of their own: that of the factors is a sum in f32, whatever src is. */
const an_op an_op_stretch = {
    .name = "stretch",
    .torch = "{0} * {1}",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = along_src,
    .flags = AN_OP_FOLLOWS, /* of a layer and its adapter */
    .infer = stretch_infer,
    .grad = stretch_grad,
    .cost = cheap_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1,
    .fuse = an_fuse_elementwise,
    .kernels = AN_KERNELS(multiply),
};

/* Functions of one element: activations and the like, with their gradients.
 *
 * Every record is made from one line of a table. A gradient op reads src where the derivative needs it and dst where
 * that is enough (sigmoid, tanh, sqrt): then src need not be kept.
 */
#include "ops/common.h"

#include "base/guard.h"
#include "kernels/elementwise/unary.h"
#include "ops/fuse.h"

/* flops of an element: what a vectorised form of the function costs, for the cost pass */
enum { CHEAP = 1, SMOOTH = 20, SMOOTH_DIFF = 25 };

#define COST(name, flops)                                                \
    static an_cost name##_cost(const an_graph *g, const an_node *node) { \
        return an_cost_elementwise(g, node, flops);                      \
    }
COST(cheap, CHEAP)
COST(smooth, SMOOTH)
COST(smooth_diff, SMOOTH_DIFF)

/* A gradient through the op `name_diff` with inputs (diff_dst, operand). */
#define GRAD_OP(name, operand)                                                                         \
    static void name##_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, \
                            an_value *diff_src) {                                                      \
        an_value inputs[] = {diff_dst[0], operand};                                                    \
        (void)want;                                                                                    \
        diff_src[0] = an_graph_add(g, &an_op_##name##_diff, 2, inputs, NULL);                          \
    }
#define SRC an_node_input_value(g, node, 0)
#define DST an_node_output_value(g, node, 0)

GRAD_OP(relu, DST) /* dst > 0 where src > 0, so src need not be kept */
GRAD_OP(gelu, SRC)
GRAD_OP(gelu_tanh, SRC)
GRAD_OP(silu, SRC)
GRAD_OP(sigmoid, DST)
GRAD_OP(tanh, DST)
GRAD_OP(sqrt, DST)
GRAD_OP(softplus, SRC)
GRAD_OP(mish, SRC)
GRAD_OP(hard_swish, SRC)
GRAD_OP(abs, SRC)

#define GRAD_BUILD(name, value)                                                                        \
    static void name##_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, \
                            an_value *diff_src) {                                                      \
        (void)want;                                                                                    \
        diff_src[0] = value;                                                                           \
    }
GRAD_BUILD(exp, an_multiply(g, diff_dst[0], DST))
GRAD_BUILD(log, an_divide(g, diff_dst[0], SRC))
GRAD_BUILD(sin, an_multiply(g, diff_dst[0], an_cos(g, SRC)))
GRAD_BUILD(cos, an_negate(g, an_multiply(g, diff_dst[0], an_sin(g, SRC))))
GRAD_BUILD(scale, an_scale(g, diff_dst[0], ((const an_scale_attributes *)node->attributes)->factor))

#define UNARY(op, op_cost, torch_text, onnx_text)               \
    AN_DECLARE_KERNELS(op);                                     \
    const an_op an_op_##op = {                                  \
        .name = #op,                                            \
        .torch = torch_text,                                    \
        .onnx = onnx_text,                                      \
        .inputs_min = 1,                                        \
        .inputs_max = 1,                                        \
        .outputs = 1,                                           \
        .along = an_along_elements,                             \
        .infer = an_infer_float_like_src,                       \
        .grad = op##_grad,                                      \
        .cost = op_cost,                                        \
        .autocast = AN_AUTOCAST_KEEP,                           \
        .low_out = 1,                                           \
        .in_place = 1,                                          \
        .fuse = an_fuse_elementwise,                            \
        .kernels = AN_KERNELS(op),                              \
    };                                                          \
    an_value an_##op(an_graph *graph, an_value src) {           \
        AN_NEED_OR(0, graph);                                   \
        return an_graph_add(graph, &an_op_##op, 1, &src, NULL); \
    }

#define UNARY_DIFF(op, op_cost)        \
    AN_DECLARE_KERNELS(op);            \
    const an_op an_op_##op = {         \
        .name = #op,                   \
        .inputs_min = 2,               \
        .inputs_max = 2,               \
        .outputs = 1,                  \
        .along = an_along_elements,    \
        .infer = an_infer_like_inputs, \
        .cost = op_cost,               \
        .autocast = AN_AUTOCAST_KEEP,  \
        .in_place = 3,                 \
        .fuse = an_fuse_elementwise,   \
        .kernels = AN_KERNELS(op),     \
    };

UNARY(relu, cheap_cost, "torch.relu({0})", "Relu")
UNARY(gelu, smooth_cost, "F.gelu({0})", NULL)
UNARY(gelu_tanh, smooth_cost, "F.gelu({0}, approximate=\"tanh\")", NULL)
UNARY(silu, smooth_cost, "F.silu({0})", "Mul(Sigmoid({0}), {0})")
UNARY(sigmoid, smooth_cost, "torch.sigmoid({0})", "Sigmoid")
UNARY(tanh, smooth_cost, "torch.tanh({0})", "Tanh")
UNARY(exp, smooth_cost, "torch.exp({0})", "Exp")
UNARY(log, smooth_cost, "torch.log({0})", "Log")
UNARY(sqrt, cheap_cost, "torch.sqrt({0})", "Sqrt")
UNARY(softplus, smooth_cost, "F.softplus({0}, threshold=200)", "Softplus")
UNARY(mish, smooth_cost, "F.mish({0})", "Mul({0}, Tanh(Softplus({0})))")
UNARY(hard_swish, cheap_cost, "F.hardswish({0})", "HardSwish")
UNARY(sin, smooth_cost, "torch.sin({0})", "Sin")
UNARY(cos, smooth_cost, "torch.cos({0})", "Cos")
UNARY(abs, cheap_cost, "torch.abs({0})", "Abs")
UNARY_DIFF(relu_diff, cheap_cost)
UNARY_DIFF(gelu_diff, smooth_diff_cost)
UNARY_DIFF(gelu_tanh_diff, smooth_diff_cost)
UNARY_DIFF(silu_diff, smooth_diff_cost)
UNARY_DIFF(sigmoid_diff, cheap_cost)
UNARY_DIFF(tanh_diff, cheap_cost)
UNARY_DIFF(sqrt_diff, cheap_cost)
UNARY_DIFF(softplus_diff, smooth_diff_cost)
UNARY_DIFF(mish_diff, smooth_diff_cost)
UNARY_DIFF(hard_swish_diff, cheap_cost)
UNARY_DIFF(abs_diff, cheap_cost)

static an_value scale_simplify(an_graph *g, const an_node *node) {
    return ((const an_scale_attributes *)node->attributes)->factor == 1 ? SRC : 0;
}

static const an_attribute scale_attributes[] = {AN_ATTRIBUTE(an_scale_attributes, factor, FLOAT), {0}};

const an_op an_op_scale = {
    .name = "scale",
    .torch = "{0} * {factor}",
    .onnx = "Mul({0}, {factor})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_elements,
    .attribute_bytes = sizeof(an_scale_attributes),
    .attributes = scale_attributes,
    .infer = an_infer_float_like_src,
    .grad = scale_grad,
    .simplify = scale_simplify,
    .cost = cheap_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1,
    .kernels = AN_KERNELS(scale),
};

an_value an_scale(an_graph *graph, an_value src, double factor) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_scale_attributes attributes = {factor};
    return an_graph_add(graph, &an_op_scale, 1, &src, &attributes);
}

an_value an_negate(an_graph *graph, an_value src) {
    AN_NEED_OR(0, graph);
    return an_scale(graph, src, -1);
}

/* ---- clamp: min(max(src, low), high) ---- */

static const an_attribute clamp_attributes[] = {
    AN_ATTRIBUTE(an_clamp_attributes, low, FLOAT), AN_ATTRIBUTE(an_clamp_attributes, high, FLOAT), {0}};

static an_status clamp_infer(an_graph *g, an_node *node) {
    const an_clamp_attributes *a = node->attributes;
    if (!(a->low <= a->high)) /* so written, it finds NaN too */
        return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                               "low is %g and high is %g: low must not be greater than high, and neither may be NaN",
                               a->low, a->high);
    return an_infer_like_inputs(g, node);
}

static void clamp_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    an_value inputs[] = {diff_dst[0], SRC};
    (void)want;
    diff_src[0] = an_graph_add(g, &an_op_clamp_diff, AN_COUNT(inputs), inputs, node->attributes);
}

const an_op an_op_clamp = {
    .name = "clamp",
    .torch = "torch.clamp({0}, {low}, {high})",
    .onnx = "Clip({0}, {low}, {high})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_elements,
    .attribute_bytes = sizeof(an_clamp_attributes),
    .attributes = clamp_attributes,
    .infer = clamp_infer,
    .grad = clamp_grad,
    .cost = cheap_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1,
    .kernels = AN_KERNELS(clamp),
};

const an_op an_op_clamp_diff = {
    .name = "clamp_diff",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = an_along_elements,
    .attribute_bytes = sizeof(an_clamp_attributes),
    .attributes = clamp_attributes,
    .infer = clamp_infer,
    .cost = cheap_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .in_place = 3,
    .kernels = AN_KERNELS(clamp_diff),
};

an_value an_clamp(an_graph *graph, an_value src, double low, double high) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_clamp_attributes attributes = {low, high};
    return an_graph_add(graph, &an_op_clamp, 1, &src, &attributes);
}

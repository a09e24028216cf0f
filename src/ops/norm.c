/* layer_norm: dst = (src - mean) / sqrt(variance + epsilon) · weight + bias over the last dimension; rms_norm: the same
 * without mean and bias.
 *
 * The statistics of a row are outputs, mean and 1 / sqrt(variance + epsilon), which the gradient ops read; they are of
 * the compute type. Gradients of src and of the weights are ops of their own, since they cut their work differently: by
 * rows, and by columns.
 */
#include "ops/norm.h"

#include "base/guard.h"
#include "kernels/norm/norm.h"

/* flops of an element, for the cost pass: two sums and the normalisation */
enum { FORWARD_FLOPS = 8, DIFF_SRC_FLOPS = 12, DIFF_WEIGHTS_FLOPS = 5 };

static const an_attribute norm_attributes[] = {AN_ATTRIBUTE(an_norm_attributes, epsilon, FLOAT), {0}};
static const an_role norm_roles[] = {AN_ROLE_NONE, AN_ROLE_NORM_WEIGHT, AN_ROLE_NORM_BIAS};

static an_cost forward_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, FORWARD_FLOPS);
}
static an_cost diff_src_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, DIFF_SRC_FLOPS);
}
static an_cost diff_weights_cost(const an_graph *g, const an_node *node) {
    return an_cost_of(g, node, DIFF_WEIGHTS_FLOPS * an_result_elements(g, an_node_input(node, 0)));
}

/* ---- what the infer hooks check ---- */

static an_status expect_rows(an_graph *g, const an_node *node, int input) {
    AN_TRY_RETURN(an_expect_float(g, node, input));
    AN_TRY_RETURN(an_expect_ndims(g, node, input, 1, AN_MAX_DIMS));
    return AN_OK;
}

/* A weight or bias: one dimension, the last of src. */
static an_status expect_vector(an_graph *g, const an_node *node, int input, const an_result *src) {
    AN_TRY_RETURN(an_expect_float(g, node, input));
    const an_result *vector = an_node_input(node, input);
    if (vector->ndims == 1 && vector->dims[0] == src->dims[src->ndims - 1]) return AN_OK;
    return an_node_mistake(
        g, node, AN_ERR_SHAPE,
        "input %d is %s, but src is %s: weight and bias must have one dimension, equal to the last of src", input,
        AN_DESCRIBE(g, vector), AN_DESCRIBE(g, src));
}

/* A statistic: one number for each row of src. */
static an_status expect_statistic(an_graph *g, const an_node *node, int input, const an_result *src) {
    AN_TRY_RETURN(an_expect_float(g, node, input));
    const an_result *statistic = an_node_input(node, input);
    bool fits = statistic->ndims == src->ndims - 1;
    for (int i = 0; fits && i < statistic->ndims; i++) fits = statistic->dims[i] == src->dims[i];
    if (fits) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_SHAPE,
                           "input %d is %s, but a statistic of %s must have its shape without the last dimension",
                           input, AN_DESCRIBE(g, statistic), AN_DESCRIBE(g, src));
}

an_status an_expect_epsilon(an_graph *g, const an_node *node, double epsilon) {
    if (epsilon >= 0 && epsilon < 1) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                           "epsilon is %g; it must be at least 0 and less than 1 (1e-5 is usual)", epsilon);
}

bool an_refuse_statistics(an_graph *g, const an_node *node, const an_value *diff_dst) {
    for (int i = 1; i < node->output_count; i++) {
        if (!diff_dst[i]) continue;
        an_node_mistake(g, node, AN_ERR_UNSUPPORTED,
                        "output %d is a statistic without a gradient: to train through it, build it from other ops", i);
        return true;
    }
    return false;
}

/* ---- layer_norm and rms_norm ---- */

static an_status norm_infer(an_graph *g, an_node *node) {
    const an_norm_attributes *attributes = node->attributes;
    const an_result *src = an_node_input(node, 0);
    AN_TRY_RETURN(expect_rows(g, node, 0));
    AN_TRY_RETURN(expect_vector(g, node, 1, src));
    if (an_node_input(node, 2)) AN_TRY_RETURN(expect_vector(g, node, 2, src));
    AN_TRY_RETURN(an_expect_epsilon(g, node, attributes->epsilon));
    an_result_like(an_node_output(node, 0), src);
    for (int i = 1; i < node->output_count; i++)
        an_result_set(an_node_output(node, i), an_compute_dtype(src->dtype), src->ndims - 1, src->dims);
    return AN_OK;
}

static void layer_norm_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                            an_value *diff_src) {
    const an_value src = an_node_input_value(g, node, 0), weight = an_node_input_value(g, node, 1);
    const an_value mean = an_node_output_value(g, node, 1), inverse = an_node_output_value(g, node, 2);
    if (an_refuse_statistics(g, node, diff_dst)) return;
    if (want & 1) {
        an_value inputs[] = {diff_dst[0], src, weight, mean, inverse};
        diff_src[0] = an_graph_add(g, &an_op_layer_norm_diff_src, AN_COUNT(inputs), inputs, NULL);
    }
    if (want >> 1) {
        an_value inputs[] = {diff_dst[0], src, mean, inverse};
        an_value diff_weight = an_graph_add(g, &an_op_layer_norm_diff_weights, AN_COUNT(inputs), inputs, NULL);
        if (want & 2) diff_src[1] = diff_weight;
        if (want & 4) diff_src[2] = an_value_output(diff_weight, 1);
    }
}

static void rms_norm_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                          an_value *diff_src) {
    const an_value src = an_node_input_value(g, node, 0), weight = an_node_input_value(g, node, 1);
    const an_value inverse = an_node_output_value(g, node, 1);
    if (an_refuse_statistics(g, node, diff_dst)) return;
    if (want & 1) {
        an_value inputs[] = {diff_dst[0], src, weight, inverse};
        diff_src[0] = an_graph_add(g, &an_op_rms_norm_diff_src, AN_COUNT(inputs), inputs, NULL);
    }
    if (want & 2) {
        an_value inputs[] = {diff_dst[0], src, inverse};
        diff_src[1] = an_graph_add(g, &an_op_rms_norm_diff_weights, AN_COUNT(inputs), inputs, NULL);
    }
}

const an_op an_op_layer_norm = {
    .name = "layer_norm",
    .torch = "F.layer_norm({0}, {1}.shape, {1}, {2}, {epsilon})",
    .inputs_min = 2,
    .inputs_max = 3,
    .outputs = 3,
    .along = an_along_rows,
    .attribute_bytes = sizeof(an_norm_attributes),
    .attributes = norm_attributes,
    .roles = norm_roles,
    .role_count = AN_COUNT(norm_roles),
    .infer = norm_infer,
    .grad = layer_norm_grad,
    .cost = forward_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1,
    .kernels = AN_KERNELS(layer_norm),
};

const an_op an_op_rms_norm = {
    .name = "rms_norm",
    .torch = "F.rms_norm({0}, {1}.shape, {1}, {epsilon})",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 2,
    .along = an_along_rows,
    .attribute_bytes = sizeof(an_norm_attributes),
    .attributes = norm_attributes,
    .roles = norm_roles,
    .role_count = 2,
    .infer = norm_infer,
    .grad = rms_norm_grad,
    .cost = forward_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1,
    .kernels = AN_KERNELS(rms_norm),
};

an_value an_layer_norm(an_graph *graph, an_value src, an_value weight, an_value bias, double epsilon) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_norm_attributes attributes = {epsilon};
    an_value inputs[] = {src, weight, bias};
    return an_graph_add(graph, &an_op_layer_norm, bias == AN_NONE ? 2 : 3, inputs, &attributes);
}

an_value an_rms_norm(an_graph *graph, an_value src, an_value weight, double epsilon) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_norm_attributes attributes = {epsilon};
    an_value inputs[] = {src, weight};
    return an_graph_add(graph, &an_op_rms_norm, AN_COUNT(inputs), inputs, &attributes);
}

/* ---- their gradients ---- */

/* (diff_dst, src, weight, statistics…) */
static an_status diff_src_infer(an_graph *g, an_node *node) {
    const an_result *src = an_node_input(node, 1);
    AN_TRY_RETURN(expect_rows(g, node, 0));
    AN_TRY_RETURN(expect_rows(g, node, 1));
    AN_TRY_RETURN(an_expect_same_shape(g, node, 0, 1));
    AN_TRY_RETURN(expect_vector(g, node, 2, src));
    for (int i = 3; i < node->input_count; i++) AN_TRY_RETURN(expect_statistic(g, node, i, src));
    an_result_like(an_node_output(node, 0), src);
    return AN_OK;
}

/* (diff_dst, src, statistics…) */
static an_status diff_weights_infer(an_graph *g, an_node *node) {
    const an_result *src = an_node_input(node, 1);
    AN_TRY_RETURN(expect_rows(g, node, 0));
    AN_TRY_RETURN(expect_rows(g, node, 1));
    AN_TRY_RETURN(an_expect_same_shape(g, node, 0, 1));
    for (int i = 2; i < node->input_count; i++) AN_TRY_RETURN(expect_statistic(g, node, i, src));
    for (int i = 0; i < node->output_count; i++)
        an_result_set(an_node_output(node, i), an_compute_dtype(src->dtype), 1, &src->dims[src->ndims - 1]);
    return AN_OK;
}

#define DIFF_SRC(op, input_count)             \
    const an_op an_op_##op = {                \
        .name = #op,                          \
        .inputs_min = input_count,            \
        .inputs_max = input_count,            \
        .outputs = 1,                         \
        .along = an_along_rows,               \
        .infer = diff_src_infer,              \
        .cost = diff_src_cost,                \
        .autocast = AN_AUTOCAST_KEEP,         \
        .in_place = 3, /* diff_dst and src */ \
        .kernels = AN_KERNELS(op),            \
    };

#define DIFF_WEIGHTS(op, input_count, output_count) \
    const an_op an_op_##op = {                      \
        .name = #op,                                \
        .inputs_min = input_count,                  \
        .inputs_max = input_count,                  \
        .outputs = output_count,                    \
        .along = an_along_added,                    \
        .infer = diff_weights_infer,                \
        .cost = diff_weights_cost,                  \
        .autocast = AN_AUTOCAST_KEEP,               \
        .kernels = AN_KERNELS(op),                  \
    };

DIFF_SRC(layer_norm_diff_src, 5)
DIFF_WEIGHTS(layer_norm_diff_weights, 4, 2)
DIFF_SRC(rms_norm_diff_src, 4)
DIFF_WEIGHTS(rms_norm_diff_weights, 3, 1)

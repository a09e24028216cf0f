/* batch_norm: normalises every channel (dimension 1) over all other dimensions, by the statistics of the micro-batch.
 *
 * The statistics are outputs: mean and unbiased variance, which are combined over the step's micro-batches into the
 * running statistics (never by the kernel), and 1 / sqrt(variance + epsilon) for the gradient. Evaluation and
 * prediction use batch_norm_fixed on the running statistics instead.
 */
#include "ops/common.h"

#include "base/guard.h"
#include "kernels/norm/batch_norm.h"
#include "ops/norm.h"
#include "ops/sink.h"

enum { SRC, WEIGHT, BIAS, MEAN, VARIANCE, FORWARD_INPUTS }; /* of batch_norm (running ones) and batch_norm_fixed */
enum { DIFF_DST, DIFF_OF_SRC, DIFF_OF_WEIGHT, DIFF_OF_MEAN, DIFF_OF_INVERSE, DIFF_INPUTS }; /* fixed: variance last */

/* flops of an element, for the cost pass: sums over the channel and the normalisation */
enum { BATCH_FLOPS = 7, BATCH_DIFF_FLOPS = 10, FIXED_FLOPS = 3, FIXED_DIFF_FLOPS = 6 };

#define COST(name, flops)                                                \
    static an_cost name##_cost(const an_graph *g, const an_node *node) { \
        return an_cost_elementwise(g, node, flops);                      \
    }
COST(batch_norm, BATCH_FLOPS)
COST(batch_norm_diff, BATCH_DIFF_FLOPS)
COST(batch_norm_fixed, FIXED_FLOPS)
COST(batch_norm_fixed_diff, FIXED_DIFF_FLOPS)

static const an_attribute batch_norm_attributes[] = {
    AN_ATTRIBUTE(an_batch_norm_attributes, momentum, FLOAT),
    AN_ATTRIBUTE(an_batch_norm_attributes, epsilon, FLOAT),
    {0},
};
static const an_attribute batch_norm_fixed_attributes[] = {
    AN_ATTRIBUTE(an_batch_norm_fixed_attributes, epsilon, FLOAT),
    {0},
};
static const an_role batch_norm_roles[] = {AN_ROLE_NONE, AN_ROLE_NORM_WEIGHT, AN_ROLE_NORM_BIAS};

/* ---- what the infer hooks check ---- */

static an_status expect_src(an_graph *g, const an_node *node, int input) {
    AN_TRY_RETURN(an_expect_float(g, node, input));
    AN_TRY_RETURN(an_expect_ndims(g, node, input, 2, AN_MAX_DIMS));
    return AN_OK;
}

/* Inputs `first` to `last` hold one number for each channel. */
static an_status expect_channels(an_graph *g, const an_node *node, int first, int last, const an_result *src) {
    for (int i = first; i <= last; i++) {
        AN_TRY_RETURN(an_expect_float(g, node, i));
        const an_result *vector = an_node_input(node, i);
        if (vector->ndims != 1 || vector->dims[0] != src->dims[1])
            return an_node_mistake(
                g, node, AN_ERR_SHAPE,
                "input %d is %s, but src is %s: the input must have one dimension, equal to dimension 1 of src", i,
                AN_DESCRIBE(g, vector), AN_DESCRIBE(g, src));
    }
    return AN_OK;
}

/* Outputs after 0: one number of the compute type for each channel. */
static void set_channels(an_node *node, const an_result *src) {
    for (int i = 1; i < node->output_count; i++)
        an_result_set(an_node_output(node, i), an_compute_dtype(src->dtype), 1, &src->dims[1]);
}

/* ---- by the statistics of the micro-batch ---- */

static an_status batch_norm_infer(an_graph *g, an_node *node) {
    const an_batch_norm_attributes *attributes = node->attributes;
    const an_result *src = an_node_input(node, SRC);
    AN_TRY_RETURN(expect_src(g, node, SRC));
    AN_TRY_RETURN(expect_channels(g, node, WEIGHT, VARIANCE, src));
    AN_TRY_RETURN(an_expect_epsilon(g, node, attributes->epsilon));
    if (!(attributes->momentum >= 0 && attributes->momentum <= 1))
        return an_node_mistake(
            g, node, AN_ERR_ARGUMENT,
            "momentum is %g; the share of a step in the running statistics must be 0 to 1 (0.1 is usual)",
            attributes->momentum);
    an_result_like(an_node_output(node, 0), src);
    set_channels(node, src);
    return AN_OK;
}

/* Output i of a gradient node is the gradient of input i. */
static void set_gradients(an_value diff, uint32_t want, an_value *diff_src) {
    for (int i = SRC; i <= BIAS; i++)
        if (want >> i & 1) diff_src[i] = an_value_output(diff, i);
}

static void batch_norm_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                            an_value *diff_src) {
    an_value inputs[] = {diff_dst[0], an_node_input_value(g, node, SRC), an_node_input_value(g, node, WEIGHT),
                         an_node_output_value(g, node, 1), an_node_output_value(g, node, 3)};
    if (an_refuse_statistics(g, node, diff_dst)) return;
    set_gradients(an_graph_add(g, &an_op_batch_norm_diff, AN_COUNT(inputs), inputs, NULL), want, diff_src);
}

static an_value batch_norm_evaluate(an_graph *g, const an_node *node) {
    an_batch_norm_fixed_attributes attributes = {((const an_batch_norm_attributes *)node->attributes)->epsilon};
    an_value inputs[FORWARD_INPUTS];
    for (int i = 0; i < FORWARD_INPUTS; i++) inputs[i] = an_node_input_value(g, node, i);
    return an_graph_add(g, &an_op_batch_norm_fixed, FORWARD_INPUTS, inputs, &attributes);
}

const an_op an_op_batch_norm = {
    .name = "batch_norm",
    .torch = "F.batch_norm({0}, {3}, {4}, {1}, {2}, self.training, {momentum}, {epsilon})",
    .inputs_min = FORWARD_INPUTS,
    .inputs_max = FORWARD_INPUTS,
    .outputs = 4,
    .attribute_bytes = sizeof(an_batch_norm_attributes),
    .attributes = batch_norm_attributes,
    .roles = batch_norm_roles,
    .role_count = AN_COUNT(batch_norm_roles),
    .infer = batch_norm_infer,
    .grad = batch_norm_grad,
    .evaluate = batch_norm_evaluate,
    .cost = batch_norm_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1,
    .kernels = AN_KERNELS(batch_norm),
};

an_value an_batch_norm(an_graph *graph, an_value src, an_value weight, an_value bias, an_value running_mean,
                       an_value running_variance, double momentum, double epsilon) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_batch_norm_attributes attributes = {momentum, epsilon};
    an_value inputs[] = {src, weight, bias, running_mean, running_variance};
    an_builder_begin(graph);
    an_value dst = an_graph_add(graph, &an_op_batch_norm, AN_COUNT(inputs), inputs, &attributes);
    if (dst) {
        an_state_output(graph, an_value_output(dst, 1), running_mean);
        an_state_output(graph, an_value_output(dst, 2), running_variance);
    }
    return an_builder_end(graph, dst);
}

/* (diff_dst, src, weight, mean, inverse) gives diff_src, diff_weight, diff_bias; with fixed statistics the last input
 * is the variance. */
static an_status diff_infer(an_graph *g, an_node *node) {
    const an_result *src = an_node_input(node, DIFF_OF_SRC);
    AN_TRY_RETURN(expect_src(g, node, DIFF_DST));
    AN_TRY_RETURN(expect_src(g, node, DIFF_OF_SRC));
    AN_TRY_RETURN(an_expect_same_shape(g, node, DIFF_DST, DIFF_OF_SRC));
    AN_TRY_RETURN(expect_channels(g, node, DIFF_OF_WEIGHT, DIFF_OF_INVERSE, src));
    an_result_like(an_node_output(node, 0), src);
    set_channels(node, src);
    return AN_OK;
}

const an_op an_op_batch_norm_diff = {
    .name = "batch_norm_diff",
    .inputs_min = DIFF_INPUTS,
    .inputs_max = DIFF_INPUTS,
    .outputs = 3,
    .infer = diff_infer,
    .cost = batch_norm_diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .in_place = 1 << DIFF_DST | 1 << DIFF_OF_SRC,
    .kernels = AN_KERNELS(batch_norm_diff),
};

/* ---- by fixed statistics ---- */

static an_status batch_norm_fixed_infer(an_graph *g, an_node *node) {
    const an_batch_norm_fixed_attributes *attributes = node->attributes;
    const an_result *src = an_node_input(node, SRC);
    AN_TRY_RETURN(expect_src(g, node, SRC));
    AN_TRY_RETURN(expect_channels(g, node, WEIGHT, VARIANCE, src));
    AN_TRY_RETURN(an_expect_epsilon(g, node, attributes->epsilon));
    an_result_like(an_node_output(node, 0), src);
    return AN_OK;
}

static void batch_norm_fixed_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                                  an_value *diff_src) {
    an_value inputs[] = {diff_dst[0], an_node_input_value(g, node, SRC), an_node_input_value(g, node, WEIGHT),
                         an_node_input_value(g, node, MEAN), an_node_input_value(g, node, VARIANCE)};
    if (want & (1 << MEAN | 1 << VARIANCE)) {
        an_node_mistake(g, node, AN_ERR_UNSUPPORTED,
                        "mean and variance are fixed statistics without a gradient: use an_batch_norm to train through "
                        "the statistics of the batch");
        return;
    }
    set_gradients(an_graph_add(g, &an_op_batch_norm_fixed_diff, AN_COUNT(inputs), inputs, node->attributes), want,
                  diff_src);
}

const an_op an_op_batch_norm_fixed = {
    .name = "batch_norm_fixed",
    .torch = "F.batch_norm({0}, {3}, {4}, {1}, {2}, eps={epsilon})",
    .inputs_min = FORWARD_INPUTS,
    .inputs_max = FORWARD_INPUTS,
    .outputs = 1,
    .attribute_bytes = sizeof(an_batch_norm_fixed_attributes),
    .attributes = batch_norm_fixed_attributes,
    .roles = batch_norm_roles,
    .role_count = AN_COUNT(batch_norm_roles),
    .infer = batch_norm_fixed_infer,
    .grad = batch_norm_fixed_grad,
    .cost = batch_norm_fixed_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1,
    .kernels = AN_KERNELS(batch_norm_fixed),
};

static an_status batch_norm_fixed_diff_infer(an_graph *g, an_node *node) {
    const an_batch_norm_fixed_attributes *attributes = node->attributes;
    AN_TRY_RETURN(an_expect_epsilon(g, node, attributes->epsilon));
    AN_TRY_RETURN(diff_infer(g, node));
    return AN_OK;
}

const an_op an_op_batch_norm_fixed_diff = {
    .name = "batch_norm_fixed_diff",
    .inputs_min = DIFF_INPUTS,
    .inputs_max = DIFF_INPUTS,
    .outputs = 3,
    .attribute_bytes = sizeof(an_batch_norm_fixed_attributes),
    .attributes = batch_norm_fixed_attributes,
    .infer = batch_norm_fixed_diff_infer,
    .cost = batch_norm_fixed_diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .in_place = 1 << DIFF_DST | 1 << DIFF_OF_SRC,
    .kernels = AN_KERNELS(batch_norm_fixed_diff),
};

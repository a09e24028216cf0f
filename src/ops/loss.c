/* Losses. Each is a sum over its targets, of the compute type: a step divides once, by its number of targets,
 * which the host counts with count_targets. Gradients flow to what was predicted; targets are data and get none.
 *
 * The last input may be absent: weights, which the losses of targets are multiplied by before they are added.
 * Their dimensions are the first ones of the targets, so there is one weight for each sample, or for each
 * target. They are data too. */
#include "ops/loss.h"

#include <inttypes.h>

#include "base/guard.h"
#include "kernels/loss/loss.h"
#include "ops/common.h"
#include "ops/fuse.h"
#include "ops/norm.h"
#include "ops/sink.h"
#include "ops/structs.h"

/* flops of an element, for the cost pass */
enum { CHEAP = 4, SMOOTH = 40 };

static const an_role loss_roles[] = {AN_ROLE_NONE, AN_ROLE_TARGETS};

static an_status expect_scalar(an_graph *g, const an_node *node, int input) {
    AN_TRY_RETURN(an_expect_float(g, node, input));
    AN_TRY_RETURN(an_expect_ndims(g, node, input, 0, 0));
    return AN_OK;
}

/* Input `at`: weights of these targets, for a loss of type `real`. */
static an_status check_weights(an_graph *g, const an_node *node, int at, const an_result *targets, an_dtype real) {
    const an_result *weights = an_node_input(node, at);
    if (!weights) return AN_OK;
    AN_TRY_RETURN(an_expect_float(g, node, at));
    bool fits = weights->ndims <= targets->ndims && an_compute_dtype(weights->dtype) == real;
    for (int i = 0; fits && i < weights->ndims; i++) fits = weights->dims[i] == targets->dims[i];
    if (fits) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_SHAPE,
                           "weights %s do not match targets %s: use %s with the leading dimensions of the targets, so "
                           "that there is one weight for each sample or for each target",
                           AN_DESCRIBE(g, weights), AN_DESCRIBE(g, targets), an_dtype_name(real));
}

enum { WEIGHTS = 2 }; /* the input of every loss */

static bool refuse_weights(an_graph *g, const an_node *node, uint32_t want) {
    if (!(want >> WEIGHTS & 1)) return false;
    an_node_mistake(g, node, AN_ERR_UNSUPPORTED,
                    "the weights of a loss have no gradient, but they depend on a trainable parameter");
    return true;
}

/* ---- cross_entropy ---- */

enum { MOST_FOCAL = 100 };

static const an_attribute cross_entropy_attributes[] = {
    AN_ATTRIBUTE(an_cross_entropy_attributes, ignored, INT),
    AN_ATTRIBUTE(an_cross_entropy_attributes, label_smoothing, FLOAT),
    AN_ATTRIBUTE(an_cross_entropy_attributes, focal, FLOAT),
    {0}};

/* Inputs `at` and `at` + 1: a label for each row of logits. */
static an_status check_rows(an_graph *g, const an_node *node, int at) {
    const an_result *logits = an_node_input(node, at), *targets = an_node_input(node, at + 1);
    AN_TRY_RETURN(an_expect_float(g, node, at));
    AN_TRY_RETURN(an_expect_ndims(g, node, at, 1, AN_MAX_DIMS));
    AN_TRY_RETURN(an_expect_index(g, node, at + 1));
    bool fits = targets->ndims == logits->ndims - 1;
    for (int i = 0; fits && i < targets->ndims; i++) fits = targets->dims[i] == logits->dims[i];
    if (!fits)
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "targets %s do not match logits %s: the last dimension of the logits is the classes, "
                               "and the others must equal those of the targets",
                               AN_DESCRIBE(g, targets), AN_DESCRIBE(g, logits));
    return AN_OK;
}

static an_status check_labels(an_graph *g, const an_node *node, int at) {
    const an_cross_entropy_attributes *attributes = node->attributes;
    AN_TRY_RETURN(check_rows(g, node, at));
    if (!(attributes->label_smoothing >= 0 && attributes->label_smoothing <= 1))
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "label_smoothing is %g; it must be 0 to 1",
                               attributes->label_smoothing);
    if (!(attributes->focal >= 0 && attributes->focal <= MOST_FOCAL))
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "focal is %g; it must be 0 to %d", attributes->focal,
                               MOST_FOCAL);
    if (attributes->focal > 0 && attributes->label_smoothing > 0)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "focal and label_smoothing exclude each other");
    return AN_OK;
}

static an_status cross_entropy_infer(an_graph *g, an_node *node) {
    const an_result *logits = an_node_input(node, 0), *targets = an_node_input(node, 1);
    AN_TRY_RETURN(check_labels(g, node, 0));
    AN_TRY_RETURN(check_weights(g, node, WEIGHTS, targets, an_compute_dtype(logits->dtype)));
    an_result_set(&node->outputs[0], an_compute_dtype(logits->dtype), 0, NULL);
    an_result_set(&node->outputs[1], an_compute_dtype(logits->dtype), targets->ndims, targets->dims);
    return AN_OK;
}

static an_status cross_entropy_diff_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(expect_scalar(g, node, 0));
    AN_TRY_RETURN(check_labels(g, node, 1));
    AN_TRY_RETURN(an_expect_float(g, node, 3));
    AN_TRY_RETURN(an_expect_same_shape(g, node, 2, 3));
    AN_TRY_RETURN(check_weights(g, node, 4, an_node_input(node, 2), an_compute_dtype(an_node_input(node, 1)->dtype)));
    an_result_like(&node->outputs[0], an_node_input(node, 1));
    return AN_OK;
}

static void cross_entropy_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                               an_value *diff_src) {
    an_value inputs[] = {diff_dst[0], an_node_input_value(g, node, 0), an_node_input_value(g, node, 1),
                         an_node_output_value(g, node, 1), an_node_input_value(g, node, WEIGHTS)};
    const int count = AN_COUNT(inputs) - !an_node_input(node, WEIGHTS);
    if (an_refuse_statistics(g, node, diff_dst) || refuse_weights(g, node, want)) return;
    diff_src[0] = an_graph_add(g, &an_op_cross_entropy_diff, count, inputs, node->attributes);
}

static an_cost cross_entropy_cost(const an_graph *g, const an_node *node) {
    return an_cost_of(g, node, SMOOTH * an_result_elements(g, an_node_input(node, 0)));
}

static an_cost cross_entropy_diff_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, SMOOTH);
}

static int64_t array_elements(const an_array *array) {
    int64_t n = 1;
    for (int i = 0; i < array->ndims; i++) n *= array->dims[i];
    return n;
}

static int64_t array_label(const an_array *array, int64_t index) {
    int64_t offset = 0, rest = index;
    bool dense = true;
    for (int i = array->ndims - 1; i >= 0; i--) {
        offset += rest % array->dims[i] * array->strides[i];
        rest /= array->dims[i];
        dense = dense && array->strides[i] == 0; /* all zero stand for dense */
    }
    if (dense) offset = index;
    return array->dtype == AN_DTYPE_I32 ? ((const int32_t *)array->data)[offset]
                                        : ((const int64_t *)array->data)[offset];
}

static int64_t count_labels(const an_node *node, const an_array *targets) {
    int64_t ignored = ((const an_cross_entropy_attributes *)node->attributes)->ignored;
    int64_t n = array_elements(targets), count = 0;
    for (int64_t i = 0; i < n; i++) count += array_label(targets, i) != ignored;
    return count;
}

/* cross_entropy (logits, targets, weights): outputs are the loss and the log-sum-exp of each row, kept for the
 * gradient. Label smoothing is PyTorch's: (1 - s) of a target is its class, s is spread over all classes. */
const an_op an_op_cross_entropy = {
    .name = "cross_entropy",
    .inputs_min = 2,
    .inputs_max = 3,
    .outputs = 2,
    .along = an_along_added,
    .flags = AN_OP_LOSS,
    .attribute_bytes = sizeof(an_cross_entropy_attributes),
    .attributes = cross_entropy_attributes,
    .roles = loss_roles,
    .role_count = AN_COUNT(loss_roles),
    .infer = cross_entropy_infer,
    .grad = cross_entropy_grad,
    .cost = cross_entropy_cost,
    .count_targets = count_labels,
    .autocast = AN_AUTOCAST_F32,
    .fuse = an_fuse_product_loss,
    .kernels = AN_KERNELS(cross_entropy),
};

/* cross_entropy_diff (diff_dst, logits, targets, log-sum-exp, weights) */
const an_op an_op_cross_entropy_diff = {
    .name = "cross_entropy_diff",
    .inputs_min = 4,
    .inputs_max = 5,
    .outputs = 1,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_cross_entropy_attributes),
    .attributes = cross_entropy_attributes,
    .infer = cross_entropy_diff_infer,
    .cost = cross_entropy_diff_cost,
    .autocast = AN_AUTOCAST_F32,
    .in_place = 2, /* logits: the largest tensor of a language model */
    .kernels = AN_KERNELS(cross_entropy_diff),
};

/* ---- cross_entropy_each ---- */

static an_status cross_entropy_each_infer(an_graph *g, an_node *node) {
    const an_result *logits = an_node_input(node, 0), *targets = an_node_input(node, 1);
    AN_TRY_RETURN(an_expect_ndims(g, node, 1, 1, AN_MAX_DIMS));
    AN_TRY_RETURN(check_labels(g, node, 0));
    for (int i = 0; i < node->output_count; i++)
        an_result_set(&node->outputs[i], an_compute_dtype(logits->dtype), targets->ndims, targets->dims);
    return AN_OK;
}

/* That of cross_entropy, where the gradients of the losses are the weights of the targets. */
static void cross_entropy_each_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                                    an_value *diff_src) {
    (void)want; /* targets are integers */
    if (an_refuse_statistics(g, node, diff_dst)) return;
    const bool dense = an_result_is_dense(g, an_graph_result(g, diff_dst[0]));
    const an_value inputs[] = {an_constant(g, node->outputs[0].dtype, 1, 0, NULL), an_node_input_value(g, node, 0),
                               an_node_input_value(g, node, 1), an_node_output_value(g, node, 1),
                               dense ? diff_dst[0] : an_contiguous(g, diff_dst[0])};
    diff_src[0] = an_graph_add(g, &an_op_cross_entropy_diff, AN_COUNT(inputs), inputs, node->attributes);
}

/* cross_entropy_each (logits, targets): the loss of each target, 0 where it is ignored, and the log-sum-exp of each
 * row. Their sum is cross_entropy. For losses that compare the likelihoods of whole sequences. */
const an_op an_op_cross_entropy_each = {
    .name = "cross_entropy_each",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 2,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_cross_entropy_attributes),
    .attributes = cross_entropy_attributes,
    .roles = loss_roles,
    .role_count = AN_COUNT(loss_roles),
    .infer = cross_entropy_each_infer,
    .grad = cross_entropy_each_grad,
    .cost = cross_entropy_cost,
    .autocast = AN_AUTOCAST_F32,
    .fuse = an_fuse_product_losses,
    .kernels = AN_KERNELS(cross_entropy), /* which add only for an output without dimensions */
};

/* ---- count_right ---- */

static an_status count_right_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(check_rows(g, node, 0));
    an_result_set(&node->outputs[0], AN_DTYPE_I64, 0, NULL);
    return AN_OK;
}

static an_cost count_right_cost(const an_graph *g, const an_node *node) {
    return an_cost_of(g, node, an_result_elements(g, an_node_input(node, 0)));
}

static const an_attribute count_right_attributes[] = {AN_ATTRIBUTE(an_count_right_attributes, ignored, INT), {0}};

/* count_right (logits, targets): how many targets have the largest logit of their row. The program pass adds it to
 * evaluations of models that do not store their logits. */
const an_op an_op_count_right = {
    .name = "count_right",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = an_along_added,
    .attribute_bytes = sizeof(an_count_right_attributes),
    .attributes = count_right_attributes,
    .infer = count_right_infer,
    .cost = count_right_cost,
    .autocast = AN_AUTOCAST_F32,
    .kernels = AN_KERNELS(count_right),
};

void an_count_right(an_graph *g) {
    const an_result *loss = an_graph_result(g, g->loss);
    if (!loss || loss->node->op != &an_op_cross_entropy || !an_op_has_kernels(g->ctx, &an_op_count_right) ||
        an_graph_has_output(g, AN_OUTPUT_RIGHT))
        return;
    const an_result *logits = an_node_input(loss->node, 0);
    for (const an_use *u = logits->first_use; u; u = u->next)
        if (u->node->op->flags & AN_OP_KEEPS_INPUTS) return;
    const an_cross_entropy_attributes *entropy = loss->node->attributes;
    const an_count_right_attributes counts = {entropy->ignored};
    const an_output_attributes output = {.name = AN_OUTPUT_RIGHT};
    const an_value inputs[] = {an_node_input_value(g, loss->node, 0), an_node_input_value(g, loss->node, 1)};
    const an_value right = an_graph_add(g, &an_op_count_right, AN_COUNT(inputs), inputs, &counts);
    an_graph_add(g, AN_BUILTIN(g, output), 1, &right, &output);
}

an_value an_cross_entropy(an_graph *graph, an_value logits, an_value targets, const an_cross_entropy_options *options) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_cross_entropy_options o;
    an_value inputs[] = {logits, targets};
    an_builder_begin(graph);
    if (!an_builder_took(graph, an_cross_entropy_options_read(graph->ctx, &o, options)))
        return an_builder_end(graph, 0);
    const an_cross_entropy_attributes attributes = {.ignored = o.ignored, .label_smoothing = o.label_smoothing};
    return an_builder_end(graph, an_graph_add(graph, &an_op_cross_entropy, AN_COUNT(inputs), inputs, &attributes));
}

/* ---- losses that compare a number with a target ---- */

static an_status error_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    AN_TRY_RETURN(an_expect_float(g, node, 1));
    AN_TRY_RETURN(an_expect_same_shape(g, node, 0, 1));
    an_dtype dtype = an_wider(an_node_input(node, 0)->dtype, an_node_input(node, 1)->dtype);
    AN_TRY_RETURN(check_weights(g, node, WEIGHTS, an_node_input(node, 1), an_compute_dtype(dtype)));
    an_result_set(&node->outputs[0], an_compute_dtype(dtype), 0, NULL);
    return AN_OK;
}

static an_status error_diff_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(expect_scalar(g, node, 0));
    AN_TRY_RETURN(an_expect_float(g, node, 1));
    AN_TRY_RETURN(an_expect_float(g, node, 2));
    AN_TRY_RETURN(an_expect_same_shape(g, node, 1, 2));
    const an_dtype dtype = an_wider(an_node_input(node, 1)->dtype, an_node_input(node, 2)->dtype);
    AN_TRY_RETURN(check_weights(g, node, 3, an_node_input(node, 2), an_compute_dtype(dtype)));
    an_result_like(&node->outputs[0], an_node_input(node, 1));
    return AN_OK;
}

static an_status check_delta(an_graph *g, const an_node *node) {
    double delta = ((const an_huber_error_attributes *)node->attributes)->delta;
    if (delta > 0) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_ARGUMENT, "delta is %g; it must be greater than 0", delta);
}

static an_status huber_error_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(error_infer(g, node));
    AN_TRY_RETURN(check_delta(g, node));
    return AN_OK;
}

static an_status huber_error_diff_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(error_diff_infer(g, node));
    AN_TRY_RETURN(check_delta(g, node));
    return AN_OK;
}

#define COST(kind, flops)                                                                  \
    static an_cost kind##_cost(const an_graph *g, const an_node *node) {                   \
        return an_cost_of(g, node, flops * an_result_elements(g, an_node_input(node, 0))); \
    }                                                                                      \
    static an_cost kind##_diff_cost(const an_graph *g, const an_node *node) {              \
        return an_cost_elementwise(g, node, flops);                                        \
    }
COST(cheap, CHEAP)
COST(smooth, SMOOTH)

static int64_t count_elements(const an_node *node, const an_array *targets) {
    (void)node;
    return array_elements(targets);
}

static const an_attribute huber_error_attributes[] = {AN_ATTRIBUTE(an_huber_error_attributes, delta, FLOAT), {0}};

/* ATTRIBUTES: more members for both records, or nothing */
#define LOSS(op, op_infer, op_cost, ATTRIBUTES)                                                             \
    static void op##_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,        \
                          an_value *diff_src) {                                                             \
        an_value inputs[] = {diff_dst[0], an_node_input_value(g, node, 0), an_node_input_value(g, node, 1), \
                             an_node_input_value(g, node, WEIGHTS)};                                        \
        const int count = AN_COUNT(inputs) - !an_node_input(node, WEIGHTS);                                 \
        if (refuse_weights(g, node, want)) return;                                                          \
        if (want & 1) diff_src[0] = an_graph_add(g, &an_op_##op##_diff, count, inputs, node->attributes);   \
    }                                                                                                       \
    const an_op an_op_##op = {.name = #op,                                                                  \
                              .inputs_min = 2,                                                              \
                              .inputs_max = 3,                                                              \
                              .outputs = 1,                                                                 \
                              .along = an_along_added,                                                      \
                              .flags = AN_OP_LOSS,                                                          \
                              .roles = loss_roles,                                                          \
                              .role_count = AN_COUNT(loss_roles),                                           \
                              .infer = op_infer##_infer,                                                    \
                              .grad = op##_grad,                                                            \
                              .cost = op_cost##_cost,                                                       \
                              .count_targets = count_elements,                                              \
                              .autocast = AN_AUTOCAST_F32,                                                  \
                              .kernels = AN_KERNELS(op),                                                    \
                              ATTRIBUTES};                                                                  \
    const an_op an_op_##op##_diff = {.name = #op "_diff",                                                   \
                                     .inputs_min = 3,                                                       \
                                     .inputs_max = 4,                                                       \
                                     .outputs = 1,                                                          \
                                     .along = an_along_first,                                               \
                                     .infer = op_infer##_diff_infer,                                        \
                                     .cost = op_cost##_diff_cost,                                           \
                                     .autocast = AN_AUTOCAST_F32,                                           \
                                     .in_place = 2 | 4,                                                     \
                                     .kernels = AN_KERNELS(op##_diff),                                      \
                                     ATTRIBUTES};
#define HUBER .attribute_bytes = sizeof(an_huber_error_attributes), .attributes = huber_error_attributes

LOSS(squared_error, error, cheap, )
LOSS(absolute_error, error, cheap, )
LOSS(huber_error, huber_error, cheap, HUBER)
LOSS(binary_cross_entropy, error, smooth, ) /* src are logits, targets lie in 0 to 1 */

static an_value build(an_graph *g, const an_op *op, an_value src, an_value targets, const void *attributes) {
    an_value inputs[] = {src, targets};
    return an_graph_add(g, op, AN_COUNT(inputs), inputs, attributes);
}

an_value an_squared_error(an_graph *graph, an_value src, an_value targets) {
    AN_NEED_OR(0, graph);
    return build(graph, &an_op_squared_error, src, targets, NULL);
}

an_value an_absolute_error(an_graph *graph, an_value src, an_value targets) {
    AN_NEED_OR(0, graph);
    return build(graph, &an_op_absolute_error, src, targets, NULL);
}

an_value an_huber_error(an_graph *graph, an_value src, an_value targets, double delta) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_huber_error_attributes attributes = {delta};
    return build(graph, &an_op_huber_error, src, targets, &attributes);
}

an_value an_binary_cross_entropy(an_graph *graph, an_value logits, an_value targets) {
    AN_NEED_OR(0, graph);
    return build(graph, &an_op_binary_cross_entropy, logits, targets, NULL);
}

an_value an_weigh_loss(an_graph *graph, an_value loss, an_value weights) {
    AN_NEED_OR(0, graph);
    const an_result *r = an_graph_result(graph, loss);
    an_builder_begin(graph);
    if (!r || !r->node->op->count_targets || an_node_input(r->node, WEIGHTS)) {
        an_graph_mistake(
            graph, AN_ERR_ARGUMENT,
            "weights can only be added to a loss, such as the result of an_cross_entropy, that has none yet");
        return an_builder_end(graph, 0);
    }
    an_value inputs[] = {an_node_input_value(graph, r->node, 0), an_node_input_value(graph, r->node, 1), weights};
    return an_builder_end(graph, an_graph_add(graph, r->node->op, AN_COUNT(inputs), inputs, r->node->attributes));
}

/* The cross entropies of a graph, one after another; NULL after the last. */
static an_cross_entropy_attributes *next_cross_entropy(an_node **node) {
    an_node *n = *node;
    while (n && n->op != &an_op_cross_entropy) n = n->next;
    *node = n ? n->next : NULL;
    return n ? n->attributes : NULL;
}

an_status an_graph_set_focal(an_graph *graph, double gamma) {
    AN_GUARD;
    AN_NEED(graph);
    an_node *node = graph->first;
    an_cross_entropy_attributes *a;
    if (!(gamma >= 0 && gamma <= MOST_FOCAL))
        return AN_ERROR(graph->ctx, AN_ERR_ARGUMENT, "the focal exponent is %g; it must be 0 to %d", gamma, MOST_FOCAL);
    if (!(a = next_cross_entropy(&node)))
        return AN_ERROR(graph->ctx, AN_ERR_ARGUMENT, "a focal loss needs a model whose loss is a cross entropy");
    for (; a; a = next_cross_entropy(&node)) {
        if (gamma > 0 && a->label_smoothing > 0)
            return AN_ERROR(graph->ctx, AN_ERR_ARGUMENT, "a focal loss has no label smoothing; set one of them to 0");
        a->focal = gamma;
    }
    return AN_OK;
}

an_status an_graph_set_label_smoothing(an_graph *graph, double smoothing) {
    AN_GUARD;
    AN_NEED(graph);
    bool found = false;
    if (!(smoothing >= 0 && smoothing < 1))
        return AN_ERROR(graph->ctx, AN_ERR_ARGUMENT, "label smoothing is %g; it must be at least 0 and less than 1",
                        smoothing);
    for (an_node *n = graph->first; n; n = n->next) {
        if (n->op != &an_op_cross_entropy) continue;
        ((an_cross_entropy_attributes *)n->attributes)->label_smoothing = smoothing;
        found = true;
    }
    if (found) return AN_OK;
    return AN_ERROR(graph->ctx, AN_ERR_ARGUMENT, "label smoothing needs a model whose loss is a cross entropy");
}

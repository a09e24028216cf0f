/* Sum, mean and maximum over a set of axes.
 *
 * Whatever the stored type, sums are made in the compute type. The gradients of sums are views: every element of src
 * gets the element of diff_dst that it went into.
 */
#include "ops/reduce.h"

#include <inttypes.h>

#include "kernels/reduce/reduce.h"

static const an_attribute reduce_attributes[] = {
    AN_ATTRIBUTE(an_reduce_attributes, axes, INTS), AN_ATTRIBUTE(an_reduce_attributes, keep, BOOL), {0}};
static const an_attribute reduce_sum_attributes[] = {AN_ATTRIBUTE(an_reduce_attributes, axes, INTS),
                                                     AN_ATTRIBUTE(an_reduce_attributes, keep, BOOL),
                                                     AN_ATTRIBUTE(an_reduce_attributes, dtype, DTYPE),
                                                     {0}};

static bool is_reduced(const an_reduce_attributes *attributes, int axis) {
    for (int i = 0; i < attributes->axes.count; i++)
        if (attributes->axes.values[i] == axis) return true;
    return false;
}

static int reduced_dims(const an_result *src, const an_reduce_attributes *attributes, bool keep, an_dim *dims) {
    int ndims = 0;
    for (int i = 0; i < src->ndims; i++) {
        if (!is_reduced(attributes, i))
            dims[ndims++] = src->dims[i];
        else if (keep)
            dims[ndims++] = 1;
    }
    return ndims;
}

/* Attributes may come from a text, so what the builder made sure of is checked here. */
static an_status check_axes(an_graph *g, const an_node *node, const an_result *src) {
    const an_reduce_attributes *attributes = node->attributes;
    for (int i = 0; i < attributes->axes.count; i++) {
        int64_t axis = attributes->axes.values[i];
        if (axis < 0 || axis >= src->ndims)
            return an_node_mistake(g, node, AN_ERR_ARGUMENT, "axis %" PRId64 " does not exist in %s", axis,
                                   AN_DESCRIBE(g, src));
        if (i > 0 && axis <= attributes->axes.values[i - 1])
            return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                                   "axes must be in increasing order, but %" PRId64 " comes after %" PRId64, axis,
                                   attributes->axes.values[i - 1]);
    }
    return AN_OK;
}

static an_status reduce_infer(an_graph *g, an_node *node) {
    const an_reduce_attributes *attributes = node->attributes;
    const an_result *src = an_node_input(node, 0);
    an_dim dims[AN_MAX_DIMS];
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    AN_TRY_RETURN(check_axes(g, node, src));
    if (attributes->dtype != AN_DTYPE_NONE && !an_dtype_is_float(attributes->dtype))
        return an_node_mistake(g, node, AN_ERR_DTYPE, "the sum of %s cannot be %s: it must be floating-point",
                               AN_DESCRIBE(g, src), an_dtype_name(attributes->dtype));
    int ndims = reduced_dims(src, attributes, attributes->keep, dims);
    an_result_set(&node->outputs[0], attributes->dtype == AN_DTYPE_NONE ? src->dtype : attributes->dtype, ndims, dims);
    return AN_OK;
}

static an_cost reduce_cost(const an_graph *g, const an_node *node) {
    return an_cost_of(g, node, an_result_elements(g, an_node_input(node, 0)));
}

/* A value of dst's shape with the reduced axes put back, of size 1. */
static an_value with_axes(an_graph *g, const an_node *node, an_value reduced) {
    const an_reduce_attributes *attributes = node->attributes;
    an_dim dims[AN_MAX_DIMS];
    int ndims = reduced_dims(an_node_input(node, 0), attributes, true, dims);
    return attributes->keep ? reduced : an_reshape(g, reduced, ndims, dims);
}

static void reduce_sum_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                            an_value *diff_src) {
    const an_result *src = an_node_input(node, 0);
    an_value diff = an_cast(g, diff_dst[0], src->dtype); /* before it is spread */
    (void)want;
    diff_src[0] = an_expand(g, with_axes(g, node, diff), src->ndims, src->dims);
}

static void reduce_mean_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                             an_value *diff_src) {
    const an_result *src = an_node_input(node, 0);
    an_reduce_mean_diff_attributes attributes = {.dims.count = src->ndims};
    an_value diff = with_axes(g, node, diff_dst[0]);
    (void)want;
    for (int i = 0; i < src->ndims; i++) attributes.dims.values[i] = src->dims[i];
    diff_src[0] = an_graph_add(g, &an_op_reduce_mean_diff, 1, &diff, &attributes);
}

static void reduce_max_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                            an_value *diff_src) {
    an_value inputs[] = {diff_dst[0], an_node_input_value(g, node, 0), an_node_output_value(g, node, 0)};
    (void)want;
    diff_src[0] = an_graph_add(g, &an_op_reduce_max_diff, AN_COUNT(inputs), inputs, node->attributes);
}

/* Also that of a maximum. */
static an_along reduce_mean_along(const an_along_question *q) {
    const an_reduce_attributes *attributes = q->node->attributes;
    int to = q->axis;
    if (is_reduced(attributes, q->axis)) return AN_ALONG_MIXED;
    for (int i = 0; i < attributes->axes.count && !attributes->keep; i++) to -= attributes->axes.values[i] < q->axis;
    return q->to == to ? AN_ALONG_APART : AN_ALONG_MIXED;
}

/* Elements are added in C order, so what is added lies in one piece for each place along the first axis that is
 * reduced. */
static an_along reduce_along(const an_along_question *q) {
    const an_reduce_attributes *attributes = q->node->attributes;
    if (q->to < 0 && attributes->axes.count > 0 && attributes->axes.values[0] == q->axis) return AN_ALONG_ADDED;
    return reduce_mean_along(q);
}

/* reduce_sum: dst = Σ src over the axes */
const an_op an_op_reduce_sum = {
    .name = "reduce_sum",
    .torch = "torch.sum({0}, {axes}{keep?, keepdim=True})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = reduce_along,
    .attribute_bytes = sizeof(an_reduce_attributes),
    .attributes = reduce_sum_attributes,
    .infer = reduce_infer,
    .grad = reduce_sum_grad,
    .cost = reduce_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(reduce_sum),
};

/* reduce_mean: dst = Σ src ÷ the number of elements, which may be known only at run time */
const an_op an_op_reduce_mean = {
    .name = "reduce_mean",
    .torch = "torch.mean({0}, {axes}{keep?, keepdim=True})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = reduce_mean_along,
    .attribute_bytes = sizeof(an_reduce_attributes),
    .attributes = reduce_attributes,
    .flags = AN_OP_MEAN,
    .infer = reduce_infer,
    .grad = reduce_mean_grad,
    .cost = reduce_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(reduce_mean),
};

/* reduce_max: NaN if there is one */
const an_op an_op_reduce_max = {
    .name = "reduce_max",
    .torch = "torch.amax({0}, {axes}{keep?, keepdim=True})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = reduce_mean_along,
    .attribute_bytes = sizeof(an_reduce_attributes),
    .attributes = reduce_attributes,
    .infer = reduce_infer,
    .grad = reduce_max_grad,
    .cost = reduce_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(reduce_max),
};

/* ---- gradients ---- */

static const an_attribute reduce_mean_diff_attributes[] = {AN_ATTRIBUTE(an_reduce_mean_diff_attributes, dims, DIMS),
                                                           {0}};

static an_status reduce_mean_diff_infer(an_graph *g, an_node *node) {
    const an_reduce_mean_diff_attributes *attributes = node->attributes;
    const an_result *diff_dst = an_node_input(node, 0);
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    an_result_set(&node->outputs[0], diff_dst->dtype, attributes->dims.count, attributes->dims.values);
    bool fits = diff_dst->ndims == attributes->dims.count;
    for (int i = 0; fits && i < diff_dst->ndims; i++)
        fits = diff_dst->dims[i] == 1 || diff_dst->dims[i] == attributes->dims.values[i];
    if (fits) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_SHAPE, "%s is not a mean of %s over some axes that are kept with size 1",
                           AN_DESCRIBE(g, diff_dst), AN_DESCRIBE(g, &node->outputs[0]));
}

static an_cost diff_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, 1);
}

/* reduce_mean_diff: an op and no view times a number, because only the kernel knows the number */
const an_op an_op_reduce_mean_diff = {
    .name = "reduce_mean_diff",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_elements,
    .attribute_bytes = sizeof(an_reduce_mean_diff_attributes),
    .attributes = reduce_mean_diff_attributes,
    .infer = reduce_mean_diff_infer,
    .cost = diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(reduce_mean_diff),
};

static an_status reduce_max_diff_infer(an_graph *g, an_node *node) {
    const an_result *diff_dst = an_node_input(node, 0), *src = an_node_input(node, 1);
    an_result expected = {0};
    for (int i = 0; i < node->input_count; i++) AN_TRY_RETURN(an_expect_float(g, node, i));
    expected.dtype = diff_dst->dtype;
    AN_TRY_RETURN(check_axes(g, node, src));
    AN_TRY_RETURN(an_expect_same_shape(g, node, 0, 2));
    expected.ndims =
        reduced_dims(src, node->attributes, ((const an_reduce_attributes *)node->attributes)->keep, expected.dims);
    bool fits = diff_dst->ndims == expected.ndims;
    for (int i = 0; fits && i < expected.ndims; i++) fits = diff_dst->dims[i] == expected.dims[i];
    if (!fits)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "the maximum of %s over these axes is %s, not %s",
                               AN_DESCRIBE(g, src), AN_DESCRIBE(g, &expected), AN_DESCRIBE(g, diff_dst));
    an_result_like(&node->outputs[0], src);
    return AN_OK;
}

/* Axes of diff_dst and dst are those of src that are not reduced. */
static an_along reduce_max_diff_along(const an_along_question *q) {
    const an_reduce_attributes *attributes = q->node->attributes;
    int axis = q->axis;
    for (int i = 0; i < attributes->axes.count && q->input != 1 && !attributes->keep; i++)
        axis += attributes->axes.values[i] <= axis;
    return !is_reduced(attributes, axis) && q->to == axis ? AN_ALONG_APART : AN_ALONG_MIXED;
}

/* reduce_max_diff (diff_dst, src, dst): elements that are the maximum share its gradient evenly, as PyTorch's amax */
const an_op an_op_reduce_max_diff = {
    .name = "reduce_max_diff",
    .inputs_min = 3,
    .inputs_max = 3,
    .outputs = 1,
    .along = reduce_max_diff_along,
    .attribute_bytes = sizeof(an_reduce_attributes),
    .attributes = reduce_attributes,
    .infer = reduce_max_diff_infer,
    .cost = diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .in_place = 2, /* src: shares are made before the first element is written */
    .kernels = AN_KERNELS(reduce_max_diff),
};

/* ---- builders ---- */

/* Makes axes positive and sorts them; none given stand for all. False after a mistake. */
static bool choose_axes(an_graph *g, const an_op *op, const an_result *src, int axis_count, const int *axes,
                        an_int_list *list) {
    bool chosen[AN_MAX_DIMS] = {false};
    for (int i = 0; i < axis_count; i++) {
        int axis = an_normalize_axis(g, op->name, axes[i], src->ndims);
        if (axis < 0) return false;
        if (chosen[axis]) {
            an_graph_mistake(g, AN_ERR_ARGUMENT, "%s: axis %d is given twice", op->name, axis);
            return false;
        }
        chosen[axis] = true;
    }
    for (int i = 0; i < src->ndims; i++)
        if (axis_count == 0 || chosen[i]) list->values[list->count++] = i;
    return true;
}

static an_value reduce(an_graph *g, const an_op *op, an_value src, int axis_count, const int *axes, bool keep,
                       an_dtype dtype) {
    const an_result *result = an_graph_result(g, src);
    an_reduce_attributes attributes = {.keep = keep, .dtype = dtype};
    an_builder_begin(g);
    if (!an_expect_list(g, "axes", axis_count, axes)) return an_builder_end(g, 0);
    if (result && !choose_axes(g, op, result, axis_count, axes, &attributes.axes)) return an_builder_end(g, 0);
    return an_builder_end(g, an_graph_add(g, op, 1, &src, &attributes)); /* without a result it says what is wrong */
}

an_value an_reduce_sum_as(an_graph *g, an_value src, int axis_count, const int *axes, bool keep, an_dtype dtype) {
    return reduce(g, &an_op_reduce_sum, src, axis_count, axes, keep, dtype);
}

static bool keeps_last_only(const an_node *node) {
    const an_reduce_attributes *attributes = node->attributes;
    const int last = an_node_input(node, 0)->ndims - 1;
    return attributes->axes.count == last && !attributes->keep && !is_reduced(attributes, last);
}

an_value an_divide_sum(an_graph *g, an_value sum, an_value divisor) {
    const an_result *r = an_graph_result(g, sum);
    const bool has_terms = r && r->node->op == &an_op_reduce_sum && keeps_last_only(r->node);
    const an_value inputs[] = {has_terms ? an_node_input_value(g, r->node, 0) : sum, divisor};
    const an_value quotient = an_graph_add(g, AN_BUILTIN(g, divide), AN_COUNT(inputs), inputs, NULL);
    return has_terms ? an_graph_add(g, &an_op_reduce_sum, 1, &quotient, r->node->attributes) : quotient;
}

an_value an_reduce_sum(an_graph *graph, an_value src, int axis_count, const int *axes, bool keep) {
    AN_NEED_OR(0, graph);
    return reduce(graph, &an_op_reduce_sum, src, axis_count, axes, keep, AN_DTYPE_NONE);
}

an_value an_reduce_mean(an_graph *graph, an_value src, int axis_count, const int *axes, bool keep) {
    AN_NEED_OR(0, graph);
    return reduce(graph, &an_op_reduce_mean, src, axis_count, axes, keep, AN_DTYPE_NONE);
}

an_value an_reduce_max(an_graph *graph, an_value src, int axis_count, const int *axes, bool keep) {
    AN_NEED_OR(0, graph);
    return reduce(graph, &an_op_reduce_max, src, axis_count, axes, keep, AN_DTYPE_NONE);
}

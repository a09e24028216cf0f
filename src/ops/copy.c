/* Ops that move elements: dense copies, casts, concatenation, padding, gathering.
 *
 * concat and pad complement the views: concat is the gradient of split, pad is the gradient of slice, and slices are
 * the gradients of both.
 */
#include "ops/common.h"

#include <inttypes.h>

#include "kernels/copy/copy.h"

static an_cost copy_cost(const an_graph *g, const an_node *node) {
    return an_cost_of(g, node, 0);
}

/* Attributes may come from a text: an axis that a builder has made positive is checked again. */
static an_status check_axis(an_graph *g, const an_node *node, int64_t axis) {
    AN_TRY_RETURN(an_expect_ndims(g, node, 0, 1, AN_MAX_DIMS));
    const an_result *src = an_node_input(node, 0);
    if (axis >= 0 && axis < src->ndims) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_ARGUMENT, "axis %" PRId64 " is not one of the %d axes of %s", axis,
                           src->ndims, AN_DESCRIBE(g, src));
}

/* Where src has the output's type, shape and layout already, nothing is done to it. */
static an_value src_itself(an_graph *g, const an_node *node) {
    return an_node_input_value(g, node, 0);
}

/* ---- contiguous: the same values, dense and row-major ---- */

static an_status contiguous_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(an_expect_ndims(g, node, 0, 0, AN_MAX_DIMS));
    an_result_like(an_node_output(node, 0), an_node_input(node, 0));
    return AN_OK;
}

static void contiguous_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                            an_value *diff_src) {
    (void)g, (void)node, (void)want;
    diff_src[0] = diff_dst[0];
}

const an_op an_op_contiguous = {
    .name = "contiguous",
    .torch = "{0}.contiguous()",
    .onnx = "Identity",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .flags = AN_OP_MOVES,
    .along = an_along_elements,
    .infer = contiguous_infer,
    .grad = contiguous_grad,
    .simplify = src_itself,
    .cost = copy_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(contiguous),
};

an_value an_contiguous(an_graph *graph, an_value src) {
    AN_NEED_OR(0, graph);
    return an_graph_add(graph, &an_op_contiguous, 1, &src, NULL);
}

/* ---- cast: to a floating type, from any ---- */

static const an_attribute cast_attributes[] = {AN_ATTRIBUTE(an_cast_attributes, dtype, DTYPE), {0}};

static an_status cast_infer(an_graph *g, an_node *node) {
    const an_cast_attributes *attributes = node->attributes;
    AN_TRY_RETURN(an_expect_ndims(g, node, 0, 0, AN_MAX_DIMS));
    const an_result *src = an_node_input(node, 0);
    if (!an_dtype_is_float(attributes->dtype))
        return an_node_mistake(g, node, AN_ERR_DTYPE,
                               "%s cannot be cast to %s: values can be cast only to f32, f64, bf16 and f16",
                               AN_DESCRIBE(g, src), an_dtype_name(attributes->dtype));
    an_result_set(an_node_output(node, 0), attributes->dtype, src->ndims, src->dims);
    return AN_OK;
}

static void cast_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    if (want & 1) diff_src[0] = an_cast(g, diff_dst[0], an_node_input(node, 0)->dtype); /* integers have none */
}

const an_op an_op_cast = {
    .name = "cast",
    .torch = "{0}.to({dtype})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_elements,
    .flags = AN_OP_CONVERTS,
    .attribute_bytes = sizeof(an_cast_attributes),
    .attributes = cast_attributes,
    .infer = cast_infer,
    .grad = cast_grad,
    .simplify = src_itself,
    .cost = copy_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .blocks_in = 1,
    .kernels = AN_KERNELS(cast),
};

an_value an_cast(an_graph *graph, an_value src, an_dtype dtype) {
    AN_NEED_OR(0, graph);
    an_cast_attributes attributes = {dtype};
    an_builder_begin(graph);
    const an_result *result = an_graph_result(graph, src);
    if (result && result->dtype == dtype) return an_builder_end(graph, src);
    return an_builder_end(graph, an_graph_add(graph, &an_op_cast, 1, &src, &attributes));
}

/* ---- concat: inputs one after the other along an axis ---- */

static const an_attribute concat_attributes[] = {AN_ATTRIBUTE(an_concat_attributes, axis, INT), {0}};

/* Floating inputs may differ, as mixed precision makes them do; the output is of the widest. */
static an_status concat_infer(an_graph *g, an_node *node) {
    const an_concat_attributes *attributes = node->attributes;
    AN_TRY_RETURN(check_axis(g, node, attributes->axis));
    const an_result *first = an_node_input(node, 0);
    an_dtype dtype = first->dtype;
    an_dim dims[AN_MAX_DIMS] = {0};
    for (int i = 0; i < first->ndims; i++) dims[i] = first->dims[i];
    for (int i = 1; i < node->input_count; i++) {
        AN_TRY_RETURN(an_expect_ndims(g, node, i, first->ndims, first->ndims));
        const an_result *src = an_node_input(node, i);
        bool fits = true;
        for (int d = 0; d < src->ndims; d++) fits = fits && (d == attributes->axis || src->dims[d] == first->dims[d]);
        if (!fits)
            return an_node_mistake(g, node, AN_ERR_SHAPE,
                                   "input %d is %s and input 0 is %s: all dimensions except axis %" PRId64
                                   " must be the same",
                                   i, AN_DESCRIBE(g, src), AN_DESCRIBE(g, first), attributes->axis);
        if (src->dtype != dtype && !(an_dtype_is_float(src->dtype) && an_dtype_is_float(dtype)))
            return an_node_mistake(g, node, AN_ERR_DTYPE, "input %d is %s and input 0 is %s: cast one of them", i,
                                   AN_DESCRIBE(g, src), AN_DESCRIBE(g, first));
        dtype = an_wider(dtype, src->dtype);
        dims[attributes->axis] = an_graph_add_dims(g, dims[attributes->axis], src->dims[attributes->axis]);
    }
    an_result_set(an_node_output(node, 0), dtype, first->ndims, dims);
    return g->status; /* a sum of dimensions may not fit */
}

static void concat_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const an_concat_attributes *attributes = node->attributes;
    an_dim begin = 0;
    for (int i = 0; i < node->input_count; i++) {
        const an_result *src = an_node_input(node, i);
        an_dim end = an_graph_add_dims(g, begin, src->dims[attributes->axis]);
        if (want & UINT32_C(1) << i) diff_src[i] = an_slice(g, diff_dst[0], (int)attributes->axis, begin, end);
        begin = end;
    }
}

const an_op an_op_concat = {
    .name = "concat",
    .torch = "torch.cat(({*}), {axis})",
    .inputs_min = 2,
    .inputs_max = AN_MAX_INPUTS,
    .outputs = 1,
    .flags = AN_OP_MOVES,
    .along = an_along_off_axis,
    .attribute_bytes = sizeof(an_concat_attributes),
    .attributes = concat_attributes,
    .infer = concat_infer,
    .grad = concat_grad,
    .cost = copy_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(concat),
};

an_value an_concat(an_graph *graph, int axis, int count, const an_value *values) {
    AN_NEED_OR(0, graph);
    an_concat_attributes attributes = {0};
    an_value value = 0;
    an_builder_begin(graph);
    if (!an_expect_list(graph, "values", count, values)) return an_builder_end(graph, 0);
    const an_result *first = count > 0 ? an_graph_result(graph, values[0]) : NULL;
    if (first) attributes.axis = an_normalize_axis(graph, "an_concat", axis, first->ndims);
    if (count == 1)
        value = values[0];
    else if (attributes.axis >= 0)
        value = an_graph_add(graph, &an_op_concat, count, values, &attributes);
    return an_builder_end(graph, value);
}

/* ---- pad: zeros before and after along an axis ---- */

static const an_attribute pad_attributes[] = {
    AN_ATTRIBUTE(an_pad_attributes, axis, INT),
    AN_ATTRIBUTE(an_pad_attributes, before, DIM),
    AN_ATTRIBUTE(an_pad_attributes, after, DIM),
    {0},
};

static an_status pad_infer(an_graph *g, an_node *node) {
    const an_pad_attributes *attributes = node->attributes;
    AN_TRY_RETURN(check_axis(g, node, attributes->axis));
    const an_result *src = an_node_input(node, 0);
    an_dim dims[AN_MAX_DIMS] = {0};
    for (int i = 0; i < src->ndims; i++) dims[i] = src->dims[i];
    an_dim zeros = an_graph_add_dims(g, attributes->before, attributes->after);
    dims[attributes->axis] = an_graph_add_dims(g, zeros, src->dims[attributes->axis]);
    an_result_set(an_node_output(node, 0), src->dtype, src->ndims, dims);
    return g->status; /* a sum of dimensions may not fit */
}

static void pad_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const an_pad_attributes *attributes = node->attributes;
    an_dim size = an_node_input(node, 0)->dims[attributes->axis];
    (void)want;
    diff_src[0] = an_slice(g, diff_dst[0], (int)attributes->axis, attributes->before,
                           an_graph_add_dims(g, attributes->before, size));
}

const an_op an_op_pad = {
    .name = "pad",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .flags = AN_OP_MOVES,
    .along = an_along_off_axis,
    .attribute_bytes = sizeof(an_pad_attributes),
    .attributes = pad_attributes,
    .infer = pad_infer,
    .grad = pad_grad,
    .simplify = src_itself,
    .cost = copy_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(pad),
};

an_value an_pad(an_graph *graph, an_value src, int axis, an_dim before, an_dim after) {
    AN_NEED_OR(0, graph);
    an_pad_attributes attributes = {.before = before, .after = after};
    an_value value = 0;
    an_builder_begin(graph);
    const an_result *result = an_graph_result(graph, src);
    if (result) attributes.axis = an_normalize_axis(graph, "an_pad", axis, result->ndims);
    if (attributes.axis >= 0) value = an_graph_add(graph, &an_op_pad, 1, &src, &attributes);
    return an_builder_end(graph, value);
}

/* ---- gather: elements picked along an axis ---- */

static const an_attribute gather_attributes[] = {AN_ATTRIBUTE(an_gather_attributes, axis, INT), {0}};

/* Off the axis, indices may be smaller than src where both are numbers: the rest of src is not read. */
static an_status gather_infer(an_graph *g, an_node *node) {
    const an_gather_attributes *attributes = node->attributes;
    AN_TRY_RETURN(check_axis(g, node, attributes->axis));
    AN_TRY_RETURN(an_expect_index(g, node, 1));
    const an_result *src = an_node_input(node, 0), *indices = an_node_input(node, 1);
    bool fits = src->ndims == indices->ndims;
    for (int i = 0; fits && i < src->ndims; i++) {
        bool is_smaller = indices->dims[i] >= 0 && indices->dims[i] < src->dims[i];
        fits = i == attributes->axis || indices->dims[i] == src->dims[i] || is_smaller;
    }
    if (!fits)
        return an_node_mistake(
            g, node, AN_ERR_SHAPE,
            "indices are %s and src is %s: they must have the same number of dimensions, and only axis %" PRId64
            " of the indices may be larger than in src",
            AN_DESCRIBE(g, indices), AN_DESCRIBE(g, src), attributes->axis);
    an_result_set(an_node_output(node, 0), src->dtype, indices->ndims, indices->dims);
    return AN_OK;
}

static void gather_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const an_gather_attributes *attributes = node->attributes;
    const an_result *src = an_node_input(node, 0);
    an_gather_diff_attributes diff = {.axis = attributes->axis, .dims = {.count = src->ndims}};
    an_value inputs[] = {diff_dst[0], an_node_input_value(g, node, 1)};
    (void)want;
    for (int i = 0; i < src->ndims; i++) diff.dims.values[i] = src->dims[i];
    diff_src[0] = an_graph_add(g, &an_op_gather_diff, AN_COUNT(inputs), inputs, &diff);
}

/* Along its axis, an index picks an element of src whatever the other indices are. */
static an_along gather_along(const an_along_question *q) {
    const an_gather_attributes *attributes = q->node->attributes;
    const bool picks = q->input == 1 && q->axis == attributes->axis && q->to == q->axis;
    return picks ? AN_ALONG_APART : an_along_off_axis(q);
}

const an_op an_op_gather = {
    .name = "gather",
    .torch = "torch.gather({0}, {axis}, {1}.long())",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = gather_along,
    .attribute_bytes = sizeof(an_gather_attributes),
    .attributes = gather_attributes,
    .infer = gather_infer,
    .grad = gather_grad,
    .cost = copy_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(gather),
};

an_value an_gather(an_graph *graph, an_value src, an_value indices, int axis) {
    AN_NEED_OR(0, graph);
    an_gather_attributes attributes = {0};
    an_value inputs[] = {src, indices}, value = 0;
    an_builder_begin(graph);
    const an_result *result = an_graph_result(graph, src);
    if (result) attributes.axis = an_normalize_axis(graph, "an_gather", axis, result->ndims);
    if (attributes.axis >= 0) value = an_graph_add(graph, &an_op_gather, AN_COUNT(inputs), inputs, &attributes);
    return an_builder_end(graph, value);
}

/* ---- gather_diff: what was gathered is added where it came from ---- */

static const an_attribute gather_diff_attributes[] = {
    AN_ATTRIBUTE(an_gather_diff_attributes, axis, INT),
    AN_ATTRIBUTE(an_gather_diff_attributes, dims, DIMS),
    {0},
};

static an_status gather_diff_infer(an_graph *g, an_node *node) {
    const an_gather_diff_attributes *attributes = node->attributes;
    AN_TRY_RETURN(check_axis(g, node, attributes->axis));
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    AN_TRY_RETURN(an_expect_index(g, node, 1));
    AN_TRY_RETURN(an_expect_same_shape(g, node, 0, 1));
    const an_result *diff_dst = an_node_input(node, 0);
    if (attributes->dims.count != diff_dst->ndims)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "diff_dst is %s, but src has %d dimensions",
                               AN_DESCRIBE(g, diff_dst), attributes->dims.count);
    an_result_set(an_node_output(node, 0), an_compute_dtype(diff_dst->dtype), attributes->dims.count,
                  attributes->dims.values);
    return AN_OK;
}

static an_cost gather_diff_cost(const an_graph *g, const an_node *node) {
    return an_cost_of(g, node, an_result_elements(g, an_node_input(node, 0)));
}

static an_along gather_diff_along(const an_along_question *q) {
    const an_gather_diff_attributes *attributes = q->node->attributes;
    return q->to < 0 && q->axis == attributes->axis ? AN_ALONG_ADDED : an_along_off_axis(q);
}

const an_op an_op_gather_diff = {
    .name = "gather_diff",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = gather_diff_along,
    .attribute_bytes = sizeof(an_gather_diff_attributes),
    .attributes = gather_diff_attributes,
    .infer = gather_diff_infer,
    .cost = gather_diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(gather_diff),
};

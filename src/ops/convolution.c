/* Convolution over images: src (batch, channels, height, width), weights (filters, channels / groups, height, width).
 *
 * A gradient op gets the shape that it makes as an attribute: an input that only gives its shape would be kept in
 * memory for it.
 */
#include "ops/structs.h"
#include "ops/window.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/convolution/convolution.h"
#include "ops/product.h"

enum { NDIMS = 4 };

#define WINDOW_ATTRIBUTES                                                                                          \
    AN_ATTRIBUTE(an_convolution_attributes, stride, INTS), AN_ATTRIBUTE(an_convolution_attributes, padding, INTS), \
        AN_ATTRIBUTE(an_convolution_attributes, dilation, INTS), AN_ATTRIBUTE(an_convolution_attributes, groups, INT)

static const an_attribute convolution_attributes[] = {
    WINDOW_ATTRIBUTES,
    AN_ATTRIBUTE(an_convolution_attributes, dtype, DTYPE),
    {0},
};
static const an_attribute diff_src_attributes[] = {
    WINDOW_ATTRIBUTES,
    AN_ATTRIBUTE(an_convolution_attributes, dtype, DTYPE),
    AN_ATTRIBUTE(an_convolution_attributes, dims, DIMS),
    {0},
};
static const an_attribute diff_weights_attributes[] = {
    WINDOW_ATTRIBUTES,
    AN_ATTRIBUTE(an_convolution_attributes, dims, DIMS),
    {0},
};

/* ---- shapes ---- */

static an_status check_node(an_graph *g, const an_node *node, bool has_dims) {
    const an_convolution_attributes *attributes = node->attributes;
    for (int i = 0; i < 2; i++) {
        AN_TRY_RETURN(an_expect_float(g, node, i));
        AN_TRY_RETURN(an_expect_ndims(g, node, i, NDIMS, NDIMS));
    }
    AN_TRY_RETURN(an_expect_pair(g, node, "stride", &attributes->stride, 1));
    AN_TRY_RETURN(an_expect_pair(g, node, "padding", &attributes->padding, 0));
    AN_TRY_RETURN(an_expect_pair(g, node, "dilation", &attributes->dilation, 1));
    if (attributes->groups < 1)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "groups is %" PRId64 ", but must be at least 1",
                               attributes->groups);
    if (attributes->dtype != AN_DTYPE_NONE && !an_dtype_is_float(attributes->dtype))
        return an_node_mistake(g, node, AN_ERR_DTYPE, "dtype is %s; a convolution needs a floating-point type",
                               an_dtype_name(attributes->dtype));
    if (has_dims && attributes->dims.count != NDIMS)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "dims has %d dimensions, but needs %d", attributes->dims.count,
                               NDIMS);
    return AN_OK;
}

/* The shape of dst from those of src and weights. */
static an_status dst_dims(an_graph *g, const an_node *node, const an_dim *src, const an_dim *weights, an_dim *dst) {
    const an_convolution_attributes *attributes = node->attributes;
    int64_t groups = attributes->groups, window[2];
    for (int i = 0; i < NDIMS; i++)
        if (weights[i] < 1)
            return an_node_mistake(g, node, AN_ERR_SHAPE,
                                   "dimension %d of the weights contains a symbol, but must be a constant", i);
    if (weights[0] % groups != 0)
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "%" PRId64 " filters cannot be divided into %" PRId64 " equal groups", weights[0],
                               groups);
    if (src[1] < 1)
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "dimension 1 of src, its channels, contains a symbol, but must be a constant");
    if (src[1] % groups != 0 || src[1] / groups != weights[1])
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "src has %" PRId64 " channels, but the weights have %" PRId64 " channels in %" PRId64
                               " group%s: dimension 1 of the weights is the number of channels of one group",
                               src[1], weights[1], groups, groups == 1 ? "" : "s");
    for (int i = 0; i < 2; i++) {
        int64_t size = weights[2 + i], dilation = attributes->dilation.values[i];
        if (!an_multiply_i64(size - 1, dilation, &window[i]) || !an_add_i64(window[i], 1, &window[i]))
            return an_node_mistake(g, node, AN_ERR_OVERFLOW,
                                   "a window of %" PRId64 " with dilation %" PRId64 " is too large", size, dilation);
    }
    dst[0] = src[0];
    dst[1] = weights[0];
    AN_TRY_RETURN(an_window_dims(g, node, src + 2, window, &attributes->stride, &attributes->padding, dst + 2));
    return AN_OK;
}

static an_status check_diff_dst(an_graph *g, const an_node *node, const an_dim *dims) {
    const an_result *diff_dst = node->inputs[0].result;
    if (!memcmp(diff_dst->dims, dims, NDIMS * sizeof *dims)) return AN_OK;
    an_result expected = *diff_dst;
    an_result_set(&expected, diff_dst->dtype, NDIMS, dims);
    return an_node_mistake(g, node, AN_ERR_SHAPE, "diff_dst is %s, but this convolution's dst is %s",
                           AN_DESCRIBE(g, diff_dst), AN_DESCRIBE(g, &expected));
}

static an_dtype dst_dtype(const an_node *node) {
    const an_convolution_attributes *attributes = node->attributes;
    if (attributes->dtype != AN_DTYPE_NONE) return attributes->dtype;
    return an_wider(an_node_input(node, 0)->dtype, an_node_input(node, 1)->dtype);
}

static an_status convolution_infer(an_graph *g, an_node *node) {
    an_dim dims[NDIMS];
    AN_TRY_RETURN(check_node(g, node, false));
    AN_TRY_RETURN(dst_dims(g, node, an_node_input(node, 0)->dims, an_node_input(node, 1)->dims, dims));
    an_result_set(an_node_output(node, 0), dst_dtype(node), NDIMS, dims);
    return AN_OK;
}

static an_status diff_src_infer(an_graph *g, an_node *node) {
    const an_convolution_attributes *attributes = node->attributes;
    an_dim dims[NDIMS];
    AN_TRY_RETURN(check_node(g, node, true));
    AN_TRY_RETURN(dst_dims(g, node, attributes->dims.values, an_node_input(node, 1)->dims, dims));
    AN_TRY_RETURN(check_diff_dst(g, node, dims));
    an_result_set(an_node_output(node, 0), dst_dtype(node), NDIMS, attributes->dims.values);
    return AN_OK;
}

static an_status diff_weights_infer(an_graph *g, an_node *node) {
    const an_convolution_attributes *attributes = node->attributes;
    an_dim dims[NDIMS];
    AN_TRY_RETURN(check_node(g, node, true));
    AN_TRY_RETURN(dst_dims(g, node, an_node_input(node, 1)->dims, attributes->dims.values, dims));
    AN_TRY_RETURN(check_diff_dst(g, node, dims));
    an_dtype dtype = an_compute_dtype(an_wider(an_node_input(node, 0)->dtype, an_node_input(node, 1)->dtype));
    an_result_set(an_node_output(node, 0), dtype, NDIMS, attributes->dims.values);
    return AN_OK;
}

/* ---- cost: every element of dst meets every weight of one filter ---- */

static an_cost cost_of(const an_graph *g, const an_node *node, const an_result *dst, const an_result *weights) {
    double taps = an_result_elements(g, weights) / (double)weights->dims[0];
    return an_cost_of(g, node, 2 * an_result_elements(g, dst) * taps);
}

static an_cost convolution_cost(const an_graph *g, const an_node *node) {
    return cost_of(g, node, an_node_output(node, 0), an_node_input(node, 1));
}
static an_cost diff_src_cost(const an_graph *g, const an_node *node) {
    return cost_of(g, node, an_node_input(node, 0), an_node_input(node, 1));
}
static an_cost diff_weights_cost(const an_graph *g, const an_node *node) {
    return cost_of(g, node, an_node_input(node, 0), an_node_output(node, 0));
}

/* ---- gradient ---- */

static an_dim_list dims_of(const an_result *r) {
    an_dim_list list = {.count = r->ndims};
    memcpy(list.values, r->dims, (size_t)r->ndims * sizeof *r->dims);
    return list;
}

static void convolution_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                             an_value *diff_src) {
    const an_result *src = an_node_input(node, 0), *weights = an_node_input(node, 1);
    an_value diff = an_lower_diff(g, node, diff_dst[0]);
    if (want & 1) {
        an_convolution_attributes attributes = *(const an_convolution_attributes *)node->attributes;
        an_value inputs[] = {diff, an_graph_value(g, weights)};
        attributes.dims = dims_of(src);
        attributes.dtype = an_gradient_dtype(node, src);
        diff_src[0] = an_graph_add(g, &an_op_convolution_diff_src, AN_COUNT(inputs), inputs, &attributes);
    }
    if (want & 2) {
        an_convolution_attributes attributes = *(const an_convolution_attributes *)node->attributes;
        an_value inputs[] = {diff, an_graph_value(g, src)};
        attributes.dims = dims_of(weights);
        attributes.dtype = AN_DTYPE_NONE;
        an_value sum = an_graph_add(g, &an_op_convolution_diff_weights, AN_COUNT(inputs), inputs, &attributes);
        diff_src[1] = an_cast(g, sum, an_gradient_dtype(node, weights));
    }
}

/* ---- records ---- */

static const an_role convolution_roles[] = {AN_ROLE_NONE, AN_ROLE_WEIGHT};

const an_op an_op_convolution = {
    .name = "convolution",
    .torch = "F.conv2d({0}, {1}, stride={stride}, padding={padding}, dilation={dilation}, groups={groups})",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_convolution_attributes),
    .attributes = convolution_attributes,
    .roles = convolution_roles,
    .role_count = AN_COUNT(convolution_roles),
    .infer = convolution_infer,
    .grad = convolution_grad,
    .cost = convolution_cost,
    .autocast = AN_AUTOCAST_LOW,
    .low_in = 1 | 2,
    .low_out = 1,
    .kernels = AN_KERNELS(convolution),
};

const an_op an_op_convolution_diff_src = {
    .name = "convolution_diff_src",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_convolution_attributes),
    .attributes = diff_src_attributes,
    .infer = diff_src_infer,
    .cost = diff_src_cost,
    .autocast = AN_AUTOCAST_LOW,
    .low_in = 1 | 2,
    .low_out = 1,
    .kernels = AN_KERNELS(convolution_diff_src),
};

const an_op an_op_convolution_diff_weights = {
    .name = "convolution_diff_weights",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = an_along_added,
    .attribute_bytes = sizeof(an_convolution_attributes),
    .attributes = diff_weights_attributes,
    .infer = diff_weights_infer,
    .cost = diff_weights_cost,
    .autocast = AN_AUTOCAST_LOW,
    .low_in = 1 | 2,
    .kernels = AN_KERNELS(convolution_diff_weights),
};

an_value an_convolution(an_graph *graph, an_value src, an_value weights, const an_convolution_options *options) {
    AN_NEED_OR(0, graph);
    an_convolution_options o;
    an_value inputs[] = {src, weights}, value = 0;
    an_builder_begin(graph);
    if (an_builder_took(graph, an_convolution_options_read(graph->ctx, &o, options))) {
        an_convolution_attributes attributes = {
            .stride = an_window_pair(o.stride, NULL),
            .padding = an_window_pair(o.padding, NULL),
            .dilation = an_window_pair(o.dilation, NULL),
            .groups = o.groups,
        };
        value = an_graph_add(graph, &an_op_convolution, AN_COUNT(inputs), inputs, &attributes);
    }
    return an_builder_end(graph, value);
}

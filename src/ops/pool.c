/* Pooling over images (batch, channels, height, width): the maximum or the mean of every window.
 *
 * max_pool_diff looks for the maximum again instead of keeping where it was: src is there anyway where a convolution
 * made it, and an index is as large as an activation.
 */
#include "ops/structs.h"
#include "ops/window.h"

#include <inttypes.h>
#include <string.h>

#include "kernels/pool/pool.h"

enum { NDIMS = 4 };

#define WINDOW_ATTRIBUTES                                                                           \
    AN_ATTRIBUTE(an_pool_attributes, window, INTS), AN_ATTRIBUTE(an_pool_attributes, stride, INTS), \
        AN_ATTRIBUTE(an_pool_attributes, padding, INTS)

static const an_attribute max_pool_attributes[] = {WINDOW_ATTRIBUTES, {0}};
static const an_attribute average_pool_attributes[] = {
    WINDOW_ATTRIBUTES,
    AN_ATTRIBUTE(an_pool_attributes, exclude_padding, BOOL),
    {0},
};
static const an_attribute average_pool_diff_attributes[] = {
    WINDOW_ATTRIBUTES,
    AN_ATTRIBUTE(an_pool_attributes, exclude_padding, BOOL),
    AN_ATTRIBUTE(an_pool_attributes, dims, DIMS),
    {0},
};

/* ---- shapes ---- */

static an_status check_node(an_graph *g, const an_node *node) {
    const an_pool_attributes *a = node->attributes;
    for (int i = 0; i < node->input_count; i++) {
        AN_TRY_RETURN(an_expect_float(g, node, i));
        AN_TRY_RETURN(an_expect_ndims(g, node, i, NDIMS, NDIMS));
    }
    AN_TRY_RETURN(an_expect_pair(g, node, "window", &a->window, 1));
    AN_TRY_RETURN(an_expect_pair(g, node, "stride", &a->stride, 1));
    AN_TRY_RETURN(an_expect_pair(g, node, "padding", &a->padding, 0));
    for (int i = 0; i < 2; i++)
        if (a->padding.values[i] > a->window.values[i] / 2)
            return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                                   "padding is (%" PRId64 ", %" PRId64 ") and the window (%" PRId64 ", %" PRId64
                                   "): padding may be at most half a window, so that no window lies entirely in it",
                                   a->padding.values[0], a->padding.values[1], a->window.values[0],
                                   a->window.values[1]);
    return AN_OK;
}

static an_status dst_dims(an_graph *g, const an_node *node, const an_dim *src, an_dim *dst) {
    const an_pool_attributes *a = node->attributes;
    dst[0] = src[0];
    dst[1] = src[1];
    return an_window_dims(g, node, src + 2, a->window.values, &a->stride, &a->padding, dst + 2);
}

static an_status pool_infer(an_graph *g, an_node *node) {
    const an_result *src = node->inputs[0].result;
    an_dim dims[NDIMS];
    AN_TRY_RETURN(check_node(g, node));
    AN_TRY_RETURN(dst_dims(g, node, src->dims, dims));
    an_result_set(an_node_output(node, 0), src->dtype, NDIMS, dims);
    return AN_OK;
}

/* diff_src, of these dims, from diff_dst */
static an_status diff_infer(an_graph *g, an_node *node, an_dtype dtype, const an_dim *src_dims) {
    const an_result *diff_dst = an_node_input(node, 0);
    an_dim dims[NDIMS];
    AN_TRY_RETURN(dst_dims(g, node, src_dims, dims));
    if (memcmp(diff_dst->dims, dims, sizeof dims) != 0) {
        an_result expected = *diff_dst;
        an_result_set(&expected, diff_dst->dtype, NDIMS, dims);
        return an_node_mistake(g, node, AN_ERR_SHAPE, "diff_dst is %s, but this pool's dst is %s",
                               AN_DESCRIBE(g, diff_dst), AN_DESCRIBE(g, &expected));
    }
    an_result_set(an_node_output(node, 0), dtype, NDIMS, src_dims);
    return AN_OK;
}

static an_status max_pool_diff_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(check_node(g, node));
    const an_result *src = an_node_input(node, 1);
    return diff_infer(g, node, src->dtype, src->dims);
}

static an_status average_pool_diff_infer(an_graph *g, an_node *node) {
    const an_pool_attributes *a = node->attributes;
    AN_TRY_RETURN(check_node(g, node));
    if (a->dims.count != NDIMS)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "dims has %d dimensions, but src has %d", a->dims.count, NDIMS);
    return diff_infer(g, node, an_node_input(node, 0)->dtype, a->dims.values);
}

/* ---- cost: every element of a window is looked at, for every window ---- */

static an_cost cost_of(const an_graph *g, const an_node *node, const an_result *dst) {
    const an_pool_attributes *a = node->attributes;
    double window = (double)a->window.values[0] * (double)a->window.values[1];
    return an_cost_of(g, node, window * an_result_elements(g, dst));
}
static an_cost pool_cost(const an_graph *g, const an_node *node) {
    return cost_of(g, node, an_node_output(node, 0));
}
static an_cost diff_cost(const an_graph *g, const an_node *node) {
    return cost_of(g, node, an_node_input(node, 0));
}

/* ---- gradients ---- */

static void max_pool_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                          an_value *diff_src) {
    an_value inputs[] = {diff_dst[0], an_node_input_value(g, node, 0)};
    (void)want;
    diff_src[0] = an_graph_add(g, &an_op_max_pool_diff, AN_COUNT(inputs), inputs, node->attributes);
}

static void average_pool_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                              an_value *diff_src) {
    an_pool_attributes attributes = *(const an_pool_attributes *)node->attributes;
    (void)want;
    attributes.dims.count = NDIMS;
    memcpy(attributes.dims.values, node->inputs[0].result->dims, NDIMS * sizeof *attributes.dims.values);
    diff_src[0] = an_graph_add(g, &an_op_average_pool_diff, 1, diff_dst, &attributes);
}

/* ---- records ---- */

const an_op an_op_max_pool = {
    .name = "max_pool",
    .torch = "F.max_pool2d({0}, {window}, {stride}, {padding})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_pool_attributes),
    .attributes = max_pool_attributes,
    .infer = pool_infer,
    .grad = max_pool_grad,
    .cost = pool_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .kernels = AN_KERNELS(max_pool),
};

const an_op an_op_max_pool_diff = {
    .name = "max_pool_diff",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_pool_attributes),
    .attributes = max_pool_attributes,
    .infer = max_pool_diff_infer,
    .cost = diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(max_pool_diff),
};

const an_op an_op_average_pool = {
    .name = "average_pool",
    .torch = "F.avg_pool2d({0}, {window}, {stride}, {padding}{exclude_padding?, count_include_pad=False})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_pool_attributes),
    .attributes = average_pool_attributes,
    .infer = pool_infer,
    .grad = average_pool_grad,
    .cost = pool_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .kernels = AN_KERNELS(average_pool),
};

const an_op an_op_average_pool_diff = {
    .name = "average_pool_diff",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_pool_attributes),
    .attributes = average_pool_diff_attributes,
    .infer = average_pool_diff_infer,
    .cost = diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(average_pool_diff),
};

/* ---- builders ---- */

static an_value pool(an_graph *g, const char *name, const an_op *op, an_value src, const an_pool_options *options) {
    an_pool_options o;
    an_value value = 0;
    an_builder_begin(g);
    if (!options) {
        an_graph_mistake(g, AN_ERR_ARGUMENT, "%s needs options, because the window has no default", name);
    } else if (an_builder_took(g, an_pool_options_read(g->ctx, &o, options))) {
        an_pool_attributes attributes = {
            .window = an_window_pair(o.window, NULL),
            .stride = an_window_pair(o.stride, o.window),
            .padding = an_window_pair(o.padding, NULL),
            .exclude_padding = !o.count_padding,
        };
        value = an_graph_add(g, op, 1, &src, &attributes);
    }
    return an_builder_end(g, value);
}

an_value an_max_pool(an_graph *graph, an_value src, const an_pool_options *options) {
    AN_NEED_OR(0, graph);
    return pool(graph, "an_max_pool", &an_op_max_pool, src, options);
}

an_value an_average_pool(an_graph *graph, an_value src, const an_pool_options *options) {
    AN_NEED_OR(0, graph);
    return pool(graph, "an_average_pool", &an_op_average_pool, src, options);
}

#include "ops/common.h"

#include <string.h>

an_status an_expect_float(an_graph *g, const an_node *node, int input) {
    const an_result *r = an_node_input(node, input);
    if (!r) return an_node_mistake(g, node, AN_ERR_ARGUMENT, "input %d is absent, but the op needs it", input);
    if (an_dtype_is_float(r->dtype)) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_DTYPE, "input %d is %s; it must be floating (use an_cast)", input,
                           AN_DESCRIBE(g, r));
}

an_status an_expect_weights(an_graph *g, const an_node *node, int input) {
    const an_result *r = an_node_input(node, input);
    return r && r->dtype == AN_DTYPE_Q8_0 ? AN_OK : an_expect_float(g, node, input);
}

an_status an_expect_index(an_graph *g, const an_node *node, int input) {
    const an_result *r = an_node_input(node, input);
    if (!r) return an_node_mistake(g, node, AN_ERR_ARGUMENT, "input %d is absent, but the op needs it", input);
    if (an_dtype_is_index(r->dtype)) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_DTYPE, "input %d is %s; indices are i32 or i64", input, AN_DESCRIBE(g, r));
}

an_status an_expect_ndims(an_graph *g, const an_node *node, int input, int minimum, int maximum) {
    const an_result *r = an_node_input(node, input);
    if (r && r->ndims >= minimum && r->ndims <= maximum) return AN_OK;
    if (minimum == maximum)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "input %d is %s; it must have %d dimensions", input,
                               AN_DESCRIBE(g, r), minimum);
    return an_node_mistake(g, node, AN_ERR_SHAPE, "input %d is %s; it must have %d to %d dimensions", input,
                           AN_DESCRIBE(g, r), minimum, maximum);
}

static bool same_shape(const an_result *a, const an_result *b) {
    return a->ndims == b->ndims && !memcmp(a->dims, b->dims, (size_t)a->ndims * sizeof *a->dims);
}

an_status an_expect_same_shape(an_graph *g, const an_node *node, int a, int b) {
    const an_result *x = an_node_input(node, a), *y = an_node_input(node, b);
    if (x && y && same_shape(x, y)) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_SHAPE, "inputs %d and %d must have the same shape, but are %s and %s", a, b,
                           AN_DESCRIBE(g, x), AN_DESCRIBE(g, y));
}

an_status an_infer_float_like_src(an_graph *g, an_node *node) {
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    an_result_like(&node->outputs[0], an_node_input(node, 0));
    return AN_OK;
}

an_status an_infer_like_inputs(an_graph *g, an_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        AN_TRY_RETURN(an_expect_float(g, node, i));
        AN_TRY_RETURN(an_expect_same_shape(g, node, 0, i));
    }
    an_result_like(&node->outputs[0], an_node_input(node, 0));
    return AN_OK;
}

an_dtype an_wider(an_dtype a, an_dtype b) {
    if (a == b || b == AN_DTYPE_Q8_0) return a;
    return a == AN_DTYPE_F64 || b == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
}

an_dtype an_compute_dtype(an_dtype dtype) {
    return dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
}

bool an_broadcast_dims(an_graph *g, const an_result *a, const an_result *b, int *ndims, an_dim *dims) {
    (void)g;
    *ndims = a->ndims > b->ndims ? a->ndims : b->ndims;
    for (int i = 1; i <= *ndims; i++) {
        an_dim x = i <= a->ndims ? a->dims[a->ndims - i] : 1, y = i <= b->ndims ? b->dims[b->ndims - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        dims[*ndims - i] = x == 1 ? y : x;
    }
    return true;
}

an_status an_infer_broadcast(an_graph *g, an_node *node) {
    an_result *dst = &node->outputs[0];
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    an_result_like(dst, an_node_input(node, 0));
    for (int i = 1; i < node->input_count; i++) {
        const an_result *r = an_node_input(node, i);
        an_result so_far = *dst;
        AN_TRY_RETURN(an_expect_float(g, node, i));
        if (!an_broadcast_dims(g, &so_far, r, &dst->ndims, dst->dims))
            return an_node_mistake(g, node, AN_ERR_SHAPE,
                                   "%s and %s do not broadcast: aligned at the end, dimensions must be equal or 1",
                                   AN_DESCRIBE(g, &so_far), AN_DESCRIBE(g, r));
        dst->dtype = an_wider(so_far.dtype, r->dtype);
    }
    return AN_OK;
}

bool an_expect_list(an_graph *g, const char *what, int count, const void *list) {
    if (count <= 0 || list) return true;
    an_graph_mistake(g, AN_ERR_ARGUMENT, "%d %s were announced, but the pointer to them is NULL", count, what);
    return false;
}

int an_normalize_axis(an_graph *g, const char *what, int axis, int ndims) {
    int a = axis < 0 ? axis + ndims : axis;
    if (a >= 0 && a < ndims) return a;
    an_graph_mistake(g, AN_ERR_ARGUMENT, "%s: axis %d does not exist in %d dimensions", what, axis, ndims);
    return -1;
}

an_cost an_cost_of(const an_graph *g, const an_node *node, double flops) {
    return (an_cost){.flops = flops, .bytes = an_node_traffic(g, node)};
}

an_cost an_cost_elementwise(const an_graph *g, const an_node *node, double flops_an_element) {
    return an_cost_of(g, node, flops_an_element * an_result_elements(g, &node->outputs[0]));
}

/* ---- along ---- */

static int from_end(const an_result *r, int axis) {
    return r->ndims - 1 - axis;
}

static an_along apart_if(bool condition) {
    return condition ? AN_ALONG_APART : AN_ALONG_MIXED;
}

an_along an_along_elements(const an_along_question *q) {
    const an_result *src = an_node_input(q->node, q->input), *dst = &q->node->outputs[q->output];
    return apart_if(q->to >= 0 && from_end(src, q->axis) == from_end(dst, q->to));
}

an_along an_along_first(const an_along_question *q) {
    return apart_if(q->axis == 0 && q->to == 0);
}

an_along an_along_off_axis(const an_along_question *q) {
    const int64_t *axis = an_node_attribute(q->node, "axis", AN_ATTRIBUTE_INT);
    return apart_if(axis && q->axis != *axis && q->to == q->axis);
}

an_along an_along_rows(const an_along_question *q) {
    const an_result *src = an_node_input(q->node, q->input);
    return apart_if(q->to == q->axis && (from_end(src, q->axis) > 0 || q->input > 0));
}

an_along an_along_added(const an_along_question *q) {
    if (q->to >= 0) return apart_if(q->axis == 0 && q->to == 0);
    return q->axis == 0 ? AN_ALONG_ADDED : AN_ALONG_MIXED;
}

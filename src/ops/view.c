/* Views: other shapes of the same memory. They have no kernel and no storage; strides are symbolic and decided once. */
#include <string.h>

#include "kernels/copy/copy.h"
#include "kernels/reduce/reduce.h"
#include "ops/common.h"
#include "ops/source.h"

typedef struct {
    an_dim_list dims;
} shape_attributes;
typedef struct {
    an_int_list axes;
} transpose_attributes;
typedef struct {
    int64_t axis;
    an_dim begin, end;
} slice_attributes;
typedef struct {
    int64_t axis;
} split_attributes;

static an_status base_of(an_graph *g, an_node *node, an_result **base) {
    *base = an_node_input(node, 0);
    return *base ? AN_OK : an_node_mistake(g, node, AN_ERR_ARGUMENT, "its input is absent");
}

/* An axis attribute may come from text. */
static an_status check_axis(an_graph *g, an_node *node, int64_t axis) {
    const an_result *base = an_node_input(node, 0);
    if (axis >= 0 && axis < base->ndims) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_ARGUMENT, "axis %lld does not exist in %s", (long long)axis,
                           AN_DESCRIBE(g, base));
}

/* ---- reshape ---- */

/* Elements as one dimension; 0 after a mistake. */
static an_dim count_elements(an_graph *g, int ndims, const an_dim *dims) {
    an_dim count = 1;
    for (int i = 0; i < ndims; i++) count = an_graph_multiply_dims(g, count, dims[i]);
    return count;
}

/* Gives the strides that make `dims` a view of `base`, or says that there are none. Groups of dimensions with the same
 * number of elements are matched from the left; within a group the base must be dense. */
static bool reshape_strides(an_graph *g, const an_result *base, int ndims, const an_dim *dims, an_dim *strides) {
    int i = 0, j = 0; /* next of base, next of dims */
    while (i < base->ndims || j < ndims) {
        int first_i = i, first_j = j;
        an_dim from = i < base->ndims ? base->dims[i++] : 1, to = j < ndims ? dims[j++] : 1;
        while (from != to) { /* take in more of both until the products agree: at most 16 steps */
            an_dim quotient = 0;
            bool to_is_part =
                an_dimensions_divide(&g->dimensions, &g->arena, from, to, &quotient) == AN_OK && quotient != 0;
            if (j < ndims && (to_is_part || i == base->ndims))
                to = an_graph_multiply_dims(g, to, dims[j++]);
            else if (i < base->ndims)
                from = an_graph_multiply_dims(g, from, base->dims[i++]);
            else
                return false;
            if (g->status != AN_OK) return false;
        }
        /* the base's part must be dense in itself */
        an_dim stride = 0;
        int last = -1; /* innermost dimension of the base's group that is not 1 */
        for (int k = i - 1; k >= first_i; k--) {
            if (base->dims[k] == 1) continue;
            if (last >= 0 && base->strides[k] != an_graph_multiply_dims(g, base->strides[last], base->dims[last]))
                return false;
            if (last < 0) stride = base->strides[k];
            last = k;
        }
        for (int k = j - 1; k >= first_j; k--) {
            strides[k] = dims[k] == 1 ? 1 : stride;
            if (dims[k] != 1) stride = an_graph_multiply_dims(g, stride, dims[k]);
        }
    }
    return g->status == AN_OK;
}

static an_status reshape_infer(an_graph *g, an_node *node) {
    const shape_attributes *a = node->attributes;
    an_result *base;
    AN_TRY_RETURN(base_of(g, node, &base));
    if (a->dims.count < 0 || a->dims.count > AN_MAX_DIMS)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "there are %d dimensions; 0 to %d are possible", a->dims.count,
                               AN_MAX_DIMS);
    an_result_set(&node->outputs[0], base->dtype, a->dims.count, a->dims.values);
    an_dim from = count_elements(g, base->ndims, base->dims), to = count_elements(g, a->dims.count, a->dims.values);
    if (from == 0 || from != to)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "%s cannot be reshaped to %s: the number of elements differs",
                               AN_DESCRIBE(g, base), AN_DESCRIBE(g, &node->outputs[0]));
    return AN_OK;
}

static an_status reshape_view(an_graph *g, an_node *node, int output) {
    an_result *r = &node->outputs[output], *base = an_node_input(node, 0);
    r->offset = base->offset;
    if (reshape_strides(g, base, r->ndims, r->dims, r->strides)) return AN_OK;
    return an_node_mistake(
        g, node, AN_ERR_SHAPE,
        "the memory layout of %s does not allow a view as %s: use an_reshape, which copies if necessary",
        AN_DESCRIBE(g, base), AN_DESCRIBE(g, r));
}

/* The gradient of any view that only renames: back to the shape of the source. */
static void reshape_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                         an_value *diff_src) {
    const an_result *src = an_node_input(node, 0);
    (void)want;
    diff_src[0] = an_reshape(g, diff_dst[0], src->ndims, src->dims);
}

/* A reshape of a reshape is one of its base, if that can be a view. */
static an_value reshape_simplify(an_graph *g, const an_node *node) {
    const an_result *r = &node->outputs[0], *base = an_node_input(node, 0);
    an_dim strides[AN_MAX_DIMS];
    if (base->node->op != node->op) return an_graph_value(g, base); /* does nothing if the shape is the same */
    base = an_node_input(base->node, 0);
    if (!reshape_strides(g, base, r->ndims, r->dims, strides)) return 0;
    return an_reshape(g, an_graph_value(g, base), r->ndims, r->dims);
}

/* A place along an axis stays one if what lies outside of it is the same. */
static an_along reshape_along(const an_along_question *q) {
    const an_result *src = an_node_input(q->node, 0), *dst = &q->node->outputs[0];
    int i = 0, k = 0;
    while (i < q->axis || k < q->to) {
        if (i < q->axis && src->dims[i] == 1)
            i++;
        else if (k < q->to && dst->dims[k] == 1)
            k++;
        else if (i < q->axis && k < q->to && src->dims[i] == dst->dims[k])
            i++, k++;
        else
            return AN_ALONG_MIXED;
    }
    return q->to >= 0 ? AN_ALONG_APART : AN_ALONG_MIXED;
}

static const an_attribute shape_attribute_list[] = {AN_ATTRIBUTE(shape_attributes, dims, DIMS), {0}};

const an_op an_op_reshape = {
    .name = "reshape",
    .torch = "{0}.reshape({dims})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = reshape_along,
    .flags = AN_OP_MOVES | AN_OP_VIEW,
    .attribute_bytes = sizeof(shape_attributes),
    .attributes = shape_attribute_list,
    .infer = reshape_infer,
    .view = reshape_view,
    .grad = reshape_grad,
    .simplify = reshape_simplify,
};

an_value an_reshape(an_graph *graph, an_value src, int ndims, const an_dim *dims) {
    AN_NEED_OR(0, graph);
    shape_attributes a = {.dims.count = ndims};
    an_dim strides[AN_MAX_DIMS], known = 1;
    int rest = -1;
    an_builder_begin(graph);
    const an_result *base = an_graph_result(graph, src);
    if (!an_expect_list(graph, "dimensions", ndims, dims)) return an_builder_end(graph, 0);
    if (graph->status != AN_OK || !base) /* let add say what is wrong */
        return an_builder_end(graph, an_graph_add(graph, &an_op_reshape, 1, &src, &a));
    if (ndims < 0 || ndims > AN_MAX_DIMS) {
        an_graph_mistake(graph, AN_ERR_SHAPE, "reshape to %d dimensions is not possible; 0 to %d are supported", ndims,
                         AN_MAX_DIMS);
        return an_builder_end(graph, 0);
    }
    for (int i = 0; i < ndims; i++) {
        a.dims.values[i] = dims[i];
        if (dims[i] != AN_REST)
            known = an_graph_multiply_dims(graph, known, dims[i]);
        else if (rest >= 0)
            an_graph_mistake(graph, AN_ERR_SHAPE, "reshape: only one dimension can be AN_REST");
        else
            rest = i;
    }
    if (rest >= 0 && graph->status == AN_OK) {
        an_dim total = count_elements(graph, base->ndims, base->dims);
        an_dim *left = &a.dims.values[rest];
        if (an_dimensions_divide(&graph->dimensions, &graph->arena, total, known, left) != AN_OK || *left == 0)
            an_graph_mistake(graph, AN_ERR_SHAPE, "reshape of %s: the size for AN_REST is not a whole number",
                             AN_DESCRIBE(graph, base));
    }
    if (graph->status != AN_OK) return an_builder_end(graph, 0);
    if (base->ndims == ndims && !memcmp(base->dims, a.dims.values, (size_t)ndims * sizeof *dims))
        return an_builder_end(graph, src);
    if (count_elements(graph, ndims, a.dims.values) == count_elements(graph, base->ndims, base->dims) &&
        !reshape_strides(graph, base, ndims, a.dims.values, strides))
        src = an_graph_add(graph, AN_BUILTIN(graph, contiguous), 1, &src,
                           NULL); /* decided here, once: passes never find a reshape that is no view */
    return an_builder_end(graph, an_graph_add(graph, &an_op_reshape, 1, &src, &a));
}

/* ---- transpose ---- */

static an_status transpose_infer(an_graph *g, an_node *node) {
    const transpose_attributes *a = node->attributes;
    an_result *base, *r = &node->outputs[0];
    unsigned seen = 0;
    AN_TRY_RETURN(base_of(g, node, &base));
    for (int i = 0; i < a->axes.count && a->axes.count == base->ndims; i++)
        if (a->axes.values[i] >= 0 && a->axes.values[i] < base->ndims) seen |= 1u << a->axes.values[i];
    if (a->axes.count != base->ndims || seen != (1u << base->ndims) - 1)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "the axes are not a permutation of the %d of %s", base->ndims,
                               AN_DESCRIBE(g, base));
    r->dtype = base->dtype;
    r->ndims = base->ndims;
    for (int i = 0; i < r->ndims; i++) r->dims[i] = base->dims[a->axes.values[i]];
    return AN_OK;
}

static an_status transpose_view(an_graph *g, an_node *node, int output) {
    const transpose_attributes *a = node->attributes;
    an_result *r = &node->outputs[output], *base = an_node_input(node, 0);
    (void)g;
    for (int i = 0; i < r->ndims; i++) r->strides[i] = base->strides[a->axes.values[i]];
    r->offset = base->offset;
    return AN_OK;
}

static void transpose_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                           an_value *diff_src) {
    const transpose_attributes *a = node->attributes;
    int inverse[AN_MAX_DIMS];
    (void)want;
    for (int i = 0; i < a->axes.count; i++) inverse[a->axes.values[i]] = i;
    diff_src[0] = an_permute(g, diff_dst[0], a->axes.count, inverse);
}

/* A transpose of a transpose is one of its base, or none at all. */
static an_value transpose_simplify(an_graph *g, const an_node *node) {
    const an_int_list *outer = &((const transpose_attributes *)node->attributes)->axes, *inner = NULL;
    const an_result *base = an_node_input(node, 0);
    int axes[AN_MAX_DIMS];
    bool is_identity = true;
    if (base->node->op == node->op) {
        inner = &((const transpose_attributes *)base->node->attributes)->axes;
        base = an_node_input(base->node, 0);
    }
    for (int i = 0; i < outer->count; i++) {
        axes[i] = (int)(inner ? inner->values[outer->values[i]] : outer->values[i]);
        is_identity = is_identity && axes[i] == i;
    }
    if (is_identity) return an_graph_value(g, base);
    return inner ? an_permute(g, an_graph_value(g, base), outer->count, axes) : 0;
}

static an_along transpose_along(const an_along_question *q) {
    const transpose_attributes *a = q->node->attributes;
    return q->to >= 0 && a->axes.values[q->to] == q->axis ? AN_ALONG_APART : AN_ALONG_MIXED;
}

static const an_attribute transpose_attribute_list[] = {AN_ATTRIBUTE(transpose_attributes, axes, INTS), {0}};

const an_op an_op_transpose = {
    .name = "transpose",
    .torch = "{0}.permute({axes})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = transpose_along,
    .flags = AN_OP_MOVES | AN_OP_VIEW,
    .attribute_bytes = sizeof(transpose_attributes),
    .attributes = transpose_attribute_list,
    .infer = transpose_infer,
    .view = transpose_view,
    .grad = transpose_grad,
    .simplify = transpose_simplify,
};

an_value an_permute(an_graph *graph, an_value src, int axis_count, const int *axes) {
    AN_NEED_OR(0, graph);
    transpose_attributes a = {.axes.count = axis_count < AN_MAX_DIMS ? axis_count : AN_MAX_DIMS};
    an_builder_begin(graph);
    const an_result *base = an_graph_result(graph, src);
    if (!an_expect_list(graph, "axes", axis_count, axes)) return an_builder_end(graph, 0);
    for (int i = 0; i < a.axes.count; i++) a.axes.values[i] = axes[i] < 0 && base ? axes[i] + base->ndims : axes[i];
    return an_builder_end(graph, an_graph_add(graph, &an_op_transpose, 1, &src, &a));
}

an_value an_transpose(an_graph *graph, an_value src, int a, int b) {
    AN_NEED_OR(0, graph);
    int axes[AN_MAX_DIMS], count = 0;
    an_builder_begin(graph);
    const an_result *base = an_graph_result(graph, src);
    if (base && graph->status == AN_OK) {
        count = base->ndims;
        a = an_normalize_axis(graph, "transpose", a, count);
        b = an_normalize_axis(graph, "transpose", b, count);
        for (int i = 0; i < count; i++) axes[i] = i == a ? b : i == b ? a : i;
    }
    return an_builder_end(graph, an_permute(graph, src, count, axes));
}

/* ---- slice ---- */

static an_status slice_infer(an_graph *g, an_node *node) {
    const slice_attributes *a = node->attributes;
    an_result *base, *r = &node->outputs[0];
    AN_TRY_RETURN(base_of(g, node, &base));
    AN_TRY_RETURN(check_axis(g, node, a->axis));
    an_result_like(r, base);
    an_dim whole = base->dims[a->axis];
    if (a->begin >= 0 && a->end >= 0 && a->end <= a->begin)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "the slice %lld to %lld is empty", (long long)a->begin,
                               (long long)a->end);
    if (whole >= 0 && a->end >= 0 && a->end > whole) /* symbolic bounds are checked when symbols are bound */
        return an_node_mistake(g, node, AN_ERR_SHAPE, "the slice ends at %lld, beyond axis %lld of %s",
                               (long long)a->end, (long long)a->axis, AN_DESCRIBE(g, base));
    r->dims[a->axis] = an_graph_subtract_dims(g, a->end, a->begin);
    return g->status;
}

static an_status slice_view(an_graph *g, an_node *node, int output) {
    const slice_attributes *a = node->attributes;
    an_result *r = &node->outputs[output], *base = an_node_input(node, 0);
    for (int i = 0; i < r->ndims; i++) r->strides[i] = base->strides[i];
    r->offset = an_graph_add_dims(g, base->offset, an_graph_multiply_dims(g, a->begin, base->strides[a->axis]));
    return g->status;
}

static void slice_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const slice_attributes *a = node->attributes;
    an_dim after = an_graph_subtract_dims(g, an_node_input(node, 0)->dims[a->axis], a->end);
    (void)want;
    diff_src[0] = an_graph_add(g, AN_BUILTIN(g, pad), 1, diff_dst,
                               &(an_pad_attributes){.axis = a->axis, .before = a->begin, .after = after});
}

static const an_attribute slice_attribute_list[] = {AN_ATTRIBUTE(slice_attributes, axis, INT),
                                                    AN_ATTRIBUTE(slice_attributes, begin, DIM),
                                                    AN_ATTRIBUTE(slice_attributes, end, DIM),
                                                    {0}};

const an_op an_op_slice = {
    .name = "slice",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_off_axis,
    .flags = AN_OP_MOVES | AN_OP_VIEW,
    .attribute_bytes = sizeof(slice_attributes),
    .attributes = slice_attribute_list,
    .infer = slice_infer,
    .view = slice_view,
    .grad = slice_grad,
};

an_value an_slice(an_graph *graph, an_value src, int axis, an_dim begin, an_dim end) {
    AN_NEED_OR(0, graph);
    slice_attributes a = {.begin = begin, .end = end};
    an_builder_begin(graph);
    const an_result *base = an_graph_result(graph, src);
    a.axis = base && graph->status == AN_OK ? an_normalize_axis(graph, "slice", axis, base->ndims) : axis;
    return an_builder_end(graph, an_graph_add(graph, &an_op_slice, 1, &src, &a));
}

/* ---- split ---- */

static an_status split_infer(an_graph *g, an_node *node) {
    const split_attributes *a = node->attributes;
    an_result *base;
    an_dim part = 0;
    AN_TRY_RETURN(base_of(g, node, &base));
    AN_TRY_RETURN(check_axis(g, node, a->axis));
    if (node->output_count > 0)
        AN_TRY_RETURN(an_dimensions_divide(&g->dimensions, &g->arena, base->dims[a->axis], node->output_count, &part));
    if (part == 0)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "axis %lld of %s cannot be split into %d equal parts",
                               (long long)a->axis, AN_DESCRIBE(g, base), node->output_count);
    for (int i = 0; i < node->output_count; i++) {
        an_result_like(&node->outputs[i], base);
        node->outputs[i].dims[a->axis] = part;
    }
    return AN_OK;
}

static an_status split_view(an_graph *g, an_node *node, int output) {
    const split_attributes *a = node->attributes;
    an_result *r = &node->outputs[output], *base = an_node_input(node, 0);
    for (int i = 0; i < r->ndims; i++) r->strides[i] = base->strides[i];
    an_dim begin = an_graph_multiply_dims(g, output, r->dims[a->axis]);
    r->offset = an_graph_add_dims(g, base->offset, an_graph_multiply_dims(g, begin, base->strides[a->axis]));
    return g->status;
}

static an_value zeros_like(an_graph *g, const an_result *r) {
    an_value zero = an_graph_add(g, AN_BUILTIN(g, constant), 0, NULL, &(an_constant_attributes){.dtype = r->dtype});
    return r->ndims ? an_expand(g, zero, r->ndims, r->dims) : zero;
}

static void split_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const split_attributes *a = node->attributes;
    an_value parts[AN_MAX_OUTPUTS] = {0};
    (void)want;
    for (int i = 0; i < node->output_count; i++) {
        const an_result *r = &node->outputs[i];
        parts[i] = diff_dst[i] ? diff_dst[i] : zeros_like(g, r);
    }
    diff_src[0] = parts[0];
    if (node->output_count > 1)
        diff_src[0] =
            an_graph_add(g, AN_BUILTIN(g, concat), node->output_count, parts, &(an_concat_attributes){.axis = a->axis});
}

static const an_attribute split_attribute_list[] = {AN_ATTRIBUTE(split_attributes, axis, INT), {0}};

const an_op an_op_split = {
    .name = "split",
    .torch = "{0}.chunk({parts}, {axis})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = AN_OUTPUTS_ANY,
    .along = an_along_off_axis,
    .flags = AN_OP_MOVES | AN_OP_VIEW,
    .attribute_bytes = sizeof(split_attributes),
    .attributes = split_attribute_list,
    .infer = split_infer,
    .view = split_view,
    .grad = split_grad,
};

an_value an_split(an_graph *graph, an_value src, int axis, int parts) {
    AN_NEED_OR(0, graph);
    split_attributes a = {0};
    an_builder_begin(graph);
    const an_result *base = an_graph_result(graph, src);
    a.axis = base && graph->status == AN_OK ? an_normalize_axis(graph, "split", axis, base->ndims) : axis;
    if (graph->status == AN_OK && (parts < 1 || parts > AN_MAX_OUTPUTS)) {
        an_graph_mistake(graph, AN_ERR_ARGUMENT, "split into %d parts is not possible; 1 to %d are supported", parts,
                         AN_MAX_OUTPUTS);
        return an_builder_end(graph, 0);
    }
    return an_builder_end(graph, an_graph_add_outputs(graph, &an_op_split, 1, &src, &a, parts));
}

/* ---- expand ---- */

static an_status expand_infer(an_graph *g, an_node *node) {
    const shape_attributes *a = node->attributes;
    an_result *base;
    AN_TRY_RETURN(base_of(g, node, &base));
    int extra = a->dims.count - base->ndims;
    if (a->dims.count > AN_MAX_DIMS || extra < 0)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "%s cannot be expanded to %d dimensions", AN_DESCRIBE(g, base),
                               a->dims.count);
    an_result_set(&node->outputs[0], base->dtype, a->dims.count, a->dims.values);
    for (int i = 0; i < base->ndims; i++)
        if (base->dims[i] != 1 && base->dims[i] != a->dims.values[extra + i])
            return an_node_mistake(g, node, AN_ERR_SHAPE,
                                   "%s cannot be expanded to %s: only dimensions of size 1 repeat",
                                   AN_DESCRIBE(g, base), AN_DESCRIBE(g, &node->outputs[0]));
    return AN_OK;
}

static an_status expand_view(an_graph *g, an_node *node, int output) {
    an_result *r = &node->outputs[output], *base = an_node_input(node, 0);
    int extra = r->ndims - base->ndims;
    (void)g;
    for (int i = 0; i < r->ndims; i++)
        r->strides[i] = i < extra || base->dims[i - extra] == 1 ? 0 : base->strides[i - extra];
    r->offset = base->offset;
    return AN_OK;
}

/* The axes that a gradient is summed over are those that repeat. */
an_value an_sum_to_shape(an_graph *g, an_value diff, an_value like) {
    const an_result *d = an_graph_result(g, diff), *r = an_graph_result(g, like);
    an_reduce_attributes a = {.keep = true};
    int extra;
    if (!d || !r) return 0;
    extra = d->ndims - r->ndims;
    for (int i = 0; i < d->ndims; i++)
        if (i < extra || (r->dims[i - extra] == 1 && d->dims[i] != 1)) a.axes.values[a.axes.count++] = i;
    if (a.axes.count == 0) return diff;
    an_value sum = an_graph_add(g, AN_BUILTIN(g, reduce_sum), 1, &diff, &a);
    return extra > 0 ? an_reshape(g, sum, r->ndims, r->dims) : sum;
}

static void expand_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    (void)want;
    diff_src[0] = an_sum_to_shape(g, diff_dst[0], an_node_input_value(g, node, 0));
}

/* Does nothing if no dimension grows. */
static an_value expand_simplify(an_graph *g, const an_node *node) {
    return an_node_input_value(g, node, 0);
}

const an_op an_op_expand = {
    .name = "expand",
    .torch = "{0}.expand({dims})",
    .inputs_min = 1,
    .inputs_max = 1,
    .outputs = 1,
    .along = an_along_elements,
    .flags = AN_OP_MOVES | AN_OP_VIEW,
    .attribute_bytes = sizeof(shape_attributes),
    .attributes = shape_attribute_list,
    .infer = expand_infer,
    .view = expand_view,
    .grad = expand_grad,
    .simplify = expand_simplify,
};

an_value an_expand(an_graph *graph, an_value src, int ndims, const an_dim *dims) {
    AN_NEED_OR(0, graph);
    shape_attributes a = {.dims.count = ndims <= AN_MAX_DIMS ? ndims : AN_MAX_DIMS + 1};
    an_builder_begin(graph);
    if (!an_expect_list(graph, "dimensions", ndims, dims)) return an_builder_end(graph, 0);
    for (int i = 0; i < ndims && i < AN_MAX_DIMS; i++) a.dims.values[i] = dims[i];
    return an_builder_end(graph, an_graph_add(graph, &an_op_expand, 1, &src, &a));
}

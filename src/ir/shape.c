/* Shapes of results: in words, in numbers, as tensors. */
#include <stdio.h>
#include <string.h>

#include "ir/graph.h"

an_shape_text an_describe(const an_graph *g, const an_result *result) {
    an_shape_text out = {""};
    an_text text;
    if (!result) {
        snprintf(out.text, sizeof out.text, "nothing");
        return out;
    }
    an_text_init(&text, g->ctx);
    an_text_add(&text, "%s[", an_dtype_name(result->dtype));
    for (int i = 0; i < result->ndims; i++) {
        an_text_add(&text, i ? "," : "");
        an_dimensions_print(&g->dimensions, result->dims[i], &text);
    }
    an_text_add(&text, "]");
    snprintf(out.text, sizeof out.text, "%s", text.status == AN_OK ? text.bytes : an_dtype_name(result->dtype));
    an_text_destroy(&text);
    return out;
}

bool an_result_maximum_bytes(const an_graph *g, const an_result *result, int64_t *bytes) {
    const bool blocks = result->dtype == AN_DTYPE_Q8_0;
    int64_t n = blocks ? 1 : (int64_t)an_dtype_size(result->dtype);
    for (int i = 0; i < result->ndims; i++) {
        int64_t d;
        if (!an_dimensions_maximum(&g->dimensions, result->dims[i], &d) || d < 1 || !an_multiply_i64(n, d, &n))
            return false;
    }
    if (blocks && n > INT64_MAX / 2) return false;
    *bytes = blocks ? an_dtype_bytes(result->dtype, n) : n;
    return true;
}

bool an_result_tensor(const an_graph *g, const an_result *result, an_tensor *tensor) {
    int64_t bytes = (int64_t)sizeof(double); /* also of one number that a view repeats: kernels count in 64 bits */
    *tensor = (an_tensor){.dtype = result->dtype, .ndims = result->ndims};
    for (int i = 0; i < result->ndims; i++)
        if (!an_dimensions_value(&g->dimensions, result->dims[i], &tensor->dims[i]) || tensor->dims[i] < 1 ||
            !an_dimensions_value(&g->dimensions, result->strides[i], &tensor->strides[i]) ||
            !an_multiply_i64(bytes, tensor->dims[i], &bytes))
            return false;
    return true;
}

/* The first and the last element of the root that a result has; false if it has none. */
static bool extent(const an_graph *g, const an_result *r, int64_t *first, int64_t *last) {
    an_tensor t;
    int64_t span;
    if (!an_result_tensor(g, r, &t) || !an_dimensions_value(&g->dimensions, r->offset, first)) return false;
    *last = *first;
    for (int i = 0; i < t.ndims; i++)
        if (!an_multiply_i64(t.dims[i] - 1, t.strides[i], &span) || !an_add_i64(*last, span, last)) return false;
    return true;
}

static an_status no_extent(const an_graph *g, const an_node *node, const an_result *r) {
    for (int i = 0; i < r->ndims; i++) {
        int64_t size;
        if (an_dimensions_value(&g->dimensions, r->dims[i], &size) && size < 1)
            return AN_ERROR(g->ctx, AN_ERR_SHAPE, "%s at '%s': dimension %d of %s is %lld, but sizes are at least 1",
                            node->op->name, node->path, i, AN_DESCRIBE(g, r), (long long)size);
    }
    return AN_ERROR(g->ctx, AN_ERR_OVERFLOW,
                    "%s at '%s': the number of elements of %s does not fit in 64 bits: check the sizes", node->op->name,
                    node->path, AN_DESCRIBE(g, r));
}

an_status an_result_check_bounds(const an_graph *g, const an_node *node, const an_result *r) {
    const an_result *base = r->root == r ? r : r->node->inputs[0].result;
    int64_t first, last, base_first, base_last;
    if (!extent(g, r, &first, &last) || !extent(g, base, &base_first, &base_last)) return no_extent(g, node, r);
    if (first >= base_first && last <= base_last) return AN_OK;
    return AN_ERROR(
        g->ctx, AN_ERR_SHAPE,
        "%s at '%s': %s goes beyond the end of %s at these sizes: the bounds of a slice must lie inside its input",
        node->op->name, node->path, AN_DESCRIBE(g, r), AN_DESCRIBE(g, base));
}

double an_result_elements(const an_graph *g, const an_result *result) {
    double n = 1;
    for (int i = 0; i < result->ndims; i++) {
        int64_t d = 0;
        an_dimensions_value(&g->dimensions, result->dims[i], &d);
        n *= (double)d;
    }
    return n;
}

static double operand_bytes(const an_graph *g, const an_result *r) {
    return r ? (double)an_dtype_bytes(r->dtype, (int64_t)an_result_elements(g, r)) : 0;
}

double an_node_traffic(const an_graph *g, const an_node *node) {
    double bytes = 0;
    for (int i = 0; i < node->input_count; i++) bytes += operand_bytes(g, an_node_input(node, i));
    for (int i = 0; i < node->output_count; i++) bytes += operand_bytes(g, &node->outputs[i]);
    return bytes;
}

an_cost an_node_cost(const an_graph *g, const an_node *node) {
    if (node->op->cost) return node->op->cost(g, node);
    an_cost cost = {.bytes = an_node_traffic(g, node)};
    for (int i = 0; i < node->output_count; i++) cost.flops += an_result_elements(g, &node->outputs[i]);
    return cost;
}

bool an_result_is_dense(an_graph *g, const an_result *result) {
    an_dim stride = 1;
    for (int i = result->ndims - 1; i >= 0; i--) {
        if (result->dims[i] == 1) continue;
        if (result->strides[i] != stride) return false;
        stride = an_graph_multiply_dims(g, stride, result->dims[i]);
    }
    return true;
}

void *an_node_attribute(const an_node *node, const char *name, an_attribute_type type) {
    for (const an_attribute *a = node->op->attributes; a && a->name; a++)
        if (a->type == type && !strcmp(a->name, name)) return (char *)node->attributes + a->offset;
    return NULL;
}

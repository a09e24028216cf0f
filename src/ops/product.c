/* Products of matrices: a·b over the last two dimensions, leading ones broadcast. */
#include "ops/product.h"

#include "kernels/product/product.h"

static const an_attribute product_attributes[] = {
    AN_ATTRIBUTE(an_product_attributes, transpose_a, BOOL),
    AN_ATTRIBUTE(an_product_attributes, transpose_b, BOOL),
    AN_ATTRIBUTE(an_product_attributes, dtype, DTYPE),
    AN_ATTRIBUTE(an_product_attributes, rounds_a, BOOL),
    {0},
};

/* Dimensions of an operand as it enters the product. */
static an_dim row_dim(const an_result *r, bool transpose) {
    return r->dims[r->ndims - (transpose ? 1 : 2)];
}
static an_dim column_dim(const an_result *r, bool transpose) {
    return row_dim(r, !transpose);
}

/* The matrices of a batch, as an_broadcast_dims wants them: without their own two dimensions. */
static an_result batch_of(const an_result *r) {
    an_result batch = *r;
    batch.ndims = r->ndims - 2;
    return batch;
}

static an_status infer(an_graph *g, an_node *node) {
    const an_product_attributes *attributes = node->attributes;
    bool transpose_a = attributes->transpose_a, transpose_b = attributes->transpose_b;
    an_dtype dtype = attributes->dtype;
    an_dim dims[AN_MAX_DIMS];
    int batch_dims;
    for (int i = 0; i < 2; i++) {
        AN_TRY_RETURN((i == 0 ? an_expect_float : an_expect_weights)(g, node, i));
        AN_TRY_RETURN(an_expect_ndims(g, node, i, 2, AN_MAX_DIMS));
    }
    const an_result *a = an_node_input(node, 0), *b = an_node_input(node, 1);
    if (column_dim(a, transpose_a) != row_dim(b, transpose_b)) {
        const char *hint = transpose_b ? "; they match with transpose_b false" : "; they match with transpose_b true";
        if (column_dim(a, transpose_a) != row_dim(b, !transpose_b)) hint = "";
        return an_node_mistake(
            g, node, AN_ERR_SHAPE,
            "a is %s%s and b is %s%s: the number of columns of a must equal the number of rows of b%s",
            AN_DESCRIBE(g, a), transpose_a ? " transposed" : "", AN_DESCRIBE(g, b), transpose_b ? " transposed" : "",
            hint);
    }
    an_result a_batch = batch_of(a), b_batch = batch_of(b);
    if (!an_broadcast_dims(g, &a_batch, &b_batch, &batch_dims, dims))
        return an_node_mistake(
            g, node, AN_ERR_SHAPE,
            "a is %s and b is %s: dimensions before the last two, aligned at the end, must be equal or 1",
            AN_DESCRIBE(g, a), AN_DESCRIBE(g, b));
    if (dtype == AN_DTYPE_NONE) dtype = an_wider(a->dtype, b->dtype);
    if (!an_dtype_is_float(dtype))
        return an_node_mistake(g, node, AN_ERR_DTYPE, "dtype is %s; a product needs a floating-point type",
                               an_dtype_name(dtype));
    if (attributes->rounds_a && (b->dtype != AN_DTYPE_Q8_0 || transpose_a || !transpose_b ||
                                 an_compute_dtype(dtype) != AN_DTYPE_F32 || an_compute_dtype(a->dtype) != AN_DTYPE_F32))
        return an_node_mistake(g, node, AN_ERR_DTYPE,
                               "a is rounded, but a is %s and b is %s: b must be q8_0 with transpose_b true, and a "
                               "neither f64 nor transposed",
                               AN_DESCRIBE(g, a), AN_DESCRIBE(g, b));
    dims[batch_dims] = row_dim(a, transpose_a);
    dims[batch_dims + 1] = column_dim(b, transpose_b);
    an_result_set(an_node_output(node, 0), dtype, batch_dims + 2, dims);
    return AN_OK;
}

static an_cost cost(const an_graph *g, const an_node *node) {
    const an_product_attributes *attributes = node->attributes;
    const an_result *a = an_node_input(node, 0);
    int64_t depth = 0;
    an_dimensions_value(&g->dimensions, column_dim(a, attributes->transpose_a), &depth);
    return an_cost_of(g, node, 2 * an_result_elements(g, an_node_output(node, 0)) * (double)depth);
}

/* Rows and columns go to dst, and so do batches. What is added are the places along k of two matrices. */
an_along an_product_operand_along(const an_along_question *q, bool transpose_a, bool transpose_b) {
    const an_result *own = an_node_input(q->node, q->input), *other = an_node_input(q->node, q->input ^ 1);
    const an_result *dst = &q->node->outputs[q->output];
    const bool is_a = q->input % 2 == 0;
    const int place = own->ndims - 1 - q->axis, k = is_a ? transpose_a : !transpose_b; /* counted from the last */
    if (place != k)
        return q->to == dst->ndims - 1 - (place > 1 ? place : is_a ? 1 : 0) ? AN_ALONG_APART : AN_ALONG_MIXED;
    return q->to < 0 && own->ndims == 2 && other->ndims == 2 ? AN_ALONG_ADDED : AN_ALONG_MIXED;
}

static an_along along(const an_along_question *q) {
    const an_product_attributes *a = q->node->attributes;
    const an_along answer = an_product_operand_along(q, a->transpose_a, a->transpose_b);
    return answer == AN_ALONG_ADDED && q->node->input_count > 2 ? AN_ALONG_MIXED : answer;
}

/* ---- gradient ---- */

an_value an_lower_diff(an_graph *g, const an_node *node, an_value diff_dst) {
    an_dtype a = an_node_input(node, 0)->dtype, b = an_node_input(node, 1)->dtype;
    return (a == b || b == AN_DTYPE_Q8_0) && a != an_compute_dtype(a) ? an_cast(g, diff_dst, a) : diff_dst;
}

an_dtype an_gradient_dtype(const an_node *node, const an_result *input) {
    const an_result *root = input->root;
    const an_dtype *chosen = an_node_attribute(node, "dtype", AN_ATTRIBUTE_DTYPE);
    if (chosen && *chosen == an_compute_dtype(input->dtype)) return *chosen;
    if (root->node->op == &an_op_cast) root = an_node_input(root->node, 0)->root;
    bool parameter = root->storage == AN_STORAGE_MASTER || root->storage == AN_STORAGE_LOW;
    return parameter ? an_compute_dtype(input->dtype) : input->dtype;
}

/* (…, rows, columns) as one matrix of all rows; with `transpose`, of all columns. */
static an_value stack(an_graph *g, an_value value, bool transpose) {
    an_value matrix = transpose ? an_transpose(g, value, -1, -2) : value;
    return an_reshape(g, matrix, AN_DIMS(AN_REST, an_value_dim(g, matrix, -1)));
}

/* left·right, summed over the batches in which broadcasting repeated `input`: its gradient. The sum reads the compute
 * type, so that a low gradient is rounded once. */
static an_value product_to_shape(an_graph *g, const an_node *node, const an_result *input, an_value left,
                                 an_value right, bool transpose_left, bool transpose_right) {
    const an_result *dst = an_node_output(node, 0);
    an_dtype dtype = an_gradient_dtype(node, input);
    bool repeated = input->ndims != dst->ndims;
    for (int i = 0; !repeated && i < dst->ndims - 2; i++) repeated = input->dims[i] != dst->dims[i];
    if (!repeated) return an_product_as(g, left, right, transpose_left, transpose_right, dtype);
    an_value product = an_product_as(g, left, right, transpose_left, transpose_right, an_compute_dtype(dtype));
    return an_cast(g, an_sum_to_shape(g, product, an_graph_value(g, input)), dtype);
}

/* The gradients of the operands `first` and the one after it. A plain matrix times a batch (a weight) gets its gradient
 * from one product over all rows of the batch, not from a product for each and a sum. Transposes are flags, but for
 * a batch that is stacked by its columns. */
static void pair_grad(an_graph *g, const an_node *node, int first, an_value diff, uint32_t want, an_value *diff_src) {
    const an_product_attributes *attributes = node->attributes;
    bool transpose_a = attributes->transpose_a, transpose_b = attributes->transpose_b;
    const an_result *a = an_node_input(node, first), *b = an_node_input(node, first + 1);
    an_value a_value = an_graph_value(g, a), b_value = an_graph_value(g, b);
    if (want & 1) {
        if (a->ndims == 2 && b->ndims > 2) {
            an_value d = stack(g, diff, true), right = stack(g, b_value, !transpose_b);
            diff_src[0] = an_product_as(g, transpose_a ? right : d, transpose_a ? d : right, true, false,
                                        an_gradient_dtype(node, a));
        } else if (transpose_a) {
            diff_src[0] = product_to_shape(g, node, a, b_value, diff, transpose_b, true);
        } else {
            diff_src[0] = product_to_shape(g, node, a, diff, b_value, false, !transpose_b);
        }
    }
    if (want & 2) {
        if (b->ndims == 2 && a->ndims > 2) {
            an_value d = stack(g, diff, false), left = stack(g, a_value, transpose_a);
            diff_src[1] = an_product_as(g, transpose_b ? d : left, transpose_b ? left : d, true, false,
                                        an_gradient_dtype(node, b));
        } else if (transpose_b) {
            diff_src[1] = product_to_shape(g, node, b, diff, a_value, true, transpose_a);
        } else {
            diff_src[1] = product_to_shape(g, node, b, a_value, diff, !transpose_a, false);
        }
    }
}

static void grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    const an_value diff = an_lower_diff(g, node, diff_dst[0]);
    for (int i = 0; i < node->input_count; i += 2) pair_grad(g, node, i, diff, want >> i, diff_src + i);
}

static const an_role product_roles[] = {AN_ROLE_NONE, AN_ROLE_WEIGHT};

const an_op an_op_matmul = {
    .name = "matmul",
    .former = "product",
    .torch = "{0}{transpose_a?.mT} @ {1}{transpose_b?.mT}",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = along,
    .attribute_bytes = sizeof(an_product_attributes),
    .attributes = product_attributes,
    .roles = product_roles,
    .role_count = AN_COUNT(product_roles),
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .autocast = AN_AUTOCAST_LOW,
    .low_in = 1 | 2,
    .blocks_in = 2,
    .low_out = 1,
    .kernels = AN_KERNELS(product),
};

an_value an_product_as(an_graph *g, an_value a, an_value b, bool transpose_a, bool transpose_b, an_dtype dtype) {
    an_product_attributes attributes = {.transpose_a = transpose_a, .transpose_b = transpose_b, .dtype = dtype};
    an_value inputs[] = {a, b};
    return an_graph_add(g, &an_op_matmul, AN_COUNT(inputs), inputs, &attributes);
}

an_value an_matmul(an_graph *graph, an_value a, an_value b, bool transpose_a, bool transpose_b) {
    AN_NEED_OR(0, graph);
    return an_product_as(graph, a, b, transpose_a, transpose_b, AN_DTYPE_NONE);
}

/* ---- product_sum ---- */

/* a·b + a·b + …: the sum goes on from one product to the next, and is rounded once. */
static const an_attribute sum_attributes[] = {
    AN_ATTRIBUTE(an_product_attributes, transpose_b, BOOL),
    AN_ATTRIBUTE(an_product_attributes, dtype, DTYPE),
    {0},
};

static an_status sum_infer(an_graph *g, an_node *node) {
    const an_product_attributes *attributes = node->attributes;
    const an_result *first = an_node_input(node, 0), *first_b = an_node_input(node, 1);
    an_dtype dtype = attributes->dtype;
    if (node->input_count % 2 != 0)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "it has %d inputs; they come in pairs", node->input_count);
    for (int i = 0; i < node->input_count; i += 2) {
        const an_result *a = an_node_input(node, i), *b = an_node_input(node, i + 1);
        AN_TRY_RETURN(an_expect_float(g, node, i));
        AN_TRY_RETURN(an_expect_weights(g, node, i + 1));
        AN_TRY_RETURN(an_expect_ndims(g, node, i, 2, AN_MAX_DIMS));
        AN_TRY_RETURN(an_expect_ndims(g, node, i + 1, 2, 2));
        if (column_dim(a, false) != row_dim(b, attributes->transpose_b))
            return an_node_mistake(g, node, AN_ERR_SHAPE,
                                   "input %d is %s and input %d is %s%s: the number of columns of the first must equal "
                                   "the number of rows of the second",
                                   i, AN_DESCRIBE(g, a), i + 1, AN_DESCRIBE(g, b),
                                   attributes->transpose_b ? " transposed" : "");
        bool same = a->ndims == first->ndims &&
                    column_dim(b, attributes->transpose_b) == column_dim(first_b, attributes->transpose_b);
        for (int d = 0; same && d < a->ndims - 1; d++) same = a->dims[d] == first->dims[d];
        if (!same)
            return an_node_mistake(
                g, node, AN_ERR_SHAPE,
                "the product of inputs %d and %d, %s and %s, does not have the shape of that of inputs "
                "0 and 1, %s and %s",
                i, i + 1, AN_DESCRIBE(g, a), AN_DESCRIBE(g, b), AN_DESCRIBE(g, first), AN_DESCRIBE(g, first_b));
        if (attributes->dtype == AN_DTYPE_NONE) {
            const an_dtype wider = an_wider(a->dtype, b->dtype);
            dtype = i == 0 ? wider : an_wider(dtype, wider);
        }
    }
    if (!an_dtype_is_float(dtype))
        return an_node_mistake(g, node, AN_ERR_DTYPE, "dtype is %s; a product needs a floating-point type",
                               an_dtype_name(dtype));
    an_result *dst = an_node_output(node, 0);
    an_result_set(dst, dtype, first->ndims, first->dims);
    dst->dims[dst->ndims - 1] = column_dim(first_b, attributes->transpose_b);
    return AN_OK;
}

static an_cost sum_cost(const an_graph *g, const an_node *node) {
    int64_t depth = 0;
    for (int i = 0; i < node->input_count; i += 2) {
        int64_t one = 0;
        an_dimensions_value(&g->dimensions, column_dim(an_node_input(node, i), false), &one);
        depth += one;
    }
    return an_cost_of(g, node, 2 * an_result_elements(g, an_node_output(node, 0)) * (double)depth);
}

static const an_role sum_roles[] = {AN_ROLE_NONE, AN_ROLE_WEIGHT, AN_ROLE_NONE, AN_ROLE_WEIGHT};

const an_op an_op_matmul_sum = {
    .name = "matmul_sum",
    .former = "product_sum",
    .torch = "{0} @ {1}{transpose_b?.mT} + {2} @ {3}{transpose_b?.mT}",
    .inputs_min = 4,
    .inputs_max = 2 * AN_PRODUCT_SUM_PAIRS,
    .outputs = 1,
    .along = along,
    .attribute_bytes = sizeof(an_product_attributes),
    .attributes = sum_attributes,
    .roles = sum_roles,
    .role_count = AN_COUNT(sum_roles),
    .infer = sum_infer,
    .grad = grad,
    .cost = sum_cost,
    .autocast = AN_AUTOCAST_LOW,
    .low_in = (1u << 2 * AN_PRODUCT_SUM_PAIRS) - 1,
    .blocks_in = ((1u << 2 * AN_PRODUCT_SUM_PAIRS) - 1) / 3 * 2, /* every b */
    .low_out = 1,
    .kernels = AN_KERNELS(product_sum),
};

an_value an_product_add(an_graph *g, an_value a, an_value b, an_value c, an_value d, bool transpose_b) {
    const an_product_attributes attributes = {.transpose_b = transpose_b};
    const an_value inputs[] = {a, b, c, d};
    return an_graph_add(g, &an_op_matmul_sum, AN_COUNT(inputs), inputs, &attributes);
}

/* What a value is a sum of: a product by a matrix that nothing but `reader` reads, or a sum of such. Adds its inputs
 * to `inputs`; false: it is something else. */
static bool take_products(an_graph *g, const an_result *r, const an_node *reader, int *count, an_value *inputs) {
    const an_node *n = r->node;
    const bool is_product = n->op == &an_op_matmul, is_sum = n->op == &an_op_matmul_sum;
    if ((!is_product && !is_sum) || !r->first_use || r->first_use->next || r->first_use->node != reader) return false;
    const an_product_attributes *attributes = n->attributes;
    if (attributes->transpose_a || an_node_input(n, 1)->ndims != 2 ||
        *count + n->input_count > 2 * AN_PRODUCT_SUM_PAIRS)
        return false;
    for (int i = 0; i < n->input_count; i++) inputs[(*count)++] = an_node_input_value(g, n, i);
    return true;
}

/* Gradients meet by being added, and those through adapters are products: one sum of all of them needs no
 * memory for its parts. It is rounded once instead of after every part: other bits, so graphs without an
 * adapter keep their additions. */
an_value an_sum_products(an_graph *g, const an_node *add) {
    an_value inputs[2 * AN_PRODUCT_SUM_PAIRS];
    int count = 0;
    const an_result *a = an_node_input(add, 0), *b = an_node_input(add, 1), *dst = &add->outputs[0];
    if (g->adapter.rank < 1 || add->phase != AN_PHASE_BACKWARD || a == b) return 0;
    bool alike = a->ndims == b->ndims && a->dtype == dst->dtype && b->dtype == dst->dtype;
    for (int i = 0; alike && i < a->ndims; i++) alike = a->dims[i] == b->dims[i];
    if (!alike || !take_products(g, a, add, &count, inputs) || !take_products(g, b, add, &count, inputs)) return 0;
    const an_product_attributes *first = a->node->attributes, *second = b->node->attributes;
    if (first->transpose_b != second->transpose_b) return 0;
    const an_product_attributes attributes = {.transpose_b = first->transpose_b, .dtype = dst->dtype};
    return an_graph_add(g, &an_op_matmul_sum, count, inputs, &attributes);
}

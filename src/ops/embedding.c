/* embedding: rows of a table by index. An index outside the table is an error of the run, found before it is used. */
#include "ops/common.h"

#include "kernels/embedding/embedding.h"

static const an_role embedding_roles[] = {AN_ROLE_NONE, AN_ROLE_EMBEDDING};

static an_status embedding_infer(an_graph *g, an_node *node) {
    const an_result *indices = an_node_input(node, 0), *table = an_node_input(node, 1);
    an_dim dims[AN_MAX_DIMS];
    AN_TRY_RETURN(an_expect_index(g, node, 0));
    AN_TRY_RETURN(an_expect_ndims(g, node, 0, 0, AN_MAX_DIMS - 1));
    AN_TRY_RETURN(an_expect_weights(g, node, 1));
    if (table->ndims != 2)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "the table is %s; it must be (entries, width)",
                               AN_DESCRIBE(g, table));
    for (int i = 0; i < indices->ndims; i++) dims[i] = indices->dims[i];
    dims[indices->ndims] = table->dims[1];
    const an_dtype dtype = table->dtype == AN_DTYPE_Q8_0 ? AN_DTYPE_F32 : table->dtype;
    an_result_set(an_node_output(node, 0), dtype, indices->ndims + 1, dims);
    return AN_OK;
}

static void embedding_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                           an_value *diff_src) {
    const an_result *table = an_node_input(node, 1);
    an_embedding_diff_attributes attributes = {.dims = {.count = 2, .values = {table->dims[0], table->dims[1]}}};
    an_value inputs[] = {diff_dst[0], an_node_input_value(g, node, 0)};
    (void)want; /* indices have no gradient, so it is the table's */
    diff_src[1] = an_graph_add(g, &an_op_embedding_diff, AN_COUNT(inputs), inputs, &attributes);
}

/* Of the table only the rows that are asked for are read. */
static an_cost embedding_cost(const an_graph *g, const an_node *node) {
    const an_result *indices = an_node_input(node, 0), *dst = an_node_output(node, 0);
    const double moved = 2 * an_result_elements(g, dst) * (double)an_dtype_size(dst->dtype);
    return (an_cost){.bytes = moved + an_result_elements(g, indices) * (double)an_dtype_size(indices->dtype)};
}

/* An index becomes a row, inside of all that lies outside of it. */
static an_along embedding_along(const an_along_question *q) {
    return q->input == 0 && q->to == q->axis ? AN_ALONG_APART : AN_ALONG_MIXED;
}

const an_op an_op_embedding = {
    .name = "embedding",
    .torch = "F.embedding({0}, {1})",
    .onnx = "Gather({1}, {0})",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = embedding_along,
    .roles = embedding_roles,
    .role_count = AN_COUNT(embedding_roles),
    .infer = embedding_infer,
    .grad = embedding_grad,
    .cost = embedding_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .blocks_in = 2,
    .kernels = AN_KERNELS(embedding),
};

an_value an_embedding(an_graph *graph, an_value indices, an_value table) {
    AN_NEED_OR(0, graph);
    an_value inputs[] = {indices, table};
    return an_graph_add(graph, &an_op_embedding, AN_COUNT(inputs), inputs, NULL);
}

/* ---- embedding_diff: the gradient of the whole table, zero where no index points ---- */

static const an_attribute embedding_diff_attributes[] = {AN_ATTRIBUTE(an_embedding_diff_attributes, dims, DIMS), {0}};

static an_status embedding_diff_infer(an_graph *g, an_node *node) {
    const an_embedding_diff_attributes *attributes = node->attributes;
    const an_result *diff_dst = an_node_input(node, 0), *indices = an_node_input(node, 1);
    AN_TRY_RETURN(an_expect_float(g, node, 0));
    AN_TRY_RETURN(an_expect_index(g, node, 1));
    bool fits = attributes->dims.count == 2 && diff_dst->ndims == indices->ndims + 1 &&
                diff_dst->dims[indices->ndims] == attributes->dims.values[1];
    for (int i = 0; fits && i < indices->ndims; i++) fits = diff_dst->dims[i] == indices->dims[i];
    if (!fits)
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "diff_dst is %s and indices are %s: diff_dst must have the shape of the indices "
                               "followed by the width of the table",
                               AN_DESCRIBE(g, diff_dst), AN_DESCRIBE(g, indices));
    an_result_set(an_node_output(node, 0), an_compute_dtype(diff_dst->dtype), 2, attributes->dims.values);
    return AN_OK;
}

static an_cost embedding_diff_cost(const an_graph *g, const an_node *node) {
    return an_cost_of(g, node, an_result_elements(g, an_node_input(node, 0)));
}

const an_op an_op_embedding_diff = {
    .name = "embedding_diff",
    .inputs_min = 2,
    .inputs_max = 2,
    .outputs = 1,
    .along = an_along_added,
    .attribute_bytes = sizeof(an_embedding_diff_attributes),
    .attributes = embedding_diff_attributes,
    .infer = embedding_diff_infer,
    .cost = embedding_diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(embedding_diff),
};

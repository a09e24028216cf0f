/* row_factors (weight, first, second, magnitude): what DoRA (Liu et al., 2024) multiplies each output of a layer by,
 * the magnitude of its row ÷ the norm of the row of weight + scale · second·first. Outputs are the factors and the
 * norms. A row of zeros has the factor 1.
 *
 * Norms are constants to the gradient, as the paper has it: only the magnitude gets one. The weight is read as it is
 * stored, in any type, and only by rows. */
#include "ops/row_factors.h"

#include "kernels/norm/row_factors.h"
#include "ops/reduce.h"

enum { WEIGHT, FIRST, SECOND, MAGNITUDE, INPUTS };

static const an_attribute attributes[] = {AN_ATTRIBUTE(an_row_factors_attributes, scale, FLOAT), {0}};
/* A magnitude does not decay, as the weight of a norm does not. */
static const an_role roles[] = {AN_ROLE_NONE, AN_ROLE_NONE, AN_ROLE_NONE, AN_ROLE_NORM_WEIGHT};

static an_status infer(an_graph *g, an_node *node) {
    const an_result *in[INPUTS];
    an_dtype dtype = AN_DTYPE_F32;
    for (int i = 0; i < INPUTS; i++) {
        AN_TRY_RETURN((i == WEIGHT ? an_expect_weights : an_expect_float)(g, node, i));
        AN_TRY_RETURN(an_expect_ndims(g, node, i, i == MAGNITUDE ? 1 : 2, i == MAGNITUDE ? 1 : 2));
        in[i] = an_node_input(node, i);
        if (in[i]->dtype == AN_DTYPE_F64) dtype = AN_DTYPE_F64;
    }
    if (in[FIRST]->dims[1] != in[WEIGHT]->dims[1] || in[SECOND]->dims[0] != in[WEIGHT]->dims[0] ||
        in[FIRST]->dims[0] != in[SECOND]->dims[1] || in[MAGNITUDE]->dims[0] != in[WEIGHT]->dims[0])
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "the weight is %s, first %s, second %s and the magnitude %s; for a weight (outputs, "
                               "inputs) they must be (rank, inputs), (outputs, rank) and (outputs)",
                               AN_DESCRIBE(g, in[WEIGHT]), AN_DESCRIBE(g, in[FIRST]), AN_DESCRIBE(g, in[SECOND]),
                               AN_DESCRIBE(g, in[MAGNITUDE]));
    for (int i = 0; i < 2; i++) an_result_set(an_node_output(node, i), dtype, 1, in[MAGNITUDE]->dims);
    return AN_OK;
}

static void grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    if (want >> MAGNITUDE & 1 && diff_dst[0])
        diff_src[MAGNITUDE] = an_divide_sum(g, diff_dst[0], an_node_output_value(g, node, 1));
}

static an_cost cost(const an_graph *g, const an_node *node) {
    const an_result *first = an_node_input(node, FIRST);
    int64_t rank = 0;
    an_dimensions_value(&g->dimensions, first->dims[0], &rank);
    return an_cost_of(g, node, 2 * an_result_elements(g, an_node_input(node, WEIGHT)) * (double)(rank + 1));
}

const an_op an_op_row_factors = {
    .name = "row_factors",
    .inputs_min = INPUTS,
    .inputs_max = INPUTS,
    .outputs = 2,
    .flags = AN_OP_OF_WEIGHTS | AN_OP_NO_COPY, /* the outputs are small, and not cheap */
    .attribute_bytes = sizeof(an_row_factors_attributes),
    .attributes = attributes,
    .roles = roles,
    .role_count = AN_COUNT(roles),
    .infer = infer,
    .grad = grad,
    .cost = cost,
    .autocast = AN_AUTOCAST_LOW, /* but no input is cast, and no output is low: a factor is near 1 and changes little */
    .blocks_in = 1 << WEIGHT,
    .kernels = AN_KERNELS(row_factors),
};

an_value an_row_factors(an_graph *g, an_value weight, an_value first, an_value second, an_value magnitude,
                        double scale) {
    const an_value inputs[INPUTS] = {weight, first, second, magnitude};
    return an_graph_add(g, &an_op_row_factors, INPUTS, inputs, &(an_row_factors_attributes){.scale = scale});
}

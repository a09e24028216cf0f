/* dropout: dst = src · mask / (1 - rate) in training, src itself in evaluation. The mask is a function of seed, step,
 * global sample number and site: it is stored nowhere, and the gradient is the same op on diff_dst. */
#include "ops/dropout.h"

#include "base/guard.h"
#include "kernels/elementwise/dropout.h"

enum { SRC, SAMPLES, SEED, STEP, INPUTS };
enum { FLOPS = 30 }; /* of an element, for the cost pass: its share of a block of four random words */

int64_t an_random_site(const an_graph *g) {
    uint64_t ordinal = 0;
    for (const an_node *node = g->first; node; node = node->next) ordinal += (node->op->flags & AN_OP_RANDOM) != 0;
    return (int64_t)an_hash(g->path, g->path_length, ordinal);
}

an_status an_expect_rate(an_graph *g, const an_node *node, double rate) {
    if (rate >= 0 && rate < 1) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                           "the dropout rate is %g; the share to drop must be at least 0 and less than 1", rate);
}

an_status an_expect_random(an_graph *g, const an_node *node, int first, an_dim batch) {
    for (int i = 0; i < 3; i++) {
        const an_result *r = an_node_input(node, first + i);
        AN_TRY_RETURN(an_expect_index(g, node, first + i));
        if (i == 0 ? r->ndims == 1 && r->dims[0] == batch : r->ndims == 0) continue;
        if (i == 0)
            return an_node_mistake(g, node, AN_ERR_SHAPE,
                                   "samples are %s; there must be one global sample number for each entry of the "
                                   "batch, the first dimension of %s",
                                   AN_DESCRIBE(g, r), AN_DESCRIBE(g, an_node_input(node, 0)));
        return an_node_mistake(g, node, AN_ERR_SHAPE, "input %d is %s; seed and step are scalars", first + i,
                               AN_DESCRIBE(g, r));
    }
    return AN_OK;
}

static const an_attribute dropout_attributes[] = {
    AN_ATTRIBUTE(an_dropout_attributes, rate, FLOAT),
    AN_ATTRIBUTE(an_dropout_attributes, site, INT),
    {0},
};

static an_status dropout_infer(an_graph *g, an_node *node) {
    const an_dropout_attributes *attributes = node->attributes;
    const an_result *src = an_node_input(node, SRC);
    AN_TRY_RETURN(an_expect_float(g, node, SRC));
    AN_TRY_RETURN(an_expect_ndims(g, node, SRC, 1, AN_MAX_DIMS));
    AN_TRY_RETURN(an_expect_random(g, node, SAMPLES, src->dims[0]));
    AN_TRY_RETURN(an_expect_rate(g, node, attributes->rate));
    an_result_like(an_node_output(node, 0), src);
    return AN_OK;
}

static void dropout_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                         an_value *diff_src) {
    an_value inputs[INPUTS] = {diff_dst[0]};
    (void)want;
    for (int i = SAMPLES; i < INPUTS; i++) inputs[i] = an_node_input_value(g, node, i);
    diff_src[0] = an_graph_add(g, &an_op_dropout, INPUTS, inputs, node->attributes);
}

static an_value dropout_evaluate(an_graph *g, const an_node *node) {
    return an_node_input_value(g, node, SRC);
}

static an_cost dropout_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, FLOPS);
}

/* There is one number of a sample for each place along the first axis. */
static an_along along(const an_along_question *q) {
    return q->input == 0 ? an_along_elements(q) : an_along_first(q);
}

const an_op an_op_dropout = {
    .name = "dropout",
    .torch = "F.dropout({0}, {rate}, self.training)",
    .inputs_min = INPUTS,
    .inputs_max = INPUTS,
    .outputs = 1,
    .along = along,
    .flags = AN_OP_RANDOM,
    .attribute_bytes = sizeof(an_dropout_attributes),
    .attributes = dropout_attributes,
    .infer = dropout_infer,
    .grad = dropout_grad,
    .evaluate = dropout_evaluate,
    .cost = dropout_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1 << SRC,
    .kernels = AN_KERNELS(dropout),
};

an_value an_dropout(an_graph *graph, an_value src, an_value samples, double rate) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    if (rate == 0) return src;
    an_builder_begin(graph);
    an_dropout_attributes attributes = {rate, an_random_site(graph)};
    const an_value seed = an_scalar_shared(graph, "seed", AN_DTYPE_I64);
    const an_value step = an_scalar_shared(graph, "step", AN_DTYPE_I64);
    an_value inputs[INPUTS] = {src, samples, seed, step};
    return an_builder_end(graph, an_graph_add(graph, &an_op_dropout, INPUTS, inputs, &attributes));
}

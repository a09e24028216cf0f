/* rotary: turns pairs of elements of a head by an angle that grows with the token's position (Su and others,
 * "RoFormer", 2021), in the split form of Llama: the first half of the turning part with the second.
 *
 * A turn is undone by turning back, so the gradient is the same op with `inverse` flipped. dst lies as (batch, tokens,
 * heads, size), as attention's operands do, so that the way back to (batch, tokens, features) is a view.
 */
#include "ops/common.h"

#include <inttypes.h>

#include "base/guard.h"
#include "kernels/rotary/rotary.h"
#include "ops/structs.h"

enum { SRC, POSITION, INPUTS };
enum { FLOPS = 3 }; /* of an element: two products and a sum */

static const an_attribute rotary_attributes[] = {
    AN_ATTRIBUTE(an_rotary_attributes, base, FLOAT),        AN_ATTRIBUTE(an_rotary_attributes, rotated, INT),
    AN_ATTRIBUTE(an_rotary_attributes, factor, FLOAT),      AN_ATTRIBUTE(an_rotary_attributes, low_factor, FLOAT),
    AN_ATTRIBUTE(an_rotary_attributes, high_factor, FLOAT), AN_ATTRIBUTE(an_rotary_attributes, original_context, INT),
    AN_ATTRIBUTE(an_rotary_attributes, inverse, BOOL),      {0},
};

static an_status expect_scaling(an_graph *g, const an_node *node, const an_rotary_attributes *a) {
    if (a->factor == 0) return AN_OK;
    if (a->factor > 0 && a->low_factor > 0 && a->high_factor > a->low_factor && a->original_context > 0) return AN_OK;
    return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                           "scaling by factor %g needs a positive low_factor, a larger high_factor and the original "
                           "context, but they are %g, %g and %" PRId64 " (Llama 3.1 uses 8, 1, 4 and 8192)",
                           a->factor, a->low_factor, a->high_factor, a->original_context);
}

static an_status rotary_infer(an_graph *g, an_node *node) {
    static const uint8_t order[] = {0, 2, 1, 3};
    const an_rotary_attributes *a = node->attributes;
    const an_result *src = an_node_input(node, SRC), *position = an_node_input(node, POSITION);
    an_result *dst = an_node_output(node, 0);
    AN_TRY_RETURN(an_expect_float(g, node, SRC));
    if (src->ndims != 4 || src->dims[3] < 0)
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "src is %s; it must be (batch, heads, tokens, head size), with a constant head size",
                               AN_DESCRIBE(g, src));
    if (position) AN_TRY_RETURN(an_expect_index(g, node, POSITION));
    if (position && position->ndims != 0 &&
        (position->ndims != 2 || position->dims[0] != src->dims[0] || position->dims[1] != src->dims[2]))
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "the position is %s and src is %s; the position must be a scalar, that of token 0, or "
                               "(batch, tokens), that of each token",
                               AN_DESCRIBE(g, position), AN_DESCRIBE(g, src));
    if (a->rotated < 2 || a->rotated % 2 || a->rotated > src->dims[3])
        return an_node_mistake(
            g, node, AN_ERR_ARGUMENT,
            "%" PRId64 " of %" PRId64
            " elements of a head cannot be rotated: the number must be even and at most the head size",
            a->rotated, src->dims[3]);
    if (!(a->base > 0 && a->base <= 1e300)) /* a finite number */
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "base is %g; it must be positive (10000 is usual)", a->base);
    AN_TRY_RETURN(expect_scaling(g, node, a));
    an_result_like(dst, src);
    for (int i = 0; i < AN_COUNT(order); i++) dst->order[i] = order[i];
    return AN_OK;
}

static void rotary_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    an_rotary_attributes attributes = *(const an_rotary_attributes *)node->attributes;
    an_value inputs[INPUTS] = {diff_dst[0], an_node_input_value(g, node, POSITION)};
    (void)want;
    attributes.inverse = !attributes.inverse;
    diff_src[0] = an_graph_add(g, &an_op_rotary, node->input_count, inputs, &attributes);
}

static an_cost rotary_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, FLOPS);
}

const an_op an_op_rotary = {
    .name = "rotary",
    .torch = "rotary({0}, {base}, "
             "{rotated}{,position=1}{,factor=factor}{,low_factor=low_factor}{,high_factor=high_factor}{,original_"
             "context=original_context})",
    .inputs_min = 1,
    .inputs_max = INPUTS,
    .outputs = 1,
    .along = an_along_first,
    .attribute_bytes = sizeof(an_rotary_attributes),
    .attributes = rotary_attributes,
    .infer = rotary_infer,
    .grad = rotary_grad,
    .cost = rotary_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .low_out = 1,
    .in_place = 1 << SRC,
    .kernels = AN_KERNELS(rotary),
};

an_value an_rotary(an_graph *graph, an_value src, const an_rotary_options *options) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_rotary_options o;
    an_builder_begin(graph);
    if (!an_builder_took(graph, an_rotary_options_read(graph->ctx, &o, options))) return an_builder_end(graph, 0);
    an_rotary_attributes attributes = {
        .base = o.base,
        .rotated = o.rotated ? o.rotated : an_value_dim(graph, src, -1),
        .factor = o.factor,
        .low_factor = o.low_factor,
        .high_factor = o.high_factor,
        .original_context = o.original_context,
    };
    an_value inputs[INPUTS] = {src, o.position};
    const int count = o.position == AN_NONE ? 1 : INPUTS;
    return an_builder_end(graph, an_graph_add(graph, &an_op_rotary, count, inputs, &attributes));
}

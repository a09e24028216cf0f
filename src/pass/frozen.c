#include "pass/frozen.h"

#include "base/q8_0.h"
#include "ir/adapter.h"
#include "ops/ops.h"
#include "ops/source.h"

/* Readers that cannot do with `low` read the value as it was: passes let ops that can read a low type
 * do so (pass/autocast.c). */
static an_status widen_for_readers(an_graph *g, an_result *r, an_dtype dtype) {
    an_context *ctx = g->ctx;
    const int block = g->block;
    g->block = r->node->block;
    g->added.before = r->node->next;
    an_result *wide = an_graph_result(g, an_cast(g, an_graph_value(g, r), dtype));
    g->added.before = NULL;
    g->block = block;
    if (!wide) return AN_ERROR(ctx, g->status, "%s", g->message);
    an_result_replace(r, wide);
    an_node_set_input(wide->node, 0, r);
    for (an_use *u = wide->first_use, *next; u; u = next) {
        next = u->next;
        if (!(u->node->op->flags & AN_OP_OF_WEIGHTS)) continue;
        an_node *reader = u->node;
        an_node_set_input(reader, u->slot, r);
        AN_TRY_RETURN(an_node_infer(g, reader));
    }
    return AN_OK;
}

/* Matrices of the base are stored in the low type, and read as what they were. */
static an_status lower(an_graph *g, an_node *param, an_dtype low) {
    an_result *r = &param->outputs[0];
    const an_dtype dtype = r->dtype;
    if (r->ndims < 2 || !r->first_use || dtype == low) return AN_OK;
    ((an_param_attributes *)param->attributes)->dtype = low;
    AN_TRY_RETURN(an_node_infer(g, param));
    return widen_for_readers(g, r, dtype);
}

/* A cast would make a whole matrix in every step, so only ops that read blocks themselves may be its readers. */
static bool can_be_blocks(const an_result *r) {
    if (r->dtype != AN_DTYPE_F32 || r->ndims != 2 || r->dims[1] % AN_Q8_0_ELEMENTS != 0 || !r->first_use) return false;
    for (const an_use *u = r->first_use; u; u = u->next)
        if (!(u->node->op->blocks_in >> u->slot & 1) || u->node->op->flags & AN_OP_CONVERTS) return false;
    return true;
}

static an_status make_blocks(an_graph *g, an_node *param, size_t *made) {
    if (!can_be_blocks(&param->outputs[0])) return AN_OK;
    ((an_param_attributes *)param->attributes)->dtype = AN_DTYPE_Q8_0;
    ++*made;
    return an_node_infer(g, param);
}

an_status an_graph_freeze(an_graph *g, an_dtype low) {
    an_context *ctx = g->ctx;
    size_t made = 0;
    for (size_t i = 0; i < g->parameter_count; i++) {
        an_node *node = g->parameters[i].node;
        if (an_adapter_has(g->parameters[i].name) || g->parameters[i].trained) continue;
        an_param_freeze(g, an_node_output_value(g, node, 0));
        if (low == AN_DTYPE_Q8_0)
            AN_TRY_RETURN(make_blocks(g, node, &made));
        else if (low != AN_DTYPE_NONE)
            AN_TRY_RETURN(lower(g, node, low));
    }
    if (low != AN_DTYPE_Q8_0 || made > 0) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_DTYPE,
                    "no matrix of graph '%s' can be stored in q8_0: that needs f32 and a multiple of %d columns",
                    g->name, AN_Q8_0_ELEMENTS);
}

/* A layer with an adapter becomes two products and their sum, of which the first is rounded. */
static void split_sum(an_graph *g, an_node *sum) {
    const bool transpose_b = *(const bool *)an_node_attribute(sum, "transpose_b", AN_ATTRIBUTE_BOOL);
    an_value parts[2];
    g->added.before = sum;
    for (int i = 0; i < 2; i++)
        parts[i] = an_matmul(g, an_node_input_value(g, sum, 2 * i), an_node_input_value(g, sum, 2 * i + 1), false,
                             transpose_b);
    an_result *added = an_graph_result(g, an_graph_add(g, &an_op_adapt, 2, parts, NULL));
    g->added.before = NULL;
    if (!added) return;
    an_result_replace(&sum->outputs[0], added);
    an_graph_remove(g, sum);
}

an_status an_graph_round_products(an_graph *g) {
    an_context *ctx = g->ctx;
    for (an_node *n = g->first, *next; n && g->status == AN_OK; n = next) {
        next = n->next;
        if (n->op == &an_op_matmul_sum && n->input_count == 4 && an_node_input(n, 1)->dtype == AN_DTYPE_Q8_0)
            split_sum(g, n);
    }
    if (g->status != AN_OK) return AN_ERROR(ctx, g->status, "%s", g->message);
    for (an_node *n = g->first; n; n = n->next) {
        if (n->op != &an_op_matmul || an_node_input(n, 1)->dtype != AN_DTYPE_Q8_0) continue;
        const bool transpose_a = *(const bool *)an_node_attribute(n, "transpose_a", AN_ATTRIBUTE_BOOL);
        const bool transpose_b = *(const bool *)an_node_attribute(n, "transpose_b", AN_ATTRIBUTE_BOOL);
        if (transpose_a || !transpose_b || an_node_input(n, 0)->dtype != AN_DTYPE_F32) continue;
        *(bool *)an_node_attribute(n, "rounds_a", AN_ATTRIBUTE_BOOL) = true;
        AN_TRY_RETURN(an_node_infer(g, n));
    }
    return AN_OK;
}

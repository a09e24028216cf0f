/* The nodes of a plan: what each makes, and what it costs. */
#include "base/guard.h"
#include "exec/plan.h"
#include "exec/structs.h"
#include "ops/common.h"
#include "ops/source.h"
#include "pass/cost.h"

static const an_graph *form_of(const an_plan *plan, an_form form) {
    return (unsigned)form < AN_FORMS ? plan->forms[form] : NULL;
}

int64_t an_plan_node_count(const an_plan *plan, an_form form) {
    AN_NEED_OR(0, plan);
    const an_graph *g = form_of(plan, form);
    return g ? (int64_t)g->node_count : 0;
}

const an_node *an_plan_owner(const an_node *node) {
    for (int i = 0; *node->path && i < node->input_count; i++) {
        const an_result *input = an_node_input(node, i); /* NULL: one that was left out */
        if (input && input->root->node->op == &an_op_param) return input->root->node;
    }
    return node;
}

static const char *outermost_block(const an_graph *g, const an_node *n) {
    const char *outermost = "";
    for (int block = n->block; block > 0; block = g->blocks[block].parent)
        if (!g->blocks[block].is_scope) outermost = g->blocks[block].path;
    return outermost;
}

static void describe_output(const an_graph *g, const an_node *n, an_plan_node *own) {
    if (n->output_count == 0) return;
    const an_result *r = &n->outputs[0];
    own->dtype = r->dtype;
    own->ndims = r->ndims;
    for (int d = 0; d < r->ndims; d++) /* the plan was made at the maxima: none of them overflows */
        if (!an_dimensions_maximum(&g->dimensions, r->dims[d], &own->dims[d])) own->dims[d] = INT64_MAX;
}

static void describe_parameter(const an_graph *g, const an_node *n, an_plan_node *own) {
    own->parameter = -1;
    if (n->op != &an_op_param) return;
    const an_param_attributes *a = n->attributes;
    own->parameter = a->parameter;
    own->elements = g->parameters[a->parameter].elements;
    own->trainable = !a->frozen;
}

an_status an_plan_node_get(const an_plan *plan, an_form form, int64_t index, an_plan_node *node) {
    AN_GUARD;
    AN_NEED(plan, node);
    an_context *ctx = plan->ctx;
    const an_graph *g = form_of(plan, form);
    AN_TRY_RETURN(an_plan_node_check(ctx, node));
    if (!g)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the plan does not have this form: add it to an_plan_options.programs");
    if (index < 0 || index >= (int64_t)g->node_count)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "node %lld does not exist; there are %lld", (long long)index,
                        (long long)g->node_count);
    const an_node *n = g->first;
    while (index-- > 0) n = n->next;
    const an_node *owner = an_plan_owner(n);
    an_plan_node own = {.op = n->op->name,
                        .path = owner->path,
                        .block = outermost_block(g, owner),
                        .backward = n->phase == AN_PHASE_BACKWARD,
                        .runs = an_node_runs(n)};
    describe_output(g, n, &own);
    describe_parameter(g, n, &own);
    if (own.runs) {
        const an_cost cost = an_node_cost(g, n);
        own.flops = cost.flops;
        own.bytes = cost.bytes;
    }
    return an_plan_node_write(ctx, node, &own);
}

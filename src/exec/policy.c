/* The ops of a plan, by their records: how mixed precision treats each, how often it runs, and what that costs. */
#include "exec/plan.h"

#include "base/guard.h"
#include "exec/structs.h"
#include "ops/common.h"

static const char *const policy_names[] = {
    [AN_AUTOCAST_KEEP] = "keep", [AN_AUTOCAST_LOW] = "low", [AN_AUTOCAST_F32] = "f32"};

int an_plan_op_count(void) {
    int count = 0;
    while (an_op_table[count]) count++;
    return count;
}

an_status an_plan_op_get(const an_plan *plan, an_form form, int index, an_plan_op *op) {
    AN_GUARD;
    AN_NEED(plan, op);
    an_context *ctx = plan->ctx;
    const an_graph *g = (unsigned)form < AN_FORMS ? plan->forms[form] : NULL;
    AN_TRY_RETURN(an_plan_op_check(ctx, op));
    if (!g)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the plan does not have this form: add it to an_plan_options.programs");
    if (index < 0 || index >= an_plan_op_count())
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "op %d does not exist; there are %d", index, an_plan_op_count());
    const an_op *record = an_op_table[index];
    an_plan_op own = {.name = record->name,
                      .policy = policy_names[record->autocast],
                      .low_inputs = record->low_in,
                      .low_outputs = record->low_out};
    for (const an_node *n = g->first; n; n = n->next) {
        if (n->op != record || !an_node_runs(n)) continue;
        const an_cost cost = an_node_cost(g, n);
        own.instructions++;
        own.flops += cost.flops;
        own.bytes += cost.bytes;
    }
    return an_plan_op_write(ctx, op, &own);
}

/* program: makes the form of the model that was asked for, with its sinks.
 *
 * Training keeps the loss and the statistics; evaluation and prediction replace every op that acts differently in
 * training (dropout, batch norm) by what its record says, so that nothing of training can be reached from them.
 * Replaces train(), eval() and no_grad().
 */
#include <string.h>

#include "ops/loss.h"
#include "ops/sink.h"
#include "ops/source.h"
#include "pass/pass.h"

/* Whether a node belongs to the form: of the sinks that the host reads, training has those marked so, the others all
 * but statistics. */
static bool wanted(const an_node *node, an_form form) {
    if (!(node->op->flags & AN_OP_KEEPS_INPUTS)) return true;
    bool trains = an_form_trains(form);
    const bool *predicts = an_node_attribute(node, "prediction", AN_ATTRIBUTE_BOOL);
    if (predicts && *predicts) return form == AN_FORM_PREDICT;
    const bool *mark = an_node_attribute(node, trains ? "training" : "state", AN_ATTRIBUTE_BOOL);
    return !mark || *mark == trains;
}

/* What stands for the node, laid out as its output was, so that views of it stay views. */
static an_value replacement(an_graph *g, const an_node *node) {
    an_value value = node->op->evaluate(g, node);
    const an_result *before = &node->outputs[0], *after = an_graph_result(g, value);
    for (int i = 0; after && i < after->ndims; i++)
        if (after->dims[i] != 1 && after->strides[i] != before->strides[i]) return an_contiguous(g, value);
    return value;
}

/* Evaluations of preferences also give their rewards, which are the logits of the loss. */
static void sum_rewards(an_graph *g) {
    static const int samples = 0;
    const an_node *loss = an_graph_result(g, g->loss)->node;
    const an_result *targets = loss->op == &an_op_cross_entropy ? an_node_input(loss, 1) : NULL;
    if (!targets || targets->node->op != &an_op_input || targets->ndims != 1) return;
    if (strcmp(((const an_input_attributes *)targets->node->attributes)->name, AN_INPUT_PREFERRED) != 0) return;
    const an_output_attributes output = {.name = AN_OUTPUT_REWARDS};
    const an_value sum = an_reduce_sum(g, an_node_input_value(g, loss, 0), 1, &samples, false);
    an_graph_add(g, &an_op_output, 1, &sum, &output);
}

an_status an_pass_program(an_graph *g, const an_pass_options *options) {
    an_context *ctx = g->ctx;
    bool trains = an_form_trains(options->form), has_loss = options->form != AN_FORM_PREDICT;
    if (has_loss && g->loss == 0)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "graph '%s' has no loss, so it can only predict: set one with an_graph_set_loss", g->name);
    for (an_node *node = g->first, *next; node; node = next) {
        next = node->next;
        if (!wanted(node, options->form)) {
            an_graph_remove(g, node);
            continue;
        }
        if (trains || !node->op->evaluate) continue;
        g->added.before = node;
        g->added.origin = node;
        an_result *instead = an_graph_result(g, replacement(g, node));
        g->added.before = NULL;
        g->added.origin = NULL;
        if (!instead) return AN_ERROR(ctx, g->status, "%s", g->message);
        if (g->loss == an_node_output_value(g, node, 0)) g->loss = an_graph_value(g, instead);
        an_result_replace(&node->outputs[0], instead);
    }
    if (!trains) AN_TRY_RETURN(an_graph_refresh_views(g));
    if (has_loss) {
        an_output_attributes loss = {.name = "loss", .training = true};
        an_graph_add(g, &an_op_output, 1, &g->loss, &loss);
    }
    if (options->form == AN_FORM_EVALUATE) {
        an_count_right(g);
        sum_rewards(g);
    }
    return g->status == AN_OK ? AN_OK : AN_ERROR(ctx, g->status, "%s", g->message);
}

/* autodiff: adds the nodes that compute gradients. Replaces backward().
 *
 * Nodes are walked from the last to the first. Contributions to a value are added in the reverse order of its uses, which
 * fixes the bits. A parameter's contributions are not added to each other but each to the gradient buffer, by one `grad`
 * node, so that a tied table keeps no second sum alive; the first one of a form FIRST overwrites.
 */
#include "ops/common.h"
#include "ops/sink.h"
#include "pass/pass.h"

typedef struct {
    an_graph *g;
    an_form form;
    bool f32_storage;
    an_value *diffs; /* by result number, of the forward graph: 0 is none yet */
    bool *started;   /* by parameter: its gradient has its first contribution */
} differentiation;

/* A source that lies among the masters, or their low copies, learns. */
static bool is_trainable(const an_node *node) {
    if (!(node->op->flags & AN_OP_SOURCE)) return false;
    return node->outputs[0].storage == AN_STORAGE_MASTER || node->outputs[0].storage == AN_STORAGE_LOW;
}

/* mark: whether a parameter that learns is upstream. */
static void mark_needs(an_graph *g) {
    for (an_node *n = g->first; n; n = n->next) {
        n->mark = is_trainable(n);
        for (int i = 0; i < n->input_count && !n->mark; i++)
            if (n->inputs[i].result) n->mark = n->inputs[i].result->node->mark;
    }
}

static bool needs(const an_result *r) {
    return r && r->node->mark && an_dtype_is_float(r->dtype);
}

static void contribute(differentiation *d, an_result *r, an_value contribution) {
    an_graph *g = d->g;
    if (is_trainable(r->node)) {
        int64_t parameter = *(const int64_t *)an_node_attribute(r->node, "parameter", AN_ATTRIBUTE_INT);
        an_grad(g, contribution, parameter, d->started[parameter] || d->form == AN_FORM_TRAIN_NEXT);
        d->started[parameter] = true;
        return;
    }
    const an_result *c = an_graph_result(g, contribution);
    const bool is_low_copy =
        d->f32_storage && r->node->op->flags & AN_OP_CONVERTS; /* its gradients stay as they are made */
    if (c && c->dtype != r->dtype && !is_low_copy) contribution = an_cast(g, contribution, r->dtype);
    an_value *sum = &d->diffs[r->number];
    *sum = *sum ? an_add(g, *sum, contribution) : contribution;
}

static an_status differentiate(differentiation *d, an_node *node) {
    an_graph *g = d->g;
    an_value diff_dst[AN_MAX_OUTPUTS] = {0}, diff_src[AN_MAX_INPUTS] = {0};
    uint32_t want = 0;
    bool any = false;
    for (int i = 0; i < node->output_count; i++) {
        diff_dst[i] = d->diffs[node->outputs[i].number];
        any = any || diff_dst[i];
    }
    for (int i = 0; i < node->input_count; i++)
        if (needs(node->inputs[i].result)) want |= 1u << i;
    if (!any || !want) return AN_OK;
    if (!node->op->grad)
        return an_node_mistake(g, node, AN_ERR_UNSUPPORTED,
                               "%s has no gradient, but it depends on a trainable parameter: freeze that parameter, or "
                               "do not use this op on the way to the loss",
                               node->op->name);
    g->origin = node;
    node->op->grad(g, node, diff_dst, want, diff_src);
    for (int i = node->input_count - 1; i >= 0; i--) /* a value used twice here: last slot first */
        if (want >> i & 1 && diff_src[i]) contribute(d, node->inputs[i].result, diff_src[i]);
    g->origin = NULL;
    return g->status;
}

/* A parameter that no gradient reaches has a gradient of zeros: nothing hangs, nothing to configure. */
static void fill_rest(differentiation *d) {
    an_graph *g = d->g;
    for (size_t i = 0; i < g->parameter_count && d->form == AN_FORM_TRAIN_FIRST; i++) {
        const an_node *node = g->parameters[i].node;
        if (!is_trainable(node) || d->started[i]) continue;
        const an_result *r = &node->outputs[0];
        g->origin = node;
        an_grad(g, an_constant(g, r->dtype, 0, r->ndims, r->dims), (int64_t)i, false);
        g->origin = NULL;
    }
}

an_status an_pass_autodiff(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    differentiation d = {.g = g, .form = options->form, .f32_storage = options->f32_storage};
    size_t results = g->result_count;
    if (!an_form_trains(options->form)) return AN_OK;

    AN_TRY(an_alloc(ctx, (void **)&d.diffs, results, sizeof *d.diffs));
    AN_TRY(an_alloc(ctx, (void **)&d.started, g->parameter_count, sizeof *d.started));
    mark_needs(g);
    g->phase = AN_PHASE_BACKWARD;
    an_node *last = g->last;
    const an_result *loss = an_graph_result(g, g->loss);
    d.diffs[loss->number] = an_scalar_shared(g, "loss_gradient", loss->dtype);
    for (an_node *node = last; node; node = node->previous) AN_TRY(differentiate(&d, node));
    fill_rest(&d);
    AN_CHECK(ctx, g->status == AN_OK, g->status, "%s", g->message);
    status = AN_OK;

fail:
    g->phase = AN_PHASE_FORWARD;
    g->origin = NULL;
    an_release(ctx, (void **)&d.diffs, results, sizeof *d.diffs);
    an_release(ctx, (void **)&d.started, g->parameter_count, sizeof *d.started);
    return status;
}

/* autodiff: adds the nodes that compute gradients. Replaces backward().
 *
 * Nodes are walked from the last to the first. Contributions to a value are added in the reverse order of its uses,
 * which fixes the bits. A parameter's contributions are not added to each other but each to the gradient buffer, by one
 * `grad` node, so that a tied table keeps no second sum alive; the first one of a form FIRST overwrites.
 *
 * Each contribution is a sum over samples, and only the last operation on such a sum may be the tree of the leaves.
 * Where a run is not a whole step, the tree goes on with other runs and other ranks. Then each contribution but the
 * first has a region of its own behind the grid, and they are added when all of them are complete (step/extras.h): the
 * same addition.
 */
#include "ops/common.h"
#include "ops/sink.h"
#include "pass/pass.h"

typedef struct {
    an_graph *g;
    an_form form;
    bool f32_storage, extras;
    an_value *diffs;    /* by result number, of the forward graph: 0 is none yet */
    int *contributions; /* by parameter: how many its gradient has */
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
        const int earlier = d->contributions[parameter]++;
        an_grad(g, contribution, parameter, d->extras ? earlier : 0,
                d->form == AN_FORM_TRAIN_NEXT || (earlier > 0 && !d->extras));
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
    g->added.origin = node;
    node->op->grad(g, node, diff_dst, want, diff_src);
    for (int i = node->input_count - 1; i >= 0; i--) /* a value used twice here: last slot first */
        if (want >> i & 1 && diff_src[i]) contribute(d, node->inputs[i].result, diff_src[i]);
    g->added.origin = NULL;
    return g->status;
}

/* A parameter that no gradient reaches has a gradient of zeros: nothing hangs, nothing to configure. */
static void fill_rest(differentiation *d) {
    an_graph *g = d->g;
    for (size_t i = 0; i < g->parameter_count && d->form == AN_FORM_TRAIN_FIRST; i++) {
        const an_node *node = g->parameters[i].node;
        if (!is_trainable(node) || d->contributions[i]) continue;
        const an_result *r = &node->outputs[0];
        g->added.origin = node;
        an_grad(g, an_constant(g, r->dtype, 0, r->ndims, r->dims), (int64_t)i, 0, false);
        g->added.origin = NULL;
    }
}

/* Behind the grid, in the order of the parameters. */
static void place_extras(const differentiation *d) {
    an_graph *g = d->g;
    int64_t end = 0;
    for (size_t i = 0; i < g->parameter_count; i++)
        if (is_trainable(g->parameters[i].node)) end = g->parameters[i].offset + an_parameter_padded(&g->parameters[i]);
    for (size_t i = 0; i < g->parameter_count; i++) {
        an_parameter *p = &g->parameters[i];
        p->extras = d->extras && d->contributions[i] > 1 ? d->contributions[i] - 1 : 0;
        p->extra = end;
        if (p->extras > 0 && !p->is_shared)
            an_graph_mistake(g, AN_ERR_UNSUPPORTED, "the gradient of '%s' has %d contributions, but one node reads it",
                             p->name, d->contributions[i]);
        end += p->extras * an_parameter_padded(p);
    }
}

an_status an_pass_autodiff(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    differentiation d = {.g = g, .form = options->form, .f32_storage = options->f32_storage, .extras = options->extras};
    size_t results = g->result_count;
    if (!an_form_trains(options->form)) return AN_OK;

    AN_TRY(an_alloc(ctx, (void **)&d.diffs, results, sizeof *d.diffs));
    AN_TRY(an_alloc(ctx, (void **)&d.contributions, g->parameter_count, sizeof *d.contributions));
    mark_needs(g);
    g->added.phase = AN_PHASE_BACKWARD;
    an_node *last = g->last;
    const an_result *loss = an_graph_result(g, g->loss);
    d.diffs[loss->number] = an_scalar_shared(g, "loss_gradient", loss->dtype);
    for (an_node *node = last; node; node = node->previous) AN_TRY(differentiate(&d, node));
    fill_rest(&d);
    place_extras(&d);
    AN_CHECK(ctx, g->status == AN_OK, g->status, "%s", g->message);
    status = AN_OK;

fail:
    g->added.phase = AN_PHASE_FORWARD;
    g->added.origin = NULL;
    an_release(ctx, (void **)&d.diffs, results, sizeof *d.diffs);
    an_release(ctx, (void **)&d.contributions, g->parameter_count, sizeof *d.contributions);
    return status;
}

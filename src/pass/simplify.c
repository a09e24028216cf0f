/* simplify: takes out nodes that do nothing: a cast to the own type, a copy of what is dense, a reshape of a reshape.
 * Gradients through adapters that meet in an addition become one sum of products.
 *
 * Models come by them through layers that cannot know what is around them, and gradients by doing backwards what was
 * done forwards; so it runs after autodiff. Replaces the care of who writes a loop by hand to make no copy and no view
 * too many. What stands for a node lies in memory as its output did. It has the same bits, but for those sums, which
 * round once.
 */
#include "pass/pass.h"

static bool is_alike(const an_result *a, const an_result *b) {
    if (a->dtype != b->dtype || a->ndims != b->ndims) return false;
    for (int i = 0; i < a->ndims; i++)
        if (a->dims[i] != b->dims[i] || (a->dims[i] != 1 && a->strides[i] != b->strides[i])) return false;
    return true;
}

/* A copy may be there to let go of what it is a part of, or to be read after an input, parameter or state has changed;
 * it is needless only where it is as large as the root and both belong to the run. */
static bool may_share(const an_graph *g, const an_result *copy, const an_result *instead) {
    int64_t bytes, root_bytes;
    if (copy->node->op->flags & AN_OP_VIEW) return true;
    return instead->root->storage == AN_STORAGE_ARENA && an_result_maximum_bytes(g, instead, &bytes) &&
           an_result_maximum_bytes(g, instead->root, &root_bytes) && bytes == root_bytes;
}

/* What stands for a node; NULL: it stays. Nodes that the hook adds go in front of it and are of its origin and
 * phase. */
static an_result *find_instead(an_graph *g, an_node *node) {
    g->added.before = node;
    g->added.origin = node->origin ? node->origin : node;
    g->added.phase = node->phase;
    an_result *instead = an_graph_result(g, node->op->simplify(g, node));
    g->added.before = NULL;
    g->added.origin = NULL;
    g->added.phase = AN_PHASE_FORWARD;
    if (!instead || !is_alike(instead, &node->outputs[0]) || !may_share(g, &node->outputs[0], instead)) return NULL;
    return instead;
}

/* In order, so that what a node reads is as simple as it will be. Replaced nodes are left to prune. */
an_status an_pass_simplify(an_graph *g, const an_pass_options *options) {
    an_context *ctx = g->ctx;
    (void)options;
    for (an_node *node = g->first; node; node = node->next) {
        an_result *instead = node->op->simplify ? find_instead(g, node) : NULL;
        if (g->status != AN_OK) return AN_ERROR(ctx, g->status, "%s", g->message);
        if (!instead) continue;
        if (g->loss == an_node_output_value(g, node, 0)) g->loss = an_graph_value(g, instead);
        an_result_replace(&node->outputs[0], instead);
    }
    return an_graph_refresh_views(g);
}

/* fuse: one kernel where several would read and write the same values again. Replaces torch.compile's fusions.
 *
 * What can be fused is said by records: the hook of a node's op looks at the node's neighbours and puts a fused node in
 * their place. A fused kernel rounds wherever the graph had a value of low precision, so the bits are those of the
 * parts.
 */
#include "pass/pass.h"

an_status an_pass_fuse(an_graph *g, const an_pass_options *options) {
    an_context *ctx = g->ctx;
    if (options->unfused) return AN_OK;
    for (an_node *node = g->first; node; node = node->next) /* hooks remove nothing, so that `next` is good */
        if (node->op->fuse) node->op->fuse(g, node, options->recompute != AN_RECOMPUTE_BUDGET);
    if (g->status != AN_OK) return AN_ERROR(ctx, g->status, "%s", g->message);
    AN_TRY_RETURN(an_graph_refresh_views(g));
    return an_pass_prune(g, options);
}

#include "pass/insert.h"

#include "base/device.h"

an_status an_pass_insert(an_graph *g, const an_insertion *i, an_node **node) {
    an_context *ctx = g->ctx;
    const an_call call = {.ctx = ctx};
    g->added.before = i->before;
    g->added.origin = i->like && i->like->origin ? i->like->origin : i->like;
    g->added.phase = i->phase;
    an_graph_add_outputs(g, i->op, i->input_count, i->inputs, i->attributes, i->output_count);
    g->added.phase = AN_PHASE_FORWARD;
    g->added.origin = NULL;
    g->added.before = NULL;
    if (g->status != AN_OK) return AN_ERROR(ctx, g->status, "%s", g->message);
    an_node *added = i->before ? i->before->previous : g->last;
    if (i->path) added->path = i->path;
    if (node) *node = added;
    return an_device_kernel(ctx, i->op->name, &call, &added->kernel);
}

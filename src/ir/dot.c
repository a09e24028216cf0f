/* Graphs for Graphviz: a cluster for every block, a box for every node, shapes on the edges.
 *
 * A node is drawn by its op's flags, not by its kind. Nodes are written in their order, so a block may be opened more
 * than once; Graphviz takes clusters of one name for one cluster.
 */
#include "ir/dot.h"

#include <string.h>

#include "base/guard.h"

/* Text inside a quoted string. A backslash would begin one of Graphviz's escapes. */
static void quote(an_text *t, const char *string) {
    for (; *string; string++) {
        if (*string == '"' || *string == '\\') an_text_bytes(t, "\\", 1);
        an_text_bytes(t, (unsigned char)*string < ' ' ? "?" : string, 1);
    }
}

/* What is left of a path inside a block: "attn.c_attn" of "h.0.attn.c_attn" in "h.0". */
static const char *inside(const char *path, const an_block *block) {
    size_t length = strlen(block->path);
    if (length == 0 || strncmp(path, block->path, length) != 0) return path;
    return path[length] == '.' ? path + length + 1 : path + length;
}

static const char *name_of(const an_node *node) {
    const char **name = an_node_attribute(node, "name", AN_ATTRIBUTE_STRING);
    return name ? *name : NULL;
}

/* How a node looks: what differs from the boxes of ordinary ops. */
static const char *style_of(const an_graph *g, const an_node *node) {
    const unsigned flags = node->op->flags;
    const an_result *loss = an_graph_result(g, g->loss);
    if (loss && loss->node == node) return ", fillcolor=\"#f6c9c4\", color=\"#b5483a\", penwidth=1.6";
    if (flags & AN_OP_SOURCE) {
        switch (node->outputs[0].storage) {
        case AN_STORAGE_MASTER:
        case AN_STORAGE_LOW:
        case AN_STORAGE_PACKED:
            return ", shape=box, style=filled, fillcolor=\"#fbf0d2\", color=\"#c2a24a\", fontsize=8, height=0.2";
        case AN_STORAGE_INPUT: return ", shape=ellipse, fillcolor=\"#d5ecd8\", color=\"#4f8f5b\", style=filled";
        default: return ", shape=box, style=filled, fillcolor=\"#eeeeee\", color=\"#999999\", fontsize=8, height=0.2";
        }
    }
    if (flags & AN_OP_BINDS_GRADIENT)
        return ", style=filled, fillcolor=\"#f3dcea\", color=\"#a8568a\", fontsize=8, height=0.2";
    if (flags & AN_OP_SINK) return ", shape=ellipse, style=filled, fillcolor=\"#d5ecd8\", color=\"#4f8f5b\"";
    if (flags & AN_OP_VIEW)
        return ", style=\"rounded,dashed\", color=\"#999999\", fontcolor=\"#666666\", fontsize=9, height=0.2";
    if (node->phase == AN_PHASE_BACKWARD) return ", fillcolor=\"#f3dcea\", color=\"#a8568a\"";
    return "";
}

static void draw_node(const an_graph *g, const an_node *node, const an_block *block, an_text *t) {
    const char *name = name_of(node), *path = inside(node->path, block);
    an_text_add(t, "n%u [label=\"", node->number);
    if (node->op->flags & AN_OP_SOURCE) {
        quote(t, name ? inside(name, block) : node->op->name);
        an_text_add(t, "\\n");
        quote(t, AN_DESCRIBE(g, &node->outputs[0]));
    } else if (node->op->flags & AN_OP_SINK && name) {
        quote(t, name);
    } else {
        quote(t, node->op->name);
        if (*path && !(node->op->flags & AN_OP_VIEW)) {
            an_text_add(t, "\\n");
            quote(t, path);
        }
        if (node->kernel) an_text_add(t, "\\n[%s]", node->kernel->name);
    }
    an_text_add(t, "\"%s];\n", style_of(g, node));
}

/* Opens the clusters of a block, outermost first; returns how many. Blocks nest as deep as a path is long. */
static int open_clusters(const an_graph *g, int block, an_text *t) {
    int chain[AN_PATH_BYTES], depth = 0;
    for (int b = block; b > 0 && depth < AN_PATH_BYTES; b = g->blocks[b].parent)
        if (!g->blocks[b].is_scope) chain[depth++] = b;
    for (int i = depth - 1; i >= 0; i--) {
        an_text_add(t, "subgraph \"cluster_%d\" {\nlabel=\"", chain[i]);
        quote(t, g->blocks[chain[i]].path);
        an_text_add(t, "\";\n");
    }
    return depth;
}

static void draw_edges(const an_graph *g, const an_node *node, an_text *t) {
    for (int i = 0; i < node->input_count; i++) {
        const an_result *r = node->inputs[i].result;
        if (!r) continue;
        an_text_add(t, "n%u -> n%u", r->node->number, node->number);
        if (!(r->node->op->flags & AN_OP_SOURCE)) { /* a source shows its shape itself */
            an_text_add(t, " [label=\" ");
            if (r->output > 0) an_text_add(t, "%d: ", r->output);
            quote(t, AN_DESCRIBE(g, r));
            an_text_add(t, "\"]");
        }
        an_text_add(t, ";\n");
    }
}

void an_graph_draw(const an_graph *g, an_text *text) {
    an_text_add(text, "digraph \"");
    quote(text, g->name);
    an_text_add(
        text, "\" {\n"
              "graph [fontname=\"Helvetica\", fontsize=11, labeljust=l, style=\"rounded,filled\", color=\"#c9d3e3\", "
              "bgcolor=\"#ffffff\", fillcolor=\"#f6f8fb\", ranksep=0.3, nodesep=0.25];\n"
              "node [fontname=\"Helvetica\", fontsize=10, shape=box, style=\"rounded,filled\", fillcolor=\"#dfe8f5\", "
              "color=\"#5b7db1\", height=0.25, margin=\"0.09,0.04\"];\n"
              "edge [fontname=\"Helvetica\", fontsize=8, fontcolor=\"#666666\", color=\"#888888\", arrowsize=0.6];\n");
    for (const an_node *node = g->first; node && text->status == AN_OK;) {
        const int block = an_graph_block_of(g, node->block), depth = open_clusters(g, block, text);
        for (; node && an_graph_block_of(g, node->block) == block; node = node->next)
            draw_node(g, node, &g->blocks[block], text);
        for (int i = 0; i < depth; i++) an_text_add(text, "}\n");
    }
    for (const an_node *node = g->first; node && text->status == AN_OK; node = node->next) draw_edges(g, node, text);
    an_text_add(text, "}\n");
}

an_status an_graph_dot(const an_graph *graph, char **text) {
    AN_GUARD;
    AN_NEED(graph, text);
    an_status status;
    an_context *ctx = graph->ctx;
    an_text t;
    *text = NULL;
    an_text_init(&t, ctx);
    AN_CHECK(ctx, graph->status == AN_OK, graph->status, "%s", graph->message);
    an_graph_draw(graph, &t);
    AN_TRY(an_text_take(&t, text));
fail:
    an_text_destroy(&t);
    return status;
}

/* A plan works on a clone: handles, numbers and the order of uses stay as they were. */
#include <string.h>

#include "ir/graph.h"

static an_status clone_node(an_graph *c, const an_node *node, an_node **nodes, an_node **copied) {
    an_node *n = NULL;
    void *memory = NULL;
    AN_TRY_RETURN(an_arena_alloc(&c->arena, &memory, 1, sizeof *n));
    n = memory;
    *n = *node;
    AN_TRY_RETURN(an_arena_alloc(&c->arena, (void **)&n->inputs, (size_t)node->input_count, sizeof *n->inputs));
    AN_TRY_RETURN(an_arena_alloc(&c->arena, (void **)&n->outputs, (size_t)node->output_count, sizeof *n->outputs));
    AN_TRY_RETURN(an_arena_alloc(&c->arena, &n->attributes, node->op->attribute_bytes, 1));
    AN_TRY_RETURN(an_arena_string(&c->arena, &n->path, node->path, strlen(node->path)));
    if (node->op->attribute_bytes) memcpy(n->attributes, node->attributes, node->op->attribute_bytes);
    for (const an_attribute *a = node->op->attributes; a && a->name; a++) {
        const char **text = (const char **)((char *)n->attributes + a->offset);
        if (a->type == AN_ATTRIBUTE_STRING && *text)
            AN_TRY_RETURN(an_arena_string(&c->arena, text, *text, strlen(*text)));
    }
    for (int i = 0; i < n->output_count; i++) {
        an_result *r = &n->outputs[i];
        *r = node->outputs[i];
        r->node = n;
        r->first_use = r->last_use = NULL;
        r->root = node->outputs[i].root == &node->outputs[i] ? r : c->results[node->outputs[i].root->number];
        c->results[r->number] = r;
    }
    for (int i = 0; i < n->input_count; i++) n->inputs[i] = (an_use){.node = n, .slot = i};
    n->origin = node->origin ? nodes[node->origin->number] : NULL;
    n->previous = c->last;
    n->next = NULL;
    *(c->last ? &c->last->next : &c->first) = n;
    c->last = n;
    nodes[node->number] = n;
    *copied = n;
    return AN_OK;
}

/* Uses are linked result by result, in the order of the original, which need not be the order of nodes. */
static void clone_uses(an_graph *c, const an_graph *g, an_node **nodes) {
    for (size_t i = 0; i < g->result_count; i++) {
        if (!g->results[i]) continue;
        an_result *r = c->results[i];
        for (const an_use *u = g->results[i]->first_use; u; u = u->next) {
            an_use *use = &nodes[u->node->number]->inputs[u->slot];
            use->result = r;
            use->previous = r->last_use;
            *(r->last_use ? &r->last_use->next : &r->first_use) = use;
            r->last_use = use;
        }
    }
}

an_status an_graph_clone(an_graph **copy, const an_graph *g) {
    an_status status;
    an_context *ctx = g->ctx;
    an_graph *c = NULL;
    an_node **nodes = NULL;
    *copy = NULL;
    AN_TRY(an_graph_create(&c, ctx, g->name));
    c->serial = g->serial;
    AN_TRY(an_alloc(ctx, (void **)&nodes, g->next_node, sizeof *nodes));
    an_dimensions_destroy(&c->dimensions, ctx);
    AN_TRY(an_dimensions_clone(&c->dimensions, &g->dimensions, &c->arena));
    AN_TRY(an_grow(ctx, (void **)&c->results, &c->result_capacity, g->result_count, sizeof *c->results));
    AN_TRY(an_grow(ctx, (void **)&c->blocks, &c->block_capacity, g->block_count, sizeof *c->blocks));
    AN_TRY(an_grow(ctx, (void **)&c->parameters, &c->parameter_capacity, g->parameter_count, sizeof *c->parameters));
    for (size_t i = 0; i < g->block_count; i++) {
        c->blocks[i] = g->blocks[i];
        AN_TRY(an_arena_string(&c->arena, &c->blocks[i].name, g->blocks[i].name, strlen(g->blocks[i].name)));
        AN_TRY(an_arena_string(&c->arena, &c->blocks[i].path, g->blocks[i].path, strlen(g->blocks[i].path)));
    }
    c->block_count = g->block_count;
    c->result_count = g->result_count;
    for (const an_node *node = g->first; node; node = node->next) {
        an_node *n;
        AN_TRY(clone_node(c, node, nodes, &n));
    }
    clone_uses(c, g, nodes);
    for (size_t i = 0; i < g->parameter_count; i++) {
        c->parameters[i] = g->parameters[i];
        an_node *node = nodes[g->parameters[i].node->number];
        if (!node) { /* a pass has removed it, as nobody reads it */
            AN_TRY(clone_node(c, g->parameters[i].node, nodes, &node));
            an_graph_remove(c, node);
        }
        c->parameters[i].node = node;
        AN_TRY(
            an_arena_string(&c->arena, &c->parameters[i].name, g->parameters[i].name, strlen(g->parameters[i].name)));
    }
    c->parameter_count = g->parameter_count;
    c->min_elements = g->min_elements;
    AN_TRY(an_grow(ctx, (void **)&c->sources, &c->source_capacity, g->source_count, sizeof *c->sources));
    for (size_t i = 0; i < g->source_count; i++) c->sources[i] = nodes[g->sources[i]->number];
    c->source_count = g->source_count;
    c->node_count = g->node_count;
    c->next_node = g->next_node;
    memcpy(c->scalars, g->scalars, sizeof g->scalars);
    c->scalar_count = g->scalar_count;
    c->loss = g->loss;
    c->targets = g->targets;
    c->adapter = g->adapter;
    c->is_verified = g->is_verified;
    an_release(ctx, (void **)&nodes, g->next_node, sizeof *nodes);
    *copy = c;
    return AN_OK;
fail:
    an_release(ctx, (void **)&nodes, g->next_node, sizeof *nodes);
    an_graph_destroy(&c);
    return status;
}

/* Making graphs: create, add, replace, remove; handles. */
#include "ir/graph.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "ir/registry.h"

/* Serials tell graphs apart, so that a value of another graph is caught. Only their difference matters, so one
 * counter for the process is fine. */
static atomic_uint next_serial = 1;

enum { MOST_NODES = 1 << 28 };

an_status an_graph_create(an_graph **graph, an_context *ctx, const char *name) {
    AN_NEED_IN(ctx, ctx, graph);
    an_status status;
    an_graph *g = NULL;
    *graph = NULL;
    AN_TRY(an_alloc(ctx, (void **)&g, 1, sizeof *g));
    g->ctx = ctx;
    g->serial = atomic_fetch_add(&next_serial, 1) & 0x7fffffff; /* the sign bit stays free: AN_NONE is all ones */
    an_arena_init(&g->arena, ctx);
    AN_TRY(an_arena_string(&g->arena, &g->name, name ? name : "", strlen(name ? name : "")));
    AN_TRY(an_grow(ctx, (void **)&g->blocks, &g->block_capacity, 1, sizeof *g->blocks));
    g->blocks[0] = (an_block){.name = "", .path = "", .parent = -1};
    g->block_count = 1;
    *graph = g;
    return AN_OK;
fail:
    an_graph_destroy(&g);
    return status;
}

void an_graph_destroy(an_graph **graph) {
    an_graph *g = graph ? *graph : NULL;
    if (!g) return;
    an_context *ctx = g->ctx;
    an_release(ctx, (void **)&g->results, g->result_capacity, sizeof *g->results);
    an_release(ctx, (void **)&g->blocks, g->block_capacity, sizeof *g->blocks);
    an_release(ctx, (void **)&g->sources, g->source_capacity, sizeof *g->sources);
    an_release(ctx, (void **)&g->parameters, g->parameter_capacity, sizeof *g->parameters);
    an_dimensions_destroy(&g->dimensions, ctx);
    an_arena_destroy(&g->arena);
    an_release(ctx, (void **)graph, 1, sizeof *g);
}

an_context *an_graph_context(const an_graph *graph) {
    AN_NEED_OR(NULL, graph);
    return graph->ctx;
}

/* ---- handles ---- */

an_result *an_graph_result(const an_graph *g, an_value value) {
    size_t number = (size_t)(value & 0xffffffff);
    if (value >> 32 != g->serial || number == 0 || number > g->result_count) return NULL;
    return g->results[number - 1];
}

an_value an_graph_value(const an_graph *g, const an_result *result) {
    return result ? (an_value)g->serial << 32 | (result->number + 1) : AN_NONE;
}

an_value an_value_output(an_value value, int output) {
    return value == 0 || value == AN_NONE ? value : value + (an_value)output; /* outputs of a node are neighbours */
}

/* For the shape questions of model builders: a failed value answers 0 and leaves no second mistake. */
static an_result *asked(an_graph *g, an_value value, const char *what) {
    an_result *r = an_graph_result(g, value);
    if (!r && g->status == AN_OK)
        an_graph_mistake(g, AN_ERR_ARGUMENT, "%s was requested of a value that does not belong to graph '%s'", what,
                         g->name);
    return r;
}

int an_value_ndims(an_graph *graph, an_value value) {
    AN_NEED_OR(0, graph);
    an_result *r = asked(graph, value, "the number of dimensions");
    return r ? r->ndims : 0;
}

an_dim an_value_dim(an_graph *graph, an_value value, int dimension) {
    AN_NEED_OR(0, graph);
    an_result *r = asked(graph, value, "a dimension");
    if (!r) return 0;
    int d = dimension < 0 ? dimension + r->ndims : dimension;
    if (d >= 0 && d < r->ndims) return r->dims[d];
    an_graph_mistake(graph, AN_ERR_SHAPE, "dimension %d of %s does not exist", dimension, AN_DESCRIBE(graph, r));
    return 0;
}

an_dtype an_value_dtype(an_graph *graph, an_value value) {
    AN_NEED_OR(AN_DTYPE_NONE, graph);
    an_result *r = asked(graph, value, "the type");
    return r ? r->dtype : AN_DTYPE_NONE;
}

/* ---- adding nodes ---- */

void an_result_set(an_result *result, an_dtype dtype, int ndims, const an_dim *dims) {
    result->dtype = dtype;
    result->ndims = ndims;
    for (int i = 0; i < ndims; i++) result->dims[i] = dims[i];
}

void an_result_like(an_result *result, const an_result *other) {
    an_result_set(result, other->dtype, other->ndims, other->dims);
}

static void use_append(an_use *use, an_result *result) {
    use->result = result;
    use->next = NULL;
    use->previous = NULL;
    if (!result) return;
    use->previous = result->last_use;
    if (result->last_use)
        result->last_use->next = use;
    else
        result->first_use = use;
    result->last_use = use;
}

static void use_remove(an_use *use) {
    an_result *r = use->result;
    if (!r) return;
    *(use->previous ? &use->previous->next : &r->first_use) = use->next;
    *(use->next ? &use->next->previous : &r->last_use) = use->previous;
    use->result = NULL;
}

void an_node_set_input(an_node *node, int slot, an_result *result) {
    use_remove(&node->inputs[slot]);
    use_append(&node->inputs[slot], result);
}

void an_result_replace(an_result *from, an_result *to) {
    while (from != to && from->first_use) {
        an_use *use = from->first_use;
        use_remove(use);
        use_append(use, to);
    }
}

an_status an_graph_refresh_views(an_graph *g) {
    for (an_node *n = g->first; n; n = n->next) {
        if (!(n->op->flags & AN_OP_VIEW)) continue;
        for (int i = 0; i < n->output_count; i++) {
            n->outputs[i].root = n->inputs[0].result->root;
            AN_TRY_RETURN(n->op->view(g, n, i));
        }
    }
    return AN_OK;
}

static void link_node(an_graph *g, an_node *node, an_node *before) {
    node->next = before;
    node->previous = before ? before->previous : g->last;
    *(node->previous ? &node->previous->next : &g->first) = node;
    *(before ? &before->previous : &g->last) = node;
}

static void unlink_node(an_graph *g, an_node *node) {
    *(node->previous ? &node->previous->next : &g->first) = node->next;
    *(node->next ? &node->next->previous : &g->last) = node->previous;
    node->previous = node->next = NULL;
}

void an_graph_remove(an_graph *g, an_node *node) {
    for (int i = 0; i < node->input_count; i++) use_remove(&node->inputs[i]);
    for (int i = 0; i < node->output_count; i++) g->results[node->outputs[i].number] = NULL;
    unlink_node(g, node);
    g->node_count--;
}

void an_graph_move_last(an_graph *g, an_node *node) {
    unlink_node(g, node);
    link_node(g, node, NULL);
}

/* Row-major strides in the physical order of the result. */
static an_status dense_strides(an_graph *g, an_result *r) {
    an_dim stride = 1;
    for (int i = r->ndims - 1; i >= 0; i--) {
        int d = r->order[i];
        r->strides[d] = stride;
        AN_TRY_RETURN(an_dimensions_multiply(&g->dimensions, &g->arena, stride, r->dims[d], &stride));
    }
    return AN_OK;
}

static an_status expect_dimensions(an_graph *g, const an_op *op, const void *attributes) {
    for (const an_attribute *a = op->attributes; a && a->name; a++) {
        const void *at = (const char *)attributes + a->offset;
        if (a->type == AN_ATTRIBUTE_DIM) AN_TRY_RETURN(an_graph_expect_dimension(g, *(const an_dim *)at));
        const an_dim_list *list = a->type == AN_ATTRIBUTE_DIMS ? at : NULL;
        for (int i = 0; list && i < list->count && i < AN_MAX_DIMS; i++)
            AN_TRY_RETURN(an_graph_expect_dimension(g, list->values[i]));
    }
    return AN_OK;
}

/* Copies attributes, and the strings in them, into the graph. */
static an_status copy_attributes(an_graph *g, an_node *node, const void *attributes) {
    const an_op *op = node->op;
    AN_TRY_RETURN(an_arena_alloc(&g->arena, &node->attributes, op->attribute_bytes, 1));
    if (!attributes) return AN_OK;
    AN_TRY_RETURN(expect_dimensions(g, op, attributes));
    memcpy(node->attributes, attributes, op->attribute_bytes);
    for (const an_attribute *a = op->attributes; a && a->name; a++) {
        if (a->type != AN_ATTRIBUTE_STRING) continue;
        const char **text = (const char **)((char *)node->attributes + a->offset);
        if (*text) AN_TRY_RETURN(an_arena_string(&g->arena, text, *text, strlen(*text)));
    }
    return AN_OK;
}

static an_status node_create(an_graph *g, an_node **created, const an_op *op, int input_count, int output_count,
                             const void *attributes) {
    an_context *ctx = g->ctx;
    an_node *node = NULL;
    if (g->next_node >= MOST_NODES)
        return AN_ERROR(ctx, AN_ERR_OVERFLOW, "a graph may have at most %d nodes", MOST_NODES);
    AN_TRY_RETURN(an_arena_alloc(&g->arena, (void **)&node, 1, sizeof *node));
    AN_TRY_RETURN(an_arena_alloc(&g->arena, (void **)&node->inputs, (size_t)input_count, sizeof *node->inputs));
    AN_TRY_RETURN(an_arena_alloc(&g->arena, (void **)&node->outputs, (size_t)output_count, sizeof *node->outputs));
    AN_TRY_RETURN(an_grow(ctx, (void **)&g->results, &g->result_capacity, g->result_count + (size_t)output_count,
                          sizeof *g->results));
    node->op = op;
    node->input_count = input_count;
    node->output_count = output_count;
    AN_TRY_RETURN(copy_attributes(g, node, attributes));
    for (int i = 0; i < output_count; i++) {
        an_result *r = &node->outputs[i];
        r->node = node;
        r->output = i;
        r->root = r;
        r->place = -1;
        r->storage = op->storage;
        for (int d = 0; d < AN_MAX_DIMS; d++) r->order[d] = (uint8_t)d;
    }
    *created = node;
    return AN_OK;
}

an_status an_node_infer(an_graph *g, an_node *node) {
    const an_op *op = node->op;
    for (int i = 0; i < node->input_count; i++) {
        const an_result *r = node->inputs[i].result;
        if (r && r->dtype == AN_DTYPE_Q8_0 && !(op->blocks_in >> i & 1))
            return an_node_mistake(g, node, AN_ERR_DTYPE,
                                   "input %d is %s; only products, embeddings and casts read q8_0 (use an_cast)", i,
                                   AN_DESCRIBE(g, r));
    }
    AN_TRY_RETURN(op->infer(g, node));
    for (int i = 0; i < node->output_count; i++) {
        an_result *r = &node->outputs[i];
        for (int d = 0; d < r->ndims; d++)
            if (r->dims[d] == 0)
                return an_node_mistake(g, node, AN_ERR_SHAPE, "dimension %d of %s is 0; sizes are at least 1", d,
                                       AN_DESCRIBE(g, r));
        if (op->flags & AN_OP_VIEW) {
            r->root = node->inputs[0].result->root;
            AN_TRY_RETURN(op->view(g, node, i));
        } else {
            AN_TRY_RETURN(dense_strides(g, r));
        }
    }
    return AN_OK;
}

/* Finds the results behind the handles; an absent input is NULL. */
static an_status find_inputs(an_graph *g, const an_op *op, int input_count, const an_value *inputs, an_result **found) {
    if (input_count < op->inputs_min || input_count > op->inputs_max)
        return an_graph_mistake(g, AN_ERR_ARGUMENT, "%s takes %d to %d inputs, not %d", op->name, op->inputs_min,
                                op->inputs_max, input_count);
    for (int i = 0; i < input_count; i++) {
        found[i] = inputs[i] == AN_NONE ? NULL : an_graph_result(g, inputs[i]);
        if (found[i] || inputs[i] == AN_NONE) continue;
        if (inputs[i] == 0)
            return an_graph_mistake(g, AN_ERR_ARGUMENT, "input %d of %s is 0, the value of a failed call", i, op->name);
        return an_graph_mistake(
            g, AN_ERR_ARGUMENT,
            "input %d of %s is not a value of graph '%s': values of another graph cannot be used here", i, op->name,
            g->name);
    }
    return AN_OK;
}

an_value an_graph_add_outputs(an_graph *g, const an_op *op, int input_count, const an_value *inputs,
                              const void *attributes, int output_count) {
    an_status status;
    an_context *ctx = g->ctx;
    an_result *found[AN_MAX_INPUTS] = {0};
    an_node *node = NULL;
    an_value value = 0;

    an_builder_begin(g);
    if (g->status != AN_OK) return an_builder_end(g, 0);
    AN_TRY(find_inputs(g, op, input_count, inputs, found));
    AN_CHECK(ctx, output_count >= 0 && output_count <= AN_MAX_OUTPUTS, AN_ERR_ARGUMENT, "%s cannot have %d outputs",
             op->name, output_count);
    for (int i = 0; i < input_count; i++) { /* inputs that the record wants dense are copied where they are not */
        if (!(op->dense >> i & 1) || !found[i] || an_result_is_dense(g, found[i])) continue;
        an_value strided = an_graph_value(g, found[i]);
        found[i] =
            an_graph_result(g, an_graph_add(g, an_op_find(ctx, "contiguous", strlen("contiguous")), 1, &strided, NULL));
        AN_CHECK(ctx, found[i], g->status, "%s", g->message);
    }
    AN_TRY(node_create(g, &node, op, input_count, output_count, attributes));
    if (g->added.origin) { /* gradient nodes and copies take their origin's block, path and place */
        node->origin = g->added.origin;
        node->block = g->added.origin->block;
        node->path = g->added.origin->path;
        node->place = g->added.origin->place;
    } else {
        node->block = g->block;
        node->path = g->blocks[g->block].path;
        node->place = g->calls.place;
    }
    node->phase = g->added.phase;
    for (int i = 0; i < input_count; i++) { /* linked only once the node is known to be right */
        node->inputs[i].result = found[i];
        node->inputs[i].node = node;
        node->inputs[i].slot = i;
    }
    AN_TRY(an_node_infer(g, node));
    for (int i = 0; i < input_count; i++) use_append(&node->inputs[i], found[i]);
    for (int i = 0; i < output_count; i++) {
        node->outputs[i].number = (uint32_t)g->result_count;
        g->results[g->result_count++] = &node->outputs[i];
    }
    node->number = g->next_node++;
    link_node(g, node, g->added.before);
    g->node_count++;
    g->is_verified = false;
    if (op->added) AN_TRY(op->added(g, node));
    if (output_count > 0) value = an_graph_value(g, &node->outputs[0]);
    return an_builder_end(g, value);

fail: /* the first mistake sticks; the node stays in the arena, unlinked */
    if (g->status == AN_OK) {
        g->status = status;
        char prefix[AN_MESSAGE_BYTES / 2];
        an_place_describe(&g->calls.place, g->path, op->name, prefix, sizeof prefix);
        snprintf(g->message, sizeof g->message, "%s%.*s", prefix, AN_MESSAGE_BYTES / 2, ctx->error.message);
    }
    return an_builder_end(g, 0);
}

an_value an_graph_add(an_graph *g, const an_op *op, int input_count, const an_value *inputs, const void *attributes) {
    return an_graph_add_outputs(g, op, input_count, inputs, attributes, op->outputs);
}

an_status an_graph_register_source(an_graph *g, an_node *node) {
    an_context *ctx = g->ctx;
    AN_TRY_RETURN(an_grow(ctx, (void **)&g->sources, &g->source_capacity, g->source_count + 1, sizeof *g->sources));
    g->sources[g->source_count++] = node;
    return AN_OK;
}

an_status an_graph_register_parameter(an_graph *g, an_node *node, const char *name) {
    an_context *ctx = g->ctx;
    AN_TRY_RETURN(
        an_grow(ctx, (void **)&g->parameters, &g->parameter_capacity, g->parameter_count + 1, sizeof *g->parameters));
    g->parameters[g->parameter_count++] =
        (an_parameter){.name = name, .node = node, .depth = g->blocks[an_graph_block_of(g, node->block)].depth};
    return AN_OK;
}

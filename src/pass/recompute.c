/* recompute: drops values that only backward still needs and makes them again when it does. Replaces gradient
 * checkpointing, and the care that it takes to wrap the right parts of a model and to draw the same random numbers
 * twice.
 *
 * A dropped value is made by a copy of its node in the backward part: the same op, attributes (a random site too),
 * kernel and block. Copies read what was kept, or other copies; views are made again over them. They are made where
 * backward asks first, so nothing is made in vain, and the order pass puts them there. A copy computes what its
 * original did from the same bits, so the bits of a run do not change.
 *
 * It runs after select, so that a copy has its original's kernel.
 */
#include "pass/recompute.h"

#include "base/integer.h"

enum { KEPT = -1 };

typedef struct {
    an_node *node;
    int layer;
} request;

typedef struct {
    an_recomputation c;
    int layers;
    an_result **copies; /* [layer][number of a result] */
    request *stack;
    size_t stack_capacity;
    int64_t count; /* of instructions that were copied */
} copier;

/* In full recompute a value can be made again more than once, but only once in each layer. Layer d has the ranges of
 * units that arise from halving the line of units d times. The right half of a range is handled first: what it reads of
 * the left half is made, without what the left half's own gradients need; then the left half is handled in the same
 * way, from the same beginning. A range of one unit makes what its gradients need. Ranges at the end of the line are
 * spared all that: backward begins there, so they find what forward left behind.
 *
 * `from` is the unit of a value, `to` that of its reader: the last range that has both decides. */
static int halve(const an_recomputation *c, int64_t from, int64_t to) {
    const int64_t units = c->halved, run = to * c->runs / units;
    int64_t begin = an_divide_up(run * units, c->runs), end = an_divide_up((run + 1) * units, c->runs);
    int layer = 0;
    if (from < begin) return KEPT;
    for (; end - begin > 1; layer++) {
        int64_t middle = begin + (end - begin) / 2;
        if (from < middle && to >= middle) break;
        *(to < middle ? &end : &begin) = middle;
    }
    return end == units ? KEPT : layer;
}

static int most_layers(int units) {
    int layers = 1;
    for (; units > 1; units = (units + 1) / 2) layers++;
    return layers;
}

/* In which layer the copy of a value lies that a reader of this unit gets; KEPT: the value itself. */
static int layer_of(const copier *p, const an_result *r, int64_t unit) {
    if (r->node->phase != AN_PHASE_FORWARD || !p->c.dropped[r->root->number]) return KEPT;
    return p->c.halved > 0 ? halve(&p->c, r->root->node->mark, unit) : 0;
}

static an_result **copy_of(const copier *p, const an_result *r, int layer) {
    return &p->copies[(size_t)layer * p->c.results + r->number];
}

/* Copies a node whose inputs are there. */
static an_status copy_node(copier *p, an_node *node, int layer, int64_t unit) {
    an_graph *g = p->c.g;
    an_value inputs[AN_MAX_INPUTS] = {0};
    for (int i = 0; i < node->input_count; i++) {
        an_result *r = node->inputs[i].result;
        int of = r ? layer_of(p, r, unit) : KEPT;
        inputs[i] = an_graph_value(g, of == KEPT ? r : *copy_of(p, r, of));
    }
    g->added.origin = node;
    const an_result *first = an_graph_result(
        g, an_graph_add_outputs(g, node->op, node->input_count, inputs, node->attributes, node->output_count));
    g->added.origin = NULL;
    if (!first) return AN_ERROR(g->ctx, g->status, "%s", g->message);
    an_node *copy = first->node;
    copy->is_copy = true;
    copy->kernel = node->kernel;
    copy->scratch_bytes = node->scratch_bytes;
    for (int i = 0; i < node->output_count; i++) {
        copy->outputs[i].dtype = node->outputs[i].dtype; /* autocast may have chosen another one than is inferred */
        *copy_of(p, &node->outputs[i], layer) = &copy->outputs[i];
    }
    p->count += an_node_runs(copy);
    return AN_OK;
}

static an_status push(copier *p, size_t *depth, an_node *node, int layer) {
    an_context *ctx = p->c.g->ctx;
    AN_TRY_RETURN(an_grow(ctx, (void **)&p->stack, &p->stack_capacity, *depth + 1, sizeof *p->stack));
    p->stack[(*depth)++] = (request){node, layer};
    return AN_OK;
}

/* Makes the copy of a value in a layer, and before it what that reads, where it is not there yet. */
static an_status make(copier *p, an_node *wanted, int wanted_layer, int64_t unit) {
    size_t depth = 0;
    AN_TRY_RETURN(push(p, &depth, wanted, wanted_layer));
    while (depth > 0) {
        an_node *node = p->stack[depth - 1].node;
        int layer = p->stack[depth - 1].layer, i = 0;
        for (; i < node->input_count; i++) {
            const an_result *r = node->inputs[i].result;
            int of = r ? layer_of(p, r, unit) : KEPT;
            if (of == KEPT || *copy_of(p, r, of)) continue;
            AN_TRY_RETURN(push(p, &depth, r->node, of));
            break;
        }
        if (i < node->input_count) continue;
        AN_TRY_RETURN(copy_node(p, node, layer, unit));
        depth--;
    }
    return AN_OK;
}

/* Lets a backward node read copies, which go in front of it. */
static an_status serve(copier *p, an_node *reader) {
    an_graph *g = p->c.g;
    g->added.before = reader;
    for (int i = 0; i < reader->input_count; i++) {
        an_result *r = reader->inputs[i].result;
        int layer = r ? layer_of(p, r, reader->mark) : KEPT;
        if (layer == KEPT) continue;
        an_result **copy = copy_of(p, r, layer);
        if (!*copy) AN_TRY_RETURN(make(p, r->node, layer, reader->mark));
        an_node_set_input(reader, i, *copy);
    }
    return AN_OK;
}

static an_status serve_all(copier *p) {
    an_graph *g = p->c.g;
    for (an_node *n = g->first; n; n = n->next)
        if (n->phase == AN_PHASE_BACKWARD && !n->is_copy) AN_TRY_RETURN(serve(p, n));
    return an_graph_refresh_views(g);
}

an_status an_pass_recompute(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    copier p = {.c = {.g = g, .results = g->result_count}, .layers = 1};
    if (!an_form_trains(options->form) || options->recompute == AN_RECOMPUTE_NONE) return AN_OK;
    AN_TRY(an_arena_alloc(&g->arena, (void **)&g->recompute, 1, sizeof *g->recompute));
    AN_TRY(an_alloc(ctx, (void **)&p.c.dropped, p.c.results, sizeof *p.c.dropped));
    const bool chooses = options->recompute == AN_RECOMPUTE_BUDGET;
    if (chooses) AN_TRY(an_pass_order(g, options)); /* what lives when matters */
    AN_TRY(an_recompute_find_units(&p.c, options));
    if (chooses) AN_TRY(an_recompute_choose(&p.c, options->budget, options->budget_level, &g->recompute->levels));
    if (p.c.halved > 0) p.layers = most_layers(p.c.halved);
    AN_TRY(an_alloc(ctx, (void **)&p.copies, (size_t)p.layers * p.c.results, sizeof *p.copies));
    g->added.phase = AN_PHASE_BACKWARD;
    AN_TRY(serve_all(&p));
    AN_TRY(an_pass_prune(g, options)); /* a view that only backward read is there twice */
    g->recompute->copies = p.count;
    g->recompute->blocks = p.c.blocks;
    status = AN_OK;
fail:
    g->added.phase = AN_PHASE_FORWARD;
    g->added.before = NULL;
    an_release(ctx, (void **)&p.copies, (size_t)p.layers * p.c.results, sizeof *p.copies);
    an_release(ctx, (void **)&p.stack, p.stack_capacity, sizeof *p.stack);
    an_release(ctx, (void **)&p.c.dropped, p.c.results, sizeof *p.c.dropped);
    return status;
}

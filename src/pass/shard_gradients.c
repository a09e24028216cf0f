/* Gradients in pieces: a unit's gradients are collected in a root of the arena, laid out as on the grid, and leave from
 * there when the last one is complete.
 *
 * The root begins where the first of them is made, so that the memory pass can place contributions straight in it. At
 * most one unit is on its way: the one before it is waited for first, and its memory is then free. There is no flat
 * buffer, and so only the form FIRST. */
#include <stdlib.h>

#include "ops/sink.h"
#include "pass/insert.h"
#include "pass/memory.h"
#include "pass/shard.h"

typedef struct {
    int unit;
    int64_t begins, ends;  /* positions of the next two; INT64_MAX: there are none */
    an_node *first, *last; /* where the root begins, and the last gradient */
    an_node *root;
} collection;

typedef struct {
    const an_sharder *s;
    collection *units;
    bool *written; /* by parameter: its first contribution overwrites what is there */
} collector;

static int unit_of(const an_sharder *s, const an_node *grad) {
    return an_units_at(s->units, s->unit_count, an_gradient_offset(s->g, grad));
}

/* Zeros are no work of a program: the root has them from the beginning. */
static void find_gradients(const collector *c) {
    int64_t position = 0;
    for (an_node *n = c->s->g->first, *next; n; n = next) {
        next = n->next;
        n->mark = position++;
        if (!(n->op->flags & AN_OP_BINDS_GRADIENT)) continue;
        const bool add = *(const bool *)an_node_attribute(n, "add", AN_ATTRIBUTE_BOOL);
        const int64_t parameter = an_gradient_parameter(n);
        if (!add && an_gradient_is_zeros(n)) {
            an_graph_remove(c->s->g, n);
            continue;
        }
        collection *unit = &c->units[unit_of(c->s, n)];
        an_node *begin = an_gradient_fits(c->s->g, n) ? an_node_input(n, 0)->node : n;
        if (begin->mark < unit->begins) {
            unit->begins = begin->mark;
            unit->first = begin;
        }
        unit->last = n;
        unit->ends = n->mark;
        c->written[parameter] = c->written[parameter] || !add;
    }
}

static int by_end(const void *a, const void *b) {
    const collection *x = a, *y = b;
    if (x->ends != y->ends) return x->ends < y->ends ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* What of a region no gradient is written to: its padding, or all of it. `begin`: where it lies in the root of its
 * unit. */
static void add_zeros(an_collect_attributes *a, an_element_range *zeros, const an_parameter *p, int64_t begin,
                      bool is_written) {
    const an_element_range rest = {is_written ? begin + p->elements : begin, begin + an_parameter_padded(p)};
    a->dtype = p->node->outputs[0].dtype;
    if (rest.begin < rest.end) zeros[a->zero_count++] = rest;
}

/* In ascending order. A unit has parameters, or it is one extra region. */
static an_status find_zeros(const collector *c, int unit, an_collect_attributes *a) {
    an_graph *g = c->s->g;
    an_element_range *zeros = NULL;
    const int64_t first = c->s->units[unit].begin;
    size_t count = 1;
    for (size_t i = 0; i < g->parameter_count; i++) count += c->s->unit_of[i] == unit;
    AN_TRY_RETURN(an_arena_alloc(&g->arena, (void **)&zeros, count, sizeof *zeros));
    a->zeros = zeros;
    for (size_t i = 0; i < g->parameter_count; i++) {
        const an_parameter *p = &g->parameters[i];
        const int64_t in_extras = first - p->extra;
        if (c->s->unit_of[i] == unit) add_zeros(a, zeros, p, p->offset - first, c->written[i]);
        if (in_extras >= 0 && in_extras < p->extras * an_parameter_padded(p)) add_zeros(a, zeros, p, 0, true);
    }
    return AN_OK;
}

static an_status add_root(const collector *c, collection *unit) {
    const an_unit *range = &c->s->units[unit->unit];
    an_collect_attributes a = {.unit = unit->unit, .elements = range->end - range->begin};
    AN_TRY_RETURN(find_zeros(c, unit->unit, &a));
    return an_pass_insert(c->s->g,
                          &(an_insertion){.op = &an_op_collect_gradients,
                                          .output_count = 1,
                                          .attributes = &a,
                                          .before = unit->first,
                                          .path = c->s->names[unit->unit],
                                          .phase = AN_PHASE_BACKWARD},
                          &unit->root);
}

/* Puts unit_grad in the place of a grad. */
static an_status replace_grad(const collector *c, an_node *const *roots, an_node *grad) {
    an_graph *g = c->s->g;
    const an_grad_attributes *a = grad->attributes;
    const int unit = unit_of(c->s, grad);
    const an_value inputs[] = {an_node_output_value(g, roots[unit], 0), an_node_input_value(g, grad, 0)};
    const an_unit_grad_attributes own = {.grad = *a, .offset = an_gradient_offset(g, grad) - c->s->units[unit].begin};
    AN_TRY_RETURN(an_pass_insert(g,
                                 &(an_insertion){.op = &an_op_unit_grad,
                                                 .inputs = inputs,
                                                 .input_count = 2,
                                                 .output_count = 1,
                                                 .attributes = &own,
                                                 .before = grad,
                                                 .like = grad,
                                                 .phase = AN_PHASE_BACKWARD},
                                 NULL));
    an_graph_remove(g, grad);
    return AN_OK;
}

static an_status add_sink(const collector *c, const an_op *op, const collection *unit, an_node *before) {
    const an_value root = an_node_output_value(c->s->g, unit->root, 0);
    return an_pass_insert(c->s->g,
                          &(an_insertion){.op = op,
                                          .inputs = &root,
                                          .input_count = 1,
                                          .attributes = &(an_exchange_attributes){.unit = unit->unit},
                                          .before = before,
                                          .path = c->s->names[unit->unit],
                                          .phase = AN_PHASE_BACKWARD},
                          NULL);
}

/* `units` are in the order in which they are complete. */
static an_status add_nodes(const collector *c, an_node **roots) {
    const int count = c->s->unit_count;
    for (int i = 0; i < count; i++) {
        AN_TRY_RETURN(add_root(c, &c->units[i]));
        roots[c->units[i].unit] = c->units[i].root;
    }
    for (int i = 0; i < count; i++) {
        an_node *after = c->units[i].last ? c->units[i].last->next : NULL;
        if (i > 0) AN_TRY_RETURN(add_sink(c, &an_op_scattered_gradients, &c->units[i - 1], after));
        AN_TRY_RETURN(add_sink(c, &an_op_scatter_gradients, &c->units[i], after));
    }
    if (count > 0) AN_TRY_RETURN(add_sink(c, &an_op_scattered_gradients, &c->units[count - 1], NULL));
    for (an_node *n = c->s->g->first, *next; n; n = next) {
        next = n->next;
        if (n->op == &an_op_grad) AN_TRY_RETURN(replace_grad(c, roots, n));
    }
    return AN_OK;
}

an_status an_shard_gradients(const an_sharder *s) {
    an_status status;
    an_graph *g = s->g;
    an_context *ctx = g->ctx;
    const size_t units = (size_t)s->unit_count;
    collector c = {.s = s};
    an_node **roots = NULL;
    AN_TRY(an_alloc(ctx, (void **)&c.units, units, sizeof *c.units));
    AN_TRY(an_alloc(ctx, (void **)&c.written, g->parameter_count, sizeof *c.written));
    AN_TRY(an_alloc(ctx, (void **)&roots, units, sizeof *roots));
    for (int i = 0; i < s->unit_count; i++)
        c.units[i] = (collection){.unit = i, .begins = INT64_MAX, .ends = INT64_MAX};
    find_gradients(&c);
    if (units > 0) qsort(c.units, units, sizeof *c.units, by_end);
    AN_TRY(add_nodes(&c, roots));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&roots, units, sizeof *roots);
    an_release(ctx, (void **)&c.written, g->parameter_count, sizeof *c.written);
    an_release(ctx, (void **)&c.units, units, sizeof *c.units);
    return status;
}

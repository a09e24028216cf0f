/* memory: gives every root an offset in the arena. Replaces the caching allocator.
 *
 * The step is played through an allocator of offsets in the order in which it will run. A contribution that only an
 * overwriting gradient reads is placed straight in the gradient buffer, or in the root of its unit. Ops may write in place where their record says so
 * and nobody else reads the input; since that can also tear holes, the smaller of the plans with and without is kept.
 */
#include "pass/memory.h"

#include "pass/offsets.h"
#include "pass/pass.h"

/* A unit is what shares one block of the arena: a root, and the roots that are written over it in place. */
typedef struct {
    int64_t begin, end, bytes;
    size_t in_place_of; /* unit that this one continues; NONE: none */
    an_result *root;    /* NULL: scratch of `node` */
    an_node *node;
    an_offset_block *block;
    size_t next_ending; /* next unit that ends at the same instruction */
} unit;

#define NONE SIZE_MAX
#define MOST_BYTES (INT64_MAX / 16) /* of the arena: a plan adds some such sums up */

typedef struct {
    an_graph *g;
    unit *units;
    size_t unit_count, unit_capacity;
    size_t *of_result; /* unit of a result number */
    size_t *ending;    /* by instruction: first unit that ends there */
    int64_t instructions;
    int64_t bytes; /* of all units */
} memory;

static an_result *contribution_of(const an_node *grad) {
    return grad->inputs[grad->input_count - 1].result;
}

bool an_gradient_fits(an_graph *g, const an_node *grad) {
    const an_result *c = contribution_of(grad), *gradient = &grad->outputs[0];
    const bool *add = an_node_attribute(grad, "add", AN_ATTRIBUTE_BOOL);
    bool only_reader = c->first_use == c->last_use;
    if (*add || !only_reader || c->root != c || c->storage != AN_STORAGE_ARENA || c->node->op->flags & AN_OP_SOURCE)
        return false;
    return c->dtype == gradient->dtype && an_result_is_dense(g, c);
}

static void bind_gradients(an_graph *g) {
    for (an_node *n = g->first; n; n = n->next) {
        if (!(n->op->flags & AN_OP_BINDS_GRADIENT)) continue;
        an_result *gradient = &n->outputs[0];
        n->elided = an_gradient_fits(g, n);
        if (gradient->root != gradient) continue;
        const int64_t *parameter = an_node_attribute(n, "parameter", AN_ATTRIBUTE_INT);
        gradient->place = g->parameters[*parameter].offset * (int64_t)an_dtype_size(gradient->dtype);
        if (!n->elided) continue;
        contribution_of(n)->storage = AN_STORAGE_GRADIENT;
        contribution_of(n)->place = gradient->place;
    }
}

/* The gradient in whose place a contribution is made, if that is a part of a root of the arena; NULL: the contribution has its own. */
static const an_result *made_in(const an_result *r) {
    const an_node *reader = r->first_use ? r->first_use->node : NULL;
    if (!reader || !reader->elided || !(reader->op->flags & AN_OP_VIEW) || contribution_of(reader) != r) return NULL;
    return &reader->outputs[0];
}

/* Once roots have their places. */
static void place_contributions(const an_graph *g) {
    for (const an_node *n = g->first; n; n = n->next)
        for (int i = 0; i < n->output_count; i++) {
            const an_result *gradient = made_in(&n->outputs[i]);
            if (gradient)
                n->outputs[i].place =
                    gradient->root->place + gradient->offset * (int64_t)an_dtype_size(gradient->dtype);
        }
}

static an_status add_unit(memory *m, unit u) {
    an_context *ctx = m->g->ctx;
    if (!an_add_i64(m->bytes, u.bytes, &m->bytes) || m->bytes > MOST_BYTES)
        return an_node_mistake(m->g, u.node, AN_ERR_OVERFLOW,
                               "the size of all values in bytes does not fit in 64 bits");
    AN_TRY_RETURN(an_grow(ctx, (void **)&m->units, &m->unit_capacity, m->unit_count + 1, sizeof *m->units));
    m->units[m->unit_count++] = u;
    return AN_OK;
}

/* Numbers instructions and finds how long every root of the arena lives. */
static an_status find_lives(memory *m) {
    an_graph *g = m->g;
    an_context *ctx = g->ctx;
    for (size_t i = 0; i < g->result_count; i++) m->of_result[i] = NONE;
    for (an_node *n = g->first; n; n = n->next) {
        bool keeps = (n->op->flags & AN_OP_KEEPS_INPUTS) != 0;
        if (n->op->flags & AN_OP_VIEW && !an_node_runs(n)) continue;
        for (int i = 0; i < n->input_count; i++) {
            const an_result *r = n->inputs[i].result;
            size_t u = r ? m->of_result[r->root->number] : NONE;
            if (u == NONE || m->units[u].end == INT64_MAX || !(keeps || an_node_runs(n))) continue;
            m->units[u].end = keeps ? INT64_MAX : m->instructions;
        }
        if (!an_node_runs(n)) continue;
        for (int i = 0; i < n->output_count; i++) {
            an_result *r = &n->outputs[i];
            if (r->root != r || r->storage != AN_STORAGE_ARENA) continue;
            if (!an_result_maximum_bytes(g, r, &r->bytes) || r->bytes > INT64_MAX / 4)
                return an_node_mistake(g, n, AN_ERR_OVERFLOW, "the size of %s in bytes does not fit in 64 bits",
                                       AN_DESCRIBE(g, r));
            if (made_in(r)) {
                m->of_result[r->number] = m->of_result[made_in(r)->root->number];
                continue;
            }
            m->of_result[r->number] = m->unit_count;
            AN_TRY_RETURN(add_unit(m, (unit){.begin = m->instructions,
                                             .end = m->instructions,
                                             .bytes = (int64_t)an_round_up((size_t)r->bytes, AN_ALIGNMENT),
                                             .in_place_of = NONE,
                                             .root = r,
                                             .node = n}));
        }
        if (n->scratch_bytes > 0)
            AN_TRY_RETURN(add_unit(m, (unit){.begin = m->instructions,
                                             .end = m->instructions,
                                             .bytes = (int64_t)an_round_up((size_t)n->scratch_bytes, AN_ALIGNMENT),
                                             .in_place_of = NONE,
                                             .node = n}));
        m->instructions++;
    }
    for (size_t i = 0; i < m->unit_count; i++)
        if (m->units[i].end == INT64_MAX) m->units[i].end = m->instructions; /* the host reads it after the run */
    return AN_OK;
}

static bool same_layout(const an_result *a, const an_result *b) {
    if (a->dtype != b->dtype || a->ndims != b->ndims || a->offset != 0) return false;
    for (int i = 0; i < a->ndims; i++)
        if (a->dims[i] != b->dims[i] || (a->dims[i] != 1 && a->strides[i] != b->strides[i])) return false;
    return true;
}

/* The unit that output 0 of a unit's node may be written over; NONE: none. */
static size_t in_place_candidate(const memory *m, const unit *u) {
    const an_node *n = u->node;
    if (!u->root || u->root->output != 0) return NONE;
    for (int i = 0; i < n->input_count; i++) {
        const an_result *r = n->inputs[i].result;
        size_t candidate = r ? m->of_result[r->root->number] : NONE;
        if (!(n->op->in_place >> i & 1) || candidate == NONE || m->units[candidate].end != u->begin) continue;
        if (m->units[candidate].bytes != u->bytes || !same_layout(r, u->root)) continue;
        int operands = 0; /* read by one operand only */
        for (int k = 0; k < n->input_count; k++)
            operands += n->inputs[k].result && n->inputs[k].result->root == r->root;
        if (operands == 1) return candidate;
    }
    return NONE;
}

/* Plays the step; returns the bytes of the arena. With `store`, offsets go into the units' roots and nodes. */
static an_status play(memory *m, bool in_place, bool with_scratch, bool store, int64_t *bytes) {
    an_status status;
    an_context *ctx = m->g->ctx;
    an_offsets offsets = {0};
    AN_TRY(an_offsets_create(&offsets, ctx, m->unit_count));
    for (int64_t t = 0; t <= m->instructions; t++) m->ending[t] = NONE;
    size_t u = 0;
    for (int64_t t = 0; t <= m->instructions; t++) {
        size_t first = u;
        for (; u < m->unit_count && m->units[u].begin == t; u++) {
            unit *x = &m->units[u];
            if (!x->root && !with_scratch) continue;
            x->in_place_of = in_place ? in_place_candidate(m, x) : NONE;
            if (x->in_place_of != NONE) {
                x->block = m->units[x->in_place_of].block;
                m->units[x->in_place_of].block = NULL; /* handed over: not given back when its old owner ends */
            } else {
                x->block = an_offsets_take(&offsets, x->bytes);
            }
            if (store && x->root) x->root->place = an_offset_of(x->block);
            if (store && !x->root) x->node->scratch_place = an_offset_of(x->block);
        }
        for (size_t k = first; k < u; k++) {
            m->units[k].next_ending = m->ending[m->units[k].end];
            m->ending[m->units[k].end] = k;
        }
        for (size_t k = m->ending[t]; k != NONE; k = m->units[k].next_ending) {
            if (m->units[k].block) an_offsets_give(&offsets, m->units[k].block);
            m->units[k].block = NULL;
        }
    }
    *bytes = offsets.end;
    status = AN_OK;
fail:
    an_offsets_destroy(&offsets);
    return status;
}

static an_status record(memory *m, an_memory_plan *plan) {
    an_context *ctx = m->g->ctx;
    int64_t alive = 0;
    AN_TRY_RETURN(an_arena_alloc(&m->g->arena, (void **)&plan->lives, m->unit_count, sizeof *plan->lives));
    plan->life_count = m->unit_count;
    int64_t *change = NULL; /* of live bytes, by instruction */
    AN_TRY_RETURN(an_alloc(ctx, (void **)&change, (size_t)m->instructions + 2, sizeof *change));
    for (size_t i = 0; i < m->unit_count; i++) {
        const unit *u = &m->units[i];
        plan->lives[i] = (an_life){.node = u->node,
                                   .begin = u->begin,
                                   .end = u->end,
                                   .offset = u->root ? u->root->place : u->node->scratch_place,
                                   .bytes = u->bytes,
                                   .scratch = !u->root};
        change[u->begin] += u->bytes;
        change[u->end + 1] -= u->bytes;
        /* written in place, two roots share bytes for one instruction */
        if (plan->in_place && u->in_place_of != NONE) change[u->begin] -= u->bytes, change[u->begin + 1] += u->bytes;
    }
    for (int64_t t = 0; t <= m->instructions; t++) {
        alive += change[t];
        if (alive <= plan->most_alive) continue;
        plan->most_alive = alive;
        plan->fullest = t;
    }
    an_release(ctx, (void **)&change, (size_t)m->instructions + 2, sizeof *change);
    return AN_OK;
}

an_status an_pass_memory(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    memory m = {.g = g};
    an_memory_plan *plan = NULL;
    int64_t with = 0, without = 0;
    (void)options;
    AN_TRY(an_arena_alloc(&g->arena, (void **)&plan, 1, sizeof *plan));
    bind_gradients(g);
    AN_TRY(an_alloc(ctx, (void **)&m.of_result, g->result_count, sizeof *m.of_result));
    AN_TRY(find_lives(&m));
    AN_TRY(an_alloc(ctx, (void **)&m.ending, (size_t)m.instructions + 1, sizeof *m.ending));
    AN_TRY(play(&m, true, true, false, &with));
    AN_TRY(play(&m, false, true, false, &without));
    plan->in_place = with < without;
    plan->instructions = m.instructions;
    AN_TRY(play(&m, plan->in_place, false, false, &plan->arena_without_scratch));
    AN_TRY(play(&m, plan->in_place, true, true, &plan->arena_bytes));
    if (plan->arena_without_scratch > plan->arena_bytes) plan->arena_without_scratch = plan->arena_bytes;
    place_contributions(g);
    AN_TRY(record(&m, plan));
    g->memory = plan;
    status = AN_OK;
fail:
    if (m.ending) an_release(ctx, (void **)&m.ending, (size_t)m.instructions + 1, sizeof *m.ending);
    an_release(ctx, (void **)&m.of_result, g->result_count, sizeof *m.of_result);
    an_release(ctx, (void **)&m.units, m.unit_capacity, sizeof *m.units);
    return status;
}

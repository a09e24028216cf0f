/* memory: gives every root an offset in the arena. Replaces the caching allocator.
 *
 * The step is played through an allocator of offsets in the order in which it will run; where that leaves much unused,
 * the largest values are also placed first. A contribution that only an overwriting gradient reads is placed straight
 * in the gradient buffer, or in the root of its unit. Ops may write in place where their record says so and nobody else
 * reads the input; since that can also tear holes, the smallest of the plans with and without is kept.
 */
#include "pass/memory.h"

#include "pass/largest_first.h"
#include "pass/offsets.h"
#include "pass/pass.h"
#include "pass/shard.h"

/* A unit is what shares one block of the arena: a root, and the roots that are written over it in place. */
typedef struct {
    int64_t begin, end, bytes, offset;
    size_t in_place_of; /* unit that this one continues; NONE: none */
    an_result *root;    /* NULL: scratch of `node` */
    an_node *node;
    an_offset_block *block;
    size_t next_ending; /* next unit that ends at the same instruction */
    size_t value;       /* number of what it is placed as, with all that it continues */
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
        gradient->place = an_gradient_offset(g, n) * (int64_t)an_dtype_size(gradient->dtype);
        if (!n->elided) continue;
        contribution_of(n)->storage = AN_STORAGE_GRADIENT;
        contribution_of(n)->place = gradient->place;
    }
}

/* The gradient in whose place a contribution is made, if that is a part of a root of the arena; NULL: the
 * contribution has its own. */
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

/* What a unit continues in place, for all of them. */
static void find_in_place(memory *m, bool in_place) {
    for (size_t i = 0; i < m->unit_count; i++)
        m->units[i].in_place_of = in_place ? in_place_candidate(m, &m->units[i]) : NONE;
}

/* Plays the step through an allocator of offsets. */
static an_status play(memory *m, bool with_scratch, int64_t *bytes) {
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
            if (x->in_place_of != NONE) {
                x->block = m->units[x->in_place_of].block;
                m->units[x->in_place_of].block = NULL; /* handed over: not given back when its old owner ends */
            } else {
                x->block = an_offsets_take(&offsets, x->bytes);
            }
            x->offset = an_offset_of(x->block);
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

/* Places the largest first; units that continue one another are one value. */
static an_status place_largest_first(memory *m, bool with_scratch, int64_t *bytes) {
    an_status status;
    an_context *ctx = m->g->ctx;
    an_lasting *values = NULL;
    size_t count = 0;
    AN_TRY(an_alloc(ctx, (void **)&values, m->unit_count, sizeof *values));
    for (size_t i = 0; i < m->unit_count; i++) {
        unit *u = &m->units[i];
        if (!u->root && !with_scratch) continue;
        u->value = u->in_place_of != NONE ? m->units[u->in_place_of].value : count++;
        an_lasting *value = &values[u->value];
        if (u->in_place_of == NONE) *value = (an_lasting){.begin = u->begin, .bytes = u->bytes};
        value->end = u->end;
    }
    AN_TRY(an_place_largest_first(ctx, values, count, bytes));
    for (size_t i = 0; i < m->unit_count; i++)
        if (m->units[i].root || with_scratch) m->units[i].offset = values[m->units[i].value].offset;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&values, m->unit_count, sizeof *values);
    return status;
}

/* The most bytes that are alive at once, and when. */
static an_status count_alive(const memory *m, int64_t *maximum, int64_t *fullest) {
    an_context *ctx = m->g->ctx;
    const size_t count = (size_t)m->instructions + 2;
    int64_t *change = NULL, alive = 0; /* of live bytes, by instruction */
    AN_TRY_RETURN(an_alloc(ctx, (void **)&change, count, sizeof *change));
    for (size_t i = 0; i < m->unit_count; i++) {
        const unit *u = &m->units[i];
        change[u->begin] += u->bytes;
        change[u->end + 1] -= u->bytes;
        /* written in place, two roots share bytes for one instruction */
        if (u->in_place_of != NONE) change[u->begin] -= u->bytes, change[u->begin + 1] += u->bytes;
    }
    *maximum = *fullest = 0;
    for (int64_t t = 0; t <= m->instructions; t++) {
        alive += change[t];
        if (alive <= *maximum) continue;
        *maximum = alive;
        *fullest = t;
    }
    an_release(ctx, (void **)&change, count, sizeof *change);
    return AN_OK;
}

/* Ways to place units, in the order in which they are tried; the first of the smallest plans is kept. */
typedef struct {
    an_status (*place)(memory *m, bool with_scratch, int64_t *bytes);
    bool in_place;
} way;

static const way ways[] = {{play, false}, {play, true}, {place_largest_first, false}, {place_largest_first, true}};

/* What is quadratic is not tried for more units, and not where all that it could save is less than this part. */
enum { MOST_QUADRATIC = 4096, SMALL_PART = 64 };

static an_status choose_way(memory *m, const way **chosen) {
    int64_t smallest = INT64_MAX, minimum = INT64_MAX, bytes, at;
    for (const way *w = ways; w < ways + sizeof ways / sizeof *ways; w++) {
        const bool quick = w->place == play;
        if (!quick && (m->unit_count > MOST_QUADRATIC || smallest - minimum <= minimum / SMALL_PART)) break;
        find_in_place(m, w->in_place);
        if (quick) {
            AN_TRY_RETURN(count_alive(m, &bytes, &at));
            if (bytes < minimum) minimum = bytes;
        }
        AN_TRY_RETURN(w->place(m, true, &bytes));
        if (bytes >= smallest) continue;
        smallest = bytes;
        *chosen = w;
    }
    return AN_OK;
}

static an_status place(memory *m, an_memory_plan *plan) {
    an_context *ctx = m->g->ctx;
    const way *chosen = NULL;
    AN_TRY_RETURN(choose_way(m, &chosen));
    if (!chosen) return AN_ERROR(ctx, AN_ERR_OVERFLOW, "the values of a program do not fit in memory");
    plan->in_place = chosen->in_place;
    find_in_place(m, chosen->in_place);
    AN_TRY_RETURN(count_alive(m, &plan->most_alive, &plan->fullest));
    AN_TRY_RETURN(chosen->place(m, false, &plan->arena_without_scratch));
    AN_TRY_RETURN(chosen->place(m, true, &plan->arena_bytes));
    if (plan->arena_without_scratch > plan->arena_bytes) plan->arena_without_scratch = plan->arena_bytes;
    for (size_t i = 0; i < m->unit_count; i++) {
        const unit *u = &m->units[i];
        if (u->root)
            u->root->place = u->offset;
        else
            u->node->scratch_place = u->offset;
    }
    return AN_OK;
}

static an_status record(const memory *m, an_memory_plan *plan) {
    AN_TRY_RETURN(an_arena_alloc(&m->g->arena, (void **)&plan->lives, m->unit_count, sizeof *plan->lives));
    plan->life_count = m->unit_count;
    for (size_t i = 0; i < m->unit_count; i++) {
        const unit *u = &m->units[i];
        plan->lives[i] = (an_life){.node = u->node,
                                   .begin = u->begin,
                                   .end = u->end,
                                   .offset = u->offset,
                                   .bytes = u->bytes,
                                   .scratch = !u->root};
    }
    return AN_OK;
}

an_status an_pass_memory(an_graph *g, const an_pass_options *options) {
    an_status status;
    an_context *ctx = g->ctx;
    memory m = {.g = g};
    an_memory_plan *plan = NULL;
    (void)options;
    AN_TRY(an_arena_alloc(&g->arena, (void **)&plan, 1, sizeof *plan));
    bind_gradients(g);
    AN_TRY(an_alloc(ctx, (void **)&m.of_result, g->result_count, sizeof *m.of_result));
    AN_TRY(find_lives(&m));
    AN_TRY(an_alloc(ctx, (void **)&m.ending, (size_t)m.instructions + 1, sizeof *m.ending));
    plan->instructions = m.instructions;
    AN_TRY(place(&m, plan));
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

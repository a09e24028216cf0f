/* What to drop for a budget: the values that free most bytes for the time of making them again.
 *
 * A value that backward does not read is gone after forward anyway. One that it reads is a candidate: making it
 * again costs the time of its node and of the nodes before it, back to values that are kept or are candidates
 * themselves, which pay for themselves if they go. So costs add up, one order of candidates serves every budget, and
 * a level is how many of them go; the plan tries some levels and takes the lowest that fits. Among equals the
 * first goes first: it would be kept longest. */
#include <stdlib.h>

#include "pass/cost.h"
#include "pass/recompute.h"

enum { NEVER = -1 };

/* Of a root in the arena; times count instructions. */
typedef struct {
    int64_t bytes, begin, end;
    int64_t last_forward, first_backward; /* reads */
} life;

typedef struct {
    const an_node *node;
    bool helps;   /* between the two reads more than the budget is alive */
    double worth; /* bytes a second */
    int64_t begin;
} candidate;

typedef struct {
    an_recomputation *c;
    int64_t instructions;
    life *lives;     /* by number of a root */
    double *seconds; /* by number of a node's first output: of making it again */
    double *bytes;   /* the same: of values that must be kept for it, and for nothing else */
    bool *goes;      /* the same: chosen */
    double *alive;   /* bytes by instruction */
    candidate *candidates;
    size_t count, capacity;
} choice;

static size_t key(const an_node *node) {
    return node->outputs[0].number;
}

static life *life_of(const choice *p, const an_result *r) {
    life *l = r ? &p->lives[r->root->number] : NULL;
    return l && l->begin != NEVER ? l : NULL;
}

static void read_inputs(const choice *p, const an_node *node, int64_t now) {
    for (int i = 0; i < node->input_count; i++) {
        life *l = life_of(p, node->inputs[i].result);
        if (!l) continue;
        if (node->op->flags & AN_OP_KEEPS_INPUTS) l->end = p->instructions;
        if (l->end < now) l->end = now;
        if (node->phase == AN_PHASE_FORWARD)
            l->last_forward = now;
        else if (l->first_backward == NEVER)
            l->first_backward = now;
    }
}

/* Nodes are in the order in which they run. */
static an_status find_lives(choice *p) {
    const an_graph *g = p->c->g;
    int64_t now = 0;
    for (size_t i = 0; i < p->c->results; i++) p->lives[i] = (life){.begin = NEVER, .first_backward = NEVER};
    for (const an_node *n = g->first; n; n = n->next) {
        if (n->op->flags & AN_OP_VIEW) continue;
        read_inputs(p, n, now);
        if (!an_node_runs(n)) continue;
        for (int i = 0; i < n->output_count; i++) {
            const an_result *r = &n->outputs[i];
            life *l = &p->lives[r->number];
            if (r->storage != AN_STORAGE_ARENA) continue;
            l->begin = l->last_forward = l->end = now;
            if (!an_result_maximum_bytes(g, r, &l->bytes))
                return AN_ERROR(g->ctx, AN_ERR_OVERFLOW, "%s at '%s': the size of %s in bytes does not fit in 64 bits",
                                n->op->name, n->path, AN_DESCRIBE(g, r));
        }
        p->alive[now++] += (double)n->scratch_bytes;
    }
    return AN_OK;
}

/* Turns the scratch in `alive` into the bytes that are alive with it. */
static void add_up(const choice *p, double *change) {
    double sum = 0;
    for (size_t i = 0; i < p->c->results; i++) {
        const life *l = &p->lives[i];
        if (l->begin == NEVER) continue;
        change[l->begin] += (double)l->bytes;
        change[l->end + 1] -= (double)l->bytes;
    }
    for (int64_t t = 0; t < p->instructions; t++) {
        sum += change[t];
        p->alive[t] += sum;
    }
}

static bool is_needed(const choice *p, const an_node *node) {
    for (int i = 0; i < node->output_count; i++) {
        const life *l = life_of(p, &node->outputs[i]);
        if (l && l->first_backward != NEVER && p->c->dropped[node->outputs[i].number]) return true;
    }
    return false;
}

/* What a node costs if it is made again and all candidates are there. A value that two of its inputs need counts twice:
 * such a node only comes later than it could. */
static void price(const choice *p, const an_node *node) {
    size_t k = key(node);
    p->seconds[k] = an_node_seconds(p->c->g, node);
    for (int i = 0; i < node->input_count; i++) {
        const an_result *r = node->inputs[i].result;
        const life *l = life_of(p, r);
        if (!l || is_needed(p, r->root->node)) continue;
        bool dropped = p->c->dropped[r->root->number];
        p->seconds[k] += dropped ? p->seconds[key(r->root->node)] : 0;
        p->bytes[k] += dropped ? p->bytes[key(r->root->node)] : l->first_backward == NEVER ? (double)l->bytes : 0;
    }
}

static an_status consider(choice *p, const an_node *node, const int64_t *over) {
    an_context *ctx = p->c->g->ctx;
    candidate found = {.node = node, .begin = NEVER};
    double freed = -p->bytes[key(node)];
    for (int i = 0; i < node->output_count; i++) {
        const life *l = life_of(p, &node->outputs[i]);
        if (!l || l->first_backward <= l->last_forward + 1 || !p->c->dropped[node->outputs[i].number]) continue;
        freed += (double)l->bytes;
        found.begin = l->begin;
        found.helps = found.helps || over[l->first_backward - 1] > l->last_forward;
    }
    if (found.begin == NEVER || freed <= 0) return AN_OK;
    found.worth = freed / p->seconds[key(node)];
    AN_TRY_RETURN(an_grow(ctx, (void **)&p->candidates, &p->capacity, p->count + 1, sizeof *p->candidates));
    p->candidates[p->count++] = found;
    return AN_OK;
}

static int by_worth(const void *left, const void *right) {
    const candidate *a = left, *b = right;
    if (a->helps != b->helps) return a->helps ? -1 : 1;
    if (a->worth != b->worth) return a->worth > b->worth ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static an_status find_candidates(choice *p, int64_t budget) {
    an_status status;
    an_context *ctx = p->c->g->ctx;
    int64_t *over = NULL, last = NEVER; /* by instruction: the last one so far when more than the budget is alive */
    AN_TRY(an_alloc(ctx, (void **)&over, (size_t)p->instructions, sizeof *over));
    for (int64_t t = 0; t < p->instructions; t++) over[t] = last = p->alive[t] > (double)budget ? t : last;
    for (const an_node *n = p->c->g->first; n; n = n->next) {
        if (n->phase != AN_PHASE_FORWARD || n->op->flags & AN_OP_VIEW || !an_node_runs(n)) continue;
        price(p, n);
        if (is_needed(p, n)) AN_TRY(consider(p, n, over));
    }
    if (p->count) qsort(p->candidates, p->count, sizeof *p->candidates, by_worth);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&over, (size_t)p->instructions, sizeof *over);
    return status;
}

/* Keeps what backward reads and was not chosen; what it does not read is made again where a copy asks for it. */
static void settle(const choice *p, int64_t level) {
    for (size_t i = 0; i < p->count && (int64_t)i < level; i++) p->goes[key(p->candidates[i].node)] = true;
    for (const an_node *n = p->c->g->first; n; n = n->next) {
        if (n->output_count == 0 || p->goes[key(n)] || !is_needed(p, n)) continue;
        for (int i = 0; i < n->output_count; i++) p->c->dropped[n->outputs[i].number] = false;
    }
}

an_status an_recompute_choose(an_recomputation *c, int64_t budget, int64_t level, int64_t *levels) {
    an_status status;
    an_context *ctx = c->g->ctx;
    choice p = {.c = c};
    double *change = NULL; /* of what is alive, by instruction */
    for (const an_node *n = c->g->first; n; n = n->next) p.instructions += an_node_runs(n);
    const size_t times = (size_t)p.instructions + 2;
    AN_TRY(an_alloc(ctx, (void **)&p.lives, c->results, sizeof *p.lives));
    AN_TRY(an_alloc(ctx, (void **)&p.seconds, c->results, sizeof *p.seconds));
    AN_TRY(an_alloc(ctx, (void **)&p.bytes, c->results, sizeof *p.bytes));
    AN_TRY(an_alloc(ctx, (void **)&p.goes, c->results, sizeof *p.goes));
    AN_TRY(an_alloc(ctx, (void **)&p.alive, times, sizeof *p.alive));
    AN_TRY(an_alloc(ctx, (void **)&change, times, sizeof *change));
    AN_TRY(find_lives(&p));
    add_up(&p, change);
    AN_TRY(find_candidates(&p, budget));
    settle(&p, level);
    *levels = (int64_t)p.count;
    status = AN_OK;
fail:
    an_release(ctx, (void **)&change, times, sizeof *change);
    an_release(ctx, (void **)&p.candidates, p.capacity, sizeof *p.candidates);
    an_release(ctx, (void **)&p.alive, times, sizeof *p.alive);
    an_release(ctx, (void **)&p.goes, c->results, sizeof *p.goes);
    an_release(ctx, (void **)&p.bytes, c->results, sizeof *p.bytes);
    an_release(ctx, (void **)&p.seconds, c->results, sizeof *p.seconds);
    an_release(ctx, (void **)&p.lives, c->results, sizeof *p.lives);
    return status;
}

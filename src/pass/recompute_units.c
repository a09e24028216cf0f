/* Units of recompute: the outermost blocks of the model, runs of them, or everything in a line that can be halved. */
#include "pass/recompute.h"

typedef struct {
    an_recomputation *c;
    int *outermost; /* by block: the outermost block proper that it lies in; 0: none */
    int *ordinals;  /* by outermost block: from 1 in the order in which they begin */
} blocks;

/* Whether a node may run twice, whatever the mode. */
static bool may_copy(const an_node *node) {
    const unsigned never = AN_OP_SOURCE | AN_OP_SINK | AN_OP_COMMUNICATION | AN_OP_NO_COPY;
    return node->phase == AN_PHASE_FORWARD && an_node_runs(node) && !(node->op->flags & never);
}

static void number_blocks(const blocks *b) {
    const an_graph *g = b->c->g;
    for (size_t i = 1; i < g->block_count; i++) { /* a parent is declared before what is in it */
        const an_block *block = &g->blocks[i];
        int outer = block->parent > 0 ? b->outermost[block->parent] : 0;
        b->outermost[i] = outer > 0 || block->is_scope ? outer : (int)i;
        if (b->outermost[i] == (int)i) b->ordinals[i] = ++b->c->blocks;
    }
}

static int block_of(const blocks *b, const an_node *node) {
    return b->ordinals[b->outermost[node->block]];
}

static bool is_forward_view(const an_node *node) {
    return node->op->flags & AN_OP_VIEW && node->phase == AN_PHASE_FORWARD;
}

/* A view has no storage: it goes and comes with its root. */
static void mark_views(const an_graph *g) {
    for (an_node *n = g->first; n; n = n->next)
        if (is_forward_view(n)) n->mark = n->outputs[0].root->node->mark;
}

/* Every block, or run of blocks, is a unit from 1 on; 0 is what lies in no block. */
static void cut(const blocks *b, int64_t runs) {
    const an_recomputation *c = b->c;
    for (an_node *n = c->g->first; n; n = n->next) {
        int block = block_of(b, n);
        n->mark = block == 0 ? 0 : 1 + (block - 1) * runs / c->blocks;
    }
    mark_views(c->g);
}

/* Everything in a line: blocks have odd numbers, what lies between them even ones, and no node comes before what it
 * reads. Numbers that no forward node has are left out. */
static an_status line_up(const blocks *b) {
    an_recomputation *c = b->c;
    an_context *ctx = c->g->ctx;
    const size_t maximum = 2 * (size_t)c->blocks + 1;
    int64_t *numbers = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&numbers, maximum, sizeof *numbers));
    for (an_node *n = c->g->first; n; n = n->next) {
        int block = block_of(b, n);
        n->mark = block > 0 ? 2 * block - 1 : 0;
        if (n->op->flags & AN_OP_SOURCE) n->mark = 0;
        for (int i = 0; i < n->input_count; i++) {
            const an_result *r = n->inputs[i].result;
            if (!r || r->node->phase != AN_PHASE_FORWARD) continue;
            int64_t read = r->root->node->mark;
            if (read > n->mark) n->mark = block > 0 ? read : (read + 1) / 2 * 2;
        }
        if (may_copy(n)) numbers[n->mark] = 1;
    }
    for (size_t i = 0; i < maximum; i++) numbers[i] = numbers[i] ? c->halved++ : c->halved - 1;
    for (an_node *n = c->g->first; n; n = n->next) n->mark = numbers[n->mark] > 0 ? numbers[n->mark] : 0;
    mark_views(c->g);
    an_release(ctx, (void **)&numbers, maximum, sizeof *numbers);
    return AN_OK;
}

static void keep_outputs(const an_recomputation *c, const an_node *node) {
    for (int i = 0; i < node->output_count; i++) c->dropped[node->outputs[i].number] = false;
}

/* What the host reads after the run stays, without the other outputs of its node; what another unit reads stays with
 * them, unless units are made again from one another. */
static void drop(const an_recomputation *c, bool without_block) {
    for (const an_node *n = c->g->first; n; n = n->next)
        for (int i = 0; i < n->output_count && may_copy(n); i++)
            c->dropped[n->outputs[i].number] =
                n->outputs[i].storage == AN_STORAGE_ARENA && (n->mark > 0 || without_block);
    for (const an_node *n = c->g->first; n; n = n->next) {
        if (n->phase != AN_PHASE_FORWARD || n->op->flags & AN_OP_VIEW) continue;
        for (int i = 0; i < n->input_count; i++) {
            const an_result *r = n->inputs[i].result;
            if (!r) continue;
            if (n->op->flags & AN_OP_KEEPS_INPUTS)
                c->dropped[r->root->number] = false;
            else if (c->halved == 0 && r->root->node->mark != n->mark)
                keep_outputs(c, r->root->node);
        }
    }
}

an_status an_recompute_find_units(an_recomputation *c, const an_pass_options *options) {
    an_status status;
    an_graph *g = c->g;
    an_context *ctx = g->ctx;
    blocks b = {.c = c};
    const an_recompute mode = options->recompute;
    AN_TRY(an_alloc(ctx, (void **)&b.outermost, g->block_count, sizeof *b.outermost));
    AN_TRY(an_alloc(ctx, (void **)&b.ordinals, g->block_count, sizeof *b.ordinals));
    number_blocks(&b);
    AN_CHECK(ctx, c->blocks > 0 || mode == AN_RECOMPUTE_BUDGET, AN_ERR_ARGUMENT,
             "graph '%s' has no blocks to recompute: put its layers between an_block_begin and an_block_end, or set a "
             "budget",
             g->name);
    AN_CHECK(ctx, mode != AN_RECOMPUTE_SEGMENTS || options->segments <= c->blocks, AN_ERR_ARGUMENT,
             "%d segments were requested, but graph '%s' has only %d blocks: request at most that many",
             options->segments, g->name, c->blocks);
    c->runs = options->segments > 0 ? options->segments : 1;
    if (mode == AN_RECOMPUTE_FULL)
        AN_TRY(line_up(&b));
    else
        cut(&b, mode == AN_RECOMPUTE_SEGMENTS ? c->runs : c->blocks);
    drop(c, mode == AN_RECOMPUTE_FULL || mode == AN_RECOMPUTE_BUDGET);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&b.outermost, g->block_count, sizeof *b.outermost);
    an_release(ctx, (void **)&b.ordinals, g->block_count, sizeof *b.ordinals);
    return status;
}

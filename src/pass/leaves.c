/* leaves: which sums over samples are added by leaves, so that one run of a training form may have several leaves.
 *
 * The axis of samples of a value is the one whose size has the symbol of the samples in it. Every op is asked what it
 * does along this axis (an_op.along). Where it adds, its node gets a note of the axes (an_leaf_sum): its kernel adds
 * the samples of each leaf, and then the leaves in the tree. Only the last operation on a gradient may be that tree, as
 * the tree goes on with other runs and other ranks: such a sum goes into a gradient or out of the program by ops that
 * only move elements. Where anything else is done, with samples or with a sum over them, a run has one leaf: the graph
 * gets the reason, also where nobody wants more.
 */
#include <stdio.h>
#include <string.h>

#include "ops/common.h"
#include "pass/pass.h"

/* Marks of nodes. */
enum { PLAIN, MOVED_SUM };

typedef struct {
    an_graph *g;
    an_dim samples;
} search;

static an_status refuse(search *s, const an_node *node, const char *why) {
    char text[AN_PATH_BYTES + 128];
    snprintf(text, sizeof text, "%s at '%s' %s", node->op->name, node->path, why);
    return an_arena_string(&s->g->arena, &s->g->one_leaf, text, strlen(text));
}

/* The axis of samples; -1: there is none. *several: it cannot be told. */
static an_status find_axis(search *s, const an_result *r, int *axis, bool *several) {
    an_dimensions *d = &s->g->dimensions;
    *axis = -1;
    for (int i = 0; i < r->ndims; i++) {
        an_dim each = 0;
        if (r->dims[i] >= 0 || !an_dimensions_share_symbol(d, r->dims[i], s->samples)) continue;
        AN_TRY_RETURN(an_dimensions_divide(d, &s->g->arena, r->dims[i], s->samples, &each));
        *several = *several || *axis >= 0 || each == 0;
        *axis = i;
    }
    return AN_OK;
}

/* One input along its axis of samples, for all outputs. */
static an_along ask(an_leaf_sum *sum, const an_node *node, int input) {
    bool adds = false;
    if (!node->op->along) return AN_ALONG_MIXED;
    for (int i = 0; i < node->output_count; i++) {
        const an_along_question q = {
            .node = node, .input = input, .axis = sum->src[input], .output = i, .to = sum->dst[i]};
        const an_along answer = node->op->along(&q);
        if (answer == AN_ALONG_MIXED && node->outputs[i].first_use) return AN_ALONG_MIXED;
        adds = adds || answer == AN_ALONG_ADDED;
    }
    return adds ? AN_ALONG_ADDED : AN_ALONG_APART;
}

/* Whether it is a sum over samples, or such a sum at other places. */
static bool is_sum(const an_result *r) {
    return r->node->leaf_sum ? r->node->leaf_sum->dst[r->output] < 0 : r->node->mark == MOVED_SUM;
}

static bool reads_sum(const an_node *node) {
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i].result && is_sum(node->inputs[i].result)) return true;
    return false;
}

static an_status look(search *s, an_node *node) {
    an_leaf_sum sum = {.src = {0}};
    bool several = false, adds = false;
    const bool goes_on = reads_sum(node);
    node->mark = goes_on ? MOVED_SUM : PLAIN;
    for (int i = 0; i < node->input_count; i++) {
        int axis = -1;
        if (node->inputs[i].result) AN_TRY_RETURN(find_axis(s, node->inputs[i].result, &axis, &several));
        sum.src[i] = (int8_t)axis;
    }
    for (int i = 0; i < node->output_count; i++) {
        int axis;
        AN_TRY_RETURN(find_axis(s, &node->outputs[i], &axis, &several));
        sum.dst[i] = (int8_t)axis;
    }
    if (several) return refuse(s, node, "has more than one axis of samples");
    if (goes_on && !(node->op->flags & (AN_OP_SINK | AN_OP_MOVES)))
        return refuse(s, node, "computes with a sum over samples");
    if (node->op->flags & AN_OP_SINK) return AN_OK;
    for (int i = 0; i < node->input_count; i++) {
        if (sum.src[i] < 0) continue;
        const an_along answer = ask(&sum, node, i);
        if (answer == AN_ALONG_MIXED) return refuse(s, node, "may compute a sample from others");
        adds = adds || answer == AN_ALONG_ADDED;
    }
    if (!adds) return AN_OK;
    for (int i = 0; i < node->output_count; i++)
        if (sum.dst[i] < 0 && node->outputs[i].dtype != an_compute_dtype(node->outputs[i].dtype))
            return refuse(s, node, "rounds a sum over samples");
    AN_TRY_RETURN(an_arena_alloc(&s->g->arena, (void **)&node->leaf_sum, 1, sizeof sum));
    *node->leaf_sum = sum;
    return AN_OK;
}

an_status an_pass_leaves(an_graph *g, const an_pass_options *options) {
    search s = {.g = g};
    if (!an_form_trains(options->form) || !options->samples) return AN_OK;
    s.samples = an_symbol_dim(g, options->samples);
    for (an_node *n = g->first; n && !g->one_leaf; n = n->next) AN_TRY_RETURN(look(&s, n));
    if (!g->one_leaf && options->leaves > 1) return AN_OK;
    for (an_node *n = g->first; n; n = n->next) n->leaf_sum = NULL;
    return AN_OK;
}

/* Direct preference optimization (Rafailov et al., 2023): a language model with an adapter learns to prefer one of two
 * answers.
 *
 *     loss = -log sigmoid(reward of the chosen answer - reward of the rejected one)
 *     reward = beta · Σ over the tokens of the answer: log p(token) - log p of the reference(token)
 *
 * That is the cross entropy of two classes whose logits are the rewards, so everything after the rewards, label
 * smoothing and accuracy too, is the plain loss. A sample is one row with both answers as documents of their own, 0 the
 * chosen and 1 the rejected one.
 *
 * The reference is the frozen base: the nodes of the model a second time, without the changes of the adapter, on the
 * same parameters. What does not depend on the adapter is not computed twice. It works on the model, as pass/lora.c
 * does, so no other part knows of a reference. */
#include <string.h>

#include "anneal/adapter.h"

#include "base/guard.h"
#include "ops/attention.h"
#include "ops/loss.h"
#include "ops/ops.h"
#include "ops/source.h"

enum { NOT_NEEDED, NEEDED }; /* marks of nodes */

typedef struct {
    an_graph *g;
    an_node *loss;        /* the model's own: cross_entropy (logits, targets) */
    an_result *documents; /* the input */
    an_result **of_base;  /* by number of a result: what the base computes in its place */
    size_t results;
} preferring;

static an_status refuse(const an_graph *g, const char *why) {
    return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED, "graph '%s' cannot learn preferences: %s", g->name, why);
}

/* ---- what the model must be ---- */

static an_status find_documents(preferring *p) {
    const an_graph *g = p->g;
    bool has_rotary = false, has_attention = false;
    for (const an_node *n = g->first; n; n = n->next) {
        has_rotary = has_rotary || n->op == &an_op_rotary;
        if (n->op != &an_op_attention) continue;
        has_attention = true;
        an_result *documents = an_node_input(n, AN_ATTENTION_DOCUMENTS);
        if (!documents || documents->node->op != &an_op_input || (p->documents && documents != p->documents))
            return refuse(g,
                          "its attention must keep documents apart, all by one input; set documents when it is built");
        p->documents = documents;
    }
    if (!has_attention) return refuse(g, "it has no attention, so it is no language model");
    if (has_rotary) return AN_OK;
    return refuse(g, "its positions are learned, so an answer would depend on where in a row it lies; use a model with "
                     "rotary positions, such as Llama");
}

static an_status check(preferring *p, double beta) {
    an_context *ctx = p->g->ctx;
    const an_graph *g = p->g;
    if (!g->is_verified)
        return AN_ERROR(ctx, AN_ERR_STATE, "graph '%s' is not verified: call an_graph_verify after the last change",
                        g->name);
    if (!(beta > 0 && beta < 1e30))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "beta is %g; it must be above 0, such as 0.1", beta);
    const an_result *loss = an_graph_result(g, g->loss), *targets = an_graph_result(g, g->targets);
    if (!loss || loss->node->op != &an_op_cross_entropy || an_node_input(loss->node, 1) != targets ||
        targets->ndims != 2 || an_node_input(loss->node, 2))
        return refuse(g, "its loss must be the cross entropy of each token, (batch, tokens), without weights");
    if (((const an_cross_entropy_attributes *)loss->node->attributes)->focal > 0)
        return refuse(g, "a focal loss is for classes; remove it");
    p->loss = loss->node;
    return find_documents(p);
}

/* ---- the reference ---- */

/* Whether an adapter changes what the node gives: of its inputs, the base has the first ones only. */
static bool is_adapted(const an_node *node) {
    return node->op == &an_op_adapt || node->op == &an_op_matmul_sum;
}
static bool is_skipped(const an_node *node, int input) {
    return (is_adapted(node) && input >= (node->op == &an_op_adapt ? 1 : 2)) ||
           (node->op == &an_op_stretch && input > 0);
}

/* Marks what the logits of the base are made of. A parameter among it that is trained would change the reference. */
static an_status mark_base(const preferring *p) {
    an_graph *g = p->g;
    for (an_node *n = g->first; n; n = n->next) n->mark = n == an_node_input(p->loss, 0)->node ? NEEDED : NOT_NEEDED;
    for (an_node *n = g->last; n; n = n->previous) {
        if (n->mark != NEEDED) continue;
        if (n->op == &an_op_param && !((const an_param_attributes *)n->attributes)->frozen)
            return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED,
                            "the reference of DPO is the frozen base of an adapter, but '%s' is trained itself, and a "
                            "second copy of the weights is not supported; train an adapter (lora) instead",
                            ((const an_param_attributes *)n->attributes)->name);
        for (int i = 0; i < n->input_count; i++)
            if (n->inputs[i].result && !is_skipped(n, i)) n->inputs[i].result->node->mark = NEEDED;
    }
    return AN_OK;
}

static an_result *base_of(const preferring *p, an_result *r) {
    return r && r->number < p->results && p->of_base[r->number] ? p->of_base[r->number] : r;
}

/* The node on the base's values, as evaluations have it: without dropout. A product stands for its sum with an
 * adapter's, as passes round both where they do in the model; so a new adapter gives rewards of 0 in any precision. */
static an_status copy_node(const preferring *p, an_node *n) {
    an_graph *g = p->g;
    an_value zero = AN_NONE;
    an_value inputs[AN_MAX_INPUTS];
    g->added.before = n->next;
    g->block = n->block;
    if (n->op == &an_op_adapt) zero = an_constant(g, n->outputs[0].dtype, 0, 0, NULL);
    for (int i = 0; i < n->input_count; i++)
        inputs[i] = is_skipped(n, i) ? zero : an_graph_value(g, base_of(p, an_node_input(n, i)));
    const bool is_sum = n->op == &an_op_matmul_sum;
    an_value value = is_sum ? an_matmul(g, inputs[0], inputs[1], false,
                                        *(const bool *)an_node_attribute(n, "transpose_b", AN_ATTRIBUTE_BOOL))
                            : an_graph_add_outputs(g, n->op, n->input_count, inputs, n->attributes, n->output_count);
    const an_result *r = an_graph_result(g, value);
    if (r) {
        r->node->path = n->path;
        r->node->place = n->place;
    }
    g->added.before = n->next;
    if (r && n->op->evaluate) {
        an_node *copy = r->node;
        value = n->op->evaluate(g, copy);
        r = an_graph_result(g, value);
        bool alike = r != NULL;
        for (int i = 0; alike && i < r->ndims; i++) alike = r->strides[i] == copy->outputs[0].strides[i];
        if (r && !alike) value = an_contiguous(g, value); /* so that views of it stay views */
        if (value && r && r->node != copy) an_graph_remove(g, copy);
    }
    g->added.before = NULL;
    r = an_graph_result(g, value);
    if (!r) return AN_ERROR(g->ctx, g->status, "%s", g->message);
    for (int i = 0; i < n->output_count && i < r->node->output_count; i++)
        p->of_base[n->outputs[i].number] = &r->node->outputs[r->output + i];
    return AN_OK;
}

/* Each copy stands right after its original, so blocks stay together. */
static an_status add_base(preferring *p) {
    an_graph *g = p->g;
    const int block = g->block;
    for (an_node *n = g->first, *next; n; n = next) {
        bool changed = false;
        next = n->next;
        if (n->mark != NEEDED) continue;
        n->mark = NOT_NEEDED;
        for (int i = 0; i < n->input_count; i++)
            changed = changed || base_of(p, an_node_input(n, i)) != an_node_input(n, i);
        if (n->op == &an_op_stretch) /* the base is as long as it is */
            p->of_base[n->outputs[0].number] = base_of(p, an_node_input(n, 0));
        else if (changed || is_adapted(n) || n->op->evaluate)
            AN_TRY_RETURN(copy_node(p, n));
    }
    g->block = block;
    return AN_OK;
}

/* ---- the loss ---- */

static an_value sum_tokens(an_graph *g, an_value x) {
    static const int tokens = 1;
    return an_reduce_sum(g, x, 1, &tokens, true);
}

static void add_loss(const preferring *p, double beta) {
    an_graph *g = p->g;
    an_result *logits = an_node_input(p->loss, 0);
    const an_cross_entropy_attributes own = *(const an_cross_entropy_attributes *)p->loss->attributes;
    const an_cross_entropy_attributes each = {.ignored = own.ignored};
    const an_value targets = an_node_input_value(g, p->loss, 1);
    const an_value of_base[] = {an_graph_value(g, base_of(p, logits)), targets};
    const an_value of_model[] = {an_graph_value(g, logits), targets};
    /* The base goes first, so that none of its values are kept while gradients are computed. */
    const an_value base = an_graph_add(g, &an_op_cross_entropy_each, 2, of_base, &each);
    const an_value gained = an_subtract(g, base, an_graph_add(g, &an_op_cross_entropy_each, 2, of_model, &each));
    /* Documents are 0 or 1 wherever there is a target. */
    const an_value rejected =
        an_multiply(g, gained, an_cast(g, an_graph_value(g, p->documents), an_value_dtype(g, gained)));
    const an_value sums[] = {sum_tokens(g, rejected), sum_tokens(g, an_subtract(g, gained, rejected))};
    const an_value rewards = an_scale(g, an_concat(g, 1, 2, sums), beta);
    const an_dim batch = an_value_dim(g, targets, 0);
    const an_value preferred = an_input(g, AN_INPUT_PREFERRED, AN_DTYPE_I32, 1, &batch);
    const an_value inputs[] = {rewards, preferred};
    const an_cross_entropy_attributes pair = {.ignored = own.ignored, .label_smoothing = own.label_smoothing};
    an_graph_set_loss(g, an_graph_add(g, &an_op_cross_entropy, 2, inputs, &pair), preferred);
}

an_status an_graph_add_dpo(an_graph *graph, double beta) {
    AN_GUARD;
    AN_NEED(graph);
    an_status status;
    an_context *ctx = graph->ctx;
    preferring p = {.g = graph, .results = graph->result_count};
    const size_t count = p.results;
    AN_TRY(check(&p, beta));
    AN_TRY(mark_base(&p));
    AN_TRY(an_alloc(ctx, (void **)&p.of_base, count, sizeof *p.of_base));
    AN_TRY(add_base(&p));
    AN_CHECK(ctx, base_of(&p, an_node_input(p.loss, 0)) != an_node_input(p.loss, 0), AN_ERR_STATE,
             "graph '%s' has no adapter, so there is nothing that DPO could train: call an_graph_add_lora first",
             graph->name);
    add_loss(&p, beta);
    AN_CHECK(ctx, graph->status == AN_OK, graph->status, "%s", graph->message);
    an_graph_remove(graph, p.loss);
    AN_TRY(an_graph_refresh_views(graph));
    AN_TRY(an_graph_verify(graph));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&p.of_base, count, sizeof *p.of_base);
    return status;
}

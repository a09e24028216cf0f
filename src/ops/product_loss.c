/* product_cross_entropy: the loss with the product that makes its logits. The fuse pass puts it in the place of
 * product, cross_entropy and, in training, of the gradients of both, so that logits are never stored whole. */
#include "kernels/product/loss.h"
#include "ops/common.h"
#include "ops/fuse.h"

enum {
    SRC = AN_PRODUCT_LOSS_SRC,
    WEIGHTS = AN_PRODUCT_LOSS_WEIGHTS,
    TARGETS = AN_PRODUCT_LOSS_TARGETS,
    DIFF = AN_PRODUCT_LOSS_DIFF,
    TARGET_WEIGHTS = AN_PRODUCT_LOSS_TARGET_WEIGHTS
};
enum { LOSS, DIFF_SRC, DIFF_WEIGHTS, OUTPUTS };
enum { RIGHT = AN_PRODUCT_LOSS_RIGHT }; /* in evaluation */
enum { FLOPS_A_LOGIT = 40 };            /* exp and log, as in cross_entropy's own cost */

static const an_attribute attributes[] = {AN_ATTRIBUTE(an_cross_entropy_attributes, ignored, INT),
                                          AN_ATTRIBUTE(an_cross_entropy_attributes, label_smoothing, FLOAT),
                                          AN_ATTRIBUTE(an_cross_entropy_attributes, focal, FLOAT),
                                          {0}};

static an_status infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(an_expect_float(g, node, SRC));
    AN_TRY_RETURN(an_expect_ndims(g, node, SRC, 1, AN_MAX_DIMS));
    AN_TRY_RETURN(an_expect_weights(g, node, WEIGHTS));
    AN_TRY_RETURN(an_expect_ndims(g, node, WEIGHTS, 2, 2));
    AN_TRY_RETURN(an_expect_index(g, node, TARGETS));
    const an_result *src = an_node_input(node, SRC), *weights = an_node_input(node, WEIGHTS),
                    *targets = an_node_input(node, TARGETS);
    bool fits = targets->ndims == src->ndims - 1 && weights->dims[1] == src->dims[src->ndims - 1];
    for (int i = 0; fits && i < targets->ndims; i++) fits = targets->dims[i] == src->dims[i];
    if (!fits)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "the shapes of src %s, weights %s and targets %s do not match",
                               AN_DESCRIBE(g, src), AN_DESCRIBE(g, weights), AN_DESCRIBE(g, targets));
    const bool trains = an_node_input(node, DIFF) != NULL;
    if (node->output_count < (trains ? 2 : 1) || node->output_count > (trains ? OUTPUTS : RIGHT + 1))
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "there are %d outputs, but gradients need diff_dst",
                               node->output_count);
    if (trains) AN_TRY_RETURN(an_expect_ndims(g, node, DIFF, 0, 0));
    const an_dtype real = an_compute_dtype(an_wider(src->dtype, weights->dtype));
    const an_result *factors = an_node_input(node, TARGET_WEIGHTS);
    fits = !factors || (factors->ndims <= targets->ndims && factors->dtype == real);
    for (int i = 0; factors && fits && i < factors->ndims; i++) fits = factors->dims[i] == targets->dims[i];
    if (!fits)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "weights %s do not match targets %s", AN_DESCRIBE(g, factors),
                               AN_DESCRIBE(g, targets));
    an_result_set(&node->outputs[LOSS], real, 0, NULL);
    if (!trains && node->output_count > RIGHT) an_result_set(&node->outputs[RIGHT], AN_DTYPE_I64, 0, NULL);
    if (trains) an_result_like(&node->outputs[DIFF_SRC], src);
    if (node->output_count > DIFF_WEIGHTS) an_result_set(&node->outputs[DIFF_WEIGHTS], real, 2, weights->dims);
    return AN_OK;
}

/* Inputs 0 to 2 of product_cross_entropy: the losses of targets, without gradients. */
static an_status each_infer(an_graph *g, an_node *node) {
    AN_TRY_RETURN(infer(g, node));
    const an_result *targets = an_node_input(node, TARGETS);
    AN_TRY_RETURN(an_expect_ndims(g, node, TARGETS, 1, AN_MAX_DIMS));
    an_result_set(&node->outputs[LOSS], node->outputs[LOSS].dtype, targets->ndims, targets->dims);
    return AN_OK;
}

static an_cost cost(const an_graph *g, const an_node *node) {
    const an_result *src = an_node_input(node, SRC), *weights = an_node_input(node, WEIGHTS);
    const double logits = an_result_elements(g, src) / an_result_elements(g, weights) * /* rows·k ÷ (classes·k) */
                          (double)weights->dims[0] * (double)weights->dims[0];
    const double product = 2 * logits * (double)weights->dims[1];
    const int products = an_node_input(node, DIFF) ? node->output_count : 1;
    return an_cost_of(g, node, product * products + FLOPS_A_LOGIT * logits);
}

const an_op an_op_matmul_cross_entropy = {
    .name = "matmul_cross_entropy",
    .inputs_min = 3,
    .inputs_max = 5,
    .outputs = AN_OUTPUTS_ANY,
    .along = an_along_added,
    .flags = AN_OP_LOSS | AN_OP_NO_COPY,
    .attribute_bytes = sizeof(an_cross_entropy_attributes),
    .attributes = attributes,
    .infer = infer,
    .cost = cost,
    .autocast = AN_AUTOCAST_F32,
    .dense = 1 << SRC | 1 << TARGETS | 1 << TARGET_WEIGHTS,
    .blocks_in = 1 << WEIGHTS,
    .kernels = AN_KERNELS(product_cross_entropy),
};

/* product_cross_entropy_each (src, weights, targets): the same for cross_entropy_each, in evaluations and in the
 * forward half of a step. Its gradient is product_cross_entropy, which makes the logits a second time: to keep them
 * would take more memory than all else. */
const an_op an_op_matmul_cross_entropy_each = {
    .name = "matmul_cross_entropy_each",
    .inputs_min = 3,
    .inputs_max = 3,
    .outputs = 1,
    .along = an_along_first,
    .flags = AN_OP_NO_COPY,
    .attribute_bytes = sizeof(an_cross_entropy_attributes),
    .attributes = attributes,
    .infer = each_infer,
    .cost = cost,
    .autocast = AN_AUTOCAST_F32,
    .dense = 1 << SRC | 1 << TARGETS,
    .blocks_in = 1 << WEIGHTS,
    .kernels = AN_KERNELS(product_cross_entropy),
};

/* ---- fusion ---- */

/* What the fused op replaces. diff, diff_src and diff_weights are NULL in evaluation; right is NULL in training. */
typedef struct {
    an_node *product, *loss, *diff, *diff_src, *diff_weights, *right;
} parts;

static const an_product_attributes *product_of(const an_node *node) {
    return node->op == &an_op_matmul ? node->attributes : NULL;
}

/* The value itself, or the one that it is a reshape of. */
static const an_result *unshaped(const an_result *r) {
    return r->node->op == &an_op_reshape ? an_node_input(r->node, 0) : r;
}

/* A reader of the gradient of the logits, directly or through a reshape: one of the two products that product's own
 * gradient makes, or something unknown. */
static bool take_reader(parts *p, an_node *reader) {
    const an_product_attributes *a = product_of(reader);
    const an_result *src = an_node_input(p->product, 0), *weights = an_node_input(p->product, 1);
    if (!a) return false;
    if (!a->transpose_a && !a->transpose_b && reader->inputs[1].result == weights && !p->diff_src) {
        p->diff_src = reader;
        return true;
    }
    if (a->transpose_a && !a->transpose_b && unshaped(reader->inputs[1].result) == unshaped(src) && !p->diff_weights) {
        p->diff_weights = reader;
        return true;
    }
    return false;
}

static bool take_readers(parts *p, const an_result *diff) {
    for (const an_use *u = diff->first_use; u; u = u->next) {
        if (u->node->op == &an_op_reshape) {
            const an_use *only = u->node->outputs[0].first_use;
            if (!only || only->next || only->slot != 0 || !take_reader(p, only->node)) return false;
        } else if (u->slot != 0 || !take_reader(p, u->node)) {
            return false;
        }
    }
    return true;
}

/* Training: logits are read by the loss and its gradient only, which goes, perhaps rounded first, into the two
 * products. */
static bool find_training(parts *p) {
    const an_result *diff = &p->diff->outputs[0], *sums = &p->loss->outputs[1];
    if (!sums->first_use || sums->first_use->next || sums->first_use->node != p->diff) return false;
    const an_use *only = diff->first_use;
    if (only && !only->next && only->node->op == &an_op_cast) diff = &only->node->outputs[0];
    if (!take_readers(p, diff) || !p->diff_src) return false;
    const an_result *src = an_node_input(p->product, 0), *weights = an_node_input(p->product, 1);
    const bool same = src->dtype == weights->dtype || weights->dtype == AN_DTYPE_Q8_0;
    const an_dtype low = same ? src->dtype : an_compute_dtype(src->dtype);
    const an_result *made = &p->diff_src->outputs[0];
    return diff->dtype == low && made->dtype == src->dtype && made->ndims == src->ndims &&
           (!p->diff_weights || p->diff_weights->outputs[0].dtype == an_compute_dtype(low));
}

/* A reader of the logits that counts the same targets as the loss. */
static bool take_count(const an_graph *g, parts *p, const an_use *use) {
    if (use->node->op != AN_BUILTIN(g, count_right) || use->slot != 0 || p->right) return false;
    const an_count_right_attributes *counts = use->node->attributes;
    const an_cross_entropy_attributes *loss = p->loss->attributes;
    if (an_node_input(use->node, 1) != an_node_input(p->loss, 1) || counts->ignored != loss->ignored) return false;
    p->right = use->node;
    return true;
}

static bool find_parts(an_graph *g, an_node *loss, parts *p) {
    const an_result *logits = an_node_input(loss, 0);
    *p = (parts){.loss = loss, .product = logits->node};
    const an_product_attributes *a = product_of(p->product);
    if (!a || a->transpose_a || !a->transpose_b || a->rounds_a || an_node_input(p->product, 1)->ndims != 2)
        return false;
    if (logits->dtype != an_compute_dtype(logits->dtype)) return false;
    if (!an_result_is_dense(g, an_node_input(p->product, 0)) || !an_result_is_dense(g, an_node_input(loss, 1)))
        return false;
    const an_result *factors = an_node_input(loss, 2);
    if (factors && (factors->dtype != logits->dtype || !an_result_is_dense(g, factors))) return false;
    for (const an_use *u = logits->first_use; u; u = u->next) {
        if (u->node == loss || take_count(g, p, u)) continue;
        if (u->node->op != AN_BUILTIN(g, cross_entropy_diff) || u->slot != 1 || p->diff) return false;
        p->diff = u->node;
    }
    if (p->diff && p->right) return false;
    return p->diff ? find_training(p) : !loss->outputs[1].first_use;
}

static bool are_plain(const an_graph *g, const parts *p) {
    return an_op_is_plain(g->ctx, p->product->op) && an_op_is_plain(g->ctx, p->loss->op) &&
           (!p->diff || an_op_is_plain(g->ctx, p->diff->op)) && (!p->right || an_op_is_plain(g->ctx, p->right->op));
}

void an_fuse_product_loss(an_graph *g, an_node *loss, bool may_keep) {
    parts p;
    (void)may_keep;                                                      /* nothing of it is kept */
    if (!an_op_has_kernels(g->ctx, &an_op_matmul_cross_entropy)) return; /* not on this device */
    if (!find_parts(g, loss, &p) || !are_plain(g, &p)) return;
    for (const an_use *u = loss->outputs[0].first_use; u; u = u->next)
        if (!(u->node->op->flags & AN_OP_SINK)) return;
    an_value inputs[] = {an_node_input_value(g, p.product, 0), an_node_input_value(g, p.product, 1),
                         an_node_input_value(g, loss, 1), p.diff ? an_node_input_value(g, p.diff, 0) : AN_NONE,
                         an_node_input_value(g, loss, 2)};
    const int count = AN_COUNT(inputs) - !an_node_input(loss, 2);
    const int outputs = p.diff_weights ? OUTPUTS : p.diff ? DIFF_WEIGHTS : p.right ? RIGHT + 1 : LOSS + 1;
    g->added.before = p.diff ? p.diff : loss;
    g->added.origin = loss;
    an_value fused = an_graph_add_outputs(g, &an_op_matmul_cross_entropy, count, inputs, loss->attributes, outputs);
    g->added.before = NULL;
    g->added.origin = NULL;
    if (!fused) return;
    while (loss->outputs[0].first_use) { /* sinks, which may come before the gradient in the order */
        an_node *sink = loss->outputs[0].first_use->node;
        an_node_set_input(sink, loss->outputs[0].first_use->slot, an_graph_result(g, fused));
        an_graph_move_last(g, sink);
    }
    if (g->loss == an_node_output_value(g, loss, 0)) g->loss = fused;
    if (p.right) an_result_replace(&p.right->outputs[0], an_graph_result(g, an_value_output(fused, RIGHT)));
    if (p.diff_src) an_result_replace(&p.diff_src->outputs[0], an_graph_result(g, an_value_output(fused, DIFF_SRC)));
    if (p.diff_weights)
        an_result_replace(&p.diff_weights->outputs[0], an_graph_result(g, an_value_output(fused, DIFF_WEIGHTS)));
}

/* The losses stay in the forward half; the gradient, if there is one, becomes a product_cross_entropy
 * whose loss nothing reads. */
void an_fuse_product_losses(an_graph *g, an_node *losses, bool may_keep) {
    parts p;
    (void)may_keep;
    if (!an_op_has_kernels(g->ctx, &an_op_matmul_cross_entropy) ||
        !an_op_has_kernels(g->ctx, &an_op_matmul_cross_entropy_each))
        return;
    if (!find_parts(g, losses, &p) || p.right || !are_plain(g, &p)) return;
    an_value inputs[] = {an_node_input_value(g, p.product, 0), an_node_input_value(g, p.product, 1),
                         an_node_input_value(g, losses, 1), p.diff ? an_node_input_value(g, p.diff, 0) : AN_NONE,
                         p.diff ? an_node_input_value(g, p.diff, 4) : AN_NONE};
    an_value diffs = 0;
    g->added.origin = losses;
    g->added.before = losses;
    const an_value each =
        an_graph_add_outputs(g, &an_op_matmul_cross_entropy_each, TARGETS + 1, inputs, losses->attributes, 1);
    if (p.diff) {
        g->added.before = p.diff;
        g->added.phase = AN_PHASE_BACKWARD;
        diffs = an_graph_add_outputs(g, &an_op_matmul_cross_entropy, AN_COUNT(inputs), inputs, losses->attributes,
                                     p.diff_weights ? OUTPUTS : DIFF_WEIGHTS);
        g->added.phase = AN_PHASE_FORWARD;
    }
    g->added.before = NULL;
    g->added.origin = NULL;
    if (!each || (p.diff && !diffs)) return;
    an_result_replace(&losses->outputs[0], an_graph_result(g, each));
    if (p.diff_src) an_result_replace(&p.diff_src->outputs[0], an_graph_result(g, an_value_output(diffs, DIFF_SRC)));
    if (p.diff_weights)
        an_result_replace(&p.diff_weights->outputs[0], an_graph_result(g, an_value_output(diffs, DIFF_WEIGHTS)));
}

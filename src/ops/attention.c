/* attention: dst = dropout(softmax(scale · q kᵀ + mask)) v over (batch, heads, tokens, size), with fewer heads of keys
 * and values than of queries if wanted.
 *
 * Query i stands at position query_offset + i; causal attention lets it see the keys up to there, a window only the
 * last few of them, documents only those of its own. The second output is the log-sum-exp of every query's scores, from
 * which the gradient makes the probabilities again: scores are never stored, neither forward nor backward. dst and all
 * gradients lie as (batch, tokens, heads, size), so that the way back to (batch, tokens, features) is a view, and
 * putting the gradients of q, k and v together copies rows.
 */
#include "ops/common.h"

#include <inttypes.h>

#include "base/guard.h"
#include "kernels/attention/attention.h"
#include "ops/dropout.h"
#include "ops/norm.h"
#include "ops/structs.h"

enum { Q = AN_ATTENTION_Q, K = AN_ATTENTION_K, V = AN_ATTENTION_V, MASK = AN_ATTENTION_MASK };
enum { INPUTS = AN_ATTENTION_INPUTS, DIFF_INPUTS = AN_ATTENTION_DIFF_INPUTS, DIFF_OUTPUTS = 3 };

static const an_attribute attention_attributes[] = {
    AN_ATTRIBUTE(an_attention_attributes, causal, BOOL), AN_ATTRIBUTE(an_attention_attributes, scale, FLOAT),
    AN_ATTRIBUTE(an_attention_attributes, window, INT),  AN_ATTRIBUTE(an_attention_attributes, dropout, FLOAT),
    AN_ATTRIBUTE(an_attention_attributes, site, INT),    {0},
};

/* ---- what the infer hooks check ---- */

/* q, k and v are inputs `first` and the next two. */
static an_status expect_operands(an_graph *g, const an_node *node, int first) {
    const an_result *q = an_node_input(node, first + Q), *k = an_node_input(node, first + K);
    const an_result *v = an_node_input(node, first + V);
    an_dim group = 0;
    for (int i = Q; i <= V; i++) {
        AN_TRY_RETURN(an_expect_float(g, node, first + i));
        AN_TRY_RETURN(an_expect_ndims(g, node, first + i, 4, 4));
    }
    AN_TRY_RETURN(an_expect_same_shape(g, node, first + K, first + V));
    if (q->dims[0] != k->dims[0] || q->dims[3] != k->dims[3])
        return an_node_mistake(
            g, node, AN_ERR_SHAPE,
            "q is %s and k is %s: they must have the same batch and head size, as in (batch, heads, tokens, size)",
            AN_DESCRIBE(g, q), AN_DESCRIBE(g, k));
    if (q->dims[3] < 0 || q->dims[3] > AN_ATTENTION_HEAD)
        return an_node_mistake(g, node, AN_ERR_UNSUPPORTED,
                               "q is %s: the head size must be a constant of at most %d; use more, smaller heads",
                               AN_DESCRIBE(g, q), AN_ATTENTION_HEAD);
    AN_TRY_RETURN(an_dimensions_divide(&g->dimensions, &g->arena, q->dims[1], k->dims[1], &group));
    if (group == 0)
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "q is %s and v is %s: the number of heads of q must be a multiple of that of k and v",
                               AN_DESCRIBE(g, q), AN_DESCRIBE(g, v));
    return AN_OK;
}

static an_status expect_documents(an_graph *g, const an_node *node, int input, const an_result *q, const an_result *k) {
    const an_result *documents = an_node_input(node, input);
    AN_TRY_RETURN(an_expect_index(g, node, input));
    if (documents->ndims == 2 && documents->dims[0] == q->dims[0] && documents->dims[1] == q->dims[2] &&
        q->dims[2] == k->dims[2])
        return AN_OK;
    return an_node_mistake(
        g, node, AN_ERR_SHAPE,
        "documents are %s, q is %s and k is %s: documents must be (batch, tokens), with as many keys as queries",
        AN_DESCRIBE(g, documents), AN_DESCRIBE(g, q), AN_DESCRIBE(g, k));
}

static an_status expect_mask(an_graph *g, const an_node *node, int input, const an_result *q, const an_result *k) {
    const an_result *mask = an_node_input(node, input);
    const an_dim scores[] = {q->dims[0], q->dims[1], q->dims[2], k->dims[2]};
    AN_TRY_RETURN(an_expect_float(g, node, input));
    bool fits = mask->ndims <= AN_COUNT(scores);
    for (int i = 1; fits && i <= mask->ndims; i++) {
        const an_dim own = mask->dims[mask->ndims - i];
        fits = own == 1 || own == scores[AN_COUNT(scores) - i];
    }
    if (fits) return AN_OK;
    return an_node_mistake(
        g, node, AN_ERR_SHAPE,
        "the mask is %s, q is %s and k is %s: the mask must broadcast to (batch, heads, queries, keys)",
        AN_DESCRIBE(g, mask), AN_DESCRIBE(g, q), AN_DESCRIBE(g, k));
}

/* Attributes and optional inputs, which stand `shift` further on than among the inputs of attention. */
static an_status expect_options(an_graph *g, const an_node *node, int shift, const an_result *q, const an_result *k) {
    const an_attention_attributes *attributes = node->attributes;
    const an_result *offset = an_node_input(node, shift + AN_ATTENTION_QUERY_OFFSET);
    if (offset) AN_TRY_RETURN(an_expect_index(g, node, shift + AN_ATTENTION_QUERY_OFFSET));
    if (offset && offset->ndims != 0)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "query_offset is %s; it must be a scalar",
                               AN_DESCRIBE(g, offset));
    if (an_node_input(node, shift + AN_ATTENTION_DOCUMENTS))
        AN_TRY_RETURN(expect_documents(g, node, shift + AN_ATTENTION_DOCUMENTS, q, k));
    if (an_node_input(node, shift + MASK)) AN_TRY_RETURN(expect_mask(g, node, shift + MASK, q, k));
    if (attributes->window < 0 || attributes->window > AN_ATTENTION_FARTHEST)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                               "the window is %" PRId64 ", but must be a number of keys, or 0 for all keys",
                               attributes->window);
    if (!(attributes->scale > 0 && attributes->scale <= 1e30)) /* a number that f32 can hold */
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "the scale is %g; it must be positive", attributes->scale);
    AN_TRY_RETURN(an_expect_rate(g, node, attributes->dropout));
    if (attributes->dropout == 0) return AN_OK;
    if (!an_node_input(node, shift + AN_ATTENTION_SAMPLES))
        return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                               "dropout of %g needs the global sample numbers of the batch: set options.samples",
                               attributes->dropout);
    AN_TRY_RETURN(an_expect_random(g, node, shift + AN_ATTENTION_SAMPLES, q->dims[0]));
    return AN_OK;
}

static void set_like(an_result *result, an_dtype dtype, const an_result *like) {
    static const uint8_t order[] = {0, 2, 1, 3};
    an_result_set(result, dtype, like->ndims, like->dims);
    for (int i = 0; i < AN_COUNT(order); i++) result->order[i] = order[i];
}

/* ---- attention ---- */

static an_status attention_infer(an_graph *g, an_node *node) {
    const an_result *q = an_node_input(node, Q), *k = an_node_input(node, K), *v = an_node_input(node, V);
    AN_TRY_RETURN(expect_operands(g, node, 0));
    AN_TRY_RETURN(expect_options(g, node, 0, q, k));
    const an_dtype dtype = an_wider(an_wider(q->dtype, k->dtype), v->dtype);
    set_like(an_node_output(node, 0), dtype, q);
    an_result_set(an_node_output(node, 1), an_compute_dtype(dtype), 3, q->dims);
    return AN_OK;
}

static void attention_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want,
                           an_value *diff_src) {
    an_value inputs[DIFF_INPUTS] = {diff_dst[0]};
    const int count = AN_ATTENTION_DIFF_OPTIONAL + node->input_count - AN_ATTENTION_QUERY_OFFSET;
    if (an_refuse_statistics(g, node, diff_dst)) return;
    if (want >> MASK & 1) {
        an_node_mistake(g, node, AN_ERR_UNSUPPORTED,
                        "the mask has no gradient: to train a mask, build attention from products and an_softmax");
        return;
    }
    for (int i = Q; i <= V; i++) inputs[AN_ATTENTION_DIFF_OF_Q + i] = an_node_input_value(g, node, i);
    inputs[AN_ATTENTION_DIFF_OF_DST] = an_node_output_value(g, node, 0);
    inputs[AN_ATTENTION_DIFF_OF_SUM] = an_node_output_value(g, node, 1);
    for (int i = AN_ATTENTION_DIFF_OPTIONAL; i < count; i++)
        inputs[i] = an_node_input_value(g, node, i - AN_ATTENTION_DIFF_OPTIONAL + AN_ATTENTION_QUERY_OFFSET);
    const an_value diff = an_graph_add(g, &an_op_attention_diff, count, inputs, node->attributes);
    for (int i = Q; i <= V; i++)
        if (want >> i & 1) diff_src[i] = an_value_output(diff, i);
}

/* Without dropout. */
static an_value attention_evaluate(an_graph *g, const an_node *node) {
    an_attention_attributes attributes = *(const an_attention_attributes *)node->attributes;
    an_value inputs[INPUTS];
    attributes.dropout = 0;
    attributes.site = 0;
    const int count = node->input_count < AN_ATTENTION_SAMPLES ? node->input_count : AN_ATTENTION_SAMPLES;
    for (int i = 0; i < count; i++) inputs[i] = an_node_input_value(g, node, i);
    return an_graph_add(g, &an_op_attention, count, inputs, &attributes);
}

enum { MOST_TILES = 1 << 16 };

/* Forward: scores and dst. Backward: scores and diff_dst·v for diff_q and again for diff_k and
 * diff_v, and these three. */
enum { FORWARD_PRODUCTS = 2, DIFF_PRODUCTS = 5, FLOPS_A_PRODUCT = 2 };
enum { FORWARD_EXPS = 1, DIFF_EXPS = 2 }; /* of a score */

/* Counts the scores of the tiles that are computed: causality and a window skip tiles, documents and a mask do not. The
 * offset is a number of the run; where there is one, queries are taken for the last tokens. Of more tiles than anybody
 * has, some stand for all, so that a hostile shape costs no time. */
static an_cost cost_of(const an_graph *g, const an_node *node, int first, int first_optional, int products, int exps) {
    const an_attention_attributes *attributes = node->attributes;
    an_tensor q, k;
    double scores = 0;
    if (!an_result_tensor(g, an_node_input(node, first + Q), &q) ||
        !an_result_tensor(g, an_node_input(node, first + K), &k))
        return an_cost_of(g, node, 0);
    const int64_t queries = q.dims[2], keys = k.dims[2];
    const int64_t offset = an_node_input(node, first_optional) && keys > queries ? keys - queries : 0;
    const int64_t step = 1 + queries / AN_ATTENTION_QUERIES / MOST_TILES;
    for (int64_t begin = 0; begin < queries; begin += step * AN_ATTENTION_QUERIES) {
        const int64_t count = an_smaller(AN_ATTENTION_QUERIES, queries - begin);
        const an_key_range seen = an_attention_visible(attributes, offset + begin, offset + begin + count - 1, keys);
        const int64_t tiles_begin = seen.begin / AN_ATTENTION_KEYS * AN_ATTENTION_KEYS;
        if (seen.end > seen.begin) scores += (double)step * (double)count * (double)(seen.end - tiles_begin);
    }
    scores *= (double)q.dims[0] * (double)q.dims[1];
    an_cost cost = an_cost_of(g, node, FLOPS_A_PRODUCT * products * scores * (double)q.dims[3]);
    cost.functions = exps * scores;
    return cost;
}

static an_cost attention_cost(const an_graph *g, const an_node *node) {
    return cost_of(g, node, Q, AN_ATTENTION_QUERY_OFFSET, FORWARD_PRODUCTS, FORWARD_EXPS);
}

const an_op an_op_attention = {
    .name = "attention",
    .torch =
        "attention({0}, {1}, {2}, "
        "{scale}{,causal=causal}{,window=window}{,offset=3}{,documents=4}{,mask=5}{,dropout=dropout * self.training})",
    .inputs_min = AN_ATTENTION_QUERY_OFFSET,
    .inputs_max = INPUTS,
    .outputs = 2,
    .along = an_along_first,
    .flags = AN_OP_RANDOM,
    .attribute_bytes = sizeof(an_attention_attributes),
    .attributes = attention_attributes,
    .infer = attention_infer,
    .grad = attention_grad,
    .evaluate = attention_evaluate,
    .cost = attention_cost,
    .autocast = AN_AUTOCAST_LOW,
    .low_in = 1 << Q | 1 << K | 1 << V,
    .low_out = 1,
    .kernels = AN_KERNELS(attention),
};

an_value an_attention(an_graph *graph, an_value q, an_value k, an_value v, const an_attention_options *options) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_attention_options o;
    an_builder_begin(graph);
    if (!an_builder_took(graph, an_attention_options_read(graph->ctx, &o, options))) return an_builder_end(graph, 0);
    an_attention_attributes attributes = {
        .causal = o.causal,
        .scale = o.scale,
        .window = o.window,
        .dropout = o.dropout,
    };
    an_value inputs[INPUTS] = {q, k, v, o.query_offset, o.documents, o.mask};
    int count = AN_ATTENTION_SAMPLES;
    if (o.scale == 0) {
        const an_dim size = an_value_dim(graph, q, -1);
        attributes.scale = size > 0 ? 1 / __builtin_sqrt((double)size) : 1; /* infer refuses what is no number */
    }
    if (o.dropout != 0) {
        attributes.site = an_random_site(graph);
        inputs[AN_ATTENTION_SAMPLES] = o.samples;
        inputs[AN_ATTENTION_SEED] = an_scalar_shared(graph, "seed", AN_DTYPE_I64);
        inputs[AN_ATTENTION_STEP] = an_scalar_shared(graph, "step", AN_DTYPE_I64);
        count = INPUTS;
    }
    while (count > AN_ATTENTION_QUERY_OFFSET && inputs[count - 1] == AN_NONE) count--;
    return an_builder_end(graph, an_graph_add(graph, &an_op_attention, count, inputs, &attributes));
}

/* ---- attention_diff: (diff_dst, q, k, v, dst, log-sum-exp, optional inputs) gives diff_q, diff_k, diff_v ---- */

static an_status attention_diff_infer(an_graph *g, an_node *node) {
    const int first = AN_ATTENTION_DIFF_OF_Q, shift = AN_ATTENTION_DIFF_OPTIONAL - AN_ATTENTION_QUERY_OFFSET;
    const an_result *q = an_node_input(node, first), *k = an_node_input(node, first + K);
    const an_result *sum = an_node_input(node, AN_ATTENTION_DIFF_OF_SUM);
    AN_TRY_RETURN(expect_operands(g, node, first));
    AN_TRY_RETURN(expect_options(g, node, shift, q, k));
    AN_TRY_RETURN(an_expect_float(g, node, AN_ATTENTION_DIFF_DST));
    AN_TRY_RETURN(an_expect_float(g, node, AN_ATTENTION_DIFF_OF_DST));
    AN_TRY_RETURN(an_expect_float(g, node, AN_ATTENTION_DIFF_OF_SUM));
    AN_TRY_RETURN(an_expect_same_shape(g, node, AN_ATTENTION_DIFF_DST, first));
    AN_TRY_RETURN(an_expect_same_shape(g, node, AN_ATTENTION_DIFF_OF_DST, first));
    if (sum->ndims != 3 || sum->dims[0] != q->dims[0] || sum->dims[1] != q->dims[1] || sum->dims[2] != q->dims[2])
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "the log-sum-exp is %s and q is %s: the log-sum-exp must be (batch, heads, queries)",
                               AN_DESCRIBE(g, sum), AN_DESCRIBE(g, q));
    for (int i = 0; i < DIFF_OUTPUTS; i++) {
        const an_result *operand = an_node_input(node, first + i);
        set_like(an_node_output(node, i), operand->dtype, operand);
    }
    return AN_OK;
}

static an_cost attention_diff_cost(const an_graph *g, const an_node *node) {
    return cost_of(g, node, AN_ATTENTION_DIFF_OF_Q, AN_ATTENTION_DIFF_OPTIONAL, DIFF_PRODUCTS, DIFF_EXPS);
}

const an_op an_op_attention_diff = {
    .name = "attention_diff",
    .inputs_min = AN_ATTENTION_DIFF_OPTIONAL,
    .inputs_max = DIFF_INPUTS,
    .outputs = DIFF_OUTPUTS,
    .along = an_along_first,
    .flags = AN_OP_RANDOM,
    .attribute_bytes = sizeof(an_attention_attributes),
    .attributes = attention_attributes,
    .infer = attention_diff_infer,
    .cost = attention_diff_cost,
    .autocast = AN_AUTOCAST_KEEP,
    .kernels = AN_KERNELS(attention_diff),
};

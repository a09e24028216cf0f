/* cached_attention: attention of some new tokens of a sequence to themselves and to all tokens before them, whose keys
 * and values are in a cache. pass/decoding.c puts it in the place of attention.
 *
 * (q, k, v, cached keys, cached values, positions, slots): q, k and v as attention has them, of the new tokens. The
 * caches are (slots, heads, positions, size). Sample i has slot slots[i], and its tokens are at positions[i], which
 * follow one another. The op first writes k and v into the caches there, so that later runs find them: it is the only
 * op that writes what it reads, and the caches are program states that nothing else reads. Prediction only.
 */
#include "ops/common.h"

#include <inttypes.h>

#include "kernels/attention/attention.h"

enum { Q = AN_ATTENTION_Q, K = AN_ATTENTION_K, V = AN_ATTENTION_V };
enum { FLOPS_A_SCORE = 4 }; /* of an element of a head: two products of a multiplication and an addition */

static const an_attribute cached_attributes[] = {
    AN_ATTRIBUTE(an_cached_attributes, scale, FLOAT),
    AN_ATTRIBUTE(an_cached_attributes, window, INT),
    {0},
};

static an_status expect_new_tokens(an_graph *g, const an_node *node) {
    const an_result *q = an_node_input(node, Q), *k = an_node_input(node, K);
    for (int i = Q; i <= AN_CACHED_VALUES; i++) {
        AN_TRY_RETURN(an_expect_float(g, node, i));
        AN_TRY_RETURN(an_expect_ndims(g, node, i, 4, 4));
    }
    AN_TRY_RETURN(an_expect_same_shape(g, node, K, V));
    if (q->dims[0] != k->dims[0] || q->dims[2] != k->dims[2] || q->dims[3] != k->dims[3])
        return an_node_mistake(
            g, node, AN_ERR_SHAPE,
            "q is %s and k is %s: they must have the same batch, tokens and head size, as in (batch, "
            "heads, tokens, size)",
            AN_DESCRIBE(g, q), AN_DESCRIBE(g, k));
    if (q->dims[3] < 0 || q->dims[3] > AN_ATTENTION_HEAD)
        return an_node_mistake(g, node, AN_ERR_UNSUPPORTED, "q is %s: the head size must be a constant of at most %d",
                               AN_DESCRIBE(g, q), AN_ATTENTION_HEAD);
    if (q->dims[1] < 0 || k->dims[1] < 0 || q->dims[1] % k->dims[1])
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "q is %s and k is %s: the number of heads of q must be a multiple of that of k and v",
                               AN_DESCRIBE(g, q), AN_DESCRIBE(g, k));
    return AN_OK;
}

/* Whether it is only this node's: what is written in place must be read by nobody else. */
static bool is_own_state(const an_node *node, const an_result *cache) {
    for (const an_use *u = cache->first_use; u; u = u->next)
        if (u->node != node) return false;
    return cache->root == cache && cache->storage == AN_STORAGE_PROGRAM_STATE;
}

static an_status expect_cache(an_graph *g, const an_node *node) {
    const an_result *q = an_node_input(node, Q), *k = an_node_input(node, K),
                    *cache = an_node_input(node, AN_CACHED_KEYS);
    const an_result *positions = an_node_input(node, AN_CACHED_POSITIONS),
                    *slots = an_node_input(node, AN_CACHED_SLOTS);
    AN_TRY_RETURN(an_expect_same_shape(g, node, AN_CACHED_KEYS, AN_CACHED_VALUES));
    for (int i = AN_CACHED_KEYS; i <= AN_CACHED_VALUES; i++)
        if (!is_own_state(node, an_node_input(node, i)))
            return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                                   "input %d must be a program state that nothing else reads, because it is written",
                                   i);
    if (cache->dims[1] != k->dims[1] || cache->dims[3] != k->dims[3])
        return an_node_mistake(
            g, node, AN_ERR_SHAPE,
            "k is %s and the cache is %s: they must have the same heads and head size, as in (slots, "
            "heads, positions, size)",
            AN_DESCRIBE(g, k), AN_DESCRIBE(g, cache));
    AN_TRY_RETURN(an_expect_index(g, node, AN_CACHED_POSITIONS));
    AN_TRY_RETURN(an_expect_index(g, node, AN_CACHED_SLOTS));
    if (positions->ndims != 2 || positions->dims[0] != q->dims[0] || positions->dims[1] != q->dims[2] ||
        slots->ndims != 1 || slots->dims[0] != q->dims[0])
        return an_node_mistake(
            g, node, AN_ERR_SHAPE,
            "positions are %s, slots are %s and q is %s: positions must be (batch, tokens) and slots (batch)",
            AN_DESCRIBE(g, positions), AN_DESCRIBE(g, slots), AN_DESCRIBE(g, q));
    return AN_OK;
}

static an_status cached_attention_infer(an_graph *g, an_node *node) {
    static const uint8_t order[] = {0, 2, 1, 3};
    const an_cached_attributes *attributes = node->attributes;
    const an_result *q = an_node_input(node, Q), *k = an_node_input(node, K), *v = an_node_input(node, V);
    an_result *dst = an_node_output(node, 0);
    AN_TRY_RETURN(expect_new_tokens(g, node));
    AN_TRY_RETURN(expect_cache(g, node));
    if (attributes->window < 0 || attributes->window > AN_ATTENTION_FARTHEST)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT,
                               "the window is %" PRId64 ", but must be a number of keys, or 0 for all keys",
                               attributes->window);
    if (!(attributes->scale > 0 && attributes->scale <= 1e30)) /* a number that f32 can hold */
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "the scale is %g; it must be positive", attributes->scale);
    const an_dtype dtype = an_wider(an_wider(q->dtype, k->dtype), v->dtype);
    an_result_set(dst, dtype, q->ndims, q->dims);
    for (int i = 0; i < AN_COUNT(order); i++) dst->order[i] = order[i];
    an_result_set(an_node_output(node, 1), an_compute_dtype(dtype), 3, q->dims);
    return AN_OK;
}

/* With all of the cache, which it comes to in the end. */
static an_cost cached_attention_cost(const an_graph *g, const an_node *node) {
    const an_result *q = an_node_input(node, Q), *cache = an_node_input(node, AN_CACHED_KEYS);
    const double positions = an_result_elements(g, q) * (double)cache->dims[2];
    an_cost cost = an_cost_of(g, node, FLOPS_A_SCORE * positions);
    cost.functions = positions / (double)q->dims[3];
    return cost;
}

const an_op an_op_cached_attention = {
    .name = "cached_attention",
    .inputs_min = AN_CACHED_INPUTS,
    .inputs_max = AN_CACHED_INPUTS,
    .outputs = 2,
    .flags = AN_OP_NO_COPY,
    .attribute_bytes = sizeof(an_cached_attributes),
    .attributes = cached_attributes,
    .infer = cached_attention_infer,
    .cost = cached_attention_cost,
    .autocast = AN_AUTOCAST_LOW,
    .low_in = 1 << Q | 1 << K | 1 << V,
    .low_out = 1,
    .kernels = AN_KERNELS(cached_attention),
};

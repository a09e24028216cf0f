/* decoding: a model of sequences becomes one of their next tokens, so that no model is written twice.
 *
 * Every causal attention becomes cached_attention, with a cache of its own, which is a program state. Rotary positions
 * and learned ones (the first rows of a table) come from an input. Only the last token's logits are computed.
 * Everything else works on each token alone: every op is asked (an_op.along). The shapes are those of the model, and
 * `tokens` is now the number of tokens that are new. Not in pass.def: a plan that decodes is made of the changed graph.
 */
#include "pass/decoding.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ops/attention.h"
#include "ops/common.h"
#include "ops/sink.h"
#include "ops/source.h"

typedef struct {
    an_graph *g;
    const an_decoding_options *options;
    an_decoding *decoding;
    an_result *input; /* the tokens */
    an_dim batch, tokens;
    an_value positions, slots;
    int caches;
} rewriting;

static an_status refuse(const rewriting *w, const an_node *node, const char *why) {
    char place[AN_PATH_BYTES];
    an_place_describe(&node->place, node->path, node->op->name, place, sizeof place);
    return AN_ERROR(w->g->ctx, AN_ERR_UNSUPPORTED, "%sgraph '%s' cannot generate: %s", place, w->g->name, why);
}

/* ---- the ends of the model ---- */

static an_status find_output(const rewriting *w, an_node **output) {
    *output = NULL;
    for (an_node *n = w->g->first; n && !*output; n = n->next) {
        if (n->op != &an_op_output) continue;
        const an_output_attributes *a = n->attributes;
        if (w->options->output ? !strcmp(a->name, w->options->output) : !a->state) *output = n;
    }
    if (*output) return AN_OK;
    return AN_ERROR(w->g->ctx, AN_ERR_UNKNOWN, "graph '%s' cannot generate: it has no output%s%s%s", w->g->name,
                    w->options->output ? " '" : "", w->options->output ? w->options->output : "",
                    w->options->output ? "'" : "");
}

/* What decoding does not ask for: documents, because a generated sequence is one, and the numbers of samples, which
 * dropout reads in training. */
static bool is_ignored(const an_node *node, int input) {
    if (node->op == &an_op_dropout) return input > 0;
    return node->op == &an_op_attention && input >= AN_ATTENTION_DOCUMENTS && input != AN_ATTENTION_MASK;
}

/* Marks what the output is made of. */
static void mark_needed(const an_graph *g, an_node *output) {
    for (an_node *n = g->first; n; n = n->next) n->mark = n == output;
    for (an_node *n = g->last; n; n = n->previous)
        for (int i = 0; n->mark && i < n->input_count; i++)
            if (n->inputs[i].result && !is_ignored(n, i)) n->inputs[i].result->node->mark = 1;
}

static const char *symbol_name(const an_graph *g, an_dim dim) {
    const char *name;
    for (int i = 0; (name = an_graph_symbol_name(g, i)); i++)
        if (an_symbol_dim((an_graph *)(uintptr_t)g, name) == dim) return name; /* known, so nothing is added */
    return NULL;
}

static an_status find_input(rewriting *w) {
    const an_graph *g = w->g;
    an_context *ctx = g->ctx;
    for (size_t i = 0; i < g->source_count; i++) {
        an_node *n = g->sources[i];
        if (n->op != &an_op_input || !n->mark) continue;
        const char *name = ((const an_input_attributes *)n->attributes)->name;
        an_result *r = &n->outputs[0];
        if (w->input || !an_dtype_is_index(r->dtype) || r->ndims != 2)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                            "graph '%s' cannot generate: it reads '%s', which is %s, but it must read tokens alone, as "
                            "integers (batch, tokens)",
                            g->name, name, AN_DESCRIBE(g, r));
        w->input = r;
        w->decoding->input = name;
    }
    if (!w->input) return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "graph '%s' cannot generate: it reads no tokens", g->name);
    w->batch = w->input->dims[0];
    w->tokens = w->input->dims[1];
    w->decoding->batch = symbol_name(g, w->batch);
    w->decoding->tokens = symbol_name(g, w->tokens);
    if (!w->decoding->batch || !w->decoding->tokens || w->batch == w->tokens)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "graph '%s' cannot generate: '%s' is %s, but its dimensions must be two symbols", g->name,
                        w->decoding->input, AN_DESCRIBE(g, w->input));
    return AN_OK;
}

/* ---- what stands for ops that know of positions ---- */

static an_value add_cache(rewriting *w, const an_result *k, const char *what) {
    const an_dtype dtype = w->options->cache == AN_DTYPE_NONE ? k->dtype : w->options->cache;
    char name[64]; /* any int fits */
    snprintf(name, sizeof name, "cache.%d.%s", w->caches, what);
    const an_value cache =
        an_program_state(w->g, name, dtype, AN_DIMS(w->options->slots, k->dims[1], w->options->context, k->dims[3]));
    return cache;
}

static an_status replace_attention(rewriting *w, const an_node *node, an_value *value) {
    const an_attention_attributes *a = node->attributes;
    const an_result *q = an_node_input(node, AN_ATTENTION_Q), *k = an_node_input(node, AN_ATTENTION_K);
    if (!a->causal) return refuse(w, node, "its attention is not causal, so a token also depends on those after it");
    if (an_node_input(node, AN_ATTENTION_QUERY_OFFSET) || an_node_input(node, AN_ATTENTION_MASK))
        return refuse(w, node, "its attention has a query offset or a mask");
    if (q->dims[2] != w->tokens || k->dims[2] != w->tokens || q->dims[0] != w->batch || k->dims[1] < 0 ||
        k->dims[3] < 0)
        return refuse(w, node, "its attention is not over the tokens that the model reads");
    if (node->outputs[1].first_use) return refuse(w, node, "the log-sum-exp of its attention is read");
    const an_cached_attributes attributes = {.scale = a->scale, .window = a->window};
    an_value inputs[AN_CACHED_INPUTS];
    for (int i = AN_ATTENTION_Q; i <= AN_ATTENTION_V; i++) inputs[i] = an_node_input_value(w->g, node, i);
    inputs[AN_CACHED_KEYS] = add_cache(w, k, "keys");
    inputs[AN_CACHED_VALUES] = add_cache(w, k, "values");
    inputs[AN_CACHED_POSITIONS] = w->positions;
    inputs[AN_CACHED_SLOTS] = w->slots;
    *value = an_graph_add(w->g, &an_op_cached_attention, AN_COUNT(inputs), inputs, &attributes);
    w->caches++;
    return AN_OK;
}

static an_status replace_rotary(rewriting *w, const an_node *node, an_value *value) {
    const an_result *src = an_node_input(node, 0);
    if (an_node_input(node, 1)) return refuse(w, node, "its rotary positions are already given");
    if (src->dims[0] != w->batch || src->dims[2] != w->tokens)
        return refuse(w, node, "its rotary positions are not those of the tokens that the model reads");
    const an_value inputs[] = {an_node_input_value(w->g, node, 0), w->positions};
    *value = an_graph_add(w->g, &an_op_rotary, AN_COUNT(inputs), inputs, node->attributes);
    return AN_OK;
}

/* The first rows of a table of positions become those of the tokens' positions. Other slices stay. */
static an_status replace_slice(rewriting *w, const an_node *node, an_value *value) {
    const an_result *base = an_node_input(node, 0);
    const int64_t axis = *(const int64_t *)an_node_attribute(node, "axis", AN_ATTRIBUTE_INT);
    const an_dim begin = *(const an_dim *)an_node_attribute(node, "begin", AN_ATTRIBUTE_DIM);
    const an_dim end = *(const an_dim *)an_node_attribute(node, "end", AN_ATTRIBUTE_DIM);
    if (base->dims[axis] >= 0 && begin >= 0 && end >= 0) return AN_OK;
    if (base->node->op != &an_op_param || base->ndims != 2 || axis != 0 || begin != 0 || end != w->tokens)
        return refuse(w, node, "it takes a part of the tokens");
    if (w->decoding->most_context == 0 || base->dims[0] < w->decoding->most_context)
        w->decoding->most_context = base->dims[0];
    *value = an_embedding(w->g, w->positions, an_graph_value(w->g, base));
    return AN_OK;
}

/* ---- what works on each token alone ---- */

/* Axes whose sizes are no numbers: of samples, of tokens, or of both. What has none does not depend on tokens. */
static int open_axes(const an_result *r) {
    int count = 0;
    for (int i = 0; r && i < r->ndims; i++) count += r->dims[i] < 0;
    return count;
}

static int most_open_axes(const an_node *node) {
    int maximum = 0;
    for (int i = 0; i < node->input_count; i++) {
        const int count = open_axes(node->inputs[i].result);
        maximum = count > maximum ? count : maximum;
    }
    return maximum;
}

static bool keeps_axis(const an_node *node, int input, int axis, int output) {
    const an_result *src = an_node_input(node, input), *dst = &node->outputs[output];
    for (int to = 0; to < dst->ndims; to++) {
        const an_along_question q = {.node = node, .input = input, .axis = axis, .output = output, .to = to};
        if (dst->dims[to] == src->dims[axis] && node->op->along(&q) == AN_ALONG_APART) return true;
    }
    return false;
}

static bool is_read(const an_node *node, int output) {
    return output == 0 || node->outputs[output].first_use;
}

/* Whether nothing at one place of an open axis is computed from another place. */
static bool keeps_apart(const an_node *node, int input) {
    const an_result *src = an_node_input(node, input);
    for (int k = 0; k < node->output_count; k++)
        for (int axis = 0; axis < src->ndims && is_read(node, k); axis++)
            if (src->dims[axis] < 0 && !keeps_axis(node, input, axis, k)) return false;
    return true;
}

/* An output with more open axes than any input has a number for each pair of tokens. */
static bool makes_pairs(const an_node *node) {
    const int maximum = most_open_axes(node);
    for (int k = 0; k < node->output_count; k++)
        if (is_read(node, k) && open_axes(&node->outputs[k]) > maximum) return true;
    return false;
}

static bool is_token_wise(const an_node *node) {
    if (!node->op->along || makes_pairs(node)) return false;
    for (int i = 0; i < node->input_count; i++)
        if (open_axes(an_node_input(node, i)) > 0 && !is_ignored(node, i) && !keeps_apart(node, i)) return false;
    return true;
}

/* Other shapes of the same elements, which stay in their order; a split is one only along an axis of a known size. */
static bool is_view(const an_node *node) {
    const int64_t *axis = an_node_attribute(node, "axis", AN_ATTRIBUTE_INT);
    return node->op->flags & AN_OP_VIEW && (!axis || an_node_input(node, 0)->dims[*axis] >= 0);
}

static an_status keep(const rewriting *w, const an_node *node) {
    if (node->op->flags & (AN_OP_SOURCE | AN_OP_SINK) || most_open_axes(node) == 0) return AN_OK;
    if (is_view(node) || is_token_wise(node)) return AN_OK;
    return refuse(w, node,
                  "this op may compute a token from others, which only causal attention is known to do in order");
}

static an_status replace(rewriting *w, an_node *node) {
    an_context *ctx = w->g->ctx;
    an_value value = 0;
    w->g->added.before = node;
    w->g->added.origin = node;
    an_status status = node->op == &an_op_attention ? replace_attention(w, node, &value)
                       : node->op == &an_op_rotary  ? replace_rotary(w, node, &value)
                       : node->op == &an_op_slice   ? replace_slice(w, node, &value)
                                                    : keep(w, node);
    w->g->added.before = NULL;
    w->g->added.origin = NULL;
    if (status != AN_OK) return status;
    if (w->g->status != AN_OK) return AN_ERROR(ctx, w->g->status, "%s", w->g->message);
    if (value) an_result_replace(&node->outputs[0], an_graph_result(w->g, value));
    return value ? AN_OK : an_node_infer(w->g, node); /* a table of positions has samples now */
}

/* ---- the last token ---- */

static an_value last_token(const rewriting *w, an_value value) {
    return an_slice(w->g, value, -2, an_graph_subtract_dims(w->g, w->tokens, 1), w->tokens);
}

/* Of a product, and of what is added to each row, only the last row of each sample is computed. */
static an_value last_logits(const rewriting *w, const an_result *logits) {
    const an_node *n = logits->node;
    an_graph *g = w->g;
    if (n->op != &an_op_matmul && n->op != &an_op_bias) return last_token(w, an_graph_value(g, logits));
    an_value inputs[2] = {0, an_node_input_value(g, n, 1)};
    inputs[0] =
        n->op == &an_op_bias ? last_logits(w, an_node_input(n, 0)) : last_token(w, an_node_input_value(g, n, 0));
    return an_graph_add(g, n->op, n->input_count, inputs, n->attributes);
}

static an_status take_last(rewriting *w, an_node *output) {
    an_graph *g = w->g;
    an_result *logits = an_node_input(output, 0);
    if (logits->ndims != 3 || logits->dims[0] != w->batch || logits->dims[1] != w->tokens || logits->dims[2] < 0)
        return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED,
                        "graph '%s' cannot generate: '%s' is %s, but must be the logits of each token, (batch, tokens, "
                        "vocabulary)",
                        g->name, w->decoding->output, AN_DESCRIBE(g, logits));
    w->decoding->vocabulary = logits->dims[2];
    g->added.before = output;
    g->added.origin = logits->node;
    an_result *last = an_graph_result(g, last_logits(w, logits));
    g->added.before = NULL;
    g->added.origin = NULL;
    if (!last) return AN_ERROR(g->ctx, g->status, "%s", g->message);
    an_node_set_input(output, 0, last);
    return AN_OK;
}

static int64_t count_caches(const an_graph *g) {
    int64_t bytes = 0, one;
    for (size_t i = 0; i < g->source_count; i++)
        if (g->sources[i]->op == &an_op_program_state && an_result_maximum_bytes(g, &g->sources[i]->outputs[0], &one))
            bytes += (int64_t)an_round_up((size_t)one, AN_ALIGNMENT);
    return bytes;
}

an_status an_graph_make_decoding(an_graph *g, const an_decoding_options *options, an_decoding *decoding) {
    an_context *ctx = g->ctx;
    rewriting w = {.g = g, .options = options, .decoding = decoding};
    an_node *output;
    *decoding = (an_decoding){0};
    AN_TRY_RETURN(find_output(&w, &output));
    decoding->output = ((const an_output_attributes *)output->attributes)->name;
    mark_needed(g, output);
    AN_TRY_RETURN(find_input(&w));
    g->added.before = g->first;
    w.positions = an_input(g, AN_DECODING_POSITIONS, AN_DTYPE_I32, AN_DIMS(w.batch, w.tokens));
    w.slots = an_input(g, AN_DECODING_SLOTS, AN_DTYPE_I32, AN_DIMS(w.batch));
    g->added.before = NULL;
    if (g->status != AN_OK) return AN_ERROR(ctx, g->status, "%s", g->message);
    for (an_node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->mark == 1) AN_TRY_RETURN(replace(&w, n));
    }
    AN_TRY_RETURN(take_last(&w, output));
    AN_TRY_RETURN(an_graph_refresh_views(g));
    if (w.caches == 0)
        return AN_ERROR(
            ctx, AN_ERR_UNSUPPORTED,
            "graph '%s' cannot generate: it has no attention, so a token does not depend on those before it", g->name);
    g->loss = g->targets = 0;
    decoding->cache_bytes = count_caches(g);
    return an_graph_verify(g);
}

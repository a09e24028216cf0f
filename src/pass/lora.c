/* Adapters of low rank (LoRA): to every product x·Wᵀ with a chosen weight, scale · (dropout(x)·Aᵀ)·Bᵀ is added, as part
 * of the same sum, and everything but A, B and layers that are trained whole, such as a new head, is frozen.
 *
 * With DoRA, every output of the sum is then multiplied by magnitude ÷ norm of its row of W + scale · B·A
 * (ops/row_factors.c). A bias is added later, so it is not.
 *
 * It works on the model, not on the clones of a plan: A and B are parameters like others, so groups, checkpoints, ranks
 * and exports need to know nothing of them. Their names are those that PEFT gives them, without its prefix. */
#include <string.h>

#include "anneal/adapter.h"

#include "base/guard.h"
#include "base/pattern.h"
#include "base/text/nearest.h"
#include "base/word.h"
#include "ir/adapter.h"
#include "ops/ops.h"
#include "ops/product.h"
#include "ops/row_factors.h"
#include "ops/source.h"
#include "pass/frozen.h"
#include "pass/lora_config.h"
#include "pass/structs.h"

enum { MATCH_STEPS = 100000 }; /* a pattern that needs more is refused instead of being waited for */

static const char weight[] = ".weight", first_name[] = AN_ADAPTER_FIRST, second_name[] = AN_ADAPTER_SECOND;
static const char magnitude_name[] = AN_ADAPTER_MAGNITUDE;

/* The layer of a parameter: its name without ".weight". */
static size_t layer_length(const char *name) {
    return strlen(name) - (an_ends_in(name, weight) ? strlen(weight) : 0);
}

/* ---- which layers ---- */

/* The weight of a linear layer is read by products x·Wᵀ and by nothing else: a table that is also the head is none. */
static bool is_linear(const an_node *param) {
    const an_result *r = &param->outputs[0];
    if (r->ndims != 2 || !r->first_use) return false;
    for (const an_use *u = r->first_use; u; u = u->next) {
        if (u->node->op != &an_op_matmul || u->slot != 1) return false;
        const bool *left = an_node_attribute(u->node, "transpose_a", AN_ATTRIBUTE_BOOL);
        const bool *right = an_node_attribute(u->node, "transpose_b", AN_ATTRIBUTE_BOOL);
        if (*left || !*right) return false;
    }
    return true;
}

typedef struct {
    an_graph *g;
    const an_lora_options *options;
    an_adapter adapter;
    bool *chosen; /* by parameter */
} adapting;

/* Whether the pattern is found in a name; a name longer than a path cannot be, as none is. */
static an_status finds(an_context *ctx, const char *text, const pcre2_code *code, pcre2_match_data *match,
                       pcre2_match_context *limits, const char *name, bool *found) {
    const int count = pcre2_match(code, (PCRE2_SPTR)name, strlen(name), 0, 0, match, limits);
    *found = count >= 0;
    if (count >= 0 || count == PCRE2_ERROR_NOMATCH) return AN_OK;
    PCRE2_UCHAR message[128];
    pcre2_get_error_message(count, message, sizeof message);
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the pattern '%s' fails on parameter '%s': %s", text, name,
                    (const char *)message);
}

/* That a target matches nothing, with what is near: the last part of a layer's name is what people write. */
static an_status refuse_target(const adapting *a, const char *target, const char *other) {
    an_context *ctx = a->g->ctx;
    an_nearest nearest;
    an_nearest_init(&nearest, target, strlen(target));
    size_t linear = 0;
    for (size_t i = 0; i < a->g->parameter_count; i++) {
        const char *name = a->g->parameters[i].name;
        if (!is_linear(a->g->parameters[i].node)) continue;
        linear++;
        size_t end = layer_length(name), begin = end;
        while (begin > 0 && name[begin - 1] != '.') begin--;
        an_nearest_consider(&nearest, name + begin, end - begin);
    }
    if (linear == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "graph '%s' has no linear layer whose weight nothing else reads, so it cannot have an adapter",
                        a->g->name);
    for (size_t i = 0; other && i < a->g->parameter_count; i++)
        if (a->g->parameters[i].trained && !strcmp(a->g->parameters[i].name, other))
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "the target '%s' matches only '%s', which is trained whole, so an adapter would change "
                            "nothing%s",
                            target, other, AN_NEAREST(&nearest));
    if (other)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "the target '%s' matches '%s', which is not the weight of a linear layer%s", target, other,
                        AN_NEAREST(&nearest));
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "the target '%s' matches no linear layer%s ('anneal graph' lists the names of parameters)", target,
                    AN_NEAREST(&nearest));
}

/* All parameters of the layer that has this one. */
static void train_layer(an_graph *g, const char *name) {
    const char *dot = strrchr(name, '.');
    const size_t length = dot ? (size_t)(dot - name) + 1 : 0;
    for (size_t i = 0; i < g->parameter_count; i++) {
        const char *other = g->parameters[i].name;
        const bool beside = length > 0 && !strncmp(other, name, length) && !strchr(other + length, '.');
        if (beside || !strcmp(other, name)) g->parameters[i].trained = true;
    }
}

/* The layers that a pattern matches: an adapter changes them, or they are trained whole. */
static an_status choose(adapting *a, const char *target, bool whole) {
    an_status status;
    an_context *ctx = a->g->ctx;
    int error;
    PCRE2_SIZE at;
    PCRE2_UCHAR message[128];
    const char *other = NULL;
    bool any = false;
    pcre2_code *code = an_pattern_compile(target, 0, &error, &at);
    pcre2_match_data *match = code ? pcre2_match_data_create(1, NULL) : NULL;
    pcre2_match_context *limits = code ? pcre2_match_context_create(NULL) : NULL;
    if (!code) pcre2_get_error_message(error, message, sizeof message);
    AN_CHECK(ctx, code, AN_ERR_ARGUMENT, "the target '%s' is not a valid regular expression: %s, at character %zu",
             target, (const char *)message, (size_t)at + 1);
    AN_CHECK(ctx, match && limits, AN_ERR_MEMORY, "not enough memory for the target '%s'", target);
    pcre2_set_match_limit(limits, MATCH_STEPS);
    for (size_t i = 0; i < a->g->parameter_count; i++) {
        const an_parameter *p = &a->g->parameters[i];
        bool found;
        AN_TRY(finds(ctx, target, code, match, limits, p->name, &found));
        if (!found) continue;
        if (whole) {
            any = true;
            train_layer(a->g, p->name);
            continue;
        }
        if (p->trained || !is_linear(p->node)) {
            if (!other) other = p->name;
            continue;
        }
        any = a->chosen[i] = true;
    }
    if (!any && !whole) AN_TRY(refuse_target(a, target, other));
    AN_CHECK(ctx, any || a->options->from, AN_ERR_ARGUMENT,
             "'%s', which says what is trained beside the adapter, matches no parameter ('anneal graph' lists their "
             "names)",
             target);
    status = AN_OK;
fail:
    pcre2_match_context_free(limits);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return status;
}

/* ---- what is added ---- */

/* Names and sites of new nodes follow from the layer, wherever in the graph they are. */
typedef struct {
    int block;
    char path[AN_PATH_BYTES];
    size_t path_length;
} standing;

static void enter(an_graph *g, const an_node *product, const char *name, standing *before) {
    before->block = g->block;
    before->path_length = g->path_length;
    memcpy(before->path, g->path, sizeof g->path);
    const size_t length = layer_length(name);
    g->block = product->block;
    g->path_length = length < sizeof g->path ? length : sizeof g->path - 1;
    memcpy(g->path, name, g->path_length);
    g->path[g->path_length] = 0;
    g->added.before = product->next;
}

static void leave(an_graph *g, const standing *before) {
    g->block = before->block;
    g->path_length = before->path_length;
    memcpy(g->path, before->path, sizeof g->path);
    g->added.before = NULL;
}

/* Masks of dropout need the numbers of samples; a model without dropout of its own may not have them. */
static an_value find_samples(an_graph *g, an_dim batch) {
    for (size_t i = 0; i < g->source_count; i++) {
        const char **name = an_node_attribute(g->sources[i], "name", AN_ATTRIBUTE_STRING);
        if (g->sources[i]->op == &an_op_input && !strcmp(*name, "samples"))
            return an_node_output_value(g, g->sources[i], 0);
    }
    g->added.before = g->first;
    const an_value samples = an_input(g, "samples", AN_DTYPE_I64, 1, &batch);
    g->added.before = NULL;
    return samples;
}

/* What is put beside a layer. */
typedef struct {
    an_value first, second;
    an_value factors; /* of its outputs; AN_NONE: it is not DoRA */
} addition;

static void adapt_product(const adapting *a, an_node *product, const char *name, const addition *added) {
    an_graph *g = a->g;
    an_result *before = &product->outputs[0];
    an_value x = an_node_input_value(g, product, 0), samples = AN_NONE;
    standing before_it;
    if (a->options->dropout > 0) samples = find_samples(g, an_value_dim(g, x, 0));
    enter(g, product, name, &before_it);
    /* Parameters were put in front of the first product that reads them. */
    if (a->options->dropout > 0) x = an_dropout(g, x, samples, a->options->dropout);
    const an_value narrow = an_scale(g, an_matmul(g, x, added->first, false, true), an_adapter_scale(&a->adapter));
    const an_value sum = an_product_add(g, an_node_input_value(g, product, 0), an_node_input_value(g, product, 1),
                                        narrow, added->second, true);
    const an_value stretched[] = {sum, added->factors};
    const an_value last = added->factors != AN_NONE ? an_graph_add(g, &an_op_stretch, 2, stretched, NULL) : sum;
    leave(g, &before_it);
    an_result *after = an_graph_result(g, last);
    if (!after) return;
    if (g->loss == an_graph_value(g, before)) g->loss = last;
    an_result_replace(before, after);
    an_graph_remove(g, product);
}

/* The first product that reads a value, in the order of the graph. */
static an_node *first_product(const an_graph *g, const an_result *r) {
    for (an_node *n = g->first; n; n = n->next)
        for (const an_use *u = r->first_use; u; u = u->next)
            if (u->node == n) return n;
    return NULL;
}

static an_status adapt_parameter(const adapting *a, const an_parameter *p) {
    an_graph *g = a->g;
    an_context *ctx = g->ctx;
    const an_lora_options *o = a->options;
    an_result *r = &p->node->outputs[0];
    const int64_t outputs = r->dims[0], inputs = r->dims[1];
    const int64_t minimum = outputs < inputs ? outputs : inputs;
    if (o->rank > minimum)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "the rank is %lld, but '%s' is a matrix of %lld by %lld: its changes have a rank of at most "
                        "%lld; choose a lower rank",
                        (long long)o->rank, p->name, (long long)outputs, (long long)inputs, (long long)minimum);
    an_node *product = first_product(g, r);
    standing before_it;
    enter(g, product, p->name, &before_it);
    g->added.before = product;
    const an_dtype dtype = r->dtype;
    addition added = {.factors = AN_NONE};
    added.first = an_param(g, first_name + 1, dtype, AN_INITIALIZER_UNIFORM, 1 / __builtin_sqrt((double)inputs),
                           AN_DIMS(o->rank, inputs));
    added.second = an_param(g, second_name + 1, dtype, AN_INITIALIZER_CONSTANT, 0, AN_DIMS(outputs, o->rank));
    if (o->dora) {
        const an_value magnitude = an_param(g, magnitude_name + 1, dtype, AN_INITIALIZER_CONSTANT, 1, AN_DIMS(outputs));
        added.factors = an_row_factors(g, an_graph_value(g, r), added.first, added.second, magnitude,
                                       an_adapter_scale(&a->adapter));
    }
    leave(g, &before_it);
    for (const an_use *u = r->first_use, *next; u && g->status == AN_OK; u = next) {
        next = u->next;
        if (u->node->op == &an_op_matmul) adapt_product(a, u->node, p->name, &added);
    }
    return g->status == AN_OK ? AN_OK : AN_ERROR(ctx, g->status, "%s", g->message);
}

/* Parameters are numbered in the order of the graph, as they are when its text is read. */
static an_status number(an_graph *g) {
    an_status status;
    an_context *ctx = g->ctx;
    an_parameter *sorted = NULL;
    const size_t count = g->parameter_count;
    size_t done = 0;
    AN_TRY(an_alloc(ctx, (void **)&sorted, count, sizeof *sorted));
    for (const an_node *n = g->first; n && done < count; n = n->next)
        if (n->op == &an_op_param) {
            an_param_attributes *attributes = n->attributes;
            sorted[done] = g->parameters[attributes->parameter];
            attributes->parameter = (int64_t)done++;
        }
    memcpy(g->parameters, sorted, count * sizeof *sorted);
    status = AN_OK;
fail:
    an_release(ctx, (void **)&sorted, count, sizeof *sorted);
    return status;
}

/* ---- all of it ---- */

static an_status check(const adapting *a) {
    const an_graph *g = a->g;
    const an_lora_options *o = a->options;
    an_context *ctx = g->ctx;
    const double scale = o->rank > 0 ? an_adapter_scale(&a->adapter) : 1;
    if (!g->is_verified)
        return AN_ERROR(ctx, AN_ERR_STATE, "graph '%s' is not verified: call an_graph_verify after the last change",
                        g->name);
    for (size_t i = 0; i < g->parameter_count; i++)
        if (an_adapter_has(g->parameters[i].name))
            return AN_ERROR(ctx, AN_ERR_STATE, "graph '%s' already has an adapter: '%s'", g->name,
                            g->parameters[i].name);
    if (o->rank < 1 || o->rank > AN_ADAPTER_MOST_RANK)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the rank of the adapter is %lld; it must be from 1 to %d, such as 8",
                        (long long)o->rank, AN_ADAPTER_MOST_RANK);
    if (!(scale > 0 && scale < 1e30))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "alpha is %g; it must be above 0, such as twice the rank", o->alpha);
    if (!(o->dropout >= 0 && o->dropout < 1))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "the dropout of the adapter is %g; the share to drop must be at least 0 and less than 1",
                        o->dropout);
    if (o->dora && o->dropout > 0)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "DoRA with dropout is not supported, because it takes a second product with every weight; set "
                        "the dropout to 0");
    if (o->base != AN_DTYPE_NONE && o->base != AN_DTYPE_BF16 && o->base != AN_DTYPE_F16 && o->base != AN_DTYPE_Q8_0)
        return AN_ERROR(ctx, AN_ERR_DTYPE, "the base can be stored in bf16, f16 or q8_0, or as it is, not in %s",
                        an_dtype_name(o->base));
    if (o->target_count < 1 || !o->targets)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "the adapter has no targets: name the layers that it changes, such as q_proj and v_proj");
    return AN_OK;
}

an_status an_graph_add_lora(an_graph *graph, const an_lora_options *options) {
    AN_GUARD;
    AN_NEED(graph, options);
    an_status status;
    an_context *ctx = graph->ctx;
    an_lora_options own;
    an_arena arena;
    adapting a = {.g = graph, .options = &own};
    const size_t count = graph->parameter_count;
    an_arena_init(&arena, ctx);
    AN_TRY(an_lora_options_read(ctx, &own, options));
    if (own.from) AN_TRY(an_lora_config_read(&own, &arena));
    a.adapter = (an_adapter){.rank = own.rank,
                             .alpha = an_is_auto(own.alpha) ? (double)own.rank : own.alpha,
                             .dropout = own.dropout,
                             .rslora = own.rslora,
                             .dora = own.dora};
    AN_TRY(check(&a));
    AN_TRY(an_alloc(ctx, (void **)&a.chosen, count, sizeof *a.chosen));
    AN_CHECK(ctx, own.train_count >= 0 && (own.train || own.train_count == 0), AN_ERR_ARGUMENT,
             "train_count is %lld, but it is below 0, or train is NULL", (long long)own.train_count);
    for (int64_t i = 0; i < own.train_count; i++) {
        AN_CHECK(ctx, own.train[i] && *own.train[i], AN_ERR_ARGUMENT, "pattern %lld of train is empty", (long long)i);
        AN_TRY(choose(&a, own.train[i], true));
    }
    for (int i = 0; i < own.target_count; i++) {
        AN_CHECK(ctx, own.targets[i] && *own.targets[i], AN_ERR_ARGUMENT, "target %d of the adapter is empty", i);
        AN_TRY(choose(&a, own.targets[i], false));
    }
    for (size_t i = 0; i < count; i++) {
        const an_parameter p = graph->parameters[i]; /* the table moves when it grows */
        if (a.chosen[i]) AN_TRY(adapt_parameter(&a, &p));
    }
    AN_TRY(an_graph_freeze(graph, own.base));
    AN_TRY(number(graph));
    AN_TRY(an_graph_refresh_views(graph));
    AN_TRY(an_graph_verify(graph));
    graph->adapter = a.adapter;
    status = AN_OK;
fail:
    an_arena_destroy(&arena);
    an_release(ctx, (void **)&a.chosen, count, sizeof *a.chosen);
    return status;
}

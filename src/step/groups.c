/* Parameter groups. The role of a parameter follows from the ops that read it, never from its name alone. */
#include "step/groups.h"

#include <string.h>

#include "base/elementary/elementary.h"
#include "base/guard.h"
#include "base/pattern.h"
#include "ops/source.h"
#include "step/optimizer_records.h"
#include "step/structs.h"

static const double least_layer_decay = 0.5; /* less is allowed, with a warning: the first layers would hardly learn */

/* Names of parameters that do not decay, in lower case: those of layers that are written out instead of being an op. */
static const char no_decay_names[] = "bias|layernorm|rmsnorm|(^|\\.)norm(\\.|$)|_norm(\\.|$)|(^|\\.)ln_[^.]*(\\.|$)";

enum { MATCH_STEPS = 100000 }; /* a pattern that needs more is refused instead of being waited for */

/* ---- regular expressions ---- */

typedef struct {
    const char *text;
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
} pattern;

static void pattern_destroy(pattern *p) {
    pcre2_match_context_free(p->limits);
    pcre2_match_data_free(p->match);
    pcre2_code_free(p->code);
    *p = (pattern){0};
}

static an_status pattern_create(pattern *p, an_context *ctx, const char *text) {
    int error;
    PCRE2_SIZE at;
    *p = (pattern){.text = text};
    p->code = an_pattern_compile(text, 0, &error, &at);
    if (!p->code) {
        PCRE2_UCHAR message[128];
        pcre2_get_error_message(error, message, sizeof message);
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "the pattern '%s' of a group is not a valid regular expression: %s, at character %zu", text,
                        (const char *)message, (size_t)at + 1);
    }
    p->match = pcre2_match_data_create(1, NULL);
    p->limits = pcre2_match_context_create(NULL);
    if (!p->match || !p->limits) {
        pattern_destroy(p);
        return AN_ERROR(ctx, AN_ERR_MEMORY, "not enough memory for the pattern '%s'", text);
    }
    pcre2_set_match_limit(p->limits, MATCH_STEPS);
    return AN_OK;
}

static an_status pattern_finds(const pattern *p, an_context *ctx, const char *name, bool *found) {
    const int count = pcre2_match(p->code, (PCRE2_SPTR)name, strlen(name), 0, 0, p->match, p->limits);
    *found = count >= 0;
    if (count >= 0 || count == PCRE2_ERROR_NOMATCH) return AN_OK;
    PCRE2_UCHAR message[128];
    pcre2_get_error_message(count, message, sizeof message);
    return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the pattern '%s' of a group fails on parameter '%s': %s", p->text, name,
                    (const char *)message);
}

/* ---- what a parameter is for ---- */

enum { EMBEDDED_DEPTH = 8 }; /* a table of positions is added close to the tokens */

/* Whether a value is rows of a table that an embedding op took, or a sum that has them in it. */
static bool is_embedded(const an_result *result, int depth) {
    static const char *const through[] = {"add", "scale", "dropout", "cast", "reshape"};
    const an_node *node = result->node;
    if (depth == 0 || !node) return false;
    for (int i = 0; i < node->op->role_count; i++)
        if (node->op->roles[i] == AN_ROLE_EMBEDDING) return true;
    for (size_t k = 0; k < sizeof through / sizeof *through; k++) {
        if (strcmp(node->op->name, through[k]) != 0) continue;
        for (int i = 0; i < node->input_count; i++)
            if (is_embedded(an_node_input(node, i), depth - 1)) return true;
    }
    return false;
}

/* Whether a table of positions is read here: it is added to the embedding of tokens, whole or as a slice. */
static bool adds_positions(const an_use *use) {
    if (strcmp(use->node->op->name, "add") != 0) return false;
    return is_embedded(an_node_input(use->node, 1 - use->slot), EMBEDDED_DEPTH);
}

/* Roles of a value in the nodes that read it, a view of it or a cast of it, as a mask. `table`: it belongs to a
 * parameter that may be one. */
static unsigned roles_of(const an_result *result, bool table) {
    unsigned roles = 0;
    for (const an_use *use = result->first_use; use; use = use->next) {
        const an_op *op = use->node->op;
        if (use->slot < op->role_count) roles |= 1U << op->roles[use->slot];
        if (table && adds_positions(use)) roles |= 1U << AN_ROLE_EMBEDDING;
        for (int i = 0; i < use->node->output_count; i++)
            if ((use->node->outputs[i].root == result->root && result->root) || op->flags & AN_OP_CONVERTS)
                roles |= roles_of(&use->node->outputs[i], table);
    }
    return roles;
}

static bool has_role(unsigned roles, an_role role) {
    return (roles >> role & 1U) != 0;
}

/* ---- sorting ---- */

typedef struct {
    an_graph *graph;
    const an_group_options *options;
    an_group_rule *rules; /* of the options, as this library knows them */
    pattern *patterns;    /* of the rules, then that of names */
    int64_t *matched;     /* parameters that each rule has */
    double weight_decay;
    int deepest;
} sorting;

/* A name in lower case, as far as letters of ASCII go. */
static void lower(const char *name, char *out, size_t capacity) {
    size_t i = 0;
    for (; name[i] && i + 1 < capacity; i++) out[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);
    out[i] = 0;
}

static an_status decays(const sorting *s, const an_parameter *p, unsigned roles, bool *result) {
    an_context *ctx = s->graph->ctx;
    if (!s->options->decay_embeddings && has_role(roles, AN_ROLE_EMBEDDING)) {
        *result = false;
        return AN_OK;
    }
    if (s->options->decay == AN_DECAY_DIM) {
        *result = p->node->outputs[0].ndims >= 2;
        return AN_OK;
    }
    bool named = has_role(roles, AN_ROLE_NORM_WEIGHT) || has_role(roles, AN_ROLE_NORM_BIAS);
    if (!named) {
        char name[AN_PATH_BYTES];
        lower(p->name, name, sizeof name);
        AN_TRY_RETURN(pattern_finds(&s->patterns[s->options->rule_count], ctx, name, &named));
    }
    *result = !named;
    return AN_OK;
}

/* The factor of a depth; a graph from a file may name any. */
static double depth_factor(double decay, int deepest, int depth) {
    return an_pow_f64(decay, (double)deepest - (double)depth);
}

/* What group a parameter must have. */
static an_status describe(const sorting *s, const an_parameter *p, an_group *group) {
    an_context *ctx = s->graph->ctx;
    const unsigned roles = roles_of(&p->node->outputs[0], p->node->outputs[0].ndims >= 2);
    bool does;
    *group = (an_group){.match = "", .first = p->name, .lr_scale = 1};
    AN_TRY_RETURN(decays(s, p, roles, &does));
    group->weight_decay = does ? s->weight_decay : 0;
    if (s->options->layer_decay != 1) group->lr_scale = depth_factor(s->options->layer_decay, s->deepest, p->depth);
    group->tied = has_role(roles, AN_ROLE_EMBEDDING) && has_role(roles, AN_ROLE_WEIGHT);
    group->frozen = p->node->outputs[0].storage == AN_STORAGE_FROZEN;
    for (int i = 0; i < s->options->rule_count; i++) {
        const an_group_rule *rule = &s->rules[i];
        bool found;
        AN_TRY_RETURN(pattern_finds(&s->patterns[i], ctx, p->name, &found));
        if (!found) continue;
        s->matched[i]++;
        group->match = rule->match;
        group->lr_scale *= rule->lr_scale;
        if (!an_is_auto(rule->weight_decay)) group->weight_decay = rule->weight_decay;
        group->frozen = group->frozen || rule->freeze;
        break;
    }
    if (group->frozen) group->lr_scale = group->weight_decay = 0;
    return AN_OK;
}

static bool same_group(const an_group *a, const an_group *b) {
    return !strcmp(a->match, b->match) && a->lr_scale == b->lr_scale && a->weight_decay == b->weight_decay &&
           a->frozen == b->frozen;
}

static an_status add_parameter(an_groups *g, const an_parameter *p, const an_group *wanted, int64_t elements) {
    int index = 0;
    while (index < g->count && !same_group(&g->groups[index], wanted)) index++;
    if (index == g->count) {
        an_group *added = &g->groups[g->count];
        *added = *wanted;
        added->tied = 0;
        AN_TRY_RETURN(an_arena_string(&g->arena, &added->match, wanted->match, strlen(wanted->match)));
        AN_TRY_RETURN(an_arena_string(&g->arena, &added->first, p->name, strlen(p->name)));
        g->count++;
    }
    g->groups[index].tensors++;
    g->groups[index].elements += elements;
    g->groups[index].tied += wanted->tied;
    an_grouped *member = &g->members[g->member_count++];
    member->group = index;
    return an_arena_string(&g->arena, &member->name, p->name, strlen(p->name));
}

static int64_t count_elements(const an_result *r) {
    int64_t elements = 1;
    for (int d = 0; d < r->ndims; d++) elements *= r->dims[d]; /* constants: a parameter has no symbols */
    return elements;
}

static bool is_factor(double x) {
    return x >= 0 && __builtin_isfinite(x);
}

static bool is_decay(double x) {
    return an_is_auto(x) || is_factor(x);
}

static an_status check_options(an_context *ctx, const an_group_options *o) {
    an_status status;
    AN_CHECK(ctx, is_decay(o->weight_decay), AN_ERR_ARGUMENT, "weight_decay is %g; it must be 0 or more",
             o->weight_decay);
    AN_CHECK(ctx, o->decay == AN_DECAY_DIM || o->decay == AN_DECAY_NAMES, AN_ERR_ARGUMENT,
             "decay is %d, which is not a value of an_decay", (int)o->decay);
    AN_CHECK(ctx, o->optimizer_name || an_optimizer_builtin(o->optimizer), AN_ERR_ARGUMENT,
             "optimizer is %d, which is not a value of an_optimizer_type", (int)o->optimizer);
    AN_CHECK(ctx, o->layer_decay > 0 && is_factor(o->layer_decay), AN_ERR_ARGUMENT,
             "layer_decay is %g; the factor on the learning rate from one layer to the one before it must be positive "
             "(0.85 to 0.95 is usual)",
             o->layer_decay);
    if (o->layer_decay < least_layer_decay || o->layer_decay > 1)
        an_log_write(ctx, AN_LOG_WARNING,
                     "layer_decay is %g: every layer gets %g times the learning rate of the one after it (0.85 to 0.95 "
                     "is usual)",
                     o->layer_decay, o->layer_decay);
    AN_CHECK(ctx, o->rule_count == 0 || (o->rule_count > 0 && o->rules), AN_ERR_ARGUMENT,
             "rule_count is %d, but rules is NULL", o->rule_count);
    return AN_OK;
fail:
    return status;
}

static an_status read_rules(an_context *ctx, const an_group_options *o, an_group_rule *rules) {
    an_status status;
    for (int i = 0; i < o->rule_count; i++) {
        const an_group_rule *rule = &rules[i];
        AN_TRY(an_group_rule_read_at(ctx, &rules[i], o->rules, i));
        AN_CHECK(ctx, rule->match, AN_ERR_ARGUMENT, "group rule %d has no pattern", i);
        AN_CHECK(ctx, is_factor(rule->lr_scale), AN_ERR_ARGUMENT,
                 "the lr_scale of group rule %d is %g; it must be 0 or more", i, rule->lr_scale);
        AN_CHECK(ctx, is_decay(rule->weight_decay), AN_ERR_ARGUMENT,
                 "the weight_decay of group rule %d is %g; it must be 0 or more", i, rule->weight_decay);
    }
    return AN_OK;
fail:
    return status;
}

/* Without blocks all parameters have one depth, and the decay would do nothing. */
static an_status find_depths(sorting *s) {
    const an_graph *g = s->graph;
    const double decay = s->options->layer_decay;
    int minimum = g->parameter_count > 0 ? g->parameters[0].depth : 0;
    s->deepest = minimum;
    for (size_t i = 0; i < g->parameter_count; i++) {
        const int depth = g->parameters[i].depth;
        if (depth > s->deepest) s->deepest = depth;
        if (depth < minimum) minimum = depth;
    }
    if (decay == 1 || minimum < s->deepest) return AN_OK;
    return AN_ERROR(g->ctx, AN_ERR_ARGUMENT,
                    "layer_decay is %g, but the model '%s' has no blocks of different depth, so every parameter would "
                    "get the same learning rate; remove layer_decay, or set the depth of blocks with an_block_begin",
                    decay, g->name);
}

an_status an_groups_create(an_groups **groups, an_graph *graph, const an_group_options *options) {
    AN_GUARD;
    AN_NEED(graph, groups);
    an_status status;
    an_context *ctx = graph->ctx;
    an_group_options own;
    an_groups *g = NULL;
    const an_optimizer_record *record;
    sorting s = {.graph = graph, .options = &own};
    int rules = 0;
    *groups = NULL;
    AN_TRY(an_group_options_read(ctx, &own, options));
    AN_TRY(check_options(ctx, &own));
    rules = own.rule_count;
    AN_TRY(an_alloc(ctx, (void **)&s.rules, (size_t)rules + 1, sizeof *s.rules));
    AN_TRY(read_rules(ctx, &own, s.rules));
    AN_CHECK(ctx, graph->status == AN_OK, AN_ERR_STATE, "graph '%s' has a mistake: call an_graph_verify to see it",
             graph->name);
    AN_TRY(an_optimizer_record_get(&record, ctx, own.optimizer, own.optimizer_name));
    s.weight_decay = an_is_auto(own.weight_decay) ? record->weight_decay : own.weight_decay;
    AN_TRY(an_alloc(ctx, (void **)&g, 1, sizeof *g));
    g->ctx = ctx;
    an_arena_init(&g->arena, ctx);
    AN_TRY(an_arena_alloc(&g->arena, (void **)&g->groups, graph->parameter_count, sizeof *g->groups));
    AN_TRY(an_arena_alloc(&g->arena, (void **)&g->members, graph->parameter_count, sizeof *g->members));
    AN_TRY(an_alloc(ctx, (void **)&s.patterns, (size_t)rules + 1, sizeof *s.patterns));
    AN_TRY(an_alloc(ctx, (void **)&s.matched, (size_t)rules + 1, sizeof *s.matched));
    for (int i = 0; i <= rules; i++)
        AN_TRY(pattern_create(&s.patterns[i], ctx, i < rules ? s.rules[i].match : no_decay_names));
    AN_TRY(find_depths(&s));
    for (size_t i = 0; i < graph->parameter_count; i++) {
        const an_parameter *p = &graph->parameters[i];
        an_group wanted;
        AN_TRY(describe(&s, p, &wanted));
        AN_TRY(add_parameter(g, p, &wanted, count_elements(&p->node->outputs[0])));
    }
    for (int i = 0; i < rules; i++)
        AN_CHECK(ctx, s.matched[i] > 0, AN_ERR_ARGUMENT,
                 "the pattern '%s' of a group matches no parameter%s; 'anneal graph' lists their names",
                 s.rules[i].match, i ? " that earlier groups have not already matched" : "");
    for (size_t i = 0; i < graph->parameter_count; i++)
        if (g->groups[g->members[i].group].frozen)
            an_param_freeze(graph, an_node_output_value(graph, graph->parameters[i].node, 0));
    *groups = g;
    g = NULL;
    status = AN_OK;
fail:
    for (int i = 0; s.patterns && i <= rules; i++) pattern_destroy(&s.patterns[i]);
    an_release(ctx, (void **)&s.matched, (size_t)rules + 1, sizeof *s.matched);
    an_release(ctx, (void **)&s.patterns, (size_t)rules + 1, sizeof *s.patterns);
    an_release(ctx, (void **)&s.rules, (size_t)rules + 1, sizeof *s.rules);
    an_groups_destroy(&g);
    return status;
}

void an_groups_destroy(an_groups **groups) {
    an_groups *g = groups ? *groups : NULL;
    if (!g) return;
    an_context *ctx = g->ctx;
    an_arena_destroy(&g->arena);
    an_release(ctx, (void **)groups, 1, sizeof *g);
}

bool an_groups_train(const an_groups *groups) {
    for (int i = 0; i < groups->count; i++)
        if (!groups->groups[i].frozen) return true;
    return false;
}

int an_groups_count(const an_groups *groups) {
    AN_NEED_OR(0, groups);
    return groups->count;
}

an_status an_groups_get(const an_groups *groups, int index, an_group_info *info) {
    AN_GUARD;
    AN_NEED(groups, info);
    an_status status;
    an_context *ctx = groups->ctx;
    AN_TRY(an_group_info_check(ctx, info));
    AN_CHECK(ctx, index >= 0 && index < groups->count, AN_ERR_ARGUMENT, "group %d does not exist; there are %d", index,
             groups->count);
    const an_group *g = &groups->groups[index];
    const an_group_info own = {.match = g->match,
                               .tensors = g->tensors,
                               .elements = g->elements,
                               .lr_scale = g->lr_scale,
                               .weight_decay = g->weight_decay,
                               .frozen = g->frozen,
                               .tied = g->tied,
                               .first = g->first};
    return an_group_info_write(ctx, info, &own);
fail:
    return status;
}

an_status an_groups_find(const an_groups *groups, const char *parameter, int *index) {
    AN_NEED(groups, parameter, index);
    for (size_t i = 0; i < groups->member_count; i++)
        if (!strcmp(groups->members[i].name, parameter)) {
            *index = groups->members[i].group;
            return AN_OK;
        }
    return AN_ERROR(groups->ctx, AN_ERR_UNKNOWN, "there is no parameter '%s' in the groups", parameter);
}

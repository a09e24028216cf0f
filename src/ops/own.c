/* Ops and kernels of the program: their records, checked and turned into the library's. */
#include <string.h>

#include "base/guard.h"
#include "ir/kernel_name.h"
#include "ops/common.h"

/* A record of the program as passes see it, and what only this file asks. The op is the first member, so a
 * node's op leads back to it. */
typedef struct {
    an_op op;
    const char *(*infer)(const an_own_node *node, an_own_output *outputs);
    void (*gradient)(const an_own_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src);
    double flops;
    void *user;
} own_record;

static const own_record *record_of(const an_node *node) {
    return (const own_record *)node->op;
}

/* ---- what passes ask ---- */

typedef struct {
    an_value inputs[AN_MAX_INPUTS], outputs[AN_MAX_OUTPUTS];
    an_own_node node;
} seen_node;

/* It points into itself, so it stays where it is. */
static void show_node(an_graph *g, const an_node *node, bool has_outputs, seen_node *seen) {
    for (int i = 0; i < node->input_count; i++) seen->inputs[i] = an_node_input_value(g, node, i);
    for (int i = 0; has_outputs && i < node->output_count; i++) seen->outputs[i] = an_node_output_value(g, node, i);
    seen->node = (an_own_node){.graph = g,
                               .user = record_of(node)->user,
                               .attributes = node->attributes,
                               .input_count = node->input_count,
                               .output_count = node->output_count,
                               .inputs = seen->inputs,
                               .outputs = has_outputs ? seen->outputs : NULL};
}

static an_status check_output(an_graph *g, const an_node *node, int i, const an_own_output *output) {
    if (an_dtype_size(output->dtype) == 0 || output->ndims < 0 || output->ndims > AN_MAX_DIMS)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "its infer gave output %d the type %d and %d dimensions", i,
                               (int)output->dtype, output->ndims);
    for (int d = 0; d < output->ndims; d++) AN_TRY_RETURN(an_graph_expect_dimension(g, output->dims[d]));
    return AN_OK;
}

static an_status own_infer(an_graph *g, an_node *node) {
    an_context *ctx = g->ctx;
    an_own_output outputs[AN_MAX_OUTPUTS] = {0};
    seen_node seen;
    const char *mistake;
    const uint32_t nodes = g->next_node;
    for (int i = 0; i < record_of(node)->op.inputs_min; i++)
        if (!an_node_input(node, i))
            return an_node_mistake(g, node, AN_ERR_ARGUMENT, "input %d is absent, and the op needs it", i);
    show_node(g, node, false, &seen);
    AN_HOST(mistake = record_of(node)->infer(&seen.node, outputs));
    if (mistake) return an_node_mistake(g, node, AN_ERR_SHAPE, "%.400s", mistake);
    if (g->status != AN_OK) return AN_ERROR(ctx, g->status, "%s", g->message);
    if (g->next_node != nodes)
        return an_node_mistake(g, node, AN_ERR_STATE, "its infer added nodes; only its gradient may do that");
    for (int i = 0; i < node->output_count; i++) {
        AN_TRY_RETURN(check_output(g, node, i, &outputs[i]));
        an_result_set(&node->outputs[i], outputs[i].dtype, outputs[i].ndims, outputs[i].dims);
    }
    return AN_OK;
}

static void own_grad(an_graph *g, const an_node *node, const an_value *diff_dst, uint32_t want, an_value *diff_src) {
    seen_node seen;
    show_node(g, node, true, &seen);
    AN_HOST(record_of(node)->gradient(&seen.node, diff_dst, want, diff_src));
    for (int i = 0; i < node->input_count && g->status == AN_OK; i++) {
        const an_result *input = an_node_input(node, i), *diff = an_graph_result(g, diff_src[i]);
        if (!(want >> i & 1) || diff_src[i] == 0) continue;
        bool fits = diff && an_dtype_is_float(diff->dtype) && diff->ndims == input->ndims;
        for (int d = 0; fits && d < diff->ndims; d++) fits = diff->dims[d] == input->dims[d];
        if (!diff)
            an_node_mistake(g, node, AN_ERR_ARGUMENT, "its gradient of input %d is not a value of the graph", i);
        else if (!fits)
            an_node_mistake(g, node, AN_ERR_SHAPE, "its gradient of input %d is %s, but the input is %s", i,
                            AN_DESCRIBE(g, diff), AN_DESCRIBE(g, input));
    }
}

static an_cost own_cost(const an_graph *g, const an_node *node) {
    return an_cost_elementwise(g, node, record_of(node)->flops);
}

/* ---- along ---- */

static an_along rows_along(const an_along_question *q) {
    const int last = an_node_input(q->node, q->input)->ndims - 1;
    return q->axis < last && q->to == q->axis ? AN_ALONG_APART : AN_ALONG_MIXED;
}

static an_along (*const along_of_reach[])(const an_along_question *q) = {
    [AN_REACH_ALL] = NULL,
    [AN_REACH_SAMPLE] = an_along_first,
    [AN_REACH_ROW] = rows_along,
    [AN_REACH_ELEMENT] = an_along_elements,
};

/* ---- checking records ---- Each function returns what is wrong, NULL if nothing is. */

/* Names stand in graphs, in lists "op=kernel,op=kernel" and in messages. */
static bool is_name(const char *name) {
    if (!name || *name < 'a' || *name > 'z' || strlen(name) > AN_MAX_OWN_NAME) return false;
    for (; *name; name++)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') || *name == '_')) return false;
    return true;
}

static const char *kernel_mistake(const an_kernel *k) {
    if (!is_name(k->name)) return "a kernel's name is small letters, digits and _, beginning with a letter";
    if (!k->run) return "a kernel has no function run";
    if (!k->kept != !k->keep) return "a kernel has one of kept and keep; they go together";
    return NULL;
}

static const char *kernels_mistake(const an_kernel *kernels) {
    const char *mistake = kernels && kernels->name ? NULL : "it has no kernels";
    for (const an_kernel *k = kernels; !mistake && k->name; k++) {
        mistake = kernel_mistake(k);
        for (const an_kernel *other = kernels; !mistake && other != k; other++)
            if (!strcmp(other->name, k->name)) mistake = "two of its kernels have the same name";
    }
    return mistake;
}

static const struct {
    size_t bytes, alignment;
} attribute_types[] = {
    [AN_ATTRIBUTE_INT] = {sizeof(int64_t), _Alignof(int64_t)},
    [AN_ATTRIBUTE_BOOL] = {sizeof(bool), _Alignof(bool)},
    [AN_ATTRIBUTE_FLOAT] = {sizeof(double), _Alignof(double)},
    [AN_ATTRIBUTE_STRING] = {sizeof(char *), _Alignof(char *)},
    [AN_ATTRIBUTE_DTYPE] = {sizeof(an_dtype), _Alignof(an_dtype)},
    [AN_ATTRIBUTE_DIM] = {sizeof(an_dim), _Alignof(an_dim)},
    [AN_ATTRIBUTE_DIMS] = {sizeof(an_dim_list), _Alignof(an_dim_list)},
    [AN_ATTRIBUTE_INTS] = {sizeof(an_int_list), _Alignof(an_int_list)},
};

static const char *attribute_mistake(const an_own_op *own, const an_attribute *a) {
    if (!is_name(a->name)) return "an attribute's name is small letters, digits and _, beginning with a letter";
    if ((unsigned)a->type >= AN_COUNT(attribute_types)) return "an attribute has a type that does not exist";
    if (a->noted) return "an attribute is marked as noted, which is for passes";
    const size_t bytes = attribute_types[a->type].bytes;
    if (bytes > own->attribute_bytes || a->offset > own->attribute_bytes - bytes ||
        a->offset % attribute_types[a->type].alignment)
        return "an attribute does not lie inside attribute_bytes, at an offset that its type may have";
    for (const an_attribute *other = own->attributes; other != a; other++) {
        if (!strcmp(other->name, a->name)) return "two attributes have the same name";
        if (a->offset < other->offset + attribute_types[other->type].bytes && other->offset < a->offset + bytes)
            return "two attributes share bytes";
    }
    return NULL;
}

static const char *attributes_mistake(const an_own_op *own) {
    const char *mistake = NULL;
    int count = 0;
    if (own->attribute_bytes > AN_MAX_ATTRIBUTE_BYTES) return "it has more than 1024 bytes of attributes";
    if (!own->attribute_bytes != !own->attributes)
        return "it has one of attributes and attribute_bytes; they go together";
    for (const an_attribute *a = own->attributes; !mistake && a && a->name; a++)
        mistake = ++count > AN_MAX_ATTRIBUTES ? "it has more than 32 attributes" : attribute_mistake(own, a);
    return mistake;
}

/* Bits above the first `count`. */
static bool has_more(uint32_t mask, int count) {
    return count < 32 && mask >> count;
}

static const char *record_mistake(const an_own_op *own) {
    if (own->inputs_min < 1 || own->inputs_min > own->inputs_max || own->inputs_max > AN_MAX_INPUTS)
        return "it takes inputs_min to inputs_max inputs, which are 1 to 32";
    if (own->outputs < 1 || own->outputs > AN_MAX_OUTPUTS) return "it has 1 to 32 outputs";
    if (!own->infer) return "it has no function infer";
    if (!(own->flops >= 0 && __builtin_isfinite(own->flops))) return "flops is not a number from 0 on";
    if ((unsigned)own->reach >= AN_COUNT(along_of_reach)) return "its reach does not exist";
    if ((unsigned)own->autocast > AN_AUTOCAST_F32) return "its autocast does not exist";
    if (has_more(own->low_in, own->inputs_max) || has_more(own->dense, own->inputs_max) ||
        has_more(own->in_place, own->inputs_max) || has_more(own->low_out, own->outputs))
        return "low_in, dense, in_place or low_out has a bit for an input or output that it does not have";
    const char *mistake = attributes_mistake(own);
    return mistake ? mistake : kernels_mistake(own->kernels);
}

/* ---- adding an op ---- */

static an_status copy_kernels(an_arena *arena, const an_kernel *from, const an_kernel **copied) {
    an_kernel *to = NULL;
    size_t count = 0;
    while (from[count].name) count++;
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&to, count + 1, sizeof *to));
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        AN_TRY_RETURN(an_arena_string(arena, &to[i].name, from[i].name, strlen(from[i].name)));
    }
    *copied = to;
    return AN_OK;
}

static an_status copy_attribute_table(an_arena *arena, const an_attribute *from, const an_attribute **copied) {
    an_attribute *to = NULL;
    size_t count = 0;
    *copied = NULL;
    if (!from) return AN_OK;
    while (from[count].name) count++;
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&to, count + 1, sizeof *to));
    for (size_t i = 0; i < count; i++) {
        to[i] = from[i];
        AN_TRY_RETURN(an_arena_string(arena, &to[i].name, from[i].name, strlen(from[i].name)));
    }
    *copied = to;
    return AN_OK;
}

static an_status make_record(an_arena *arena, const an_own_op *own, const an_op **made) {
    own_record *r = NULL;
    AN_TRY_RETURN(an_arena_alloc(arena, (void **)&r, 1, sizeof *r));
    r->infer = own->infer;
    r->gradient = own->gradient;
    r->flops = own->flops == 0 ? 1 : own->flops;
    r->user = own->user;
    r->op = (an_op){.inputs_min = own->inputs_min,
                    .inputs_max = own->inputs_max,
                    .outputs = own->outputs,
                    .flags = AN_OP_OWN,
                    .attribute_bytes = own->attribute_bytes,
                    .infer = own_infer,
                    .grad = own->gradient ? own_grad : NULL,
                    .along = along_of_reach[own->reach],
                    .cost = own_cost,
                    .autocast = own->autocast,
                    .low_in = own->low_in,
                    .low_out = own->low_out,
                    .dense = own->dense,
                    .in_place = own->in_place};
    AN_TRY_RETURN(an_arena_string(arena, &r->op.name, own->name, strlen(own->name)));
    AN_TRY_RETURN(copy_attribute_table(arena, own->attributes, &r->op.attributes));
    AN_TRY_RETURN(copy_kernels(arena, own->kernels, &r->op.kernels[0]));
    *made = &r->op;
    return AN_OK;
}

an_status an_context_add_op(an_context *ctx, const an_own_op *op) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, op);
    an_op_registry *registry = NULL;
    an_added_op *added = NULL;
    if (op->size != sizeof *op)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "an_own_op has size %zu, expected %zu: set it to sizeof(an_own_op), and compile again",
                        op->size, sizeof *op);
    if (!is_name(op->name))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "the name of an own op is at most %d small letters, digits and _, beginning with a letter",
                        AN_MAX_OWN_NAME);
    const an_op *other = an_op_find(ctx, op->name, strlen(op->name));
    if (other)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s is already the name of an op, %s: give the own op another name",
                        op->name, other->flags & AN_OP_OWN ? "which was added before" : "one of the library's");
    const char *mistake = record_mistake(op);
    if (mistake) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the record of op %s: %s", op->name, mistake);
    AN_TRY_RETURN(an_registry_own(ctx, &registry));
    AN_TRY_RETURN(an_arena_alloc(&registry->arena, (void **)&added, 1, sizeof *added));
    AN_TRY_RETURN(make_record(&registry->arena, op, &added->op));
    added->next = registry->ops;
    registry->ops = added;
    return AN_OK;
}

/* ---- adding a kernel ---- */

an_status an_context_add_kernel(an_context *ctx, const char *op, const an_kernel *kernel) {
    AN_NEED_IN(ctx, ctx, op, kernel);
    const an_op *found = an_op_find(ctx, op, strlen(op));
    an_op_registry *registry = NULL;
    an_added_kernel *added = NULL;
    if (!found) return AN_ERROR(ctx, AN_ERR_UNKNOWN, "there is no op '%.80s' to add a kernel for", op);
    if (!found->kernels[0])
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s has no kernels: it is a view, a source or a sink, and nothing runs",
                        found->name);
    const char *mistake = kernel_mistake(kernel);
    if (mistake) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "a kernel for %s: %s", found->name, mistake);
    an_choices choices = an_op_choices(ctx, found);
    for (const an_kernel *k; (k = an_choices_next(&choices, NULL));)
        if (an_kernel_has_name(k->name, kernel->name, strlen(kernel->name)))
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s has a kernel '%s' already: give the new one another name",
                            found->name, kernel->name);
    AN_TRY_RETURN(an_registry_own(ctx, &registry));
    AN_TRY_RETURN(an_arena_alloc(&registry->arena, (void **)&added, 1, sizeof *added));
    added->op = found;
    added->kernel = *kernel;
    AN_TRY_RETURN(an_arena_string(&registry->arena, &added->kernel.name, kernel->name, strlen(kernel->name)));
    added->next = registry->kernels;
    registry->kernels = added;
    return AN_OK;
}

/* ---- the builder ---- */

/* Lists and types in a struct of the program's, before anything walks over them. */
static an_status check_attributes(an_graph *g, const an_op *op, const void *attributes) {
    for (const an_attribute *a = op->attributes; attributes && a && a->name; a++) {
        const void *at = (const char *)attributes + a->offset;
        const bool is_list = a->type == AN_ATTRIBUTE_DIMS || a->type == AN_ATTRIBUTE_INTS;
        const int count = a->type == AN_ATTRIBUTE_DIMS   ? ((const an_dim_list *)at)->count
                          : a->type == AN_ATTRIBUTE_INTS ? ((const an_int_list *)at)->count
                                                         : 0;
        if (is_list && (count < 0 || count > AN_MAX_DIMS))
            return an_graph_mistake(g, AN_ERR_ARGUMENT, "attribute '%s' of %s has %d numbers; at most %d fit", a->name,
                                    op->name, count, AN_MAX_DIMS);
        if (a->type == AN_ATTRIBUTE_DTYPE && *(const an_dtype *)at != AN_DTYPE_NONE &&
            an_dtype_size(*(const an_dtype *)at) == 0)
            return an_graph_mistake(g, AN_ERR_ARGUMENT, "attribute '%s' of %s is no dtype", a->name, op->name);
    }
    return AN_OK;
}

static an_status find_own(an_graph *g, const char *name, const an_op **op) {
    *op = an_op_find(g->ctx, name, strlen(name));
    if (!*op)
        return an_graph_mistake(g, AN_ERR_UNKNOWN, "there is no op '%.80s': add it with an_context_add_op first", name);
    if (!((*op)->flags & AN_OP_OWN))
        return an_graph_mistake(g, AN_ERR_ARGUMENT, "%s is an op of the library: call its builder, an_%s", (*op)->name,
                                (*op)->name);
    return AN_OK;
}

an_value(an_own)(an_graph *graph, const char *op, int input_count, const an_value *inputs, const void *attributes) {
    AN_GUARD;
    AN_NEED_OR(0, graph, op, inputs);
    const an_op *found = NULL;
    an_value value = 0;
    an_builder_begin(graph);
    if (graph->status == AN_OK && find_own(graph, op, &found) == AN_OK &&
        check_attributes(graph, found, attributes) == AN_OK)
        value = an_graph_add(graph, found, input_count, inputs, attributes);
    return an_builder_end(graph, value);
}

an_status an_kernel_fail(const an_call *call, an_status status, const char *message) {
    AN_NEED_OR(AN_ERR_ARGUMENT, call, message);
    if (status == AN_OK) return AN_OK;
    return AN_ERROR(call->ctx, status, "%s", message);
}

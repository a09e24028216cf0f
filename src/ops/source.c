/* Sources: where values come from. They have no inputs and no kernel; `storage` says where their value lies. */
#include "ops/source.h"

#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/q8_0.h"
#include "ops/common.h"

static bool is_dtype(an_dtype dtype) {
    return dtype > AN_DTYPE_NONE && dtype <= AN_DTYPE_U8;
}

static an_status infer_shape(an_graph *g, an_node *node, an_dtype dtype, const an_dim_list *dims) {
    if (!is_dtype(dtype)) return an_node_mistake(g, node, AN_ERR_DTYPE, "a source needs a type");
    if (dims->count < 0 || dims->count > AN_MAX_DIMS)
        return an_node_mistake(g, node, AN_ERR_SHAPE, "there are %d dimensions; 0 to %d are possible", dims->count,
                               AN_MAX_DIMS);
    an_result_set(&node->outputs[0], dtype, dims->count, dims->values);
    return AN_OK;
}

static an_status expect_name(an_graph *g, const an_node *node, const char *name) {
    return name && *name ? AN_OK : an_node_mistake(g, node, AN_ERR_ARGUMENT, "it needs a name");
}

static an_status expect_constant_dims(an_graph *g, const an_node *node, const an_dim_list *dims, const char *why) {
    for (int i = 0; i < dims->count; i++)
        if (dims->values[i] < 0)
            return an_node_mistake(g, node, AN_ERR_SHAPE, "dimension %d contains a symbol, but %s", i, why);
    return AN_OK;
}

static an_status input_infer(an_graph *g, an_node *node) {
    const an_input_attributes *a = node->attributes;
    AN_TRY_RETURN(expect_name(g, node, a->name));
    return infer_shape(g, node, a->dtype, &a->dims);
}

static an_status state_infer(an_graph *g, an_node *node) {
    const an_state_attributes *a = node->attributes;
    AN_TRY_RETURN(expect_name(g, node, a->name));
    AN_TRY_RETURN(expect_constant_dims(g, node, &a->dims, "a state keeps its size from run to run: use its maximum"));
    if (node->op == &an_op_run_state && !an_dtype_is_float(a->dtype))
        return an_node_mistake(g, node, AN_ERR_DTYPE, "a run state must be floating-point, not %s",
                               an_dtype_name(a->dtype));
    return infer_shape(g, node, a->dtype, &a->dims);
}

static an_status scalar_infer(an_graph *g, an_node *node) {
    const an_scalar_attributes *a = node->attributes;
    AN_TRY_RETURN(expect_name(g, node, a->name));
    return infer_shape(g, node, a->dtype, &(an_dim_list){0});
}

static an_status constant_infer(an_graph *g, an_node *node) {
    const an_constant_attributes *a = node->attributes;
    return infer_shape(g, node, a->dtype, &(an_dim_list){0});
}

static an_status param_infer(an_graph *g, an_node *node) {
    const an_param_attributes *a = node->attributes;
    an_dtype dtype = a->copy != AN_DTYPE_NONE ? a->copy : a->dtype;
    AN_TRY_RETURN(expect_name(g, node, a->name));
    AN_TRY_RETURN(expect_constant_dims(g, node, &a->dims, "the shape of a parameter must be constant"));
    const bool has_blocks = a->dtype == AN_DTYPE_Q8_0 && dtype == a->dtype && a->frozen;
    if (!has_blocks && (!an_dtype_is_float(a->dtype) || !an_dtype_is_float(dtype)))
        return an_node_mistake(g, node, AN_ERR_DTYPE,
                               "a parameter must be f32 or f64 (if frozen, also bf16, f16 or q8_0), not %s",
                               an_dtype_name(an_dtype_is_float(a->dtype) ? dtype : a->dtype));
    if (has_blocks && (a->dims.count != 2 || a->dims.values[1] % AN_Q8_0_ELEMENTS != 0))
        return an_node_mistake(g, node, AN_ERR_SHAPE,
                               "a parameter of q8_0 must be a matrix with a multiple of %d columns", AN_Q8_0_ELEMENTS);
    if (!a->frozen && a->dtype != AN_DTYPE_F32 && a->dtype != AN_DTYPE_F64)
        return an_node_mistake(g, node, AN_ERR_DTYPE,
                               "a trainable parameter must be f32 or f64, not %s: choose lower precision in the plan",
                               an_dtype_name(a->dtype));
    if (a->initializer < AN_INITIALIZER_CONSTANT || a->initializer > AN_INITIALIZER_UNIFORM)
        return an_node_mistake(g, node, AN_ERR_ARGUMENT, "initializer %lld does not exist", (long long)a->initializer);
    node->outputs[0].storage = a->frozen                  ? AN_STORAGE_FROZEN
                               : a->copy != AN_DTYPE_NONE ? AN_STORAGE_LOW
                                                          : AN_STORAGE_MASTER;
    if (!has_blocks) return infer_shape(g, node, dtype, &a->dims);
    an_result_set(&node->outputs[0], dtype, a->dims.count, a->dims.values);
    return AN_OK;
}

/* Numbers are given in order of registration, also to parameters that come from text. */
static an_status param_added(an_graph *g, an_node *node) {
    an_param_attributes *a = node->attributes;
    if (a->copy != AN_DTYPE_NONE) return AN_OK; /* its master is registered */
    a->parameter = (int64_t)g->parameter_count;
    return an_graph_register_parameter(g, node, a->name);
}

static an_status scalar_added(an_graph *g, an_node *node) {
    if (g->scalar_count == AN_MAX_SCALARS)
        return an_node_mistake(g, node, AN_ERR_OVERFLOW, "a graph may have at most %d scalars", AN_MAX_SCALARS);
    g->scalars[g->scalar_count++] = an_graph_value(g, &node->outputs[0]);
    return AN_OK;
}

#define NAMED(type) AN_ATTRIBUTE(type, name, STRING), AN_ATTRIBUTE(type, dtype, DTYPE)
static const an_attribute input_attributes[] = {
    NAMED(an_input_attributes), AN_ATTRIBUTE(an_input_attributes, dims, DIMS), {0}};
static const an_attribute param_attributes[] = {NAMED(an_param_attributes),
                                                AN_ATTRIBUTE(an_param_attributes, dims, DIMS),
                                                AN_ATTRIBUTE(an_param_attributes, frozen, BOOL),
                                                AN_ATTRIBUTE(an_param_attributes, initializer, INT),
                                                AN_ATTRIBUTE(an_param_attributes, scale, FLOAT),
                                                AN_ATTRIBUTE_NOTED(an_param_attributes, parameter, INT),
                                                AN_ATTRIBUTE_NOTED(an_param_attributes, copy, DTYPE),
                                                AN_ATTRIBUTE_NOTED(an_param_attributes, layout, INT),
                                                {0}};
static const an_attribute state_attributes[] = {NAMED(an_state_attributes),
                                                AN_ATTRIBUTE(an_state_attributes, dims, DIMS),
                                                AN_ATTRIBUTE(an_state_attributes, initial, FLOAT),
                                                {0}};
static const an_attribute scalar_attributes[] = {NAMED(an_scalar_attributes), {0}};
static const an_attribute constant_attributes[] = {
    AN_ATTRIBUTE(an_constant_attributes, dtype, DTYPE), AN_ATTRIBUTE(an_constant_attributes, value, FLOAT), {0}};

#define SOURCE(op, place, kind, register_source)           \
    const an_op an_op_##op = {                             \
        .name = #op,                                       \
        .outputs = 1,                                      \
        .flags = AN_OP_SOURCE,                             \
        .storage = AN_STORAGE_##place,                     \
        .attribute_bytes = sizeof(an_##kind##_attributes), \
        .attributes = kind##_attributes,                   \
        .infer = kind##_infer,                             \
        .added = register_source,                          \
    };
SOURCE(input, INPUT, input, an_graph_register_source)
SOURCE(param, MASTER, param, param_added)
SOURCE(run_state, STATE, state, an_graph_register_source)
SOURCE(program_state, PROGRAM_STATE, state, an_graph_register_source)
SOURCE(scalar, SCALAR, scalar, scalar_added)
SOURCE(constant, CONSTANT, constant, NULL)

/* ---- builders ---- */

an_value an_param_copy(an_graph *g, const an_node *param, an_dtype dtype) {
    an_param_attributes attributes = *(const an_param_attributes *)param->attributes;
    attributes.copy = dtype;
    an_value copy = an_graph_add(g, &an_op_param, 0, NULL, &attributes);
    an_result *r = an_graph_result(g, copy);
    if (r)
        r->place = param->outputs[0].place / (int64_t)an_dtype_size(attributes.dtype) * (int64_t)an_dtype_size(dtype);
    return copy;
}

/* Copies the dimensions; false after a mistake. */
static bool take_dims(an_graph *g, an_dim_list *list, int ndims, const an_dim *dims) {
    if (ndims < 0 || ndims > AN_MAX_DIMS) {
        an_graph_mistake(g, AN_ERR_SHAPE, "there are %d dimensions; 0 to %d are possible", ndims, AN_MAX_DIMS);
        return false;
    }
    if (!an_expect_list(g, "dimensions", ndims, dims)) return false;
    list->count = ndims;
    for (int i = 0; i < ndims; i++) list->values[i] = dims[i];
    return true;
}

an_value an_input(an_graph *graph, const char *name, an_dtype dtype, int ndims, const an_dim *dims) {
    AN_NEED_OR(0, graph);
    an_input_attributes a = {.name = name, .dtype = dtype};
    an_builder_begin(graph);
    if (!take_dims(graph, &a.dims, ndims, dims)) return an_builder_end(graph, 0);
    return an_builder_end(graph, an_graph_add(graph, &an_op_input, 0, NULL, &a));
}

static const char *full_name(an_graph *g, const char *name, char *buffer, size_t capacity) {
    if (!name || !*name || g->path_length == 0) return name;
    if ((size_t)snprintf(buffer, capacity, "%s.%s", g->path, name) >= capacity)
        an_graph_mistake(g, AN_ERR_OVERFLOW, "the name '%s.%.40s…' is longer than %zu bytes", g->path, name, capacity);
    return buffer;
}

static an_value add_param(an_graph *g, const char *name, an_dtype dtype, bool frozen, an_initializer initializer,
                          double scale, int ndims, const an_dim *dims) {
    char buffer[AN_PATH_BYTES];
    an_param_attributes a = {.dtype = dtype, .frozen = frozen, .initializer = initializer, .scale = scale};
    an_builder_begin(g);
    a.name = full_name(g, name, buffer, sizeof buffer);
    if (g->status != AN_OK || !take_dims(g, &a.dims, ndims, dims)) return an_builder_end(g, 0);
    return an_builder_end(g, an_graph_add(g, &an_op_param, 0, NULL, &a));
}

an_value an_param(an_graph *graph, const char *name, an_dtype dtype, an_initializer initializer, double scale,
                  int ndims, const an_dim *dims) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    return add_param(graph, name, dtype, false, initializer, scale, ndims, dims);
}

an_value an_frozen_param(an_graph *graph, const char *name, an_dtype dtype, an_initializer initializer, double scale,
                         int ndims, const an_dim *dims) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    return add_param(graph, name, dtype, true, initializer, scale, ndims, dims);
}

void an_param_freeze(an_graph *graph, an_value param) {
    AN_NEED_OR(, graph);
    an_result *r = an_graph_result(graph, param);
    if (graph->status != AN_OK) return;
    if (!r || r->node->op != &an_op_param) {
        an_graph_mistake(graph, AN_ERR_ARGUMENT, "an_param_freeze takes a parameter");
        return;
    }
    ((an_param_attributes *)r->node->attributes)->frozen = true;
    r->storage = AN_STORAGE_FROZEN;
}

static an_value add_state(an_graph *g, const an_op *op, const char *name, an_dtype dtype, double initial, int ndims,
                          const an_dim *dims) {
    char buffer[AN_PATH_BYTES];
    an_state_attributes a = {.dtype = dtype, .initial = initial};
    an_builder_begin(g);
    a.name = full_name(g, name, buffer, sizeof buffer);
    if (g->status != AN_OK || !take_dims(g, &a.dims, ndims, dims)) return an_builder_end(g, 0);
    return an_builder_end(g, an_graph_add(g, op, 0, NULL, &a));
}

an_value an_run_state(an_graph *graph, const char *name, an_dtype dtype, double initial, int ndims,
                      const an_dim *dims) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    return add_state(graph, &an_op_run_state, name, dtype, initial, ndims, dims);
}

an_value an_program_state(an_graph *graph, const char *name, an_dtype dtype, int ndims, const an_dim *dims) {
    AN_NEED_OR(0, graph);
    return add_state(graph, &an_op_program_state, name, dtype, 0, ndims, dims);
}

an_value an_scalar(an_graph *graph, const char *name, an_dtype dtype) {
    AN_NEED_OR(0, graph);
    an_scalar_attributes a = {.name = name, .dtype = dtype};
    return an_graph_add(graph, &an_op_scalar, 0, NULL, &a);
}

an_value an_scalar_shared(an_graph *g, const char *name, an_dtype dtype) {
    /* Scalars are made before what reads them and are few; a search over sources costs O(nodes) once a name, so the
     * found value is remembered in a small table. */
    for (int i = 0; i < g->scalar_count; i++) {
        const an_result *r = an_graph_result(g, g->scalars[i]);
        const char **known = r ? an_node_attribute(r->node, "name", AN_ATTRIBUTE_STRING) : NULL;
        if (known && !strcmp(*known, name)) return g->scalars[i];
    }
    return an_scalar(g, name, dtype);
}

/* One stored number, seen in every element. */
an_value an_constant(an_graph *graph, an_dtype dtype, double value, int ndims, const an_dim *dims) {
    AN_GUARD;
    AN_NEED_OR(0, graph);
    an_constant_attributes a = {.dtype = dtype, .value = value};
    an_builder_begin(graph);
    an_value constant = an_graph_add(graph, &an_op_constant, 0, NULL, &a);
    return an_builder_end(graph, ndims == 0 ? constant : an_expand(graph, constant, ndims, dims));
}

#include "interchange/onnx/model.h"

#include <string.h>

#include "interchange/model_nodes.h"
#include "interchange/onnx/nodes.h"

/* Field numbers of onnx.proto. */
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_PRODUCER_VERSION = 3, MODEL_DOCUMENTATION = 6, MODEL_GRAPH = 7 };
enum { MODEL_OPSET = 8, MODEL_METADATA = 14, OPSET_VERSION = 2, ENTRY_KEY = 1, ENTRY_VALUE = 2 };
enum { GRAPH_NAME = 2, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, INFO_NAME = 1, INFO_TYPE = 2, TYPE_TENSOR = 1 };
enum { TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2, SHAPE_DIM = 1, DIM_VALUE = 1, DIM_NAME = 2 };
enum { TENSOR_EXTERNAL = 13, TENSOR_LOCATION = 14, LOCATION_EXTERNAL = 1 };

void an_onnx_parts_init(an_onnx_parts *parts, an_context *ctx) {
    an_text_init(&parts->model, ctx);
    an_text_init(&parts->graph, ctx);
}

void an_onnx_parts_destroy(an_onnx_parts *parts) {
    an_text_destroy(&parts->model);
    an_text_destroy(&parts->graph);
}

/* ---- which nodes are needed ---- */

static an_status mark_inputs(const an_graph *g, const an_node *node) {
    const int read = an_onnx_form_of(node->op).inputs, count = read ? read : node->input_count;
    for (int i = 0; i < count; i++) {
        const an_result *r = an_node_input(node, i);
        if (!r) continue;
        r->node->mark = 1;
        if (r->output > 0 && !an_onnx_form_of(r->node->op).many)
            return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED,
                            "the model reads output %d of the op '%s', which ONNX does not have", r->output,
                            r->node->op->name);
    }
    return AN_OK;
}

static an_status mark(const an_graph *g) {
    an_context *ctx = g->ctx;
    bool any = false;
    for (an_node *n = g->first; n; n = n->next) {
        n->mark = an_node_is_wanted(n);
        any = any || n->mark;
    }
    if (!any) return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the model has no output: set one with an_graph_set_output");
    for (an_node *n = g->last; n; n = n->previous) {
        if (!n->mark) continue;
        const bool is_known =
            an_onnx_form_of(n->op).write || an_node_is_wanted(n) || an_node_is_parameter(n) || an_node_is_input(n);
        if (!is_known)
            return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the op '%s'%s%s cannot be exported to ONNX", n->op->name,
                            *n->path ? " in " : "", n->path);
        AN_TRY_RETURN(mark_inputs(g, n));
    }
    return AN_OK;
}

/* ONNX has one space of names for inputs, weights, outputs and all that is between them, which begins with a slash
 * here. */
static an_status check_names(const an_graph *g) {
    for (const an_node *n = g->first; n; n = n->next) {
        const bool is_source = n->mark && (an_node_is_parameter(n) || an_node_is_input(n));
        if (!is_source && !an_node_is_wanted(n)) continue;
        const char *name = an_node_name(n);
        if (*name == '/')
            return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED,
                            "the name '%s' begins with a slash, which is kept for values inside the ONNX model",
                            AN_QUOTE(name));
        for (const an_node *m = g->first; m != n; m = m->next) {
            const bool is_other = m->mark && (an_node_is_parameter(m) || an_node_is_input(m) || an_node_is_wanted(m));
            if (is_other && !strcmp(an_node_name(m), name))
                return AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED,
                                "two of the model's inputs, weights and outputs are called '%s'; in ONNX, all of them "
                                "need names of their own",
                                AN_QUOTE(name));
        }
    }
    return AN_OK;
}

/* ---- inputs and outputs ---- */

static void describe(an_onnx *o, an_text *graph, int field, const char *name, const an_result *r) {
    an_text shape, dim, outer;
    an_text_init(&shape, o->graph->ctx);
    an_text_init(&dim, o->graph->ctx);
    an_text_init(&outer, o->graph->ctx);
    for (int i = 0; i < r->ndims; i++) {
        if (r->dims[i] >= 0) {
            an_proto_integer(&dim, DIM_VALUE, r->dims[i]);
        } else {
            an_dimensions_print(&o->graph->dimensions, r->dims[i], &outer);
            if (outer.status == AN_OK) an_proto_string(&dim, DIM_NAME, outer.bytes);
            outer.length = 0;
        }
        an_proto_message(&shape, SHAPE_DIM, &dim);
    }
    an_proto_integer(&dim, TENSOR_ELEMENT, an_onnx_dtype(r->dtype));
    an_proto_message(&dim, TENSOR_SHAPE, &shape);
    an_proto_message(&shape, TYPE_TENSOR, &dim);
    an_proto_string(&outer, INFO_NAME, name);
    an_proto_message(&outer, INFO_TYPE, &shape);
    an_proto_message(graph, field, &outer);
    an_text_destroy(&outer);
    an_text_destroy(&dim);
    an_text_destroy(&shape);
}

/* The last node of the ONNX graph gives the output its name. */
static void write_output(an_onnx *o, const an_node *node) {
    enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4 };
    char name[AN_ONNX_NAME];
    const an_onnx_value value = o->values[an_node_input(node, 0)->number];
    an_proto_string(&o->node, NODE_INPUT, an_onnx_name(o, value, name, sizeof name));
    an_proto_string(&o->node, NODE_OUTPUT, an_node_name(node));
    an_proto_string(&o->node, NODE_OP, "Identity");
    an_proto_message(&o->nodes, AN_ONNX_NODE, &o->node);
}

/* ---- all of it ---- */

static an_status write_nodes(an_onnx *o) {
    for (const an_node *n = o->graph->first; n && o->status == AN_OK; n = n->next) {
        if (!n->mark) continue;
        if (an_node_is_wanted(n)) {
            write_output(o, n);
        } else if (an_node_is_parameter(n) || an_node_is_input(n)) {
            o->values[n->outputs[0].number] = an_onnx_source(&n->outputs[0]);
        } else {
            const an_onnx_value first = an_onnx_node(o, n);
            const int count = an_onnx_form_of(n->op).many ? n->output_count : 1;
            for (int i = 0; i < count; i++) o->values[n->outputs[i].number] = first + i;
        }
    }
    return o->status != AN_OK ? o->status : o->nodes.status != AN_OK ? o->nodes.status : o->constants.status;
}

static an_status write_graph(an_onnx *o, an_text *graph, an_onnx_weights weights) {
    AN_TRY_RETURN(write_nodes(o));
    an_text_bytes(graph, o->nodes.length ? o->nodes.bytes : "", o->nodes.length);
    an_proto_string(graph, GRAPH_NAME, o->graph->name && *o->graph->name ? o->graph->name : "model");
    an_text_bytes(graph, o->constants.length ? o->constants.bytes : "", o->constants.length);
    for (const an_node *n = o->graph->first; n; n = n->next)
        if (n->mark && (an_node_is_input(n) || (weights == AN_ONNX_WEIGHTS_GIVEN && an_node_is_parameter(n))))
            describe(o, graph, GRAPH_INPUT, an_node_name(n), &n->outputs[0]);
    for (const an_node *n = o->graph->first; n; n = n->next)
        if (an_node_is_wanted(n)) describe(o, graph, GRAPH_OUTPUT, an_node_name(n), an_node_input(n, 0));
    return graph->status;
}

static an_status write_model(an_text *model, const char *title, const char *encoding) {
    an_text inside;
    an_text_init(&inside, model->ctx);
    an_proto_integer(model, MODEL_IR, AN_ONNX_IR);
    an_proto_string(model, MODEL_PRODUCER, "anneal");
    an_proto_string(model, MODEL_PRODUCER_VERSION, an_version());
    an_proto_string(model, MODEL_DOCUMENTATION, title);
    an_proto_integer(&inside, OPSET_VERSION, AN_ONNX_OPSET);
    an_proto_message(model, MODEL_OPSET, &inside);
    if (encoding) {
        an_proto_string(&inside, ENTRY_KEY, "encoding");
        an_proto_string(&inside, ENTRY_VALUE, encoding);
        an_proto_message(model, MODEL_METADATA, &inside);
    }
    an_text_destroy(&inside);
    return model->status;
}

static an_status allocate(an_onnx *o) {
    an_context *ctx = o->graph->ctx;
    const size_t results = o->graph->result_count;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&o->values, results, sizeof *o->values));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&o->sizes, o->size_count, sizeof *o->sizes));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&o->symbols, o->symbol_count, sizeof *o->symbols));
    for (size_t i = 0; i < results; i++) o->values[i] = AN_ONNX_NONE;
    for (size_t i = 0; i < o->size_count; i++) o->sizes[i] = AN_ONNX_NONE;
    for (size_t i = 0; i < o->symbol_count; i++) o->symbols[i] = AN_ONNX_NONE;
    return AN_OK;
}

an_status an_onnx_write(an_onnx_parts *parts, an_graph *graph, const char *title, const char *encoding,
                        an_onnx_weights weights) {
    an_status status;
    an_context *ctx = graph->ctx;
    const size_t results = graph->result_count;
    an_onnx o = {.graph = graph,
                 .size_count = graph->dimensions.expression_count,
                 .symbol_count = graph->dimensions.symbol_count};
    an_text *const texts[] = {&o.nodes, &o.constants, &o.attributes, &o.node};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) an_text_init(texts[i], ctx);
    AN_TRY(allocate(&o));
    AN_TRY(mark(graph));
    AN_TRY(check_names(graph));
    AN_TRY(write_graph(&o, &parts->graph, weights));
    AN_TRY(write_model(&parts->model, title, encoding));
    status = AN_OK;
fail:
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) an_text_destroy(texts[i]);
    an_release(ctx, (void **)&o.symbols, o.symbol_count, sizeof *o.symbols);
    an_release(ctx, (void **)&o.sizes, o.size_count, sizeof *o.sizes);
    an_release(ctx, (void **)&o.values, results, sizeof *o.values);
    return status;
}

void an_onnx_graph_head(an_text *text, uint64_t bytes) {
    an_proto_head(text, MODEL_GRAPH, bytes);
}

static void add_entry(an_text *tensor, const char *key, const char *value) {
    an_text entry;
    an_text_init(&entry, tensor->ctx);
    an_proto_string(&entry, ENTRY_KEY, key);
    an_proto_string(&entry, ENTRY_VALUE, value);
    an_proto_message(tensor, TENSOR_EXTERNAL, &entry);
    an_text_destroy(&entry);
}

static void add_number(an_text *tensor, const char *key, uint64_t number) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    add_entry(tensor, key, digits);
}

void an_onnx_weight(an_text *text, const char *name, an_dtype dtype, int ndims, const int64_t *dims, uint64_t bytes,
                    const char *file, uint64_t begin) {
    an_text tensor;
    an_text_init(&tensor, text->ctx);
    for (int i = 0; i < ndims; i++) an_proto_integer(&tensor, AN_ONNX_TENSOR_DIMS, dims[i]);
    an_proto_integer(&tensor, AN_ONNX_TENSOR_TYPE, an_onnx_dtype(dtype));
    an_proto_string(&tensor, AN_ONNX_TENSOR_NAME, name);
    if (file) {
        add_entry(&tensor, "location", file);
        add_number(&tensor, "offset", begin);
        add_number(&tensor, "length", bytes);
        an_proto_integer(&tensor, TENSOR_LOCATION, LOCATION_EXTERNAL);
        an_proto_message(text, AN_ONNX_INITIALIZER, &tensor);
    } else {
        an_proto_head(text, AN_ONNX_INITIALIZER,
                      tensor.length + an_proto_head_bytes(AN_ONNX_TENSOR_BYTES, bytes) + bytes);
        an_text_bytes(text, tensor.length ? tensor.bytes : "", tensor.length);
        an_proto_head(text, AN_ONNX_TENSOR_BYTES, bytes);
        if (tensor.status != AN_OK) text->status = tensor.status;
    }
    an_text_destroy(&tensor);
}

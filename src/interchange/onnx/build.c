#include "interchange/onnx/build.h"

#include <stdio.h>
#include <string.h>

#include "interchange/model_nodes.h"

/* Field numbers of onnx.proto. */
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_FLOAT = 2, ATTRIBUTE_INT = 3, ATTRIBUTE_INTS = 8, ATTRIBUTE_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 };

/* ---- values ---- */

an_onnx_value an_onnx_source(const an_result *result) {
    return -2 - (an_onnx_value)result->number;
}

an_onnx_value an_onnx_input(const an_onnx *o, const an_node *node, int input) {
    const an_result *r = an_node_input(node, input);
    return r ? o->values[r->number] : AN_ONNX_NONE;
}

const char *an_onnx_name(const an_onnx *o, an_onnx_value value, char *buffer, size_t capacity) {
    if (value == AN_ONNX_NONE) return "";
    if (value < AN_ONNX_NONE) return an_node_name(o->graph->results[-2 - value]->node);
    snprintf(buffer, capacity, "/%lld", (long long)value); /* no parameter has a name that begins so */
    return buffer;
}

int an_onnx_dtype(an_dtype dtype) {
    static const int numbers[] = {[AN_DTYPE_F32] = 1, [AN_DTYPE_F64] = 11, [AN_DTYPE_BF16] = 16, [AN_DTYPE_F16] = 10,
                                  [AN_DTYPE_I32] = 6, [AN_DTYPE_I64] = 7,  [AN_DTYPE_U8] = 2};
    return numbers[dtype];
}

/* ---- attributes and nodes ---- */

static void add_attribute(an_onnx *o, const char *name, int type) {
    an_proto_string(&o->node, ATTRIBUTE_NAME, name);
    an_proto_integer(&o->node, ATTRIBUTE_TYPE, type);
    an_proto_message(&o->attributes, NODE_ATTRIBUTE, &o->node);
}

void an_onnx_int(an_onnx *o, const char *name, int64_t value) {
    an_proto_integer(&o->node, ATTRIBUTE_INT, value);
    add_attribute(o, name, TYPE_INT);
}

void an_onnx_ints(an_onnx *o, const char *name, size_t count, const int64_t *values) {
    for (size_t i = 0; i < count; i++) an_proto_integer(&o->node, ATTRIBUTE_INTS, values[i]);
    add_attribute(o, name, TYPE_INTS);
}

void an_onnx_float(an_onnx *o, const char *name, double value) {
    an_proto_float(&o->node, ATTRIBUTE_FLOAT, (float)value);
    add_attribute(o, name, TYPE_FLOAT);
}

an_onnx_value an_onnx_add(an_onnx *o, const char *op, int outputs, int inputs, const an_onnx_value *values) {
    char name[AN_ONNX_NAME];
    const an_onnx_value first = o->count;
    while (inputs > 0 && values[inputs - 1] == AN_ONNX_NONE) inputs--; /* an empty name at the end ends ONNX Runtime */
    for (int i = 0; i < inputs; i++)
        an_proto_string(&o->node, NODE_INPUT, an_onnx_name(o, values[i], name, sizeof name));
    for (int i = 0; i < outputs; i++)
        an_proto_string(&o->node, NODE_OUTPUT, an_onnx_name(o, o->count++, name, sizeof name));
    an_proto_string(&o->node, NODE_OP, op);
    an_text_bytes(&o->node, o->attributes.length ? o->attributes.bytes : "", o->attributes.length);
    if (o->attributes.status != AN_OK) o->node.status = o->attributes.status;
    o->attributes.length = 0;
    an_proto_message(&o->nodes, AN_ONNX_NODE, &o->node);
    return first;
}

/* ---- constants ---- */

static an_onnx_value add_constant(an_onnx *o, int type, int ndims, size_t count, const void *bytes, size_t length) {
    char name[AN_ONNX_NAME];
    if (ndims > 0) an_proto_integer(&o->node, AN_ONNX_TENSOR_DIMS, (int64_t)count);
    an_proto_integer(&o->node, AN_ONNX_TENSOR_TYPE, type);
    an_proto_string(&o->node, AN_ONNX_TENSOR_NAME, an_onnx_name(o, o->count, name, sizeof name));
    an_proto_bytes(&o->node, AN_ONNX_TENSOR_BYTES, bytes, length);
    an_proto_message(&o->constants, AN_ONNX_INITIALIZER, &o->node);
    return o->count++;
}

static an_onnx_value add_reals(an_onnx *o, an_dtype dtype, int ndims, size_t count, const double *values) {
    an_text bytes;
    an_text_init(&bytes, o->graph->ctx);
    for (size_t i = 0; i < count; i++) {
        const float single = (float)values[i];
        if (dtype == AN_DTYPE_F64)
            an_text_bytes(&bytes, (const char *)&values[i], sizeof values[i]);
        else
            an_text_bytes(&bytes, (const char *)&single, sizeof single);
    }
    const an_dtype stored = dtype == AN_DTYPE_F64 ? dtype : AN_DTYPE_F32;
    an_onnx_value value = AN_ONNX_NONE;
    if (bytes.status != AN_OK)
        o->status = bytes.status;
    else
        value = add_constant(o, an_onnx_dtype(stored), ndims, count, bytes.bytes, bytes.length);
    an_text_destroy(&bytes);
    return stored == dtype ? value : an_onnx_cast(o, value, dtype);
}

an_onnx_value an_onnx_real(an_onnx *o, an_dtype dtype, double value) {
    return add_reals(o, dtype, 0, 1, &value);
}

an_onnx_value an_onnx_reals(an_onnx *o, size_t count, const double *values) {
    return add_reals(o, AN_DTYPE_F64, 1, count, values);
}

an_onnx_value an_onnx_integer(an_onnx *o, int64_t value) {
    return add_constant(o, an_onnx_dtype(AN_DTYPE_I64), 0, 1, &value, sizeof value);
}

an_onnx_value an_onnx_integers(an_onnx *o, size_t count, const int64_t *values) {
    return add_constant(o, an_onnx_dtype(AN_DTYPE_I64), 1, count, values, count * sizeof *values);
}

/* ---- sizes ---- */

/* From the first input that has the symbol as a dimension. */
static an_onnx_value symbol_size(an_onnx *o, int symbol) {
    an_graph *g = o->graph;
    const char *name = g->dimensions.symbols[symbol].name;
    const an_dim dim = an_symbol_dim(g, name);
    if (o->symbols[symbol] != AN_ONNX_NONE) return o->symbols[symbol];
    for (const an_node *n = g->first; n; n = n->next) {
        if (!n->mark || !an_node_is_input(n)) continue;
        for (int d = 0; d < n->outputs[0].ndims; d++) {
            if (n->outputs[0].dims[d] != dim) continue;
            an_onnx_int(o, "start", d);
            an_onnx_int(o, "end", d + 1);
            return o->symbols[symbol] = AN_ONNX(o, "Shape", an_onnx_source(&n->outputs[0]));
        }
    }
    if (o->status == AN_OK)
        o->status = AN_ERROR(g->ctx, AN_ERR_UNSUPPORTED,
                             "the model needs the size '%s', which is no dimension of an input: it cannot be exported "
                             "to ONNX",
                             name);
    return AN_ONNX_NONE;
}

static an_onnx_value atom_size(an_onnx *o, int64_t number) {
    const an_atom atom = o->graph->dimensions.atoms[number]; /* a copy: a symbol that is asked for may move the table */
    if (atom.symbol >= 0) return symbol_size(o, atom.symbol);
    const an_onnx_value source = an_onnx_size(o, atom.source), size = an_onnx_integers(o, 1, &atom.size);
    const an_onnx_value room = AN_ONNX(o, "Sub", source, size), stride = an_onnx_integers(o, 1, &atom.stride);
    const an_onnx_value moves = AN_ONNX(o, "Div", room, stride), one = an_onnx_integers(o, 1, (int64_t[]){1});
    return AN_ONNX(o, "Add", moves, one);
}

/* The words of an expression are, for each term, a coefficient, the number of its atoms and these. */
an_onnx_value an_onnx_size(an_onnx *o, an_dim dim) {
    if (dim >= 0) return an_onnx_integers(o, 1, (int64_t[]){dim});
    const size_t which = (size_t)(-1 - dim);
    const bool is_kept = which < o->size_count; /* an expression of a node; others are made on the way */
    if (is_kept && o->sizes[which] != AN_ONNX_NONE) return o->sizes[which];
    const an_expression e = o->graph->dimensions.expressions[which];
    an_onnx_value sum = AN_ONNX_NONE;
    for (int at = 0; at < e.count;) {
        const int64_t coefficient = e.words[at], atoms = e.words[at + 1];
        an_onnx_value term = AN_ONNX_NONE;
        if (coefficient != 1 || atoms == 0) term = an_onnx_integers(o, 1, &coefficient);
        for (int64_t i = 0; i < atoms; i++) {
            const an_onnx_value atom = atom_size(o, e.words[at + 2 + i]);
            term = term == AN_ONNX_NONE ? atom : AN_ONNX(o, "Mul", term, atom);
        }
        sum = sum == AN_ONNX_NONE ? term : AN_ONNX(o, "Add", sum, term);
        at += 2 + (int)atoms;
    }
    if (is_kept) o->sizes[which] = sum;
    return sum;
}

an_onnx_value an_onnx_shape(an_onnx *o, int count, const an_dim *dims) {
    an_onnx_value sizes[AN_MAX_DIMS];
    bool constant = true;
    for (int i = 0; i < count; i++) constant = constant && dims[i] >= 0;
    if (constant) return an_onnx_integers(o, (size_t)count, dims);
    for (int i = 0; i < count; i++) sizes[i] = an_onnx_size(o, dims[i]);
    an_onnx_int(o, "axis", 0);
    return an_onnx_add(o, "Concat", 1, count, sizes);
}

/* ---- what several ops need ---- */

an_onnx_value an_onnx_cast(an_onnx *o, an_onnx_value value, an_dtype dtype) {
    an_onnx_int(o, "to", an_onnx_dtype(dtype));
    return AN_ONNX(o, "Cast", value);
}

an_onnx_value an_onnx_transpose_last(an_onnx *o, an_onnx_value value, int ndims) {
    int64_t axes[AN_MAX_DIMS];
    for (int i = 0; i < ndims; i++) axes[i] = i;
    axes[ndims - 2] = ndims - 1;
    axes[ndims - 1] = ndims - 2;
    an_onnx_ints(o, "perm", (size_t)ndims, axes);
    return AN_ONNX(o, "Transpose", value);
}

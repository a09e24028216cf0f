/* The nodes and constants of an ONNX graph, one after the other. */
#ifndef AN_INTERCHANGE_ONNX_BUILD_H
#define AN_INTERCHANGE_ONNX_BUILD_H

#include "formats/proto.h"
#include "ir/graph.h"

enum { AN_ONNX_OPSET = 17, AN_ONNX_IR = 8 }; /* of 2022: with LayerNormalization, and what every runtime has by now */

/* Field numbers of onnx.proto that more than one file writes. */
enum { AN_ONNX_NODE = 1, AN_ONNX_INITIALIZER = 5, AN_ONNX_TENSOR_DIMS = 1, AN_ONNX_TENSOR_TYPE = 2 };
enum { AN_ONNX_TENSOR_NAME = 8, AN_ONNX_TENSOR_BYTES = 9 };

/* A value of the ONNX graph: at least 0, one that a node or a constant gives; below AN_ONNX_NONE, a source of the
 * model, which has its own name. */
typedef int64_t an_onnx_value;
enum { AN_ONNX_NONE = -1 };

typedef struct an_onnx {
    an_graph *graph;
    an_onnx_value *values; /* of each result of the graph */
    an_onnx_value *sizes;  /* of each expression of dimensions: its value, or NONE as long as nobody has asked */
    an_onnx_value *symbols;
    an_text nodes, constants; /* fields of the ONNX graph */
    an_text attributes, node; /* of the node that comes next */
    int64_t count;            /* of values so far */
    size_t size_count, symbol_count;
    an_status status; /* the first error that is not a text's */
} an_onnx;

an_onnx_value an_onnx_source(const an_result *result);
an_onnx_value an_onnx_input(const an_onnx *o, const an_node *node, int input); /* NONE: it is absent */
/* "" for NONE. At most `capacity` bytes; names of sources are not cut. */
const char *an_onnx_name(const an_onnx *o, an_onnx_value value, char *buffer, size_t capacity);
enum { AN_ONNX_NAME = 32 };

/* ---- attributes of the next node ---- */
void an_onnx_int(an_onnx *o, const char *name, int64_t value);
void an_onnx_ints(an_onnx *o, const char *name, size_t count, const int64_t *values);
void an_onnx_float(an_onnx *o, const char *name, double value);

/* ---- nodes ---- The first of `outputs` values in a row is returned. */
an_onnx_value an_onnx_add(an_onnx *o, const char *op, int outputs, int inputs, const an_onnx_value *values);
#define AN_ONNX(o, op, ...)                                                                    \
    an_onnx_add(o, op, 1, (int)(sizeof(an_onnx_value[]){__VA_ARGS__} / sizeof(an_onnx_value)), \
                (an_onnx_value[]){__VA_ARGS__})

/* ---- constants ---- */
an_onnx_value an_onnx_real(an_onnx *o, an_dtype dtype, double value);            /* a scalar */
an_onnx_value an_onnx_reals(an_onnx *o, size_t count, const double *values);     /* f64, with one dimension */
an_onnx_value an_onnx_integer(an_onnx *o, int64_t value);                        /* a scalar, i64 */
an_onnx_value an_onnx_integers(an_onnx *o, size_t count, const int64_t *values); /* i64, with one dimension */

/* ---- sizes: i64, with one dimension ---- */
an_onnx_value an_onnx_size(an_onnx *o, an_dim dim); /* one element */
an_onnx_value an_onnx_shape(an_onnx *o, int count, const an_dim *dims);

int an_onnx_dtype(an_dtype dtype); /* its number in onnx.proto */
an_onnx_value an_onnx_cast(an_onnx *o, an_onnx_value value, an_dtype dtype);
an_onnx_value an_onnx_transpose_last(an_onnx *o, an_onnx_value value, int ndims);

#endif

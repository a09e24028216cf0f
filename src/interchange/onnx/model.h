/* A graph as an ONNX model: the function that evaluation and prediction compute. */
#ifndef AN_INTERCHANGE_ONNX_MODEL_H
#define AN_INTERCHANGE_ONNX_MODEL_H

#include "ir/graph.h"

/* What a model file consists of. Weights stand between the two parts of the ONNX graph, or are inputs. */
typedef struct an_onnx_parts {
    an_text model; /* fields of the model but for the graph */
    an_text graph; /* fields of the graph but for the weights */
} an_onnx_parts;

/* How the values of parameters and running statistics come in. */
typedef enum an_onnx_weights {
    AN_ONNX_WEIGHTS_INSIDE, /* the caller adds an_onnx_weight for each of those that an_onnx_reads names */
    AN_ONNX_WEIGHTS_GIVEN,  /* they are inputs, as x and tokens are: for tests */
} an_onnx_weights;

void an_onnx_parts_init(an_onnx_parts *parts, an_context *ctx);
void an_onnx_parts_destroy(an_onnx_parts *parts);

/* AN_ERR_UNSUPPORTED names an op that ONNX cannot say. `encoding` may be NULL. Afterwards, the `mark` of a node says
 * whether the model needs it. */
an_status an_onnx_write(an_onnx_parts *parts, an_graph *graph, const char *title, const char *encoding,
                        an_onnx_weights weights);
/* The field of the model that the ONNX graph is, up to its contents, which have `bytes` bytes in all. */
void an_onnx_graph_head(an_text *text, uint64_t bytes);

/* A weight of the ONNX graph. It is inside, and `bytes` bytes must follow the text; or in a file
 * beside it from `begin` on. */
void an_onnx_weight(an_text *text, const char *name, an_dtype dtype, int ndims, const int64_t *dims, uint64_t bytes,
                    const char *file, uint64_t begin);

#endif

/* Nodes of real models as cases.
 *
 * A case is a node of a compiled training step with the shapes, strides, types and attributes that its kernels are
 * really called with, fused or not. Floats are random; integers are 0 or 1, which fits wherever an index, a class or a
 * position is expected. Equal nodes are visited once, in the first model that has them.
 */
#ifndef CHECKOPS_NODES_H
#define CHECKOPS_NODES_H

#include "checkops/checkops.h"
#include "checkops/real_models.h"
#include "pass/call.h"

enum { NODE_OPERANDS = AN_MAX_INPUTS + AN_MAX_OUTPUTS };

/* A call with memory. */
typedef struct node_call {
    an_node_call at;
    void *memory[NODE_OPERANDS]; /* of the inputs, then of the outputs; NULL: absent */
    size_t bytes[NODE_OPERANDS];
} node_call;

typedef struct node_case {
    const check_options *options;
    const real_model *model;
    an_dtype dtype; /* of the model */
    an_graph *graph;
    const an_node *node;
    node_call whole; /* at the largest sizes */
} node_case;

typedef void node_function(node_case *c);

/* All nodes of an op in all models (those for --mode=rows, if `for_rows`) that the options ask for. */
void nodes_visit(const check_options *options, const an_op *op, bool for_rows, node_function *function);
void nodes_release(void); /* the models; when all ops were visited */

/* Takes memory for the tensors of a call and fills its inputs. An element depends on its number in C order alone: the
 * first samples of a batch are the same in a larger one. */
void node_call_fill(node_call *call, uint64_t seed);
void node_call_release(node_call *call);

/* Whether a kernel applies to a call, asked without data. */
bool node_call_applies(const node_call *call, const an_kernel *kernel, an_context *ctx);

/* Runs a kernel on fresh outputs, with the scratch that it asks for at the largest sizes. NULL, or what went wrong;
 * valid until the next call. */
const char *node_run(const node_case *c, node_call *call, const an_kernel *kernel, an_context *ctx,
                     const node_call *largest);

/* Prints a failure with the line that reproduces it. */
void node_fail(const node_case *c, const an_kernel *kernel, const char *format, ...) AN_PRINTF(3, 4);

#endif

/* The PyTorch code of each op. */
#ifndef AN_INTERCHANGE_TORCH_NODES_H
#define AN_INTERCHANGE_TORCH_NODES_H

#include "ir/graph.h"

/* A graph that is being written. */
typedef struct an_torch {
    an_graph *graph;
    an_text *text;
    int *slots;         /* of each result, the variable that holds it, x0, x1, …; -1: none */
    int *uses;          /* that are still to come */
    bool *taken;        /* variables that hold something */
    size_t count;       /* of all three: results of the graph */
    const char *device; /* an input, on whose device constants are made; NULL: none */
} an_torch;

/* How an op is written. */
typedef struct an_torch_form {
    const char *text;                                /* an_op.torch */
    void (*write)(an_torch *t, const an_node *node); /* instead of the text, where that cannot say it */
} an_torch_form;

bool an_torch_is_known(const an_op *op);
int an_torch_outputs(const an_node *node);                       /* how many of its outputs there are */
bool an_torch_reads(const an_op *op, int input);                 /* dropout does not read the numbers of samples */
void an_torch_expression(an_torch *t, const an_node *node);      /* what stands behind the "=" */
void an_torch_value(const an_torch *t, const an_result *result); /* its variable, input or parameter */
void an_torch_dimension(an_torch *t, an_dim dim);                /* n_batch * 2 */
void an_torch_string(an_text *text, const char *string);         /* "…" */
void an_torch_argument(an_text *text, const char *name);         /* an input's name, as Python can have it */
const char *an_torch_dtype(an_dtype dtype);                      /* "torch.float32" */

#endif

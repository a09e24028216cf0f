/* How each op is written in ONNX. */
#ifndef AN_INTERCHANGE_ONNX_NODES_H
#define AN_INTERCHANGE_ONNX_NODES_H

#include "interchange/onnx/build.h"

typedef struct an_onnx_form {
    const char *name; /* the op's */
    /* Adds the nodes and returns the value of the first output. NONE: an error is in o->status. */
    an_onnx_value (*write)(an_onnx *o, const an_node *node); /* NULL: ONNX does not have the op */
    bool many;                                               /* has all its outputs, in a row; others have the first */
    int inputs;                                              /* only these first ones are read; 0: all */
} an_onnx_form;

an_onnx_form an_onnx_form_of(const an_op *op);
an_onnx_value an_onnx_node(an_onnx *o, const an_node *node);

/* ---- in a file of their own ---- */
an_onnx_value an_onnx_attention(an_onnx *o, const an_node *node);
an_onnx_value an_onnx_rotary(an_onnx *o, const an_node *node);

#endif

/* A node as a kernel's call, at its largest sizes and without data. */
#ifndef AN_PASS_CALL_H
#define AN_PASS_CALL_H

#include "ir/graph.h"

typedef struct an_node_call {
    an_call call;
    an_tensor src[AN_MAX_INPUTS], dst[AN_MAX_OUTPUTS];
    _Alignas(16) char attributes[AN_MAX_ATTRIBUTE_BYTES];
} an_node_call;

an_status an_node_call_make(const an_graph *g, const an_node *node, an_node_call *call);

/* Copies a node's attributes with every dimension replaced by its number: what kernels read. */
an_status an_node_resolve_attributes(const an_graph *g, const an_node *node, void *attributes);

#endif

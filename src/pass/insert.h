/* Nodes that a pass adds after select: they get their kernels at once. */
#ifndef AN_PASS_INSERT_H
#define AN_PASS_INSERT_H

#include "ir/graph.h"

typedef struct an_insertion {
    const an_op *op;
    const an_value *inputs;
    int input_count, output_count;
    const void *attributes;
    an_node *before;     /* NULL: at the end */
    const an_node *like; /* gives origin, block, path and place; NULL: none */
    const char *path;    /* NULL: that of `like`. In the graph's memory */
    an_phase phase;
} an_insertion;

/* Adds the node, for whose first kernel nothing has to be asked. `node` may be NULL. */
an_status an_pass_insert(an_graph *g, const an_insertion *insertion, an_node **node);

#endif

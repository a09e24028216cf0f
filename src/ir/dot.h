/* A graph as a picture, in Graphviz's language. */
#ifndef AN_IR_DOT_H
#define AN_IR_DOT_H

#include "ir/graph.h"

/* Appends the graph; an error sticks to the text. Works after any pass: gradient nodes have a colour of their own, and
 * kernels are shown once they are chosen. */
void an_graph_draw(const an_graph *g, an_text *text);

#endif

/* A graph as a program for PyTorch: the function that evaluation and prediction compute, one line for each node. */
#ifndef AN_INTERCHANGE_TORCH_TEXT_H
#define AN_INTERCHANGE_TORCH_TEXT_H

#include "ir/graph.h"

/* Adds the text of a module in Python with a class Model, whose parameters and buffers have the graph's names,
 * and a function load(). `title` is the first line of its documentation. AN_ERR_UNSUPPORTED names an op that
 * has no row in the table. */
an_status an_torch_write(an_text *text, an_graph *graph, const char *title);

#endif

/* The check that runs when a graph is passed to the library and, in tests, between passes. */
#ifndef AN_IR_VERIFY_H
#define AN_IR_VERIFY_H

#include "ir/graph.h"

an_status an_graph_check(an_graph *g);

#endif
